"""`omnigraph mutate`: run a mutation query."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Unpack

import click

from omnigraph.cli.context import Context, graph_uri, open_graph
from omnigraph.cli.framework import declare
from omnigraph.cli.options import (
    branch_option,
    expect_head_option,
    idempotency_key_option,
    json_option,
    message_option,
)
from omnigraph.cli.output.answers import commit_lines, receipt_fields, warn_of, write_answer
from omnigraph.cli.query_options import QueryOptions, chosen_query, query_options
from omnigraph.diagnostics import counted

if TYPE_CHECKING:
    from omnigraph.mutation.run import MutationResult


@declare("mutate")
@query_options
@branch_option
@expect_head_option()
@idempotency_key_option
@message_option
@json_option
@click.pass_obj
def command(
    context: Context,
    branch: str,
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
    query = chosen_query(options)
    result = open_graph(graph_uri(query.uri, context), context).mutate(
        query.source,
        query.params,
        name=query.name,
        branch=branch,
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
    write_answer(document | receipt_fields(result.receipt), _lines(result), as_json=as_json)


def _lines(result: MutationResult) -> Iterator[str]:
    nodes, edges = counted(result.affected_nodes, "node"), counted(result.affected_edges, "edge")
    yield f"changed {result.branch} via {result.query_name}: {nodes}, {edges}"
    if result.receipt.actor_id is not None:
        yield f"actor_id: {result.receipt.actor_id}"
    yield from commit_lines(result.receipt)
