"""What one atomic write brings to the tables of a graph, before anything is stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from omnigraph.limits import SMALL_WRITE_ROWS
from omnigraph.storage.table import Table
from omnigraph.storage.written import Shrunk, WrittenRows
from omnigraph.versioning.commits import Counts
from omnigraph.versioning.snapshot import SnapshotEntry

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
class WrittenTable:
    """Rows that are in files already, written for one version of a table by other processes.

    Rows that a part removes are known by their places, too.
    `shrunk` are the fragments without the rows that are replaced, as far as somebody made them.
    """

    table: Table
    parts: tuple[WrittenRows, ...]
    shrunk: tuple[Shrunk, ...] = ()

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)


@dataclass(frozen=True, slots=True)
class TableWrite:
    """The rows one write brings to one table, under property names, and the ids it removes.

    Rows that are in files already come as `written`; there are no others then.
    """

    table_key: str
    mode: WriteMode
    rows: pa.Table
    deletes: pa.Array = field(default_factory=_no_ids)
    seen: SeenRows | None = None
    written: WrittenTable | None = None

    @property
    def row_count(self) -> int:
        return int(self.rows.num_rows) if self.written is None else self.written.rows


@dataclass(frozen=True, slots=True)
class AdoptedTable:
    """A version of the main line that a branch takes as it is, and what that changes on the branch."""

    entry: SnapshotEntry
    counts: Counts


@dataclass(frozen=True, slots=True)
class Change:
    """All table writes of one atomic write, and the other tables its checks looked at."""

    writes: tuple[TableWrite, ...]
    reads: frozenset[str] = frozenset()
    adopted: tuple[AdoptedTable, ...] = ()

    @property
    def is_small(self) -> bool:
        """Whether staging it takes no longer than a few look-ups."""
        rows: int = sum(write.row_count + len(write.deletes) for write in self.writes)
        return rows <= SMALL_WRITE_ROWS
