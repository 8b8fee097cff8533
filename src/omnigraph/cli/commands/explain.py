"""`omnigraph explain`: show a query's execution plan, estimated or measured."""

from __future__ import annotations

import sys
from typing import Unpack

import click

from omnigraph.cli.context import Context, graph_uri, open_graph
from omnigraph.cli.framework import declare
from omnigraph.cli.options import json_option
from omnigraph.cli.output.results import write_explanation
from omnigraph.cli.query_options import (
    QueryOptions,
    chosen_query,
    exact_option,
    query_options,
    refuse_two_states,
    state_options,
)


@declare("explain")
@query_options
@state_options
@exact_option
@click.option("--analyze", is_flag=True, help="Run the query and show real rows and time per step.")
@json_option
@click.pass_obj
def command(
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
    query = chosen_query(options)
    graph = open_graph(graph_uri(query.uri, context), read_only=True)
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
