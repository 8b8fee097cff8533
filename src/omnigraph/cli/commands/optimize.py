"""`omnigraph optimize`: compact tables and refresh indexes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from omnigraph.cli.command_table import refuse_remote
from omnigraph.cli.context import Context, graph_uri, open_graph
from omnigraph.cli.framework import declare
from omnigraph.cli.options import json_option, uri_argument
from omnigraph.cli.output.answers import commit_lines, receipt_fields, warn_of, write_answer
from omnigraph.diagnostics import counted

if TYPE_CHECKING:
    from omnigraph.maintenance.optimize import OptimizedTable, OptimizeReport

_KEY_WIDTH = 40


@declare("optimize")
@uri_argument
@json_option
@click.pass_obj
def command(context: Context, uri: str | None, as_json: bool) -> None:
    """Compact the tables of the graph at URI and refresh its indexes as one commit.

    Rows and results do not change; earlier commits stay readable.
    """
    if uri is not None:
        refuse_remote("optimize", uri)
    uri = graph_uri(uri, context)
    report = open_graph(uri, context).maintenance.optimize()
    warn_of(report.receipt)
    document = {"uri": uri, "tables": [table.to_json() for table in report.tables]}
    write_answer(document | receipt_fields(report.receipt), _lines(uri, report), as_json=as_json)


def _lines(uri: str, report: OptimizeReport) -> Iterator[str]:
    yield f"optimize {uri} — {counted(len(report.tables), 'table')}"
    for table in report.tables:
        yield f"{table.table_key:<{_KEY_WIDTH}} {_outcome(table)}"
    yield from commit_lines(report.receipt)


def _outcome(table: OptimizedTable) -> str:
    if table.skipped is not None:
        return f"skipped ({table.skipped})"
    if not table.committed:
        return "no-op"
    return f"frags {table.fragments_removed} → {table.fragments_added} ✓"
