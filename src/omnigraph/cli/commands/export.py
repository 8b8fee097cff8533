"""`omnigraph export`, `blob get` and `blob stat`: write data out of a graph."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypedDict, TypeVar, Unpack

import click

from omnigraph.cli.command_table import refuse_direct
from omnigraph.cli.context import Context, address_or_server, open_graph
from omnigraph.cli.exits import warn
from omnigraph.cli.framework import declare
from omnigraph.cli.options import (
    chosen_engine,
    engine_options,
    file_json_option,
    json_option,
    refuse_json_of_data,
    state_branch,
    state_options,
    uri_argument,
    uri_option,
)
from omnigraph.cli.output.answers import write_answer, write_document
from omnigraph.cli.output.changes import served_types
from omnigraph.cli.progress import progress
from omnigraph.diagnostics import counted
from omnigraph.errors import BlobRangeError, InputError, UnknownType
from omnigraph.progress import SILENT, Progress
from omnigraph.replace_file import replacing_bytes

if TYPE_CHECKING:
    from omnigraph.api.graph_at import GraphAt
    from omnigraph.catalog.model import EntityType
    from omnigraph.cli.remote import ServedGraph


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
@file_json_option
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
    as_json: bool,
    jsonl: bool,
) -> None:
    """Export the nodes and edges of a branch as JSON Lines or Parquet files.

    `omnigraph load` reads what is written. With --type or --table, the types named by either of
    them are written. --out replaces a file, or makes a folder, only when all is written.
    """
    if jsonl:
        warn("--jsonl has no effect; JSON lines are what export writes")
    refuse_json_of_data(as_json, out)
    branch = state_branch(branch, snapshot, context)
    if target_format == "parquet" and out is None:
        raise click.UsageError("--format parquet writes files; say where with --out.")
    graph = address_or_server(uri, context)
    if not isinstance(graph, str):
        refused = {"--engine": engine, "--master": master, "--snapshot": snapshot}
        refused["--format parquet"] = target_format if target_format == "parquet" else None
        for flag, given in refused.items():
            if given is not None:
                refuse_direct(f"`export {flag}`", graph.url)
        written = _export_served(graph, out, branch=branch, type_names=types, table_keys=tables)
        _report_export(graph.url, out, target_format, written, as_json)
        return
    with _shown(out) as shown:
        written = open_graph(graph, read_only=True).export(
            sys.stdout.buffer if out is None else out,
            format=target_format,
            branch=branch,
            at=snapshot,
            types=(*types, *tables),
            progress=shown,
            engine=chosen_engine(engine, master),
        )
    _report_export(graph, out, target_format, written, as_json)


def _report_export(uri: str, out: str | None, target: str, written: int, as_json: bool) -> None:
    if out is None:
        return
    if as_json:
        write_document({"uri": uri, "out": out, "format": target, "rows": written}, sys.stdout)
        return
    exported = counted(written, "node or edge", "nodes and edges")
    print(f"exported {exported} to {out}", file=sys.stderr)


def _export_served(graph: ServedGraph, out: str | None, **body: object) -> int:
    """Write the lines of a server; a file is replaced only when all of them are there."""
    written = 0
    with graph.export(**body) as parts, _destination(out) as file:
        for part in parts:
            written += part.count(b"\n")
            file.write(part)
    return written


def _shown(out: str | None) -> AbstractContextManager[Progress]:
    """Progress, unless it would mix with the exported lines."""
    return nullcontext(SILENT) if out is None and sys.stdout.isatty() else progress("exporting")


F = TypeVar("F", bound=Callable[..., Any])


class BlobOptions(TypedDict):
    """Identifies a blob."""

    selector: tuple[str, ...]
    uri: str | None
    branch: str | None
    snapshot: str | None


def _blob_options(function: F) -> F:
    function = state_options(uri_option(function))
    metavar = "[node|edge] TYPE ID PROPERTY"
    return click.argument("selector", nargs=-1, required=True, metavar=metavar)(function)


class BlobSelector(NamedTuple):
    """One blob property of one entity. `entity` is None if the name of the type decides it."""

    entity: str | None
    type: str
    id: str
    property: str

    @classmethod
    def parse(cls, words: tuple[str, ...]) -> BlobSelector:
        if len(words) == 4 and words[0] in ("node", "edge"):
            return cls(*words)
        if len(words) == 3:
            return cls(None, *words)
        raise click.UsageError("name the blob as [node|edge] TYPE ID PROPERTY.")

    def to_json(self) -> dict[str, str | None]:
        return self._asdict()


def _state_here(uri: str, branch: str | None, snapshot: str | None) -> GraphAt:
    graph = open_graph(uri, read_only=True)
    if branch is not None:
        return graph.checkout(branch).at(branch)
    assert snapshot is not None, "one of the two is given"
    return graph.at(snapshot)


def _of_kind(selector: BlobSelector, types: Iterable[EntityType]) -> BlobSelector:
    """The selector with its kind. Raises `UnknownType` for a type that the schema does not have."""
    kind, _, name = selector.type.rpartition(":")
    known = {one.table_key: one.name for one in types}
    for wanted in (selector.entity,) if selector.entity else (kind,) if kind else ("node", "edge"):
        if f"{wanted}:{name}" in known:
            return BlobSelector(wanted, name, selector.id, selector.property)
    raise UnknownType(selector.entity or kind or "node", name, known.values())


def _request(
    graph: ServedGraph, selector: BlobSelector, branch: str | None, snapshot: str | None
) -> tuple[BlobSelector, dict[str, object]]:
    """The selector with its kind, and the query of a request for the blob."""
    if selector.entity is None:
        selector = _of_kind(selector, served_types(graph))
    return selector, {**selector.to_json(), "branch": branch, "snapshot": snapshot}


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
@file_json_option
@click.pass_obj
def blob_get(
    context: Context,
    offset: int,
    length: int | None,
    out: str | None,
    as_json: bool,
    **options: Unpack[BlobOptions],
) -> None:
    """Write the blob PROPERTY of the entity ID of TYPE to a file or standard output.

    --out replaces a file only when all bytes are written.
    """
    refuse_json_of_data(as_json, out)
    selector = BlobSelector.parse(options["selector"])
    branch = state_branch(options["branch"], options["snapshot"], context)
    graph = address_or_server(options["uri"], context)
    opened: AbstractContextManager[Iterable[bytes]]
    if isinstance(graph, str):
        state = _state_here(graph, branch, options["snapshot"])
        selector = _of_kind(selector, state.catalog)
        blob = state.blobs.open(selector.type, selector.id, selector.property)
        opened = nullcontext(blob.parts(offset, length))
    else:
        _, query = _request(graph, selector, branch, options["snapshot"])
        opened = _served_parts(graph, query, offset, length)
    written = 0
    with opened as parts, _destination(out) as file:
        for part in parts:
            written += file.write(part)
    if as_json:
        write_document({"selector": selector.to_json(), "out": out, "bytes": written}, sys.stdout)
    elif out is not None:
        print(f"wrote {counted(written, 'byte')} to {out}", file=sys.stderr)


@declare("blob stat")
@_blob_options
@json_option
@click.pass_obj
def blob_stat(context: Context, as_json: bool, **options: Unpack[BlobOptions]) -> None:
    """Show a blob's size and, if it is external, its URI."""
    selector = BlobSelector.parse(options["selector"])
    branch = state_branch(options["branch"], options["snapshot"], context)
    graph = address_or_server(options["uri"], context)
    commit: str | None
    size: int | None
    if isinstance(graph, str):
        state = _state_here(graph, branch, options["snapshot"])
        selector = _of_kind(selector, state.catalog)
        blob = state.blobs.open(selector.type, selector.id, selector.property)
        size, uri, commit, tag = blob.size, blob.uri, state.commit_id, None
    else:
        selector, query = _request(graph, selector, branch, options["snapshot"])
        head = graph.blob_head(query)
        size = int(head.headers["content-length"]) if head.status == 200 else None
        uri, tag = head.headers.get("location"), head.headers.get("etag")
        commit = head.headers.get("omnigraph-snapshot-id")
    document: dict[str, Any] = {
        "type": selector.type,
        "id": selector.id,
        "property": selector.property,
        "size": size,
        "uri": uri,
    }
    read = {"branch": branch, "snapshot": options["snapshot"]}
    target: dict[str, Any] = {name: value for name, value in read.items() if value is not None}
    document |= {
        "selector": selector.to_json(),
        "kind": "managed" if document["uri"] is None else "external",
        "target": target | {"resolved_snapshot": commit},
    }
    if tag is not None:
        document["etag"] = tag
    write_answer(document, _lines(document), as_json=as_json)


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    if document["size"] is not None:
        yield f"size: {document['size']}"
    if document["uri"] is not None:
        yield f"uri: {document['uri']}"


@contextmanager
def _served_parts(
    graph: ServedGraph, query: dict[str, object], offset: int, length: int | None
) -> Iterator[Iterable[bytes]]:
    """The bytes of a blob of a server, in parts."""
    head = graph.blob_head(query)
    if (stored_at := head.headers.get("location")) is not None:
        raise InputError(f"the blob is not in the graph but at {stored_at}; read it there")
    size = int(head.headers["content-length"])
    if offset > size:
        raise BlobRangeError(offset, size)
    last = size if length is None else min(size, offset + length)
    if last == offset:
        yield ()
        return
    is_whole = (offset, last) == (0, size)
    with graph.blob(query, None if is_whole else f"bytes={offset}-{last - 1}") as incoming:
        yield incoming


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
