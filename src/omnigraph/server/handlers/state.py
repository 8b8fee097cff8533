"""The state of a graph: snapshot, schema, commits, status, entities; and of the server."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from omnigraph._version import __version__
from omnigraph.api.graph_at import entity_document
from omnigraph.api.handle import newest_state
from omnigraph.catalog.migrate.report import step_lines
from omnigraph.catalog.model import Catalog, EdgeType
from omnigraph.errors import EntityNotFound, PolicyError, PolicyUndecided, QueriesBroken
from omnigraph.graph.gate import Action, Request
from omnigraph.history.commits import from_micros
from omnigraph.json_structs import described
from omnigraph.server.call import MAIN, Answer, Call, branch_of, source_text
from omnigraph.server.metrics import MEDIA_TYPE
from omnigraph.server.problems import HttpProblem
from omnigraph.versioning.rows import FORMAT_STAMP
from omnigraph.wire import documents07 as v07
from omnigraph.wire import documents13 as v13
from omnigraph.wire.contracts import CONTRACT_07, RELEASE_13, receipt_fields
from omnigraph.wire.documents13 import GraphAction
from omnigraph.wire.requests import SchemaApplyRequest, SchemaPlanRequest
from omnigraph.wire.values import tagged

if TYPE_CHECKING:
    from omnigraph.api.graph_at import GraphAt
    from omnigraph.diff.feed import EntityChange

# -- the server -----------------------------------------------------------------------------


def health(call: Call) -> Answer:
    """Say that the process lives."""
    if call.is_13:
        document = v07.HealthOutput(
            version=RELEASE_13,
            internal_schema_version=FORMAT_STAMP,
            source_version=f"omnigraph-py {__version__}",
        )
    else:
        document = v07.HealthOutput(
            version=__version__,
            internal_schema_version=FORMAT_STAMP,
            source_version=call.state.source_version or msgspec.UNSET,
        )
    return Answer(document, headers={"Cache-Control": "no-store"})


def ready(call: Call) -> Answer:
    """Say whether the server takes requests."""
    state = call.state
    opened, others, cluster = len(state.graphs), state.graphs.unavailable(), state.cluster
    loading = sum(one.state == "loading" for one in others)
    blocked = len(others) - loading
    is_ready = not state.is_draining and not loading and (opened > 0 or not others)
    document = v07.ReadyOutput(
        ready=is_ready,
        status=_readiness(
            is_draining=state.is_draining, ready=opened, loading=loading, blocked=blocked
        ),
        served_graph_count=opened + len(others),
        ready_graph_count=opened,
        loading_graph_count=loading,
        blocked_graph_count=blocked,
        state_revision=0 if cluster is None else cluster.state_revision,
        state_cas=None if cluster is None else cluster.state_cas,
        booted_serving_digest=None if cluster is None else cluster.digest,
        shutdown_grace_seconds=state.shutdown_grace_seconds,
    )
    return Answer(document, status=200 if is_ready else 503)


def _readiness(
    *, is_draining: bool, ready: int, loading: int, blocked: int
) -> Literal["draining", "loading", "blocked", "degraded", "serving"]:
    if is_draining:
        return "draining"
    if loading:
        return "loading"
    if blocked:
        return "degraded" if ready else "blocked"
    return "serving"


def metrics(call: Call) -> Answer:
    """Show the metrics of the server for Prometheus."""
    content = call.state.metrics.text(with_graphs=_may_list(call))
    return Answer(content=content, media_type=MEDIA_TYPE)


def _may_list(call: Call) -> bool:
    gate = call.state.server_gate
    if gate is None or call.actor is None:
        return False
    try:
        gate.check(Request(call.actor, Action.GRAPH_LIST))
    except PolicyError:
        return False
    return True


def caller(call: Call) -> Answer:
    """Show the actor of the caller's token."""
    return Answer(v07.CallerOutput(actor_id=call.actor))


def session(call: Call) -> Answer:
    """Show the actor of the caller's token, and the graphs to choose from."""
    state = call.state
    is_listed = not state.graphs.is_multi
    if state.server_gate is not None and state.graphs.is_multi:
        try:
            state.server_gate.check(Request(call.actor, Action.GRAPH_LIST))
            is_listed = True
        except PolicyUndecided:
            raise
        except PolicyError:
            is_listed = False
    graphs = sorted(served.id for served in state.graphs) if is_listed else []
    return Answer(v13.SessionOutput(actor_id=call.actor, version=__version__, graphs=graphs))


def protected_resource(call: Call) -> Answer:
    """OAuth metadata, which a server with static tokens has none of."""
    raise HttpProblem(404, "this server uses static tokens; it has no OAuth metadata")


def list_graphs(call: Call) -> Answer:
    """List the graphs of a server for several graphs."""
    state = call.state
    if not state.graphs.is_multi:
        raise HttpProblem(405, "this server serves one graph; only a server for several lists them")
    if state.server_gate is None:
        raise HttpProblem(403, "the list of graphs needs a server policy that allows graph_list")
    state.server_gate.check(Request(call.actor, Action.GRAPH_LIST))
    if call.documents is CONTRACT_07:
        listed = [v07.GraphInfo(graph_id=served.id, uri=served.uri) for served in state.graphs]
        return Answer(v07.GraphListResponse(graphs=listed))
    graphs = [
        v13.GraphInfo(
            graph_id=served.id,
            uri=served.uri,
            state="stopping" if state.is_draining else "ready",
            read_available=True,
            write_available=True,
            action="wait_for_restart" if state.is_draining else "none",
        )
        for served in state.graphs
    ]
    graphs += (
        v13.GraphInfo(
            graph_id=other.id,
            uri=other.uri,
            state=other.state,
            read_available=False,
            write_available=False,
            action=_ACTIONS[other.state],
            failure=other.failure or msgspec.UNSET,
        )
        for other in state.graphs.unavailable()
    )
    graphs.sort(key=lambda one: one.graph_id)
    return Answer(v13.GraphListResponse(graphs=graphs))


_ACTIONS: Final[Mapping[str, GraphAction]] = {
    "loading": "wait_for_startup",
    "transitioning": "wait_for_transition",
    "blocked": "apply_correction_or_restart",
}


def discover_graphs(call: Call) -> Answer:
    """Graphs by identity, which static tokens are not."""
    raise HttpProblem(403, "graph discovery requires an admitted identity credential")


def list_runs(call: Call) -> Answer:
    """Runs of an earlier write path: none."""
    call.allow(Action.READ)
    return Answer(v07.RunListOutput(runs=[]))


def find_run(call: Call) -> Answer:
    """A run of an earlier write path: there is none."""
    call.allow(Action.READ)
    raise HttpProblem(404, f"run '{call.path['run_id'][:64]}' not found")


# -- one graph ------------------------------------------------------------------------------


def permissions(call: Call) -> Answer:
    """Show what the caller may do with a branch."""
    call.only("branch", "target")
    branch, target = branch_of(call.one("branch")), branch_of(call.one("target"))
    document = v13.PermissionsOutput(
        actor_id=call.actor,
        branch=branch,
        target=target,
        read=call.may(Action.READ, branch),
        change=call.may(Action.CHANGE, branch),
        merge=call.may(Action.BRANCH_MERGE, branch, target),
    )
    return Answer(document)


def snapshot(call: Call) -> Answer:
    """Show every table of a branch and its version."""
    return Answer(call.documents.snapshot(_state(call), FORMAT_STAMP))


def schema(call: Call) -> Answer:
    """Show the schema."""
    ref = call.one("snapshot")
    if ref is None:
        call.allow(Action.READ)
        catalog = None
    else:
        catalog = _state(call).catalog
    document = call.documents.schema(call.graph.schema.source)
    if not call.switch("compiled"):
        return Answer(document)
    ir = (catalog or call.graph.schema.catalog).ir
    return Answer(msgspec.to_builtins(document) | {"schema_ir": ir.to_json()})


def plan_schema(call: Call) -> Answer:
    """Show the steps that lead to another schema."""
    body: SchemaPlanRequest = call.body
    call.allow(Action.READ)
    plan = call.graph.schema.plan(
        source_text(body.schema_source), allow_data_loss=body.allow_data_loss
    )
    document = plan.document(call.uri)
    return Answer(msgspec.convert(document, described(v07.SchemaPlanOutput)))


def apply_schema(call: Call) -> Answer:
    """Change the schema as one commit on main."""
    body: SchemaApplyRequest = call.body
    call.allow(Action.SCHEMA_APPLY, target_branch=MAIN)
    if call.state.cluster is not None:
        message = (
            "the schema of a cluster's graph is declared; change it with `omnigraph cluster apply`"
        )
        raise HttpProblem(409, message)
    with call.admit(len(body.schema_source)):
        try:
            done = call.graph.schema.apply(
                source_text(body.schema_source),
                allow_data_loss=body.allow_data_loss,
                message=body.message,
                expected_head=body.expected_head,
                idempotency_key=call.idempotency_key,
                queries=[
                    source_text(text) for text in (*call.target.queries.sources(), *body.queries)
                ],
                engine=call.state.engine,
            )
        except QueriesBroken as error:
            message = f"stored queries failed the schema check: {error.message}"
            raise HttpProblem(400, message, cause=error) from error
    call.noted(done)
    return Answer(
        v07.SchemaApplyOutput(
            uri=call.uri,
            supported=True,
            applied=done.applied,
            step_count=len(done.plan.steps),
            steps=[step.to_json() for step in done.plan.steps],
            actor_id=call.actor,
            lines=step_lines(done.plan),
            **receipt_fields(done.receipt),
        )
    )


def list_commits(call: Call) -> Answer:
    """List the commits of a branch."""
    given = call.one("branch")
    branch = branch_of(given)
    # Without a branch, contract 0.7 asks the policy about no branch in particular.
    call.allow(Action.READ, branch if given is not None or call.is_13 else None)
    graph = call.graph
    if call.one("number") is not None:
        # A number counts on its branch, which the handle has to be bound to.
        found = graph.checkout(branch).commit(call.integer("number", 0))
        return Answer(call.documents.commits([found]))
    is_reverse = call.switch("reverse")
    listed = graph.log(
        branch,
        actor=call.one("actor"),
        operation=call.one("operation"),
        since=_bound(call.one("since")),
        until=_bound(call.one("until")),
        limit=None if call.one("limit") is None else call.integer("limit", 0),
        merged=call.switch("merged"),
        reverse=is_reverse,
    )
    return Answer(call.documents.commits(listed[::-1] if is_reverse else listed))


def _bound(text: str | None) -> str | datetime | None:
    """A commit or a time; `@N` is a time in microseconds, as documents have it."""
    if text is None or not (text.startswith("@") and text[1:].isascii() and text[1:].isdigit()):
        return text
    try:
        return from_micros(int(text[1:]))
    except OverflowError:
        raise HttpProblem(400, f"'{text[:32]}' is not a time in microseconds") from None


def commit(call: Call) -> Answer:
    """Show one commit of any branch."""
    call.allow(Action.READ)
    return Answer(call.documents.commit(call.graph.commit(call.path["commit_id"])))


def status(call: Call) -> Answer:
    """Show sizes, index coverage and interrupted writes."""
    branch = branch_of(call.one("branch"))
    call.allow(Action.READ, branch)
    found = call.graph.maintenance.status(branch)
    document = found.to_json() | {"uri": call.uri}
    for told, table in zip(document["tables"], found.tables, strict=True):
        told |= {"small_fragments": table.small_fragments, "has_dropped": table.has_dropped}
    document |= {
        "pending": list(found.recovery.pending),
        "quarantined": [one.to_json() for one in found.recovery.quarantined],
        "lease_notes": [one.to_json() for one in found.leases],
    }
    return Answer(msgspec.convert(document, described(v07.StatusOutput)))


# -- one entity -----------------------------------------------------------------------------


def entity(call: Call) -> Answer:
    """Show one node or edge."""
    state = _state(call)
    type_name, entity_id = call.path["type_name"], call.path["entity_id"]
    kind, is_typed = _kind(state.catalog, type_name), call.switch("typed")
    found = entity_document(state, type_name, entity_id)
    if found is None:
        raise EntityNotFound(type_name, entity_id)
    endpoints = {"from": found.pop("src"), "to": found.pop("dst")} if kind == "edge" else None
    return Answer(
        v07.EntityOutput(
            entity_kind=kind,
            type_name=type_name.partition(":")[2] or type_name,
            entity_id=found.pop("id"),
            endpoints=endpoints or msgspec.UNSET,
            properties=found,
            graph_commit_id=state.commit_id,
            typed=tagged(state.get(type_name, entity_id)) if is_typed else msgspec.UNSET,
        )
    )


def _state(call: Call) -> GraphAt:
    """The state that the query string names, if the caller may read its branch."""
    branch, ref = call.one("branch"), call.one("snapshot")
    if branch is not None and ref is not None:
        raise HttpProblem(400, "specify branch or snapshot, not both")
    if ref is not None:
        state = call.graph.at(ref)
        call.allow(Action.READ, state.branch)
        return state
    name = branch_of(branch)
    call.allow(Action.READ, name)
    return newest_state(call.graph, name)


def entity_history(call: Call) -> Answer:
    """Show the commits that changed one node or edge, oldest first."""
    branch = branch_of(call.one("branch"))
    call.allow(Action.READ, branch)
    type_name, entity_id = call.path["type_name"], call.path["entity_id"]
    graph = call.graph
    kind = _kind(graph.schema.catalog, type_name)
    is_typed = call.switch("typed")
    changes = [
        _entity_change(change, is_typed=is_typed)
        for change in graph.history(type_name, entity_id, branch=branch)
    ]
    if not changes:
        raise EntityNotFound(type_name, entity_id)
    document = v07.EntityHistoryOutput(
        entity_kind=kind, type_name=type_name, entity_id=entity_id, changes=changes
    )
    return Answer(document)


def _entity_change(change: EntityChange, *, is_typed: bool) -> v07.EntityChangeOutput:
    document = msgspec.convert(change.to_json(), described(v07.EntityChangeOutput))
    if not is_typed:
        return document
    return msgspec.structs.replace(
        document,
        commit=CONTRACT_07.commit(change.commit),
        typed_before=tagged(change.before),
        typed_after=tagged(change.after),
    )


def _kind(catalog: Catalog, type_name: str) -> Literal["node", "edge"]:
    from omnigraph.read.entities import find_type

    return "edge" if isinstance(find_type(catalog, type_name), EdgeType) else "node"
