"""`omnigraph query`, `explain`, `mutate` and `snapshot`: run queries, show a branch's state."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Unpack

import click

from omnigraph.cli.context import Context, graph_uri, open_graph
from omnigraph.cli.exits import Style
from omnigraph.cli.framework import declare
from omnigraph.cli.options import (
    ParamsOptions,
    QueryOptions,
    branch_option,
    chosen_query,
    exact_option,
    expect_head_option,
    idempotency_key_option,
    json_option,
    message_option,
    params_options,
    query_branch_option,
    query_options,
    refuse_two_states,
    state_options,
    uri_argument,
)
from omnigraph.cli.output.answers import commit_lines, receipt_fields, warn_of, write_answer
from omnigraph.cli.output.results import (
    FORMATS,
    Format,
    choose_format,
    write_explanation,
    write_result,
)
from omnigraph.diagnostics import counted

if TYPE_CHECKING:
    from omnigraph.mutation.run import MutationResult


format_option = click.option(
    "--format",
    type=click.Choice(FORMATS),
    help="Output format.  [default: that of the alias or the configuration, or table]",
)


@declare("query")
@query_options
@state_options
@exact_option
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
    explained: bool,
    format: Format | None,
    as_json: bool,
    **options: Unpack[QueryOptions],
) -> None:
    """Run a read query on the graph at URI and print its rows.

    table and kv are made for people; csv has a header; jsonl begins with a line about the result;
    json is the document that --json prints.
    """
    refuse_two_states(branch, snapshot)
    if as_json and format is not None:
        raise click.UsageError("--format and --json are exclusive; use one of them.")
    if explained and format is not None:
        raise click.UsageError("--format and --explain are exclusive; use one of them.")
    query = chosen_query(options, context)
    graph = query.open(context, read_only=True)
    if snapshot is None:
        branch = query.branch(branch, context)
    if explained:
        steps = graph.explain(
            query.source, query.params, name=query.name, branch=branch, at=snapshot, exact=exact
        )
        write_explanation(steps, sys.stdout, as_json=as_json)
        return
    result = graph.query(
        query.source, query.params, name=query.name, branch=branch, at=snapshot, exact=exact
    )
    of_alias = None if query.alias is None else query.alias.format
    wanted = choose_format("json" if as_json else None, format, of_alias, context.default_format)
    write_result(result, wanted, sys.stdout, context.table_layout, Style.of(sys.stdout))


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
    graph = query.open(context, read_only=True)
    if snapshot is None:
        branch = query.branch(branch, context)
    steps = graph.explain(
        query.source,
        query.params,
        name=query.name,
        branch=branch,
        at=snapshot,
        exact=exact,
        analyze=analyze,
    )
    write_explanation(steps, sys.stdout, as_json=as_json)


@declare("mutate")
@query_options
@query_branch_option
@expect_head_option()
@idempotency_key_option
@message_option
@json_option
@click.pass_obj
def mutate(
    context: Context,
    branch: str | None,
    expect_head: str | None,
    idempotency_key: str | None,
    message: str | None,
    as_json: bool,
    **options: Unpack[QueryOptions],
) -> None:
    """Run a mutation query on a branch of the graph at URI as one commit.

    The statements of the query run in order. If one of them fails, nothing is changed; if nothing
    has changed in the end, there is no commit.
    """
    query = chosen_query(options, context, mutating=True)
    result = query.open(context).mutate(
        query.source,
        query.params,
        name=query.name,
        branch=query.branch(branch, context),
        message=message,
        expected_head=expect_head,
        idempotency_key=idempotency_key,
    )
    warn_of(result.receipt)
    document = {
        "branch": result.branch,
        "query_name": result.query_name,
        "affected_nodes": result.affected_nodes,
        "affected_edges": result.affected_edges,
        "actor_id": context.actor,
    }
    write_answer(
        document | receipt_fields(result.receipt), _mutation_lines(result), as_json=as_json
    )


def _mutation_lines(result: MutationResult) -> Iterator[str]:
    nodes, edges = counted(result.affected_nodes, "node"), counted(result.affected_edges, "edge")
    yield f"changed {result.branch} via {result.query_name}: {nodes}, {edges}"
    if result.receipt.actor_id is not None:
        yield f"actor_id: {result.receipt.actor_id}"
    yield from commit_lines(result.receipt)


@declare("snapshot")
@uri_argument
@branch_option
@json_option
@click.pass_obj
def snapshot(context: Context, uri: str | None, branch: str, as_json: bool) -> None:
    """Show a branch's version, and the version and row count of every type."""
    graph = open_graph(graph_uri(uri, context), read_only=True)
    document = graph.checkout(branch).at(branch).to_json()
    write_answer(document, _snapshot_lines(document), as_json=as_json)


def _snapshot_lines(document: Mapping[str, Any]) -> Iterator[str]:
    yield f"branch: {document['branch']}"
    yield f"manifest_version: {document['manifest_version']}"
    for table in document["tables"]:
        yield (
            f"{table['table_key']} v{table['table_version']} "
            f"branch={table['table_branch'] or 'main'} rows={table['row_count']}"
        )
