"""`omnigraph export`: export the nodes and edges of a branch."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext

import click

from omnigraph.cli.context import Context, graph_uri, open_graph
from omnigraph.cli.framework import declare
from omnigraph.cli.operator_config import chosen_engine
from omnigraph.cli.options import engine_options, uri_argument
from omnigraph.cli.progress import progress
from omnigraph.cli.query_options import refuse_two_states, state_options
from omnigraph.cli.style import warn
from omnigraph.diagnostics import counted
from omnigraph.progress import SILENT, Progress


@declare("export")
@uri_argument
@state_options
@click.option(
    "--type", "types", multiple=True, metavar="TYPE", help="Only this type; may be repeated."
)
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="KEY",
    help="Only this type, as node:TYPE or edge:TYPE; may be repeated.",
)
@click.option(
    "--format",
    "target_format",
    type=click.Choice(["jsonl", "parquet"]),
    default="jsonl",
    show_default=True,
    help="jsonl writes one stream; parquet writes a new directory with one file per type.",
)
@click.option(
    "--out",
    metavar="PATH",
    help="Target file or directory. Default: standard output.",
)
@engine_options
@click.option("--jsonl", is_flag=True, hidden=True)
@click.pass_obj
def command(
    context: Context,
    uri: str | None,
    branch: str | None,
    types: tuple[str, ...],
    tables: tuple[str, ...],
    snapshot: str | None,
    target_format: str,
    out: str | None,
    engine: str | None,
    master: str | None,
    jsonl: bool,
) -> None:
    """Export the nodes and edges of a branch as JSON Lines or Parquet files.

    `omnigraph load` reads what is written. With --type or --table, the types named by either of
    them are written. --out replaces a file, or makes a folder, only when all is written.
    """
    if jsonl:
        warn("--jsonl has no effect; JSON lines are what export writes")
    refuse_two_states(branch, snapshot)
    if target_format == "parquet" and out is None:
        raise click.UsageError("--format parquet writes files; say where with --out.")
    graph = open_graph(graph_uri(uri, context), read_only=True)
    with _shown(out) as shown:
        written = graph.export(
            sys.stdout.buffer if out is None else out,
            format=target_format,
            branch=branch,
            at=snapshot,
            types=(*types, *tables),
            progress=shown,
            engine=chosen_engine(engine, master),
        )
    if out is not None:
        exported = counted(written, "node or edge", "nodes and edges")
        print(f"exported {exported} to {out}", file=sys.stderr)


def _shown(out: str | None) -> AbstractContextManager[Progress]:
    """Progress, unless it would mix with the exported lines."""
    return nullcontext(SILENT) if out is None and sys.stdout.isatty() else progress("exporting")
