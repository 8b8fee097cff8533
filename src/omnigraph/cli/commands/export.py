"""`omnigraph export`: the nodes and edges of a branch as JSON lines or Parquet files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TextIO

import click

from omnigraph.cli.address import graph_uri, open_graph
from omnigraph.cli.context import Context
from omnigraph.cli.framework import declare
from omnigraph.cli.operator_config import settled_engine
from omnigraph.cli.options import engine_options, uri_argument
from omnigraph.cli.progress import progress
from omnigraph.cli.query_options import refuse_two_states, state_options
from omnigraph.cli.replace_file import replacing
from omnigraph.cli.style import warn
from omnigraph.diagnostics import counted
from omnigraph.errors import InputError
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
    help="jsonl is one stream; parquet is a new folder with a file for each type.",
)
@click.option(
    "--out",
    metavar="PATH",
    help="Write to this file instead of standard output, or to this folder.",
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
    """Write every edge and node of a branch as one JSON object per line, or to Parquet files.

    `omnigraph load` reads what is written. With --type or --table, the types named by either of
    them are written. --out replaces a file, or makes a folder, only when all is written.
    """
    if jsonl:
        warn("--jsonl has no effect; JSON lines are what export writes")
    refuse_two_states(branch, snapshot)
    engine = settled_engine(engine, master)
    graph = open_graph(graph_uri(uri, context), read_only=True)
    if target_format == "parquet":
        if out is None:
            raise click.UsageError("--format parquet writes files; say where with --out.")
        with progress("exporting") as shown:
            written = graph.export_parquet(
                out,
                branch=branch,
                at=snapshot,
                types=types,
                tables=tables,
                progress=shown,
                engine=engine,
                master=master,
            )
    else:
        with _destination(out) as file, _shown(file) as shown:
            written = graph.export(
                file,
                branch=branch,
                at=snapshot,
                types=types,
                tables=tables,
                progress=shown,
                engine=engine,
                master=master,
                parts_in=_beside(out),
            )
    if out is not None:
        exported = counted(written, "node or edge", "nodes and edges")
        print(f"exported {exported} to {out}", file=sys.stderr)


def _shown(file: TextIO) -> AbstractContextManager[Progress]:
    """Progress, unless it would be drawn between the lines of the export."""
    return nullcontext(SILENT) if file.isatty() else progress("exporting")


def _beside(out: str | None) -> Path | None:
    """The folder of the target, if the target is a file: pipes and devices are in no folder."""
    if out is None or (Path(out).exists() and not Path(out).is_file()):
        return None
    return Path(out).parent


@contextmanager
def _destination(path: str | None) -> Iterator[TextIO]:
    if path is None:
        yield sys.stdout
        return
    try:
        with replacing(path) as file:
            yield file
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
