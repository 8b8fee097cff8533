"""`omnigraph lint`: check the queries of a file against a schema."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from omnigraph.catalog.compile import compile_schema
from omnigraph.catalog.model import Catalog
from omnigraph.cli.command_table import refuse_remote
from omnigraph.cli.context import open_graph
from omnigraph.cli.exits import FAILURE, SUCCESS
from omnigraph.cli.framework import declare
from omnigraph.cli.options import json_option, uri_argument
from omnigraph.cli.output.cells import write_document
from omnigraph.cli.style import Style, warn
from omnigraph.diagnostics import Diagnostic, counted
from omnigraph.errors import UsageError
from omnigraph.plan.lint import LintReport, lint_queries
from omnigraph.read.source_files import read_source

_INDENT = " " * 6
"""Continuation lines align with the text after the label."""


@declare("lint")
@uri_argument
@click.option("--query", "query_path", required=True, metavar="FILE", help="Query file (.gq).")
@click.option("--schema", "schema_path", metavar="FILE", help="Schema file (.pg) to lint against.")
@json_option
def command(uri: str | None, query_path: str, schema_path: str | None, as_json: bool) -> int:
    """Check every query of a file against a schema; exit 1 if one has an error.

    The schema comes from --schema or, without that, from the graph at URI.
    """
    catalog, schema_source = _schema(uri, schema_path)
    linted = lint_queries(read_source(query_path), catalog)
    if as_json:
        write_document(linted.to_json(schema_source, query_path), sys.stdout)
    else:
        for line in _human_lines(linted, Style.of(sys.stdout)):
            sys.stdout.write(line + "\n")
    return FAILURE if linted.status == "error" else SUCCESS


def _schema(uri: str | None, schema_path: str | None) -> tuple[Catalog, dict[str, str]]:
    """The schema to lint against and its origin."""
    if schema_path is not None:
        if uri is not None:
            warn(f"--schema is given, so the graph {uri} is not consulted")
        return compile_schema(read_source(schema_path)), {"kind": "file", "path": schema_path}
    if uri is None:
        raise UsageError("lint requires --schema <schema.pg> or a resolvable graph target")
    refuse_remote("lint", uri)
    return open_graph(uri, read_only=True).schema.catalog, {"kind": "graph", "uri": uri}


def _human_lines(linted: LintReport, style: Style) -> Iterator[str]:
    labels = {
        "ok": style.ok("OK   "),
        "error": style.error("ERROR"),
        "warning": style.warning("WARN "),
        "info": "INFO ",
    }
    for result in linted.results:
        label = labels[result.status]
        if result.error is None:
            yield f"{label} query `{result.name}` ({result.kind})"
        else:
            yield from _with_source(
                f"{label} query `{result.name}`: ", result.error, result.diagnostic
            )
        for warning in result.warnings:
            yield f"{labels['warning']} query `{result.name}`: {warning}"
    for finding in linted.findings:
        yield from _with_source(f"{labels[finding.severity]} ", finding.message, finding.diagnostic)
    yield (
        f"{labels['info']} Lint complete: {counted(linted.queries_processed, 'query', 'queries')} "
        f"processed ({counted(linted.errors, 'error')}, {counted(linted.warnings, 'warning')}, "
        f"{counted(linted.infos, 'info item')})"
    )


def _with_source(start: str, message: str, diagnostic: Diagnostic | None) -> Iterator[str]:
    """The message with its location and the underlined source, if any."""
    if diagnostic is None:
        yield start + message
        return
    headline, *excerpt = diagnostic.render().split("\n")
    yield start + headline
    for line in excerpt:
        yield _INDENT + line
