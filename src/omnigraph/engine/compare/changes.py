"""The net change of one table between two states: which rows came, went and became different."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import EdgeType, EntityType
from omnigraph.engine.compare.sides import ABSENT, Side, StoredSide, find
from omnigraph.limits import COMPARED_ROWS
from omnigraph.progress import SILENT, Progress
from omnigraph.rows.columns import row_schema
from omnigraph.rows.equality import Mask, equal_rows
from omnigraph.storage.changed_rows import ROW_UPDATED, Numbers


class Op(Enum):
    """What happened to a row."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True)
class TableChanges:
    """The changed rows of one table, by id. Numbers are those of the rows on either side."""

    declared: EntityType
    ids: pa.Array
    before: Side
    after: Side
    before_numbers: Numbers
    after_numbers: Numbers
    is_one_line: bool = False
    """Whether both sides are versions of one line of the table."""

    def __len__(self) -> int:
        return len(self.ids)

    def mask(self, op: Op) -> Mask:
        """Which of the changes are of this kind."""
        was: Mask = np.not_equal(self.before_numbers, ABSENT)
        is_now: Mask = np.not_equal(self.after_numbers, ABSENT)
        match op:
            case Op.INSERT:
                return ~was
            case Op.DELETE:
                return ~is_now
            case Op.UPDATE:
                return was & is_now

    def counts(self) -> dict[Op, int]:
        """How many changes there are of each kind."""
        return {op: int(self.mask(op).sum()) for op in Op}

    def where(self, mask: Mask) -> TableChanges:
        return TableChanges(
            self.declared,
            self.ids.filter(pa.array(mask)),
            self.before,
            self.after,
            self.before_numbers[mask],
            self.after_numbers[mask],
            self.is_one_line,
        )

    def ops(self) -> pa.Array:
        names = np.full(len(self.ids), Op.UPDATE.value, object)
        names[self.mask(Op.INSERT)] = Op.INSERT.value
        names[self.mask(Op.DELETE)] = Op.DELETE.value
        return pa.array(names, pa.utf8())

    def endpoints(self) -> tuple[pa.Array, pa.Array]:
        """Both ends of changed edges, as they are now or were before a delete; nulls for nodes."""
        if not isinstance(self.declared, EdgeType):
            nothing = pa.nulls(len(self.ids), pa.utf8())
            return nothing, nothing
        gone = self.mask(Op.DELETE)
        ends = pa.concat_tables(
            [
                self.after.read(self.after_numbers[~gone], ["src", "dst"]),
                self.before.read(self.before_numbers[gone], ["src", "dst"]),
            ]
        )
        back = np.empty(len(self.ids), np.int64)
        back[np.r_[np.flatnonzero(~gone), np.flatnonzero(gone)]] = np.arange(len(self.ids))
        ends = ends.take(pa.array(back))
        return ends.column("src").combine_chunks(), ends.column("dst").combine_chunks()

    def row_versions(self) -> pa.Array:
        """The version of its table that wrote each row as it is now; null where that says nothing.

        Versions of different lines cannot be compared, and a row that is gone has none.
        """
        there = self.after_numbers != ABSENT
        if not self.is_one_line or not isinstance(self.after, StoredSide):
            return pa.nulls(len(self.ids), pa.int64())
        numbers = self.after_numbers[there]
        found = self.after.places.read(numbers, [ROW_UPDATED]).column(ROW_UPDATED)
        places = np.where(there, np.cumsum(there) - 1, 0)
        return found.combine_chunks().cast(pa.int64()).take(pa.array(places, mask=~there))


def candidates(
    declared: EntityType, before: Side, after: Side, *, is_one_line: bool
) -> TableChanges:
    """The rows of both sides by id. Some may be the same on both."""
    ids = pc.unique(pa.concat_arrays([before.ids, after.ids]))
    ids = ids.take(pc.sort_indices(ids))
    numbers = find(before, ids), find(after, ids)
    return TableChanges(declared, ids, before, after, *numbers, is_one_line)


def only_different(found: TableChanges, progress: Progress = SILENT) -> TableChanges:
    """Those of the rows that are not the same on both sides. To be absent on both is the same."""
    old, new = found.before_numbers, found.after_numbers
    was, is_now = old != ABSENT, new != ABSENT
    changed: Mask = was ^ is_now
    progress.advance(int(changed.sum()))
    for chunk in chunks(np.flatnonzero(was & is_now)):
        sides = (found.before, old[chunk]), (found.after, new[chunk])
        changed[chunk] = ~same_rows(found.declared, len(chunk), *(_reading(*s) for s in sides))
        progress.advance(2 * len(chunk))
    return found.where(changed)


def _reading(side: Side, numbers: Numbers) -> ReadRows:
    return lambda mask, columns: side.read(numbers[mask], columns)


ReadRows = Callable[[Mask, Sequence[str]], pa.Table]
"""Some columns of those of the rows that a mask chooses."""


def same_rows(declared: EntityType, count: int, left: ReadRows, right: ReadRows) -> Mask:
    """Which of so many pairs of rows hold the same. Wide values are read only of those that may."""
    same = np.ones(count, np.bool_)
    for names in plain_and_wide(declared):
        if names and same.any():
            same[same] = equal_rows(left(same, names), right(same, names), names)
    return same


def plain_and_wide(declared: EntityType) -> tuple[list[str], list[str]]:
    """The columns that rows of one id can differ in; vectors, lists and blobs apart."""
    schema = row_schema(declared)
    names = [name for name in declared.columns if name != "id"]
    wide = [name for name in names if pa.types.is_nested(schema.field(name).type)]
    return [name for name in names if name not in wide], wide


def chunks(numbers: Numbers) -> Iterator[Numbers]:
    """Numbers of rows, as many at a time as are compared in memory."""
    for start in range(0, len(numbers), COMPARED_ROWS):
        yield numbers[start : start + COMPARED_ROWS]
