"""`omnigraph status`: sizes, index coverage and pending work."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from omnigraph.cli.context import Context, graph_uri, open_graph
from omnigraph.cli.framework import declare
from omnigraph.cli.options import branch_option, json_option, uri_argument
from omnigraph.cli.output.cells import write_document
from omnigraph.cli.output.results import TableLayout, write_grid
from omnigraph.cli.style import Style
from omnigraph.diagnostics import counted

if TYPE_CHECKING:
    from omnigraph.maintenance.status import GraphStatus, TableStatus

_LAYOUT = TableLayout(max_column_width=60, overlong="wrap")
_COLUMNS = ("type", "rows", "files", "bytes", "indexes", "vectors")


@declare("status")
@uri_argument
@branch_option
@json_option
@click.pass_obj
def command(context: Context, uri: str | None, branch: str, as_json: bool) -> None:
    """Show sizes, index coverage, embeddings and interrupted writes, with recommended actions."""
    uri = graph_uri(uri, context)
    status = open_graph(uri, read_only=True).maintenance.status(branch)
    if as_json:
        write_document(status.to_json() | {"uri": uri}, sys.stdout)
    else:
        _write(uri, status)


def _write(uri: str, status: GraphStatus) -> None:
    snapshot, out = status.snapshot, sys.stdout
    out.write(
        f"{uri} on branch {snapshot.branch}: version {snapshot.version}, "
        f"commit {snapshot.commit_id}, {counted(status.branches, 'branch', 'branches')}\n"
    )
    write_grid(_COLUMNS, [_row(table) for table in status.tables], out, _LAYOUT, Style.of(out))
    recovery = status.recovery
    out.write(
        f"interrupted writes: {len(recovery.pending)} pending, "
        f"{len(recovery.quarantined)} for an operator\n"
    )
    for lease in status.leases:
        out.write(f"{lease.name} is being written by {lease.owner}\n")
    for line in status.advice:
        out.write(f"advice: {line.as_command()}\n")


def _row(table: TableStatus) -> list[str]:
    indexes = [f"{i.column} ({i.unindexed_rows} behind)" for i in table.indexes]
    vectors = [
        f"{v.property}: {v.counts.ready} ready, {v.counts.pending} pending, {v.counts.stale} stale"
        for v in table.embeddings
    ]
    return [
        table.table_key,
        f"{table.rows:,}",
        f"{table.fragments:,}",
        f"{table.bytes:,}",
        ", ".join(indexes),
        "; ".join(vectors),
    ]
