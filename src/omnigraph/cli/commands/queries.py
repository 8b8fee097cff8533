"""`omnigraph queries list` and `queries validate`: the registry of stored queries."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.context import Context, graph_uri, open_graph
from omnigraph.cli.exits import FAILURE, SUCCESS, Style
from omnigraph.cli.framework import declare
from omnigraph.cli.options import cluster_options, json_option, project_options, uri_argument
from omnigraph.cli.output.answers import write_answer
from omnigraph.diagnostics import counted, with_hint
from omnigraph.errors import UsageError
from omnigraph.stored_queries.registry import (
    QueryEntry,
    RegistryCheck,
    StoredQueries,
    StoredQuery,
    read_registry,
    registry_of_texts,
)

if TYPE_CHECKING:
    from omnigraph.config.legacy import StoredQueryFile


@declare("queries list")
@project_options
@cluster_options
@json_option
@click.pass_obj
def queries_list(context: Context, as_json: bool) -> None:
    """List the stored queries of the graph in --target or cli.graph, or those at the top of the file.

    With --cluster, list those that are applied for a graph of that cluster.
    """
    applied = _applied(context)
    stored = _read(_declared(context)) if applied is None else applied
    document = {"queries": [_document(query) for query in stored]}
    lines = [_line(query) for query in stored] or ["(no stored queries registered)"]
    write_answer(document, lines, as_json=as_json)


@declare("queries validate")
@uri_argument
@cluster_options
@json_option
@click.pass_obj
def queries_validate(context: Context, uri: str | None, as_json: bool) -> int:
    """Check every stored query against the schema of the graph; exit 1 if one does not match it."""
    uri = graph_uri(uri, context)
    applied = _applied(context)
    stored = _read(context.stored_queries()) if applied is None else applied
    found = stored.check(open_graph(uri, read_only=True).schema.catalog)
    document = {
        "ok": not found.breakages,
        "breakages": [{"query": one.query, "message": one.message} for one in found.breakages],
        "warnings": [{"query": one.query, "message": one.message} for one in found.warnings],
    }
    lines = _check_lines(len(stored), found, Style.of(sys.stdout))
    write_answer(document, lines, as_json=as_json)
    return FAILURE if found.breakages else SUCCESS


def _applied(context: Context) -> StoredQueries | None:
    """The stored queries that are applied for a graph of the cluster in `--cluster`, if it is given."""
    if (root := context.cluster_root()) is None:
        return None
    from omnigraph.cluster.addressing import applied_queries

    return registry_of_texts(applied_queries(root, context.options.cluster_graph))


def _declared(context: Context) -> Mapping[str, StoredQueryFile]:
    legacy = context.legacy
    name = context.options.project_graph or legacy.graph
    if name is not None:
        if name not in legacy.graphs:
            problem = f"graph '{name}' not found in omnigraph.yaml"
            raise UsageError(with_hint(problem, name, legacy.graphs))
        return legacy.graphs[name].queries
    having = sorted(name for name, graph in legacy.graphs.items() if graph.queries)
    if not legacy.queries and having:
        raise UsageError(
            f"no graph is selected, and only graphs have stored queries: {', '.join(having)}; "
            f"use --target {having[0]}"
        )
    return legacy.queries


def _read(declared: Mapping[str, StoredQueryFile]) -> StoredQueries:
    return read_registry(
        QueryEntry(name, entry.file, entry.expose, entry.tool_name)
        for name, entry in declared.items()
    )


def _document(stored: StoredQuery) -> dict[str, Any]:
    return {
        "name": stored.name,
        "mcp_expose": stored.entry.is_exposed,
        "tool_name": stored.entry.tool_name,
        "mutation": stored.is_mutation,
        "params": [
            {
                "name": one.name,
                "type": one.type.type.display.removesuffix("?"),
                "nullable": one.type.type.nullable,
            }
            for one in stored.query.parameters
        ],
    }


def _line(stored: StoredQuery) -> str:
    kind = "mutation" if stored.is_mutation else "read"
    params = ", ".join(f"${one.name}: {one.type.type.display}" for one in stored.query.parameters)
    tool = f" [mcp: {stored.tool_name}]" if stored.entry.is_exposed else ""
    return f"{kind}  {stored.name}({params}){tool}"


def _check_lines(count: int, found: RegistryCheck, style: Style) -> Iterator[str]:
    for one in found.breakages:
        yield f"{style.error('ERROR')}  query '{one.query}': {one.message}"
    for one in found.warnings:
        yield f"{style.warning('WARN')}   query '{one.query}': {one.message}"
    if not found.breakages:
        noun = counted(count, "stored query", "stored queries")
        yield f"{style.ok('OK')}  {noun} type-check against the schema"
