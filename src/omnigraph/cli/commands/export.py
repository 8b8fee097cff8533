"""`omnigraph export`, `blob get` and `blob stat`: write data out of a graph."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, BinaryIO, TypedDict, TypeVar, Unpack

import click

from omnigraph.cli.context import Context, graph_uri, open_graph
from omnigraph.cli.exits import warn
from omnigraph.cli.framework import declare
from omnigraph.cli.options import (
    chosen_engine,
    engine_options,
    json_option,
    state_branch,
    state_options,
    uri_argument,
    uri_option,
)
from omnigraph.cli.output.answers import write_answer
from omnigraph.cli.progress import progress
from omnigraph.diagnostics import counted
from omnigraph.errors import InputError
from omnigraph.progress import SILENT, Progress
from omnigraph.replace_file import replacing_bytes

if TYPE_CHECKING:
    from omnigraph.read.entities import Blob


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
def export(
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
    branch = state_branch(branch, snapshot, context)
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


F = TypeVar("F", bound=Callable[..., Any])


class BlobOptions(TypedDict):
    """Identifies a blob."""

    type_name: str
    id: str
    property: str
    uri: str | None
    branch: str | None
    snapshot: str | None


def _blob_options(function: F) -> F:
    function = state_options(uri_option(function))
    for name in ("property", "id", "type_name"):
        shown = name.removesuffix("_name").upper()
        function = click.argument(name, metavar=shown)(function)
    return function


def _open(context: Context, options: BlobOptions) -> Blob:
    branch = state_branch(options["branch"], options["snapshot"], context)
    graph = open_graph(graph_uri(options["uri"], context), read_only=True)
    return graph.blobs.open(
        options["type_name"],
        options["id"],
        options["property"],
        branch=branch,
        at=options["snapshot"],
    )


@declare("blob get")
@_blob_options
@click.option(
    "--offset",
    type=click.IntRange(min=0),
    default=0,
    metavar="BYTES",
    help="Offset of the first byte.  [default: 0]",
)
@click.option(
    "--length", type=click.IntRange(min=0), metavar="BYTES", help="Number of bytes.  [default: all]"
)
@click.option("--out", metavar="FILE", help="Write to this file instead of standard output.")
@click.pass_obj
def blob_get(
    context: Context,
    offset: int,
    length: int | None,
    out: str | None,
    **options: Unpack[BlobOptions],
) -> None:
    """Write the blob PROPERTY of the entity ID of TYPE to a file or standard output.

    --out replaces a file only when all bytes are written.
    """
    blob = _open(context, options)
    written = 0
    with _destination(out) as file:
        for part in blob.parts(offset, length):
            written += file.write(part)
    if out is not None:
        print(f"wrote {counted(written, 'byte')} to {out}", file=sys.stderr)


@declare("blob stat")
@_blob_options
@json_option
@click.pass_obj
def blob_stat(context: Context, as_json: bool, **options: Unpack[BlobOptions]) -> None:
    """Show a blob's size and, if it is external, its URI."""
    blob = _open(context, options)
    document = {
        "type": options["type_name"],
        "id": options["id"],
        "property": options["property"],
        "size": blob.size,
        "uri": blob.uri,
    }
    write_answer(document, _lines(blob), as_json=as_json)


def _lines(blob: Blob) -> Iterator[str]:
    yield f"size: {blob.size}"
    if blob.uri is not None:
        yield f"uri: {blob.uri}"


@contextmanager
def _destination(path: str | None) -> Iterator[BinaryIO]:
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        with replacing_bytes(path) as file:
            yield file
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
