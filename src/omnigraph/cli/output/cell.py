"""The text of one value in the formats that have cells: table, kv and csv."""

from __future__ import annotations

from omnigraph.cli.output.json import compact
from omnigraph.cli.output.rows import Cell


def cell_text(value: Cell) -> str:
    """Strings as they are, everything else as compact JSON."""
    return value if isinstance(value, str) else compact(value)
