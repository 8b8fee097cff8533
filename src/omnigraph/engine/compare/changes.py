"""The net change of one table between two states: which rows came, went and became different."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import EdgeType, EntityType
from omnigraph.engine.compare.sides import ABSENT, Side, find
from omnigraph.limits import COMPARED_ROWS
from omnigraph.rows.equality import Mask, equal_rows
from omnigraph.storage.changed_rows import Numbers


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

    def where(self, mask: Mask) -> TableChanges:
        return TableChanges(
            self.declared,
            self.ids.filter(pa.array(mask)),
            self.before,
            self.after,
            self.before_numbers[mask],
            self.after_numbers[mask],
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


def table_changes(declared: EntityType, before: Side, after: Side) -> TableChanges:
    """What leads from one side to the other, sorted by id. Equal rows are no change."""
    ids = pc.unique(pa.concat_arrays([before.ids, after.ids]))
    ids = ids.take(pc.sort_indices(ids))
    old, new = find(before, ids), find(after, ids)
    changed = different(declared, before, old, after, new)
    return TableChanges(
        declared, ids.filter(pa.array(changed)), before, after, old[changed], new[changed]
    )


def different(declared: EntityType, before: Side, old: Numbers, after: Side, new: Numbers) -> Mask:
    """Which pairs of rows are not the same; a row that is absent is the same as another one."""
    was, is_now = old != ABSENT, new != ABSENT
    found: Mask = was ^ is_now
    columns = [name for name in declared.columns if name != "id"]
    for chunk in chunks(np.flatnonzero(was & is_now)):
        rows = before.read(old[chunk], columns), after.read(new[chunk], columns)
        found[chunk] = ~equal_rows(*rows, columns)
    return found


def chunks(numbers: Numbers) -> Iterator[Numbers]:
    """Numbers of rows, as many at a time as are compared in memory."""
    for start in range(0, len(numbers), COMPARED_ROWS):
        yield numbers[start : start + COMPARED_ROWS]
