"""`omnigraph load`: load files into a branch. `omnigraph ingest` is its deprecated form."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

import click

from omnigraph.cli.context import Context, graph_uri, open_graph
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
    uri_argument,
)
from omnigraph.cli.output.answers import commit_lines, receipt_fields, warn_of, write_answer
from omnigraph.cli.progress import progress
from omnigraph.diagnostics import counted
from omnigraph.limits import MAX_LOAD_ERRORS

if TYPE_CHECKING:
    from omnigraph.load.run import LoadResult


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
    uri = graph_uri(uri, context)
    result = run_load(uri, context, mode, base, options, stages_as_json=as_json)
    totals = _totals(result)
    document = {"uri": uri, "branch": result.branch, "mode": mode}
    if base is not None:
        document["base_branch"] = base
    write_answer(
        document | {"branch_created": result.branch_created} | totals | load_receipt(result),
        _lines(uri, mode, result, totals),
        as_json=as_json,
    )


def run_load(
    uri: str,
    context: Context,
    mode: str,
    base: str | None,
    options: LoadOptions,
    *,
    stages_as_json: bool = False,
) -> LoadResult:
    """Load, show progress, then print the warnings."""
    if not options["data"] and options["mapping"] is None:
        raise click.UsageError("Missing option '--data' or '--mapping'.")
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
    _warn(result, options["quarantine"])
    return result


def _source(path: str) -> bytes | str | Path:
    """The sources named by `--data`. URIs stay strings: a path would drop one of the slashes."""
    if path == "-":
        return sys.stdin.buffer.read()
    return path if path.startswith("s3://") else Path(path)


def _warn(result: LoadResult, quarantine: str | None) -> None:
    if result.replayed:
        warn(f"load id '{result.load_id}' was loaded before; nothing was changed")
        return
    warn_of(result.receipt)
    if result.quarantined:
        bad_records = f"{quarantine}/{result.load_id}/bad.jsonl"
        warn(f"skipped {counted(result.quarantined, 'invalid record')}; see {bad_records}")


def load_receipt(result: LoadResult) -> dict[str, Any]:
    """The receipt fields of a load."""
    return receipt_fields(result.receipt) | {
        "load_id": result.load_id,
        "replayed": result.replayed,
        "quarantined": result.quarantined,
        "engine": result.engine,
    }


def _totals(result: LoadResult) -> dict[str, int]:
    loaded = {key: rows for key, rows in result.rows_loaded.items() if rows}
    nodes = [rows for key, rows in loaded.items() if key.startswith("node:")]
    edges = [rows for key, rows in loaded.items() if key.startswith("edge:")]
    return {
        "nodes_loaded": sum(nodes),
        "edges_loaded": sum(edges),
        "node_types_loaded": len(nodes),
        "edge_types_loaded": len(edges),
    }


def _cascaded(result: LoadResult) -> list[str]:
    """Edges deleted with their nodes, per edge type that the input does not contain."""
    return [
        f"{counts.deleted} {key.removeprefix('edge:')} edge{'s' if counts.deleted != 1 else ''}"
        for key, counts in result.receipt.counts.items()
        if key.startswith("edge:") and key not in result.rows_loaded and counts.deleted
    ]


def _lines(uri: str, mode: str, result: LoadResult, totals: dict[str, int]) -> Iterator[str]:
    yield (
        f"loaded {uri} on branch {result.branch} with {mode}: "
        f"{counted(totals['nodes_loaded'], 'node')} "
        f"across {counted(totals['node_types_loaded'], 'node type')}, "
        f"{counted(totals['edges_loaded'], 'edge')} "
        f"across {counted(totals['edge_types_loaded'], 'edge type')}"
    )
    if cascaded := _cascaded(result):
        yield f"deleted with their nodes: {', '.join(cascaded)}"
    if result.branch_created:
        yield f"branch {result.branch} created from {result.base_branch}"
    yield from commit_lines(result.receipt)


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
    uri = graph_uri(uri, context)
    result = run_load(uri, context, mode, base, options)
    document = {
        "uri": uri,
        "branch": result.branch,
        "base_branch": base,
        "branch_created": result.branch_created,
        "mode": mode,
        "tables": [
            {"table_key": key, "rows_loaded": rows}
            for key, rows in sorted(result.rows_loaded.items())
        ],
        # The document has an actor only if a server reported one.
        "actor_id": None,
    }
    lines = [*_ingest_lines(document), *commit_lines(result.receipt)]
    write_answer(document | load_receipt(result), lines, as_json=as_json)


def _ingest_lines(document: Mapping[str, Any]) -> Iterator[str]:
    state = "branch created" if document["branch_created"] else "branch exists"
    yield (
        f"ingested {document['uri']} into branch {document['branch']} "
        f"from {document['base_branch']} with {document['mode']} ({state})"
    )
    for table in document["tables"]:
        yield f"{table['table_key']} rows_loaded={table['rows_loaded']}"
