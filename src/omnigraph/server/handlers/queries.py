"""Reads, mutations and stored queries."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from omnigraph.api.graph_at import node_documents
from omnigraph.api.handle import newest_state
from omnigraph.api.schema import restricted_catalog
from omnigraph.api.statements import branch_statement
from omnigraph.errors import HeadMoved, StoredQueryNotFound, UnknownParameter, WrongQueryKind
from omnigraph.graph.gate import Action
from omnigraph.json_structs import described
from omnigraph.language.query.file_statements import BranchAction, BranchStatement
from omnigraph.language.query.parse import parse_queries
from omnigraph.language.syntax import Source
from omnigraph.plan.lint import lint_queries
from omnigraph.plan.params import JsonParameters
from omnigraph.read.budget import QueryBudget
from omnigraph.server.call import ARROW_STREAM, Answer, Call, branch_of, source_text
from omnigraph.server.handlers.branches import list_as_rows, run_statement
from omnigraph.server.handlers.slow_queries import report_slow_query
from omnigraph.server.problems import ConditionFailed, HttpProblem
from omnigraph.wire.contracts import CONTRACT_13
from omnigraph.wire.documents07 import ExplainOutput, QueriesCatalogOutput, WarningOutput
from omnigraph.wire.documents13 import CheckedParamOutput, CheckedQueryOutput, CheckOutput
from omnigraph.wire.errors import DiagnosticOutput
from omnigraph.wire.requests import (
    BudgetRequest,
    ChangeRequest,
    CheckRequest,
    ExplainRequest,
    InvokeStoredQueryRequest,
    MutateRequest,
    QueryRequest,
    ReadRequest,
)
from omnigraph.wire.rows import object_13
from omnigraph.wire.values import untagged

if TYPE_CHECKING:
    from omnigraph.api.graph_at import GraphAt
    from omnigraph.read.result import Result
    from omnigraph.wire.rows import Objects

CONDITION: Final = "omnigraph-if-graph-commit"
CONDITIONAL_ROUTE: Final = "if-graph-commit"

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class PythonParameters:
    """Parameters as the Python client has them."""

    values: dict[str, Any]


Params = dict[str, Any] | PythonParameters | None


def given_params(params: dict[str, Any] | None, typed: dict[str, Any] | None) -> Params:
    """The parameters of a request. Raises `HttpProblem` 400 for both kinds at once."""
    if typed is None:
        return params
    if params is not None:
        raise HttpProblem(400, "specify params or typed_params, not both")
    return PythonParameters(typed_values(typed))


def typed_values(typed: dict[str, Any]) -> dict[str, Any]:
    """Parameters in the form of the Python client. Raises `HttpProblem` 400."""
    try:
        return {name: untagged(value) for name, value in typed.items()}
    except ValueError as error:
        raise HttpProblem(400, f"typed_params are not valid: {error}") from None


def budget_of(call: Call, given: BudgetRequest | None) -> QueryBudget:
    """The limits that a client asks for, as far as they are below those of the server."""
    own = call.state.budget
    if given is None:
        return own
    return QueryBudget(
        own.max_rows if given.max_rows is None else min(own.max_rows, given.max_rows),
        own.max_bytes if given.max_bytes is None else min(own.max_bytes, given.max_bytes),
        own.timeout_s if given.timeout_s is None else min(own.timeout_s, given.timeout_s),
    )


def query(call: Call) -> Answer:
    """Run a read query."""
    body: QueryRequest = call.body
    if call.is_13 and (statement := branch_statement(body.query)):
        if statement.action is not BranchAction.LIST:
            raise HttpProblem(
                400, f"branch {statement.action.value} is a mutation; use POST /mutate"
            )
        _refuse_options(statement, body.name, body.params, body.branch, body.snapshot)
        return Answer(list_as_rows(call))
    try:
        return _read(
            call,
            body.query,
            body.name,
            given_params(body.params, body.typed_params),
            body.branch,
            body.snapshot,
            budget=budget_of(call, body.budget),
            exact=body.exact,
        )
    except WrongQueryKind as error:
        message = f"query '{error.query_name}' contains mutations; use POST /mutate for writes"
        raise HttpProblem(400, message, cause=error) from None


def read(call: Call) -> Answer:
    """Run a read query."""
    body: ReadRequest = call.body
    return _read(call, body.query_source, body.query_name, body.params, body.branch, body.snapshot)


def explain(call: Call) -> Answer:
    """Show the plan of a read query."""
    body: ExplainRequest = call.body
    state = state_of(call, body.branch, body.snapshot)
    found, _ = _bound(
        call,
        given_params(body.params, body.typed_params),
        lambda params: state.explain(
            source_text(body.query),
            params,
            name=body.name,
            budget=budget_of(call, body.budget),
            cancel=call.cancel,
            exact=body.exact,
            analyze=body.analyze,
        ),
    )
    flat = {"looks_up": found.looks_up, "steps": msgspec.to_builtins(found.steps)}
    return Answer(msgspec.convert(found.to_json() | flat, described(ExplainOutput)))


def check(call: Call) -> Answer:
    """Check a text of queries against the schema, without running it."""
    body: CheckRequest = call.body
    state = state_of(call, body.branch, body.snapshot)
    source = Source("<query>", body.query)
    found = lint_queries(source, state.catalog)
    wrong = [one.diagnostic for one in found.findings] + [one.diagnostic for one in found.results]
    listed = parse_queries(source).queries if found.results else ()
    return Answer(
        CheckOutput(
            queries=[
                CheckedQueryOutput(
                    name=query.name.text,
                    mutation=query.is_mutation,
                    params=[
                        CheckedParamOutput(
                            name=one.name,
                            type=one.type.type.display,
                            has_default=one.default is not None,
                        )
                        for one in query.parameters
                    ],
                )
                for query in listed
            ],
            diagnostics=[
                msgspec.convert(one.to_json(), described(DiagnosticOutput)) for one in wrong if one
            ],
        )
    )


def _read(
    call: Call,
    source: str,
    name: str | None,
    params: Params,
    branch: str | None,
    snapshot: str | None,
    *,
    budget: QueryBudget | None = None,
    exact: bool = False,
) -> Answer:
    state = state_of(call, branch, snapshot)
    began = perf_counter()
    try:
        result, warnings = _bound(
            call,
            params,
            lambda given: state.query(
                source_text(source),
                given,
                name=name,
                budget=budget or call.state.budget,
                cancel=call.cancel,
                exact=exact,
            ),
        )
        call.rows = len(result)
        call.state.metrics.add_rows(call.rows)
    finally:
        if (seconds := perf_counter() - began) > call.state.slow_query_seconds:
            report_slow_query(call, state, source, name, seconds)
    if ARROW_STREAM in call.headers.get("accept", ""):
        return Answer(content=_arrow(result), media_type=ARROW_STREAM)
    objects = _objects(state, result) if call.documents is CONTRACT_13 else {}
    return Answer(call.documents.read(result, warnings, objects))


def _objects(state: GraphAt, result: Result) -> Objects:
    """The nodes of the columns that are variables themselves."""
    found: Objects = {}
    for column, type_name in result.entities.items():
        ids = [one for one in result.to_arrow().column(column).unique().to_pylist() if one]
        properties = state.catalog.nodes[type_name].properties
        types = {name: prop.type for name, prop in properties.items()}
        nodes = node_documents(state, type_name, ids)
        found[column] = {one: object_13(node, types) for one, node in nodes.items()}
    return found


def state_of(call: Call, branch: str | None, snapshot: str | None) -> GraphAt:
    """The state to read, if the caller may read its branch."""
    if branch is not None and snapshot is not None:
        raise HttpProblem(400, "specify branch or snapshot, not both")
    graph = call.graph
    if snapshot is not None:
        state = graph.at(snapshot)
        call.allow(Action.READ, state.branch)
        return state
    name = branch_of(branch)
    call.allow(Action.READ, name)
    return newest_state(graph, name)


def _bound(
    call: Call, params: Params, run: Callable[[Mapping[str, Any]], R]
) -> tuple[R, list[WarningOutput]]:
    """Run with the parameters. Without a version header, undeclared ones are left out with a warning.

    Those of the Python client are Python values, of which none is left out.
    """
    if isinstance(params, PythonParameters):
        return run(params.values), []
    given = JsonParameters(params or {})
    warnings: list[WarningOutput] = []
    while True:
        try:
            return run(given), warnings
        except UnknownParameter as error:
            if call.is_13 or error.parameter is None:
                raise
            del given[error.parameter]
            warnings.append(WarningOutput(code="unknown_parameter", message=error.message))


def _arrow(result: Result) -> bytes:
    """The rows as an Arrow stream, followed by one for each further result.

    The metadata of each schema says what was read, that of the first also which results follow.
    """
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    for one in (result, *result.results.values()):
        about = {
            "query_name": one.query_name,
            "target": one.target,
            "graph_commit_id": one.commit_id,
            "types": [kind.display for kind in one.types],
            "prop_types": [msgspec.to_builtins(kind) for kind in one.types],
            "entities": dict(one.entities),
            **({"results": list(one.results)} if one.results else {}),
        }
        table = one.to_arrow()
        table = table.replace_schema_metadata({"omnigraph": json.dumps(about)})
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


# -- mutations ------------------------------------------------------------------------------


def mutate(call: Call) -> Answer:
    """Run a mutation query as one commit."""
    if CONDITION in call.headers:
        raise _wrong_door("/mutate")
    source, name = _mutation_source(call.body)
    body = call.body
    if call.is_13 and (statement := branch_statement(source)):
        if statement.action is BranchAction.LIST:
            raise HttpProblem(400, "branch list is a read; use POST /query")
        _refuse_options(statement, name, body.params, body.branch, body.expected_head)
        return Answer(run_statement(call, statement))
    if branch_statement(source):
        # The policy of branches is asked for statements of the newer contract only.
        raise HttpProblem(400, "branch statements need the header Omnigraph-Http-Api: 0.13")
    params = body.params
    if isinstance(body, ChangeRequest):
        params = given_params(body.params, body.typed_params)
    return _mutate(call, source, name, params, body.branch, body.expected_head, body.message)


def mutate_if(call: Call) -> Answer:
    """Run a mutation query if the branch is at the commit of the condition header."""
    body: MutateRequest = call.body
    expected = _condition(call)
    if body.expected_head is not None:
        raise HttpProblem(400, "the condition header and expected_head are exclusive")
    if statement := branch_statement(body.query):
        raise HttpProblem(
            400, f"branch {statement.action.value} takes no condition; use POST /mutate"
        )
    try:
        return _mutate(
            call, body.query, body.name, body.params, body.branch, expected, body.message
        )
    except HeadMoved as error:
        raise ConditionFailed(error) from error


def _refuse_options(statement: BranchStatement, *given: object) -> None:
    if any(option is not None for option in given):
        taken = "name, params, branch, snapshot or expected_head"
        raise HttpProblem(400, f"branch {statement.action.value} takes no {taken}")


def _mutation_source(body: ChangeRequest | MutateRequest) -> tuple[str, str | None]:
    if isinstance(body, MutateRequest):
        return body.query, body.name
    if (body.query is None) == (body.query_source is None):
        problem = "exactly one of `query` and `query_source` is required"
        raise HttpProblem(422, f"the request body is not valid: {problem}")
    if body.name is not None and body.query_name is not None:
        raise HttpProblem(
            422, "the request body is not valid: `name` and `query_name` are the same"
        )
    source = body.query if body.query is not None else body.query_source
    assert source is not None
    return source, body.name if body.name is not None else body.query_name


def _mutate(
    call: Call,
    source: str,
    name: str | None,
    params: Params,
    branch: str | None,
    expected_head: str | None,
    message: str | None,
) -> Answer:
    on = branch_of(branch)
    call.allow(Action.CHANGE, on)
    estimate = len(source) + len(msgspec.json.encode(params or {}))
    with call.admit(estimate):
        try:
            done, _ = _bound(
                call,
                params,
                lambda given: call.graph.mutate(
                    source_text(source),
                    given,
                    name=name,
                    branch=on,
                    message=message,
                    expected_head=expected_head,
                    idempotency_key=call.idempotency_key,
                ),
            )
        except WrongQueryKind as error:
            message = f"query '{error.query_name}' is a read; use POST /query for reads"
            raise HttpProblem(400, message, cause=error) from None
    return Answer(call.documents.mutation(call.noted(done)))


def _condition(call: Call) -> str:
    """The commit id of the condition header. Raises `HttpProblem` 400 unless it is one id."""
    given = call.headers.get(CONDITION, "").strip()
    if not given or not given.isascii() or not given.isalnum():
        raise HttpProblem(
            400, "header Omnigraph-If-Graph-Commit must be given once, with one commit id"
        )
    return given


def _wrong_door(path: str) -> HttpProblem:
    return HttpProblem(
        400,
        f"header Omnigraph-If-Graph-Commit does not apply here; use POST {path}/{CONDITIONAL_ROUTE}",
    )


# -- stored queries -------------------------------------------------------------------------


def list_queries(call: Call) -> Answer:
    """List the stored queries that are exposed."""
    call.allow(Action.READ, "main")
    listed = [
        msgspec.to_builtins(one)
        for one in call.target.queries.exposed(restricted_catalog(call.graph))
    ]
    return Answer(msgspec.convert({"queries": listed}, described(QueriesCatalogOutput)))


def invoke(call: Call) -> Answer:
    """Run a stored query."""
    if CONDITION in call.headers:
        raise _wrong_door(f"/queries/{call.path['name']}")
    return _invoke(call, None)


def invoke_if(call: Call) -> Answer:
    """Run a stored mutation if the branch is at the commit of the condition header."""
    expected = _condition(call)
    try:
        return _invoke(call, expected)
    except HeadMoved as error:
        raise ConditionFailed(error) from error


def _invoke(call: Call, expected: str | None) -> Answer:
    name = call.path["name"]
    stored = call.target.queries.invocable(name, call.actor, call.target.gate)
    if not stored.fits(restricted_catalog(call.graph)):
        # Its errors would name what is hidden from the caller.
        raise StoredQueryNotFound
    body: InvokeStoredQueryRequest = call.body or InvokeStoredQueryRequest()
    if body.expect_mutation is not None and body.expect_mutation != stored.is_mutation:
        kind = "mutation" if stored.is_mutation else "read"
        raise HttpProblem(400, f"stored query '{name}' is a {kind}")
    if not stored.is_mutation:
        if expected is not None:
            raise HttpProblem(400, f"stored query '{name}' is a read; a condition needs a mutation")
        return _read(call, stored.source, stored.name, body.params, body.branch, body.snapshot)
    if body.snapshot is not None:
        raise HttpProblem(400, f"stored query '{name}' is a mutation; it takes no snapshot")
    head = body.expected_head if expected is None else expected
    return _mutate(call, stored.source, stored.name, body.params, body.branch, head, body.message)
