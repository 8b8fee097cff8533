"""What one atomic write brings to the tables of a graph, before anything is stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from omnigraph.limits import SMALL_WRITE_ROWS

WriteMode = Literal["append", "delta", "overwrite"]


def _no_ids() -> pa.Array:
    return pa.array([], pa.utf8())


@dataclass(frozen=True, slots=True)
class SeenRows:
    """Where rows that a write looked at by id are, in the version of the table it was prepared on."""

    version: int
    branch: str | None
    places: pa.Table


@dataclass(frozen=True, slots=True)
class TableWrite:
    """The rows one write brings to one table, under property names, and the ids it removes.

    A strict write looked at rows it changes: it means something else on any other version of the
    table than the one it was prepared on.
    """

    table_key: str
    mode: WriteMode
    rows: pa.Table
    deletes: pa.Array = field(default_factory=_no_ids)
    strict: bool = False
    seen: SeenRows | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """All table writes of one atomic write, and the other tables its checks looked at."""

    writes: tuple[TableWrite, ...]
    reads: frozenset[str] = frozenset()

    @property
    def is_small(self) -> bool:
        """Whether staging it takes no longer than a few look-ups."""
        rows: int = sum(write.rows.num_rows + len(write.deletes) for write in self.writes)
        return rows <= SMALL_WRITE_ROWS
