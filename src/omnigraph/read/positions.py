"""Row positions: a dense number for every row of a table, in row-id order.

A row keeps its row id for life and new rows get larger ids, so positions stay valid when rows are added:
a numbering advances to a later version by reading only the fragments that differ. A deleted row keeps its
position and is marked dead.
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
    """Whether positions are strictly ascending."""
    return bool(np.all(positions[1:] > positions[:-1]))


def covers_all(positions: Positions, size: int) -> bool:
    """Whether positions are 0 to `size` - 1, in order."""
    if len(positions) != size:
        return False
    return size == 0 or (positions[0] == 0 and are_ascending(positions))


def distinct_positions(positions: Positions) -> tuple[Positions, Positions | None]:
    """Distinct positions in order, and the index of each input among them; None if unchanged."""
    if are_ascending(positions):
        return positions, None
    distinct, inverse = np.unique(positions, return_inverse=True)
    return distinct, inverse


def sorted_distinct(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Distinct values in order. Several times faster than `numpy.unique`, which hashes."""
    ordered = np.sort(values)
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return np.compress(first, ordered)


def in_sorted(ordered: npt.NDArray[np.integer], values: npt.NDArray[np.integer]) -> Mask:
    """Which values occur in a sorted array."""
    if not len(ordered):
        return np.zeros(len(values), np.bool_)
    at = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return np.asarray(ordered[at] == values, np.bool_)


@dataclass(frozen=True)
class FragmentSet:
    """The fragments of a table version, by content."""

    table: Table

    @cached_property
    def by_content(self) -> dict[str, int]:
        return {content: fragment.id for content, fragment in self.table.contents().items()}

    @cached_property
    def rows(self) -> int:
        return self.table.row_count()


@dataclass(frozen=True, slots=True)
class FragmentDiff:
    """Fragments that only the earlier or only the later of two versions has."""

    earlier: Table
    later: Table
    removed: frozenset[int]
    added: frozenset[int]

    def removed_rows(self, columns: list[str]) -> pa.Table:
        return _rows(self.earlier, self.removed, columns)

    def added_rows(self, columns: list[str]) -> pa.Table:
        return _rows(self.later, self.added, columns)


def _rows(table: Table, fragments: frozenset[int], columns: list[str]) -> pa.Table:
    # Even an empty scan takes time.
    if not fragments and ROW_ID not in columns:
        return table.schema.empty_table().select(columns)
    return table.read(columns, fragment_ids=fragments)


def diff_fragments(earlier: FragmentSet, later: Table, max_share: float) -> FragmentDiff | None:
    """How a later version differs; None if more than a share of the rows is in added fragments."""
    contents = later.contents()
    fresh = [f for content, f in contents.items() if content not in earlier.by_content]
    added = frozenset(fragment.id for fragment in fresh)
    removed = frozenset(id for content, id in earlier.by_content.items() if content not in contents)
    if sum(fragment.rows for fragment in fresh) > max(max_share * earlier.rows, 1024):
        return None
    return FragmentDiff(earlier.table, later, removed, added)


@dataclass(frozen=True)
class Numbering:
    """The position of each row of a table version.

    `origin` is shared by numberings in which a position means the same row.
    """

    fragments: FragmentSet
    row_ids: RowIds
    alive: Mask | None
    dead_ids: frozenset[str]
    origin: int

    @property
    def table(self) -> Table:
        return self.fragments.table

    @property
    def size(self) -> int:
        return len(self.row_ids)

    @property
    def nbytes(self) -> int:
        # The row ids, and as many positions.
        return int(2 * self.row_ids.nbytes + (0 if self.alive is None else self.alive.nbytes))

    @cached_property
    def all_positions(self) -> Positions:
        return np.arange(self.size, dtype=np.int64)

    def is_all_positions(self, positions: Positions) -> bool:
        """Whether this is the array `all_positions` itself; values are not compared."""
        return len(positions) == self.size and positions is self.all_positions

    @cached_property
    def _is_gapless(self) -> bool:
        return bool(self.size == 0 or self.row_ids[-1] - self.row_ids[0] == self.size - 1)

    def positions(self, row_ids: RowIds) -> Positions:
        """The positions of row ids, all of which must be numbered."""
        if self.size and self._is_gapless:
            return np.asarray(row_ids - self.row_ids[0], np.int64)
        return np.searchsorted(self.row_ids, row_ids)


def number_rows(table: Table) -> Numbering:
    """Number all rows of a table version."""
    row_ids = np.sort(table.read([ROW_ID]).column(ROW_ID).to_numpy())
    return Numbering(FragmentSet(table), row_ids, None, frozenset(), next(_ORIGINS))


def advance_numbering(earlier: Numbering, diff: FragmentDiff) -> Numbering | None:
    """The numbering of another version; None if a position could change its meaning.

    That happens when a node returns under an id whose row was deleted, or when two branches gave the
    same row id to different nodes.
    """
    added, removed = diff.added_rows(["id", ROW_ID]), diff.removed_rows(["id", ROW_ID])
    added_ids, removed_ids = _row_ids(added), _row_ids(removed)
    is_known = in_sorted(earlier.row_ids, added_ids)
    if not _are_same_nodes(added.filter(pa.array(is_known)), removed):
        return None
    fresh = np.sort(added_ids[~is_known])
    deleted = ~np.isin(removed_ids, added_ids)
    dead_ids = earlier.dead_ids | set(removed.column("id").filter(pa.array(deleted)).to_pylist())
    if len(fresh):
        if earlier.size and fresh[0] <= earlier.row_ids[-1]:
            return None
        if dead_ids and not dead_ids.isdisjoint(added.column("id").to_pylist()):
            return None
    row_ids = np.concatenate([earlier.row_ids, fresh]) if len(fresh) else earlier.row_ids
    alive = earlier.alive
    if alive is not None or deleted.any():
        old = np.ones(earlier.size, np.bool_) if alive is None else alive
        alive = np.concatenate([old, np.ones(len(fresh), np.bool_)])
        alive[np.searchsorted(row_ids, removed_ids[deleted])] = False
    return Numbering(FragmentSet(diff.later), row_ids, alive, frozenset(dead_ids), earlier.origin)


def _are_same_nodes(added: pa.Table, removed: pa.Table) -> bool:
    """Whether each added row replaces a removed row with the same row id and the same node id."""
    if not added.num_rows:
        return True
    added_ids, removed_ids = _row_ids(added), _row_ids(removed)
    if not np.isin(added_ids, removed_ids).all():
        return False
    order = np.argsort(removed_ids)
    at = order[np.searchsorted(removed_ids, added_ids, sorter=order)]
    same = pc.equal(removed.column("id").take(pa.array(at)), added.column("id"))
    return bool(pc.all(same).as_py())


def _row_ids(rows: pa.Table) -> RowIds:
    return np.asarray(rows.column(ROW_ID).to_numpy(), np.uint64)
