"""`omnigraph query`: run a read query and print its rows."""

from __future__ import annotations

import sys
from typing import Unpack

import click

from omnigraph.cli.context import Context, graph_uri, open_graph
from omnigraph.cli.framework import declare
from omnigraph.cli.options import json_option
from omnigraph.cli.output.results import FORMATS, Format, TableLayout, choose_format, write_result
from omnigraph.cli.query_options import (
    QueryOptions,
    chosen_query,
    exact_option,
    query_options,
    refuse_two_states,
    state_options,
)
from omnigraph.cli.style import Style


@declare("query")
@query_options
@state_options
@exact_option
@click.option(
    "--explain", "explained", is_flag=True, help="Show the execution plan, as `explain` does."
)
@click.option(
    "--format",
    "format",
    type=click.Choice(FORMATS),
    help="Output format.  [default: table]",
)
@json_option
@click.pass_obj
def command(
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
    query = chosen_query(options)
    graph = open_graph(graph_uri(query.uri, context), read_only=True)
    if explained:
        from omnigraph.cli.output.results import write_explanation

        steps = graph.explain(
            query.source, query.params, name=query.name, branch=branch, at=snapshot, exact=exact
        )
        write_explanation(steps, sys.stdout, as_json=as_json)
        return
    result = graph.query(
        query.source, query.params, name=query.name, branch=branch, at=snapshot, exact=exact
    )
    wanted = choose_format("json" if as_json else None, format)
    write_result(result, wanted, sys.stdout, TableLayout(), Style.of(sys.stdout))
