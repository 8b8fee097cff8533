"""`omnigraph repair`: inspect and resolve unpublished table changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from omnigraph.cli.context import Context, graph_uri, open_graph
from omnigraph.cli.framework import declare
from omnigraph.cli.options import branch_option, json_option, uri_argument
from omnigraph.cli.output.answers import write_answer
from omnigraph.diagnostics import counted
from omnigraph.errors import RepairRefused

if TYPE_CHECKING:
    from omnigraph.maintenance.repair import RepairedTable, RepairReport


@declare("repair")
@uri_argument
@branch_option
@click.option(
    "--confirm", is_flag=True, help="Apply the repair. Without it the findings are only shown."
)
@click.option("--force", is_flag=True, help="Also accept changes that match no known operation.")
@click.option("--rollback", is_flag=True, help="Restore tables to their published version instead.")
@json_option
@click.pass_obj
def command(
    context: Context,
    uri: str | None,
    branch: str,
    confirm: bool,
    force: bool,
    rollback: bool,
    as_json: bool,
) -> None:
    """Show tables with unpublished changes, and quarantined interrupted writes.

    With --confirm, maintenance-only changes are published; with --confirm --force all others
    too, or with --rollback they are discarded.
    """
    if force and not confirm:
        raise click.UsageError("--force requires --confirm: look at the preview first.")
    if rollback and not force:
        raise click.UsageError(
            "--rollback requires --confirm and --force: it discards what it finds."
        )
    uri = graph_uri(uri, context)
    report = open_graph(uri).maintenance.repair(
        branch, confirm=confirm, force=force, rollback=rollback
    )
    write_answer({"uri": uri, **report.to_json()}, _lines(uri, report), as_json=as_json)
    if report.refused:
        raise RepairRefused(tuple(table.table_key for table in report.refused))


def _lines(uri: str, report: RepairReport) -> Iterator[str]:
    mode = "confirm" if report.options.confirm else "preview"
    yield f"repair {uri} — {mode} mode, {counted(len(report.tables), 'table')}"
    for table in report.tables:
        yield _table_line(table)
    for name in report.removed_sidecars:
        yield f"removed sidecar {name}"
    for found in report.quarantined:
        yield f"quarantined sidecar {found.name}: {found.reason}"
    if report.commit is not None:
        yield f"commit {report.commit.id}"
    undecided = any(table.published != table.found for table in report.tables) or report.quarantined
    if not report.options.confirm and undecided:
        yield "nothing was changed; run again with --confirm to act"


def _table_line(table: RepairedTable) -> str:
    moved = table.published != table.found
    versions = f"{table.published} → {table.found}" if moved else f"{table.published}"
    line = f"{table.table_key}  {table.action.value}  {table.drift.value}  {versions}"
    if table.operations:
        line += f"  [{', '.join(table.operations)}]"
    return f"{line}  ({table.error})" if table.error else line
