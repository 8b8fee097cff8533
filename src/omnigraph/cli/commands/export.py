"""`omnigraph export`: the nodes and edges of a branch as JSON lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import click

from omnigraph.cli.address import graph_uri, open_graph
from omnigraph.cli.context import Context
from omnigraph.cli.framework import declare
from omnigraph.cli.options import branch_option, uri_argument
from omnigraph.cli.replace_file import replacing
from omnigraph.cli.style import warn
from omnigraph.errors import InputError


@declare("export")
@uri_argument
@branch_option
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
@click.option("--out", metavar="FILE", help="Write to this file instead of standard output.")
@click.option("--jsonl", is_flag=True, hidden=True)
@click.pass_obj
def command(
    context: Context,
    uri: str | None,
    branch: str,
    types: tuple[str, ...],
    tables: tuple[str, ...],
    out: str | None,
    jsonl: bool,
) -> None:
    """Write every edge and node of a branch as one JSON object per line.

    `omnigraph load` reads what is written. With --type or --table, the types named by either of
    them are written. --out replaces a file only when all is written.
    """
    if jsonl:
        warn("--jsonl has no effect; JSON lines are what export writes")
    graph = open_graph(graph_uri(uri, context), read_only=True)
    with _destination(out) as file:
        written = graph.export(file, branch=branch, types=types, tables=tables)
    if out is not None:
        print(f"exported {written} nodes and edges to {out}", file=sys.stderr)


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
