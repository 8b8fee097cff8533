"""`omnigraph ensure-indices`: build the missing indexes of a schema."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from omnigraph.cli.context import Context, graph_uri, open_graph
from omnigraph.cli.framework import declare
from omnigraph.cli.options import branch_option, json_option, uri_argument
from omnigraph.cli.output.answers import commit_lines, receipt_fields, warn_of
from omnigraph.cli.output.cells import Cell, write_document
from omnigraph.cli.output.results import TableLayout, write_grid
from omnigraph.cli.progress import progress
from omnigraph.cli.style import Style
from omnigraph.diagnostics import counted

if TYPE_CHECKING:
    from omnigraph.maintenance.indexes import IndexedTable, IndexReport


@declare("ensure-indices")
@uri_argument
@branch_option
@json_option
@click.pass_obj
def command(context: Context, uri: str | None, branch: str, as_json: bool) -> None:
    """Build the indexes that the schema declares and the branch lacks.

    Results never depend on indexes; they speed up lookups, first searches and `nearest` over many
    vectors. Rows written later are found too, and indexed at the next compaction.
    """
    uri = graph_uri(uri, context)
    graph = open_graph(uri, context)
    with progress("building indexes") as shown:
        report = graph.maintenance.ensure_indexes(branch, progress=shown)
    warn_of(report.receipt)
    if as_json:
        tables = [table.to_json() for table in report.tables]
        document = {"uri": uri, "branch": branch, "tables": tables}
        write_document(document | receipt_fields(report.receipt), sys.stdout)
    else:
        _print(uri, report)


def _print(uri: str, report: IndexReport) -> None:
    out = sys.stdout
    out.write(f"ensure-indices {uri} — {counted(len(report.tables), 'table')}\n")
    rows = [row for table in report.tables for row in _rows(table)]
    if rows:
        columns = ("table", "column", "kind", "state", "rows not indexed")
        write_grid(columns, rows, out, TableLayout(), Style.of(out))
    out.writelines(f"{line}\n" for line in commit_lines(report.receipt))


def _rows(table: IndexedTable) -> Iterator[tuple[Cell, ...]]:
    for word, states in (("created", table.created), ("existing", table.existing)):
        for state in states:
            yield table.table_key, state.column, state.kind.value, word, state.unindexed_rows
    for missing in table.pending:
        yield table.table_key, missing.column, None, f"pending: {missing.reason}", None
