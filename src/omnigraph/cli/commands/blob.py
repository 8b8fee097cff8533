"""`omnigraph blob get` and `blob stat`: read a blob and show its size."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, TypedDict, TypeVar, Unpack

import click

from omnigraph.cli.context import Context, graph_uri, open_graph
from omnigraph.cli.framework import declare
from omnigraph.cli.options import json_option, uri_option
from omnigraph.cli.output.answers import write_answer
from omnigraph.cli.query_options import refuse_two_states, state_options
from omnigraph.diagnostics import counted
from omnigraph.errors import InputError
from omnigraph.replace_file import replacing_bytes

if TYPE_CHECKING:
    from omnigraph.read.entities import Blob

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
    refuse_two_states(options["branch"], options["snapshot"])
    graph = open_graph(graph_uri(options["uri"], context), read_only=True)
    return graph.blobs.open(
        options["type_name"],
        options["id"],
        options["property"],
        branch=options["branch"],
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
def get(
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
def stat(context: Context, as_json: bool, **options: Unpack[BlobOptions]) -> None:
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
