"""Numbers for the rows of a table: positions in the order of their row ids.

A row keeps its row id for life and new rows get larger ones, so positions stay valid when rows are
added: a numbering advances to a later version by looking only at the pieces that differ. A row that
is gone keeps its position, marked as dead.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.scan import ROW_ID
from omnigraph.storage.table import Table

_ORIGINS: Final = count()

Positions: TypeAlias = npt.NDArray[np.int64]
RowIds: TypeAlias = npt.NDArray[np.uint64]
Mask: TypeAlias = npt.NDArray[np.bool_]


def are_ascending(positions: Positions) -> bool:
    """Whether positions are in order, none of them twice."""
    return bool(np.all(positions[1:] > positions[:-1]))


def is_everything(positions: Positions, size: int) -> bool:
    """Whether positions are all of `size`, in order."""
    if len(positions) != size:
        return False
    return size == 0 or (positions[0] == 0 and are_ascending(positions))


def distinct_positions(positions: Positions) -> tuple[Positions, Positions | None]:
    """The distinct ones in order, and where each of the given is among them; None for in place."""
    if are_ascending(positions):
        return positions, None
    distinct, place = np.unique(positions, return_inverse=True)
    return distinct, place


def distinct_sorted(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The distinct values in order."""
    ordered = np.sort(values)
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    # Several times as quick as an index of flags.
    return np.compress(first, ordered)


def is_among(ordered: npt.NDArray[np.integer], values: npt.NDArray[np.integer]) -> Mask:
    """Which of the values are among others that are in order."""
    if not len(ordered):
        return np.zeros(len(values), np.bool_)
    place = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return np.asarray(ordered[place] == values, np.bool_)


@dataclass(frozen=True)
class Pieces:
    """The stored pieces of a table version, by what they hold."""

    table: Table

    @cached_property
    def by_content(self) -> dict[str, int]:
        return {content: fragment.id for content, fragment in self.table.contents().items()}

    @cached_property
    def rows(self) -> int:
        return self.table.row_count()


@dataclass(frozen=True, slots=True)
class Difference:
    """Pieces only the earlier version has, and pieces only the later one has."""

    earlier: Table
    later: Table
    left: frozenset[int]
    come: frozenset[int]

    def left_rows(self, columns: list[str]) -> pa.Table:
        return _rows(self.earlier, self.left, columns)

    def come_rows(self, columns: list[str]) -> pa.Table:
        return _rows(self.later, self.come, columns)


def _rows(table: Table, fragments: frozenset[int], columns: list[str]) -> pa.Table:
    # Even a scan of nothing takes a moment.
    if not fragments and ROW_ID not in columns:
        return table.schema.empty_table().select(columns)
    return table.read(columns, fragment_ids=fragments)


def difference(earlier: Pieces, later: Table, most: float) -> Difference | None:
    """How a later version differs; None when that concerns more than a share of the rows."""
    pieces = later.contents()
    fresh = [f for content, f in pieces.items() if content not in earlier.by_content]
    come = frozenset(fragment.id for fragment in fresh)
    left = frozenset(id for content, id in earlier.by_content.items() if content not in pieces)
    if sum(fragment.rows for fragment in fresh) > max(most * earlier.rows, 1024):
        return None
    return Difference(earlier.table, later, left, come)


@dataclass(frozen=True)
class Numbering:
    """Which position each row of a table version has.

    `origin` is shared by numberings in which a position means the same row.
    """

    pieces: Pieces
    row_ids: RowIds
    alive: Mask | None
    dead_ids: frozenset[str]
    origin: int

    @property
    def table(self) -> Table:
        return self.pieces.table

    @property
    def size(self) -> int:
        return len(self.row_ids)

    @property
    def nbytes(self) -> int:
        # The row ids, and as many positions.
        return int(2 * self.row_ids.nbytes + (0 if self.alive is None else self.alive.nbytes))

    @cached_property
    def everything(self) -> Positions:
        """All positions in order."""
        return np.arange(self.size, dtype=np.int64)

    def is_everything(self, positions: Positions) -> bool:
        """Whether positions are those of `everything`, told at a glance."""
        return len(positions) == self.size and positions is self.everything

    @cached_property
    def _is_gapless(self) -> bool:
        return bool(self.size == 0 or self.row_ids[-1] - self.row_ids[0] == self.size - 1)

    def positions(self, row_ids: RowIds) -> Positions:
        """The positions of row ids that all have one."""
        if self.size and self._is_gapless:
            return np.asarray(row_ids - self.row_ids[0], np.int64)
        return np.searchsorted(self.row_ids, row_ids)


def number_rows(table: Table) -> Numbering:
    """Number all rows of a table version."""
    row_ids = np.sort(table.read([ROW_ID]).column(ROW_ID).to_numpy())
    return Numbering(Pieces(table), row_ids, None, frozenset(), next(_ORIGINS))


def advance(earlier: Numbering, change: Difference) -> Numbering | None:
    """The numbering of another version; None when old positions would no longer do.

    A position must always mean the same node. It does not when a node comes back under an id whose
    old row is gone, or when two branches gave the same row id to different nodes.
    """
    come = change.come_rows(["id", ROW_ID])
    left = change.left_rows(["id", ROW_ID])
    come_ids, left_ids = _row_ids(come), _row_ids(left)
    is_known = is_among(earlier.row_ids, come_ids)
    if not _are_the_same(come.filter(pa.array(is_known)), left):
        return None
    added = np.sort(come_ids[~is_known])
    gone = ~np.isin(left_ids, come_ids)
    dead_ids = earlier.dead_ids | set(left.column("id").filter(pa.array(gone)).to_pylist())
    if len(added):
        if earlier.size and added[0] <= earlier.row_ids[-1]:
            return None
        if dead_ids and not dead_ids.isdisjoint(come.column("id").to_pylist()):
            return None
    row_ids = np.concatenate([earlier.row_ids, added]) if len(added) else earlier.row_ids
    alive = earlier.alive
    if alive is not None or gone.any():
        old = np.ones(earlier.size, np.bool_) if alive is None else alive
        alive = np.concatenate([old, np.ones(len(added), np.bool_)])
        alive[np.searchsorted(row_ids, left_ids[gone])] = False
    return Numbering(Pieces(change.later), row_ids, alive, frozenset(dead_ids), earlier.origin)


def _are_the_same(come: pa.Table, left: pa.Table) -> bool:
    """Whether rows that have come under known row ids are nodes that have left under the same."""
    if not come.num_rows:
        return True
    come_ids, left_ids = _row_ids(come), _row_ids(left)
    if not np.isin(come_ids, left_ids).all():
        return False
    order = np.argsort(left_ids)
    place = order[np.searchsorted(left_ids, come_ids, sorter=order)]
    same = pc.equal(left.column("id").take(pa.array(place)), come.column("id"))
    return bool(pc.all(same).as_py())


def _row_ids(rows: pa.Table) -> RowIds:
    return np.asarray(rows.column(ROW_ID).to_numpy(), np.uint64)
