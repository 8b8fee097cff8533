"""`omnigraph init`, `schema show`, `schema plan` and `schema apply`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from omnigraph.catalog.migrate.report import plan_lines, step_lines
from omnigraph.cli.command_table import refuse_direct, refuse_remote
from omnigraph.cli.context import (
    Context,
    address_or_server,
    graph_uri,
    is_local,
    open_graph,
    remember,
)
from omnigraph.cli.exits import FAILURE, echo_write
from omnigraph.cli.framework import declare
from omnigraph.cli.options import (
    chosen_engine,
    expect_head_option,
    idempotency_key_option,
    json_option,
    message_option,
    rewriting_engine_options,
    uri_argument,
)
from omnigraph.cli.output.answers import (
    receipt_fields,
    warn_of_document,
    write_answer,
    written_lines,
)
from omnigraph.cli.progress import progress
from omnigraph.read.source_files import schema_source
from omnigraph.settings import read_settings


@declare("init")
@click.argument("uri", required=False)
@click.option(
    "--uri",
    "uri_option",
    metavar="URI",
    expose_value=False,
    callback=remember,
    help="Graph path or URI, instead of URI.",
)
@click.option("--schema", "schema_path", required=True, metavar="FILE", help="Schema file (.pg).")
@click.option(
    "--force", is_flag=True, help="Overwrite schema files that an unfinished init left behind."
)
@json_option
@click.pass_obj
def init(context: Context, uri: str | None, schema_path: str, force: bool, as_json: bool) -> None:
    """Create an empty graph at URI, a path or s3:// URI. Missing directories are created.

    Without URI, OMNIGRAPH_URI says where.
    """
    uri = uri or read_settings().uri
    if uri is None:
        raise click.UsageError("Missing argument 'URI'.")
    refuse_remote("init", uri)
    if not is_local(uri):
        echo_write(uri, "direct", quiet=bool(context.options.quiet))
    # Imported here so that help does not wait for the storage engine.
    from omnigraph.api.graph import init
    from omnigraph.cluster.addressing import refuse_managed

    refuse_managed("init", uri)
    graph = init(uri, Path(schema_path), force=force)
    head = graph.head().id
    lines = [f"initialized {uri}", f"commit {head}"]
    write_answer({"uri": uri, "graph_commit_id": head}, lines, as_json=as_json)


schema_option = click.option(
    "--schema", required=True, metavar="PATH", help="New schema file (.pg)."
)
loss_option = click.option(
    "--allow-data-loss",
    is_flag=True,
    help="Delete dropped data immediately, from earlier commits too.",
)


@declare("schema show")
@uri_argument
@click.option(
    "--diagram",
    type=click.Choice(["mermaid", "svg"]),
    help="Print a picture of the types instead: Mermaid text, or SVG.",
)
@json_option
@click.pass_obj
def schema_show(context: Context, uri: str | None, diagram: str | None, as_json: bool) -> None:
    """Print the schema source of the graph at URI, or a diagram of it."""
    graph = address_or_server(uri, context)
    if isinstance(graph, str):
        source = open_graph(graph, read_only=True).schema.source
    else:
        source = graph.schema()["schema_source"]
    if diagram is not None:
        from omnigraph.catalog.compile import compile_schema
        from omnigraph.language.syntax import Source
        from omnigraph.pictures.schema import diagram as drawn

        picture = drawn(compile_schema(Source("schema", source)), diagram)
        write_answer({"format": diagram, "diagram": picture}, [picture], as_json=as_json)
        return
    write_answer({"schema_source": source}, [source.removesuffix("\n")], as_json=as_json)


@declare("schema plan")
@uri_argument
@schema_option
@loss_option
@json_option
@click.pass_obj
def schema_plan(
    context: Context, uri: str | None, schema: str, allow_data_loss: bool, as_json: bool
) -> int | None:
    """Show the migration steps to a new schema and which are unsupported. Changes nothing.

    Exits with 1 if a step is unsupported.
    """
    uri = graph_uri(uri, context)
    graph = open_graph(uri, read_only=True)
    planned = graph.schema.plan(Path(schema), allow_data_loss=allow_data_loss)
    lines = [f"schema plan for {uri}", *plan_lines(planned)]
    write_answer(planned.document(uri), lines, as_json=as_json)
    return None if planned.supported else FAILURE


@declare("schema apply")
@uri_argument
@schema_option
@loss_option
@expect_head_option("main")
@idempotency_key_option
@message_option
@click.option(
    "--query",
    "queries",
    multiple=True,
    metavar="FILE",
    help="Query file to check against the new schema; may be repeated.",
)
@rewriting_engine_options
@json_option
@click.pass_obj
def schema_apply(
    context: Context,
    uri: str | None,
    schema: str,
    allow_data_loss: bool,
    expect_head: str | None,
    idempotency_key: str | None,
    message: str | None,
    queries: tuple[str, ...],
    engine: str | None,
    master: str | None,
    as_json: bool,
) -> None:
    """Migrate the graph at URI to a new schema as one commit. Only main may exist.

    Dropped data can be read at earlier commits until cleanup.
    """
    graph = address_or_server(uri, context)
    if not isinstance(graph, str):
        for flag, given in (("--engine", engine), ("--master", master), ("--query", queries)):
            if given:
                refuse_direct(f"`schema apply {flag}`", graph.url)
        graph.source_name = schema
        document = graph.apply_schema(
            schema_source=schema_source(Path(schema)).text,
            allow_data_loss=allow_data_loss,
            expected_head=expect_head,
            message=message,
            idempotency_key=idempotency_key,
        )
        lines = document.pop("lines", [f"- {step['kind']}" for step in document["steps"]])
        warn_of_document(document)
        write_answer(document, _lines(document, lines), as_json=as_json)
        return
    from omnigraph.cluster.addressing import refuse_managed

    refuse_managed("schema apply", graph)
    with progress("applying") as shown:
        result = open_graph(graph, context).schema.apply(
            Path(schema),
            allow_data_loss=allow_data_loss,
            message=message,
            expected_head=expect_head,
            idempotency_key=idempotency_key,
            queries=[Path(query) for query in queries],
            progress=shown,
            engine=chosen_engine(engine, master),
        )
    applied = {"applied": result.applied, "actor_id": context.actor}
    document = result.plan.document(graph) | applied | receipt_fields(result.receipt)
    warn_of_document(document)
    write_answer(document, _lines(document, step_lines(result.plan)), as_json=as_json)


def _lines(document: Mapping[str, Any], steps: Iterable[str]) -> Iterator[str]:
    yield f"schema apply for {document['uri']}"
    yield "supported: yes"
    yield f"applied: {'yes' if document['applied'] else 'no'}"
    yield f"manifest_version: {document['manifest_version']}"
    yield from steps
    yield from written_lines(document)
