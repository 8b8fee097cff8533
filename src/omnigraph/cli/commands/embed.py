"""`omnigraph embed`: compute the embeddings of a graph, or of the rows of a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from omnigraph.cli.context import Context, graph_uri, open_graph
from omnigraph.cli.framework import declare
from omnigraph.cli.options import (
    asking_engine_options,
    chosen_engine,
    expect_head_option,
    idempotency_key_option,
    json_option,
    message_option,
    uri_argument,
)
from omnigraph.cli.output.answers import commit_lines, receipt_fields, warn_of, write_answer
from omnigraph.cli.progress import progress
from omnigraph.diagnostics import counted

if TYPE_CHECKING:
    from omnigraph.embedding.embed import EmbeddedProperty, EmbedResult
    from omnigraph.providers.seed import SeedPlan, SeedSummary


class GraphOptions(TypedDict):
    """Options for a graph."""

    branch: str | None
    properties: tuple[str, ...]
    pending: bool
    stale: bool
    everything: bool
    include_given: bool
    dry_run: bool
    engine: str | None
    master: str | None
    expect_head: str | None
    idempotency_key: str | None
    message: str | None


class FileOptions(TypedDict):
    """Options for a file."""

    seed: str | None
    source: str | None
    target: str | None
    spec: str | None
    reembed_all: bool
    clean: bool
    selectors: tuple[str, ...]


class Options(GraphOptions, FileOptions):
    """All options of the command."""


@declare("embed")
@uri_argument
@click.option(
    "--branch",
    metavar="BRANCH",
    help="Branch to work on.  [default: cli.branch of the project file, or main]",
)
@click.option(
    "--type", "types", multiple=True, metavar="TYPE", help="Only this type; may be repeated."
)
@click.option(
    "--property",
    "properties",
    multiple=True,
    metavar="NAME",
    help="Only this vector property; may be repeated.",
)
@click.option("--pending", is_flag=True, help="Only missing embeddings.")
@click.option("--stale", is_flag=True, help="Only embeddings of an earlier text or another model.")
@click.option(
    "--all", "everything", is_flag=True, help="Recompute embeddings that are up to date too."
)
@click.option(
    "--include-given",
    is_flag=True,
    help="Include vectors supplied by the caller whose text changed.",
)
@click.option("--dry-run", is_flag=True, help="Count embeddings without computing any.")
@asking_engine_options
@expect_head_option()
@idempotency_key_option
@message_option
@click.option("--seed", metavar="FILE", help="Manifest (YAML) of the file to embed.")
@click.option("--input", "source", metavar="FILE", help="JSON Lines file to embed.")
@click.option("--output", "target", metavar="FILE", help="Output file.")
@click.option("--spec", metavar="FILE", help="Embedding specification (JSON).")
@click.option(
    "--reembed-all", is_flag=True, help="File: embed rows that already have a vector too."
)
@click.option("--clean", is_flag=True, help="File: remove vectors.")
@click.option(
    "--select",
    "selectors",
    multiple=True,
    metavar="[TYPE:]FIELD=VALUE",
    help="File: only matching rows, with or without a vector; may be repeated.",
)
@json_option
@click.pass_obj
def embed(
    context: Context,
    uri: str | None,
    types: tuple[str, ...],
    as_json: bool,
    **options: Unpack[Options],
) -> None:
    """Compute missing and stale @embed vectors of the graph at URI as one commit.

    With --seed, or with --input, --output and --spec, no graph is touched: rows of a file of JSON
    lines get vectors, and are written to another file.
    """
    if options["seed"] or options["source"] or options["target"] or options["spec"]:
        if uri is not None:
            raise click.UsageError("a graph and files to embed are exclusive; give one of them.")
        _refuse(GraphOptions, "is about a graph; it does not go with files")
        _embed_file(_plan(types, options), as_json=as_json)
    else:
        _refuse(FileOptions, "is about files; it needs --seed or --input")
        _embed_graph(graph_uri(uri, context), context, types, options, as_json=as_json)


def _refuse(those: type[GraphOptions] | type[FileOptions], complaint: str) -> None:
    """Raise a usage error for options that do not apply here."""
    context = click.get_current_context()
    for option in context.command.params:
        if option.name in those.__annotations__ and context.params[option.name]:
            raise click.UsageError(f"{option.opts[-1]} {complaint}.")


# -- a graph ------------------------------------------------------------------------------------


def _embed_graph(
    uri: str, context: Context, types: tuple[str, ...], options: Options, *, as_json: bool
) -> None:
    if options["everything"] and (options["pending"] or options["stale"]):
        raise click.UsageError("--all takes in what is pending and stale.")
    engine = chosen_engine(options["engine"], options["master"])
    graph = open_graph(uri, context, read_only=options["dry_run"])
    with progress("embedding", as_json=as_json) as shown:
        result = graph.embed(
            branch=options["branch"] or context.default_branch,
            types=types,
            properties=options["properties"],
            pending=options["pending"],
            stale=options["stale"],
            all=options["everything"],
            include_given=options["include_given"],
            dry_run=options["dry_run"],
            message=options["message"],
            expected_head=options["expect_head"],
            idempotency_key=options["idempotency_key"],
            progress=shown,
            engine=engine,
        )
    warn_of(result.receipt)
    document = {
        "uri": uri,
        "branch": result.branch,
        "model": result.model,
        "properties": [prop.to_json() for prop in result.properties],
        "dry_run": result.dry_run,
    }
    write_answer(
        document | receipt_fields(result.receipt), _graph_lines(uri, result), as_json=as_json
    )


def _graph_lines(uri: str, result: EmbedResult) -> Iterator[str]:
    mode = "counted only, " if result.dry_run else ""
    yield f"embed {uri} — {mode}branch {result.branch}, model {result.model or 'none configured'}"
    for prop in result.properties:
        yield _property_line(prop, dry_run=result.dry_run)
    yield from commit_lines(result.receipt)


def _property_line(prop: EmbeddedProperty, *, dry_run: bool) -> str:
    counts = ", ".join(f"{count} {state}" for state, count in prop.states.to_json().items())
    line = f"{prop.table_key} {prop.property}  "
    if not dry_run:
        line += f"embedded {prop.embedded}, "
        line += f"skipped {prop.skipped}, " if prop.skipped else ""
        line += "now "
    return line + counts


# -- files --------------------------------------------------------------------------------------


def _plan(types: tuple[str, ...], options: Options) -> SeedPlan:
    # Only this form needs them, and help must not wait for the libraries behind.
    from omnigraph.providers.seed import SeedMode, SeedPlan, Selector, read_manifest, read_spec

    if options["clean"] and options["reembed_all"]:
        raise click.UsageError("--clean and --reembed-all are exclusive; use one of them.")
    names = options["source"], options["target"], options["spec"]
    if options["seed"] is not None:
        if any(names):
            raise click.UsageError(
                "--seed names the files; leave out --input, --output and --spec."
            )
        source, target, spec = read_manifest(Path(options["seed"]))
    elif all(names):
        source, target = Path(str(names[0])), Path(str(names[1]))
        spec = read_spec(Path(str(names[2])))
    else:
        raise click.UsageError("--input, --output and --spec are given together.")
    selectors = tuple(map(Selector.of, options["selectors"]))
    if options["clean"]:
        mode = SeedMode.CLEAN
    elif options["reembed_all"]:
        mode = SeedMode.REEMBED_ALL
    else:
        mode = SeedMode.REEMBED_SELECTED if selectors else SeedMode.FILL_MISSING
    return SeedPlan(source, target, spec, mode, types, selectors)


def _embed_file(plan: SeedPlan, *, as_json: bool) -> None:
    from omnigraph.providers.seed import embed_seed

    with progress(f"embedding {plan.source}"):
        done = embed_seed(plan)
    write_answer(done.to_json(), [_file_line(done)], as_json=as_json)


def _file_line(done: SeedSummary) -> str:
    return (
        f"embedded {done.embedded_rows} and cleaned {done.cleaned_rows} of "
        f"{counted(done.selected_rows, 'selected row')}, {done.rows} in all: {done.input} → {done.output} "
        f"({done.mode}, {counted(done.dimension, 'dimension')})"
    )
