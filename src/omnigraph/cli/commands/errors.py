"""`omnigraph errors`: explain error codes."""

from __future__ import annotations

import sys
from textwrap import indent

import click
import msgspec

from omnigraph.cli.framework import declare
from omnigraph.cli.options import json_option
from omnigraph.cli.output.cells import write_document
from omnigraph.cli.output.results import TableLayout, write_grid
from omnigraph.cli.style import Style
from omnigraph.diagnostics import did_you_mean
from omnigraph.error_codes import REGISTRY, ErrorCode
from omnigraph.errors import NotFoundError


@declare("errors")
@click.argument("code", required=False)
@json_option
def command(code: str | None, as_json: bool) -> None:
    """Explain the error CODE, or list all codes."""
    if code is None:
        entries = sorted(REGISTRY.values(), key=lambda entry: entry.natural_key)
    else:
        entries = [_find(code)]
    if as_json:
        write_document({"errors": msgspec.to_builtins(entries)}, sys.stdout)
    elif code is None:
        rows = [(entry.code, entry.kind, entry.title) for entry in entries]
        style = Style.of(sys.stdout)
        write_grid(("code", "kind", "title"), rows, sys.stdout, TableLayout(), style)
    else:
        sys.stdout.write(_full_text(entries[0], Style.of(sys.stdout)))


def _find(code: str) -> ErrorCode:
    entry = REGISTRY.get(code.upper())
    if entry is None:
        hint = did_you_mean(code.upper(), REGISTRY)
        advice = hint or "`omnigraph errors` lists all codes"
        raise NotFoundError(f"no error has the code '{code}'; {advice}")
    return entry


def _full_text(entry: ErrorCode, style: Style) -> str:
    text = f"{style.header(f'{entry.code}: {entry.title}')}\nkind: {entry.kind}\n\n"
    text += entry.explanation + "\n"
    if entry.example:
        text += "\nexample:\n" + indent(entry.example, "    ") + "\n"
    return text
