"""`omnigraph lint` and `fmt`: check and format schema and query files."""

from __future__ import annotations

import difflib
import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

import click

from omnigraph.catalog.compile import compile_schema
from omnigraph.catalog.model import Catalog
from omnigraph.cli.context import Context, graph_uri, open_graph
from omnigraph.cli.exits import FAILURE, SUCCESS, Style, report, warn
from omnigraph.cli.framework import declare
from omnigraph.cli.options import json_option, uri_argument
from omnigraph.cli.output.answers import write_document
from omnigraph.diagnostics import Diagnostic, counted
from omnigraph.errors import InputError, LanguageError, OmnigraphError, UsageError
from omnigraph.language.format import format_queries, format_schema
from omnigraph.language.syntax import Source
from omnigraph.limits import MAX_SOURCE_BYTES
from omnigraph.plan.lint import LintReport, lint_queries
from omnigraph.read.source_files import decode_source, read_source
from omnigraph.replace_file import replacing

_INDENT = " " * 6
"""Continuation lines align with the text after the label."""


@declare("lint")
@uri_argument
@click.option("--query", "query_path", required=True, metavar="FILE", help="Query file (.gq).")
@click.option("--schema", "schema_path", metavar="FILE", help="Schema file (.pg) to lint against.")
@json_option
@click.pass_obj
def lint(
    context: Context, uri: str | None, query_path: str, schema_path: str | None, as_json: bool
) -> int:
    """Check every query of a file against a schema; exit 1 if one has an error.

    The schema comes from --schema or, without that, from the graph at URI.
    """
    catalog, schema_source = _schema(context, uri, schema_path)
    linted = lint_queries(read_source(query_path), catalog)
    if as_json:
        write_document(linted.to_json(schema_source, query_path), sys.stdout)
    else:
        for line in _human_lines(linted, Style.of(sys.stdout)):
            sys.stdout.write(line + "\n")
    return FAILURE if linted.status == "error" else SUCCESS


def _schema(
    context: Context, uri: str | None, schema_path: str | None
) -> tuple[Catalog, dict[str, str]]:
    """The schema to lint against and its origin."""
    if schema_path is not None:
        if uri is not None:
            warn(f"--schema is given, so the graph {uri} is not consulted")
        return compile_schema(read_source(schema_path)), {"kind": "file", "path": schema_path}
    if context.select(uri) is None:
        raise UsageError("lint requires --schema <schema.pg> or a resolvable graph target")
    uri = graph_uri(uri, context)
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


_STDIN = "-"
_FORMATTERS = {"pg": format_schema, "gq": format_queries}


@dataclass(frozen=True, slots=True)
class _Formatted:
    path: str
    before: str
    after: str

    @property
    def changed(self) -> bool:
        return self.before != self.after


@declare("fmt")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a file would change.")
@click.option("--diff", is_flag=True, help="Write nothing; print what would change.")
@click.option(
    "--lang",
    type=click.Choice(list(_FORMATTERS)),
    help="Language of the input: pg for schemas, gq for queries. "
    "Default: from the file name; for standard input, detected.",
)
@json_option
def fmt(files: tuple[str, ...], check: bool, diff: bool, lang: str | None, as_json: bool) -> int:
    """Rewrite schema (.pg) and query (.gq) files in the standard layout.

    With `-` as the only FILE, standard input is formatted to standard output. A file that does
    not parse is reported and left alone; the others are still formatted.
    """
    _refuse_contradictions(files, check, diff, as_json)
    results: list[_Formatted] = []
    for path in files:
        try:
            result = _format(path, lang)
            if result.changed and path != _STDIN and not (check or diff):
                _write(result)
        except OmnigraphError as error:
            report(error)
        else:
            results.append(result)

    failed = len(results) < len(files)
    if not as_json:
        _print_results(results, check=check, diff=diff)
    elif not failed:
        entries = [{"path": result.path, "changed": result.changed} for result in results]
        write_document({"files": entries}, sys.stdout)
    outdated = check and any(result.changed for result in results)
    return FAILURE if failed or outdated else SUCCESS


def _refuse_contradictions(files: tuple[str, ...], check: bool, diff: bool, as_json: bool) -> None:
    if _STDIN in files and len(files) > 1:
        raise click.UsageError("`-` cannot be combined with other files.")
    if as_json and diff:
        raise click.UsageError("--json and --diff both decide what is printed; use one of them.")
    if as_json and _STDIN in files and not check:
        raise click.UsageError("`-` prints the formatted text; with --json it needs --check.")


def _format(path: str, lang: str | None) -> _Formatted:
    if path == _STDIN:
        source = decode_source("<stdin>", sys.stdin.buffer.read(MAX_SOURCE_BYTES + 1))
        after = _FORMATTERS[lang](source) if lang else _format_guessing(source)
    else:
        lang = lang or PurePath(path).suffix.lower().removeprefix(".")
        if lang not in _FORMATTERS:
            raise InputError(
                f"{path}: the name tells neither a schema (.pg) nor queries (.gq); pass --lang"
            )
        source = read_source(path)
        after = _FORMATTERS[lang](source)
    return _Formatted(path, source.text, after)


def _format_guessing(source: Source) -> str:
    """Format a text in the language it parses as; the error is that of the closer language."""
    errors: list[LanguageError] = []
    for formatter in _FORMATTERS.values():
        try:
            return formatter(source)
        except LanguageError as error:
            errors.append(error)
    raise max(errors, key=lambda error: error.diagnostic.position.start)


def _write(result: _Formatted) -> None:
    try:
        with replacing(result.path) as file:
            file.write(result.after)
    except OSError as error:
        raise InputError(f"{result.path}: cannot be written: {error.strerror}") from None


def _print_results(results: list[_Formatted], *, check: bool, diff: bool) -> None:
    for result in results:
        if diff:
            sys.stdout.writelines(_diff(result))
        elif result.changed and check:
            sys.stdout.write(f"would reformat {result.path}\n")
        elif result.path == _STDIN and not check:
            sys.stdout.write(result.after)
        elif result.changed:
            sys.stdout.write(f"reformatted {result.path}\n")


def _diff(result: _Formatted) -> Iterator[str]:
    before, after = _lines(result.before), _lines(result.after)
    for line in difflib.unified_diff(before, after, result.path, result.path):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(text: str) -> list[str]:
    """Lines as the languages and editors count them: only a line feed ends one."""
    return io.StringIO(text, newline="\n").readlines()
