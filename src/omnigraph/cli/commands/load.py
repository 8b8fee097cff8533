"""`omnigraph load`: load files into a branch. `omnigraph ingest` is its deprecated form."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

import click

from omnigraph.cli.command_table import refuse_direct
from omnigraph.cli.context import Context, address_or_server, is_local, open_graph
from omnigraph.cli.exits import warn
from omnigraph.cli.framework import declare
from omnigraph.cli.options import (
    branch_option,
    branch_option_of,
    chosen_engine,
    engine_options,
    expect_head_option,
    json_option,
    message_option,
    require_consent,
    set_option,
    uri_argument,
    yes_option,
)
from omnigraph.cli.output.answers import (
    as_document,
    warn_of_document,
    write_answer,
    written_lines,
)
from omnigraph.cli.progress import progress
from omnigraph.diagnostics import counted
from omnigraph.errors import SourceUnreadable
from omnigraph.limits import MAX_LOAD_ERRORS

if TYPE_CHECKING:
    from omnigraph.cli.remote import ServedGraph


MODES = ("overwrite", "append", "merge", "patch")

F = TypeVar("F", bound=Callable[..., Any])


class LoadOptions(TypedDict):
    """Options shared by `load` and `ingest`."""

    data: tuple[str, ...]
    mapping: str | None
    branch: str
    load_id: str | None
    max_errors: int
    quarantine: str | None
    cascade: bool
    strict: bool
    source_format: str | None
    engine: str | None
    master: str | None
    expect_head: str | None
    message: str | None
    settings: Mapping[str, object]
    yes: bool


_OPTIONS = (
    uri_argument,
    click.option(
        "--data",
        multiple=True,
        metavar="PATH",
        help="File, folder or pattern to load, or - for JSON from standard input; may be repeated.",
    ),
    click.option(
        "--mapping",
        metavar="FILE",
        help="Mapping of files and columns to types and properties; YAML or JSON.",
    ),
    branch_option,
    click.option(
        "--load-id",
        metavar="ID",
        help="Id of this load. Repeating a load under the same id changes nothing.",
    ),
    click.option(
        "--max-errors",
        type=click.IntRange(min=1),
        default=MAX_LOAD_ERRORS,
        show_default=True,
        metavar="N",
        help="How many invalid records to report in full.",
    ),
    click.option(
        "--quarantine",
        metavar="DIR",
        help="Load the valid records and write the invalid ones to this directory.",
    ),
    click.option(
        "--strict",
        is_flag=True,
        help="Refuse properties that the schema does not have, instead of ignoring them with a warning.",
    ),
    click.option(
        "--cascade",
        is_flag=True,
        help="With overwrite: delete the edges of nodes that are removed. Without it, such a load is "
        "refused unless the edge types are in the input.",
    ),
    click.option(
        "--format",
        "source_format",
        type=click.Choice(["json", "csv", "parquet"]),
        help="Format of the files. Default: from the file names.",
    ),
    engine_options,
    expect_head_option(),
    message_option,
    set_option,
    yes_option,
    json_option,
)


def load_options(function: F) -> F:
    """Declare the options of `LoadOptions`, the address of the graph, and `--json`."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@declare("load")
@click.option(
    "--mode",
    type=click.Choice(MODES),
    required=True,
    help="overwrite replaces all rows of the types in the input, append refuses ids that exist, "
    "merge replaces the rows that have them, patch changes the properties the input has and keeps "
    "the others.",
)
@click.option(
    "--from", "base", metavar="BRANCH", help="Create the branch from this one if it is missing."
)
@load_options
@click.pass_obj
def load(
    context: Context,
    uri: str | None,
    mode: str,
    base: str | None,
    as_json: bool,
    **options: Unpack[LoadOptions],
) -> None:
    """Load files into a branch of the graph at URI as one commit.

    A file holds JSON records, or the rows of one type in Parquet or CSV, which is named by the file
    or by a mapping.
    If a record is invalid, all invalid records are reported and nothing is loaded.
    """
    ingested = _ingest(uri, context, mode, base, options, stages_as_json=as_json)
    totals = _totals(ingested)
    document = {name: ingested[name] for name in ("uri", "branch", "mode")}
    if base is not None:
        document["base_branch"] = base
    document |= {"branch_created": ingested["branch_created"]} | totals
    receipt = {name: ingested[name] for name in _RECEIPT if name in ingested}
    write_answer(document | receipt, _lines(ingested, totals), as_json=as_json)


_RECEIPT = (
    "graph_commit_id",
    "parent_commit_id",
    "manifest_version",
    "operation",
    "counts",
    "commit",
    "warnings",
    "load_id",
    "replayed",
    "quarantined",
    "engine",
)


def _ingest(
    uri: str | None,
    context: Context,
    mode: str,
    base: str | None,
    options: LoadOptions,
    *,
    stages_as_json: bool = False,
) -> dict[str, Any]:
    """Load, and print the warnings; the result is the document of the route `/load`."""
    if not options["data"] and options["mapping"] is None:
        raise click.UsageError("Missing option '--data' or '--mapping'.")
    graph = address_or_server(uri, context)
    if mode == "overwrite" and not (isinstance(graph, str) and is_local(graph)):
        where = graph if isinstance(graph, str) else graph.url
        require_consent("replacing rows", where, yes=options["yes"])
    if isinstance(graph, str):
        document = _load(graph, context, mode, base, options, stages_as_json=stages_as_json)
    else:
        document = _send(graph, mode, base, options)
    _warn(document, options["quarantine"])
    return document


def _load(
    uri: str,
    context: Context,
    mode: str,
    base: str | None,
    options: LoadOptions,
    *,
    stages_as_json: bool,
) -> dict[str, Any]:
    from omnigraph.wire.contracts import CONTRACT_07

    engine = chosen_engine(options["engine"], options["master"])
    graph = open_graph(uri, context)
    data = [_source(path) for path in options["data"]]
    named = options["data"] or (options["mapping"],)
    text = f"loading {named[0] if len(named) == 1 else f'{len(named)} sources'}"
    with progress(text, as_json=stages_as_json) as shown:
        result = graph.load(
            data or None,
            mode,
            branch=options["branch"],
            create_from=base,
            load_id=options["load_id"],
            message=options["message"],
            expected_head=options["expect_head"],
            cascade=options["cascade"],
            strict=options["strict"],
            max_errors=options["max_errors"],
            quarantine=options["quarantine"],
            format=options["source_format"],
            mapping=options["mapping"],
            progress=shown,
            engine=engine,
        )
    document = as_document(CONTRACT_07.load(result, uri, base))
    if result.engine_reason is not None:
        document["engine_reason"] = result.engine_reason
    return document


def _source(path: str) -> bytes | str | Path:
    """The sources named by `--data`. URIs stay strings: a path would drop one of the slashes."""
    if path == "-":
        return sys.stdin.buffer.read()
    return path if path.startswith("s3://") else Path(path)


def _send(graph: ServedGraph, mode: str, base: str | None, options: LoadOptions) -> dict[str, Any]:
    refused = {
        "--engine": options["engine"],
        "--master": options["master"],
        "--quarantine": options["quarantine"],
        "--mapping": options["mapping"],
    }
    for flag, given in refused.items():
        if given is not None:
            refuse_direct(f"`{click.get_current_context().info_name} {flag}`", graph.url)
    if options["source_format"] not in (None, "json"):
        refuse_direct(f"loading {options['source_format']} files", graph.url)
    return graph.load(
        data=json_text(options["data"], graph.url),
        branch=options["branch"],
        mode=mode,
        load_id=options["load_id"],
        max_errors=options["max_errors"],
        strict=options["strict"] or None,
        cascade=options["cascade"] or None,
        expected_head=options["expect_head"],
        message=options["message"],
        **{"from": base},
    )


def json_text(paths: Sequence[str], server: str) -> str:
    """The JSON records of files, patterns, folders and standard input, one after the other."""
    parts = []
    for path in paths:
        if path == "-":
            parts.append(_decoded("standard input", sys.stdin.buffer.read()))
            continue
        for file in _json_files(path, server):
            try:
                parts.append(_decoded(file, Path(file).read_bytes()))
            except FileNotFoundError:
                raise SourceUnreadable(file, "does not exist", "check the path") from None
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                raise SourceUnreadable(file, reason, "check the permissions") from None
    return "\n".join(parts)


def _json_files(path: str, server: str) -> Iterator[str]:
    if path.startswith("s3://"):
        refuse_direct("loading from s3://", server)
    found = [path]
    if Path(path).is_dir():
        kept = (part for part in Path(path).rglob("*") if part.is_file())
        found = sorted(str(part) for part in kept if not part.name.startswith(("_", ".")))
    elif not Path(path).exists() and set("*?[") & set(path):
        import glob

        found = sorted(glob.glob(path, recursive=True))
    if not found:
        raise SourceUnreadable(path, "matches no file", "check the path")
    for file in found:
        suffix = Path(file.removesuffix(".gz")).suffix.lower()
        if suffix in (".csv", ".tsv", ".parquet"):
            refuse_direct(f"loading {suffix[1:]} files", server)
        yield file


def _decoded(name: str, data: bytes) -> str:
    if data.startswith(b"\x1f\x8b"):
        import gzip
        import zlib

        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            raise SourceUnreadable(name, "is not valid gzip", "compress it again") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SourceUnreadable(name, "is not UTF-8 text", "save it as UTF-8") from None


def _warn(document: Mapping[str, Any], quarantine: str | None) -> None:
    if document.get("replayed"):
        warn(f"load id '{document['load_id']}' was loaded before; nothing was changed")
        return
    warn_of_document(document)
    if document.get("quarantined"):
        bad_records = f"{quarantine}/{document['load_id']}/bad.jsonl"
        warn(f"skipped {counted(document['quarantined'], 'invalid record')}; see {bad_records}")


def _totals(document: Mapping[str, Any]) -> dict[str, int]:
    loaded = {one["table_key"]: one["rows_loaded"] for one in document["tables"]}
    nodes = [rows for key, rows in loaded.items() if rows and key.startswith("node:")]
    edges = [rows for key, rows in loaded.items() if rows and key.startswith("edge:")]
    return {
        "nodes_loaded": sum(nodes),
        "edges_loaded": sum(edges),
        "node_types_loaded": len(nodes),
        "edge_types_loaded": len(edges),
    }


def _cascaded(document: Mapping[str, Any]) -> list[str]:
    """Edges deleted with their nodes, per edge type that the input does not contain."""
    loaded = {one["table_key"] for one in document["tables"]}
    return [
        f"{counts['deleted']} {key.removeprefix('edge:')} edge{'s' if counts['deleted'] != 1 else ''}"
        for key, counts in document.get("counts", {}).items()
        if key.startswith("edge:") and key not in loaded and counts["deleted"]
    ]


def _lines(document: Mapping[str, Any], totals: dict[str, int]) -> Iterator[str]:
    yield (
        f"loaded {document['uri']} on branch {document['branch']} with {document['mode']}: "
        f"{counted(totals['nodes_loaded'], 'node')} "
        f"across {counted(totals['node_types_loaded'], 'node type')}, "
        f"{counted(totals['edges_loaded'], 'edge')} "
        f"across {counted(totals['edge_types_loaded'], 'edge type')}"
    )
    if cascaded := _cascaded(document):
        yield f"deleted with their nodes: {', '.join(cascaded)}"
    if document["branch_created"]:
        yield f"branch {document['branch']} created from {document['base_branch']}"
    if "engine_reason" in document:
        yield f"engine {document['engine']}: {document['engine_reason']}"
    yield from written_lines(document)


@declare("ingest")
@click.option("--mode", type=click.Choice(MODES), default="merge", show_default=True)
@branch_option_of("--from", "base", "Branch to start from.")
@load_options
@click.pass_obj
def ingest(
    context: Context,
    uri: str | None,
    mode: str,
    base: str,
    as_json: bool,
    **options: Unpack[LoadOptions],
) -> None:
    """Load files into a branch, creating it if needed. Deprecated; use `omnigraph load`."""
    warn("`omnigraph ingest` is deprecated; use `omnigraph load` instead")
    document = _ingest(uri, context, mode, base, options)
    write_answer(document, _ingest_lines(document), as_json=as_json)


def _ingest_lines(document: Mapping[str, Any]) -> Iterator[str]:
    state = "branch created" if document["branch_created"] else "branch exists"
    yield (
        f"ingested {document['uri']} into branch {document['branch']} "
        f"from {document['base_branch']} with {document['mode']} ({state})"
    )
    for table in document["tables"]:
        yield f"{table['table_key']} rows_loaded={table['rows_loaded']}"
    if document["actor_id"] is not None:
        yield f"actor_id: {document['actor_id']}"
    yield from written_lines(document)
