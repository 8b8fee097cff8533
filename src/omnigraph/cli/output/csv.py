"""Comma-separated values: a header, then the rows, quoted only where a reader needs it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TextIO

from omnigraph.cli.output.cell import cell_text
from omnigraph.cli.output.rows import Rows

_NEEDS_QUOTES = re.compile('[,"\r\n]')


def write_csv(result: Rows, out: TextIO) -> None:
    out.write(_record(result.columns))
    for row in result.rows:
        out.write(_record(map(cell_text, row)))


def _record(fields: Iterable[str]) -> str:
    return ",".join(map(_quote, fields)) + "\n"


def _quote(field: str) -> str:
    if _NEEDS_QUOTES.search(field):
        return '"' + field.replace('"', '""') + '"'
    return field
