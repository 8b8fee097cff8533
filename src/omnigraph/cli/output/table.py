"""Rows in aligned columns. The widths depend on every row, so all rows are held in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal, TextIO

from omnigraph.cli.output.cell import cell_text, one_line
from omnigraph.cli.output.rows import Cell, Rows
from omnigraph.cli.output.width import measure, pad, truncate, wrap
from omnigraph.cli.style import Style

_NARROWEST_CAP = 8
"""A header stays readable even when the width allowed for cells is smaller."""


@dataclass(frozen=True, slots=True)
class TableLayout:
    """How wide a column may get, and what happens to cells that are wider."""

    max_column_width: int = 80
    overlong: Literal["truncate", "wrap"] = "truncate"

    def __post_init__(self) -> None:
        if self.max_column_width < 1:
            raise ValueError("a column is at least 1 wide")


def write_table(result: Rows, out: TextIO, layout: TableLayout, style: Style) -> None:
    """A read result as a table under a line that says what was read."""
    out.write(result.headline + "\n")
    write_grid(result.columns, result.rows, out, layout, style)


def write_grid(
    columns: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    out: TextIO,
    layout: TableLayout,
    style: Style,
) -> None:
    """Column names, a rule, and the rows."""
    if not columns:
        out.write("(no rows)\n")
        return
    header = [one_line(name) for name in columns]
    body = [[one_line(cell_text(value)) for value in row] for row in rows]
    widths = [
        _column_width(name, (row[index] for row in body), layout.max_column_width)
        for index, name in enumerate(header)
    ]
    for line in _lines(header, widths, layout):
        out.write(style.header(line) + "\n")
    out.write("-+-".join("-" * width for width in widths) + "\n")
    for row in body:
        for line in _lines(row, widths, layout):
            out.write(line + "\n")


def _column_width(name: str, cells: Iterable[str], cap: int) -> int:
    widest = max((min(measure(cell), cap) for cell in cells), default=0)
    return min(max(measure(name), widest), max(cap, _NARROWEST_CAP))


def _lines(cells: Sequence[str], widths: Sequence[int], layout: TableLayout) -> Iterator[str]:
    """The terminal lines of one row: one, or more when cells are wrapped."""
    if layout.overlong == "truncate":
        fitted = [[truncate(cell, width)] for cell, width in zip(cells, widths, strict=True)]
    else:
        fitted = [wrap(cell, width) for cell, width in zip(cells, widths, strict=True)]
    for pieces in zip_longest(*fitted, fillvalue=""):
        yield " | ".join(pad(piece, width) for piece, width in zip(pieces, widths, strict=True))
