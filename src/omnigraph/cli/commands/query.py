"""`omnigraph query`, `explain`, `mutate` and `snapshot`: run queries, show a branch's state."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any, Unpack

import click

from omnigraph.cli.context import Context, address_or_server, open_graph
from omnigraph.cli.exits import Style, condition_lost
from omnigraph.cli.framework import declare
from omnigraph.cli.options import (
    ChosenQuery,
    ParamsOptions,
    QueryOptions,
    StoredQuery,
    branch_option,
    chosen_query,
    exact_option,
    expect_head_option,
    idempotency_key_option,
    if_commit_option,
    json_option,
    message_option,
    params_options,
    query_branch_option,
    query_options,
    refuse_two_states,
    set_option,
    state_options,
    uri_argument,
)
from omnigraph.cli.output.answers import (
    as_document,
    warn_of_document,
    write_answer,
    written_lines,
)
from omnigraph.cli.output.results import (
    FORMATS,
    Format,
    choose_format,
    write_explanation,
    write_read,
    write_result,
)
from omnigraph.diagnostics import counted
from omnigraph.errors import HeadMoved, UsageError

format_option = click.option(
    "--format",
    type=click.Choice(FORMATS),
    help="Output format.  [default: that of the alias or the configuration, or table]",
)


@declare("query")
@query_options
@state_options
@exact_option
@set_option
@click.option(
    "--explain", "explained", is_flag=True, help="Show the execution plan, as `explain` does."
)
@format_option
@json_option
@click.pass_obj
def query(
    context: Context,
    branch: str | None,
    snapshot: str | None,
    exact: bool,
    settings: Mapping[str, object],
    explained: bool,
    format: Format | None,
    as_json: bool,
    **options: Unpack[QueryOptions],
) -> None:
    """Run a read query on the graph at URI and print its rows.

    table and kv are made for people; csv has a header; jsonl begins with a line about the result;
    json is the document that --json prints. With a server, a word in place of URI is the name of a
    stored query.
    """
    refuse_two_states(branch, snapshot)
    if as_json and format is not None:
        raise click.UsageError("--format and --json are exclusive; use one of them.")
    if explained and format is not None:
        raise click.UsageError("--format and --explain are exclusive; use one of them.")
    query = chosen_query(options, context)
    if explained:
        _explain(query, context, branch, snapshot, exact=exact, analyze=False, as_json=as_json)
        return
    wanted = choose_format(
        "json" if as_json else None, format, query.format, context.default_format
    )
    look = (wanted, sys.stdout, context.table_layout, Style.of(sys.stdout))
    if isinstance(query, StoredQuery):
        write_read(_read_stored(query, context, branch, snapshot), *look)
        return
    graph = query.graph(context)
    if snapshot is None:
        branch = query.branch(branch, context)
    if isinstance(graph, str):
        opened = open_graph(graph, context, read_only=True)
        result = opened.query(
            query.source, query.params, name=query.name, branch=branch, at=snapshot, exact=exact
        )
        write_result(result, *look)
        return
    graph.source_name = query.file
    document = graph.query(
        query=query.text,
        name=query.name,
        params=query.given,
        branch=branch,
        snapshot=snapshot,
        settings=settings or None,
        exact=exact or None,
    )
    write_read(document, *look)


def _read_stored(
    query: StoredQuery, context: Context, branch: str | None, snapshot: str | None
) -> dict[str, Any]:
    graph = query.graph(context)
    if query.is_alias:
        return graph.aliased(query.name, query.given)
    if snapshot is None:
        branch = branch or context.default_branch
    params = query.given
    return graph.stored(query.name, mutation=False, params=params, branch=branch, snapshot=snapshot)


@declare("alias")
@click.argument("name")
@click.argument("arguments", nargs=-1, metavar="[ARGS]...")
@params_options
@format_option
@json_option
@click.pass_context
def alias(
    ctx: click.Context,
    name: str,
    arguments: tuple[str, ...],
    format: Format | None,
    as_json: bool,
    **params: Unpack[ParamsOptions],
) -> None:
    """Run the read query that the alias NAME stands for, as `query --alias` does.

    ARGS fill the parameters that the alias lists, in their order; --params wins over them.
    """
    given = {"words": arguments, "alias": name, "format": format, "as_json": as_json}
    ctx.invoke(query, **given, **params)


@declare("explain")
@query_options
@state_options
@exact_option
@click.option("--analyze", is_flag=True, help="Run the query and show real rows and time per step.")
@json_option
@click.pass_obj
def explain(
    context: Context,
    branch: str | None,
    snapshot: str | None,
    exact: bool,
    analyze: bool,
    as_json: bool,
    **options: Unpack[QueryOptions],
) -> None:
    """Show the execution plan of a read query, with estimated rows per step.

    With --analyze the query is run. Every step then also shows the rows it left, the time it took
    and how often it went to the storage for single nodes or edges.
    """
    refuse_two_states(branch, snapshot)
    query = chosen_query(options, context)
    _explain(query, context, branch, snapshot, exact=exact, analyze=analyze, as_json=as_json)


def _explain(
    query: ChosenQuery | StoredQuery,
    context: Context,
    branch: str | None,
    snapshot: str | None,
    *,
    exact: bool,
    analyze: bool,
    as_json: bool,
) -> None:
    if isinstance(query, StoredQuery):
        raise UsageError(
            f"'{query.name}' is a stored query; explain the file it is in with --query"
        )
    graph = query.graph(context)
    if snapshot is None:
        branch = query.branch(branch, context)
    if isinstance(graph, str):
        document = (
            open_graph(graph, context, read_only=True)
            .explain(
                query.source,
                query.params,
                name=query.name,
                branch=branch,
                at=snapshot,
                exact=exact,
                analyze=analyze,
            )
            .to_json()
        )
    else:
        graph.source_name = query.file
        document = graph.explain(
            query=query.text,
            name=query.name,
            params=query.given,
            branch=branch,
            snapshot=snapshot,
            analyze=analyze,
            exact=exact,
        )
    write_explanation(document, sys.stdout, as_json=as_json)


@declare("mutate")
@query_options
@query_branch_option
@expect_head_option()
@if_commit_option
@idempotency_key_option
@message_option
@set_option
@json_option
@click.pass_obj
def mutate(
    context: Context,
    branch: str | None,
    expect_head: str | None,
    if_commit: str | None,
    idempotency_key: str | None,
    message: str | None,
    settings: Mapping[str, object],
    as_json: bool,
    **options: Unpack[QueryOptions],
) -> None:
    """Run a mutation query on a branch of the graph at URI as one commit.

    The statements of the query run in order. If one of them fails, nothing is changed; if nothing
    has changed in the end, there is no commit. With a server, a word in place of URI is the name of a
    stored query.
    """
    _check_condition(if_commit, expect_head)
    query = chosen_query(options, context, mutating=True)
    graph = query.graph(context)
    if isinstance(graph, str):
        assert isinstance(query, ChosenQuery), "stored queries run on servers"
        on = query.branch(branch, context)
        expected = if_commit or expect_head
        document = _mutate(graph, query, on, context, message, expected, idempotency_key, if_commit)
    else:
        body = {
            "params": query.given,
            "expected_head": expect_head,
            "message": message,
            "settings": settings or None,
        }
        if isinstance(query, StoredQuery):
            document = graph.stored(
                query.name,
                mutation=True,
                branch=branch or context.default_branch,
                idempotency_key=idempotency_key,
                if_commit=if_commit,
                **body,
            )
        else:
            graph.source_name = query.file
            document = graph.mutate(
                query=query.text,
                name=query.name,
                branch=query.branch(branch, context),
                idempotency_key=idempotency_key,
                if_commit=if_commit,
                **body,
            )
    warn_of_document(document)
    write_answer(document, _mutation_lines(document), as_json=as_json)


def _check_condition(if_commit: str | None, expect_head: str | None) -> None:
    if if_commit is None:
        return
    if expect_head is not None:
        raise click.UsageError("--if-commit and --expect-head are exclusive; use one of them.")
    if not (if_commit.isascii() and if_commit.isalnum()):
        raise UsageError(f"--if-commit takes the whole id of a commit, not '{if_commit}'")


def _mutate(
    uri: str,
    query: ChosenQuery,
    branch: str,
    context: Context,
    message: str | None,
    expected_head: str | None,
    idempotency_key: str | None,
    if_commit: str | None,
) -> dict[str, Any]:
    from omnigraph.wire.contracts import CONTRACT_07

    try:
        result = open_graph(uri, context).mutate(
            query.source,
            query.params,
            name=query.name,
            branch=branch,
            message=message,
            expected_head=expected_head,
            idempotency_key=idempotency_key,
        )
    except HeadMoved as error:
        if if_commit is not None:
            condition_lost(error)
        raise
    return as_document(CONTRACT_07.mutation(result))


def _mutation_lines(document: Mapping[str, Any]) -> Iterator[str]:
    nodes = counted(document["affected_nodes"], "node")
    edges = counted(document["affected_edges"], "edge")
    yield f"changed {document['branch']} via {document['query_name']}: {nodes}, {edges}"
    if document["actor_id"] is not None:
        yield f"actor_id: {document['actor_id']}"
    yield from written_lines(document)


@declare("snapshot")
@uri_argument
@branch_option
@json_option
@click.pass_obj
def snapshot(context: Context, uri: str | None, branch: str, as_json: bool) -> None:
    """Show a branch's version, and the version and row count of every type."""
    graph = address_or_server(uri, context)
    if isinstance(graph, str):
        state = open_graph(graph, read_only=True).checkout(branch).at(branch)
        document = state.to_json() | {"graph_commit_id": state.commit_id}
    else:
        document = graph.snapshot(branch)
    write_answer(document, _snapshot_lines(document), as_json=as_json)


def _snapshot_lines(document: Mapping[str, Any]) -> Iterator[str]:
    yield f"branch: {document['branch']}"
    yield f"manifest_version: {document['manifest_version']}"
    for table in document["tables"]:
        yield (
            f"{table['table_key']} v{table['table_version']} "
            f"branch={table['table_branch'] or 'main'} rows={table['row_count']}"
        )
