"""The text of one value: in the formats that have cells (table, kv and csv), and in a line."""

from __future__ import annotations

from omnigraph.cli.output.json import compact
from omnigraph.cli.output.rows import Cell


def cell_text(value: Cell) -> str:
    """Strings as they are, everything else as compact JSON."""
    return value if isinstance(value, str) else compact(value)


def one_line(text: str) -> str:
    """Line breaks as the escapes people know; raw ones would tear a table or a list apart."""
    return text.replace("\r", "\\r").replace("\n", "\\n")


def value_text(value: Cell) -> str:
    """A cell where nothing is written out, since a line has no empty cells."""
    return "null" if value is None else cell_text(value)
