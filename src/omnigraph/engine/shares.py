"""How tasks share the reading of a table: whole fragments, some of them together."""

from __future__ import annotations

from omnigraph.limits import LOAD_RANGE_ROWS
from omnigraph.storage.table import Table

Share = tuple[int, ...]
"""The ids of fragments that one task reads."""


def shares_of(table: Table) -> tuple[Share, ...]:
    """All fragments of a table with rows, in parts of about as many rows as a task reads."""
    shares: list[Share] = []
    held: list[int] = []
    count = 0
    for fragment in table.fragments():
        if held and count + fragment.rows > LOAD_RANGE_ROWS:
            shares.append(tuple(held))
            held, count = [], 0
        held.append(fragment.id)
        count += fragment.rows
    if held:
        shares.append(tuple(held))
    return tuple(shares)
