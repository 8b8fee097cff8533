"""The net changes of one table between two states: rows inserted, updated and deleted.

A `Side` has the rows of one state that can differ, without reading their values. Rows are identified by
numbers, their positions in `Side.ids`, and have property names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import EdgeType, EntityType
from omnigraph.limits import COMPARED_PARTS, COMPARED_ROWS, COMPARED_ROWS_PER_TASK
from omnigraph.progress import SILENT, Progress
from omnigraph.read.entities import compared_documents
from omnigraph.rows.bindings import bound_schema
from omnigraph.rows.columns import row_schema
from omnigraph.rows.equality import Mask, buckets_of, equal_rows, hashes_of
from omnigraph.storage.changed_rows import (
    ROW_UPDATED,
    Numbers,
    RowAddresses,
    Wanted,
    all_rows,
    differing_rows,
)
from omnigraph.storage.scan import ROW_ID
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot, SnapshotEntry
from omnigraph.versioning.snapshot_rows import carried_blobs, property_columns

ABSENT = -1
"""The number of a row that a side does not have."""


def endpoints_of(edge: EdgeType) -> tuple[tuple[str, str], tuple[str, str]]:
    """The endpoint columns of an edge type, each with its node type."""
    return ("src", edge.from_type), ("dst", edge.to_type)


# -- sides ----------------------------------------------------------------------------------


class Side(Protocol):
    """Rows of one table in one state."""

    @property
    def ids(self) -> pa.Array: ...

    def read(self, numbers: Numbers, columns: Sequence[str] | None = None) -> pa.Table:
        """Read rows in the order of their numbers; all columns unless some are named."""


class StoredSide:
    """Rows of a stored table version."""

    def __init__(self, declared: EntityType, places: RowAddresses) -> None:
        self._declared = declared
        self._schema = bound_schema(declared)
        self.places = places
        table = places.table.schema
        self._stored = property_columns(declared, table)
        hidden = [name for name in self._schema.names if name not in declared.columns]
        self._stored |= {name: name for name in hidden if name in table.names}

    @property
    def ids(self) -> pa.Array:
        return self.places.ids

    def read(self, numbers: Numbers, columns: Sequence[str] | None = None) -> pa.Table:
        names = self._schema.names if columns is None else columns
        schema = pa.schema([self._schema.field(name) for name in names])
        if not len(numbers):
            return schema.empty_table()
        blobs = [n for n in names if n in self._declared.blobs and n in self._stored]
        plain = [self._stored[n] for n in names if n in self._stored and n not in blobs]
        wanted = [*plain, ROW_ID] if blobs or not plain else plain
        rows = self.places.read(numbers, wanted)
        found = []
        for field in schema:
            column = self._stored.get(field.name)
            if column is None:
                found.append(pa.nulls(len(numbers), field.type))
            elif field.name in blobs:
                row_ids = rows.column(ROW_ID).combine_chunks()
                found.append(carried_blobs(self.places.table, column, row_ids))
            else:
                found.append(rows.column(column).cast(field.type))
        return pa.Table.from_arrays(found, schema=schema)


class HeldSide:
    """Rows in memory."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    @property
    def ids(self) -> pa.Array:
        return self._rows.column("id").combine_chunks()

    def read(self, numbers: Numbers, columns: Sequence[str] | None = None) -> pa.Table:
        rows = self._rows if columns is None else self._rows.select(list(columns))
        return rows.take(pa.array(numbers))


def no_rows(declared: EntityType) -> HeldSide:
    return HeldSide(bound_schema(declared).empty_table())


def find(side: Side, ids: pa.Array) -> Numbers:
    """The row numbers of ids; `ABSENT` for ids that the side does not have."""
    if not len(side.ids):
        return np.full(len(ids), ABSENT, np.int64)
    found = pc.fill_null(pc.index_in(ids, value_set=side.ids), ABSENT)
    numbers: Numbers = found.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def row_documents(
    declared: EntityType, side: Side, numbers: Numbers
) -> list[dict[str, Any] | None]:
    """Rows as JSON values; None for `ABSENT`."""
    there = numbers != ABSENT
    rows = side.read(numbers[there], declared.columns)
    found = iter(compared_documents(declared, rows.to_batches()))
    return [next(found) if has else None for has in there.tolist()]


Stored = tuple[Snapshot, SnapshotEntry]
"""A table in a snapshot."""


def differing_sides(
    declared: EntityType,
    tables: TableStore,
    before: Stored | None,
    after: Stored | None,
    wanted: Wanted | None = None,
) -> tuple[Side, Side]:
    """The rows of a table in which two snapshots can differ.

    An id on one side only is in that snapshot only. An id on both sides may have equal rows.
    """
    if before is not None and after is not None:
        if before[1].version_ref == after[1].version_ref:
            return no_rows(declared), no_rows(declared)
        old, new = (s.open(tables, e.table_key) for s, e in (before, after))
        left, right = differing_rows(old, new, wanted)
        return StoredSide(declared, left), StoredSide(declared, right)
    return _whole(declared, tables, before, wanted), _whole(declared, tables, after, wanted)


def _whole(
    declared: EntityType, tables: TableStore, of: Stored | None, wanted: Wanted | None
) -> Side:
    if of is None or not of[1].row_count:
        return no_rows(declared)
    return StoredSide(declared, all_rows(of[0].open(tables, of[1].table_key), wanted))


@dataclass(frozen=True, slots=True)
class IdPartition:
    """One of `of` disjoint sets of ids, by hash; the same for every table and state."""

    number: int
    of: int

    def __call__(self, ids: pa.Array) -> Mask:
        """Which of the ids belong to it."""
        mine: Mask = buckets_of(hashes_of(ids), self.of) == self.number
        return mine


def partitions_for(rows: int) -> list[IdPartition]:
    """Partitions for a number of rows. Each task reads all ids, so there are only a few."""
    count = min(max(1, -(-rows // COMPARED_ROWS_PER_TASK)), COMPARED_PARTS)
    return [IdPartition(number, count) for number in range(count)]


# -- changes --------------------------------------------------------------------------------


class Op(Enum):
    """The kind of a row's change."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True)
class TableChanges:
    """The changed rows of one table by id, with their row numbers on both sides."""

    declared: EntityType
    ids: pa.Array
    before: Side
    after: Side
    before_numbers: Numbers
    after_numbers: Numbers
    is_one_line: bool = False
    """Whether both sides are versions on the same branch of the table."""

    def __len__(self) -> int:
        return len(self.ids)

    def mask(self, op: Op) -> Mask:
        """Which changes are of a kind."""
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
        return {op: int(self.mask(op).sum()) for op in Op}

    def where(self, mask: Mask) -> TableChanges:
        return replace(
            self,
            ids=self.ids.filter(pa.array(mask)),
            before_numbers=self.before_numbers[mask],
            after_numbers=self.after_numbers[mask],
        )

    def ops(self) -> pa.Array:
        names = np.full(len(self.ids), Op.UPDATE.value, object)
        names[self.mask(Op.INSERT)] = Op.INSERT.value
        names[self.mask(Op.DELETE)] = Op.DELETE.value
        return pa.array(names, pa.utf8())

    def endpoints(self) -> tuple[pa.Array, pa.Array]:
        """Source and destination of changed edges, before a delete or else after the change.

        Nulls for nodes.
        """
        if not isinstance(self.declared, EdgeType):
            nothing = pa.nulls(len(self.ids), pa.utf8())
            return nothing, nothing
        deleted = self.mask(Op.DELETE)
        found = pa.concat_tables(
            [
                self.after.read(self.after_numbers[~deleted], ["src", "dst"]),
                self.before.read(self.before_numbers[deleted], ["src", "dst"]),
            ]
        )
        order = np.empty(len(self.ids), np.int64)
        order[np.r_[np.flatnonzero(~deleted), np.flatnonzero(deleted)]] = np.arange(len(self.ids))
        found = found.take(pa.array(order))
        return found.column("src").combine_chunks(), found.column("dst").combine_chunks()

    def row_versions(self) -> pa.Array:
        """The table version that last wrote each row; null for deleted rows.

        All null if the sides are on different branches, whose versions cannot be compared.
        """
        there = self.after_numbers != ABSENT
        if not self.is_one_line or not isinstance(self.after, StoredSide):
            return pa.nulls(len(self.ids), pa.int64())
        numbers = self.after_numbers[there]
        found = self.after.places.read(numbers, [ROW_UPDATED]).column(ROW_UPDATED)
        return taken_where(found.combine_chunks().cast(pa.int64()), there)


def taken_where(values: pa.Array, mask: Mask) -> pa.Array:
    """Values at the positions where a mask is true, in order; null elsewhere."""
    positions = np.where(mask, np.cumsum(mask) - 1, 0)
    return values.take(pa.array(positions, mask=~mask))


def candidates(
    declared: EntityType, before: Side, after: Side, *, is_one_line: bool
) -> TableChanges:
    """The rows of both sides by id. Some may be equal."""
    ids = pc.unique(pa.concat_arrays([before.ids, after.ids]))
    ids = ids.take(pc.sort_indices(ids))
    numbers = find(before, ids), find(after, ids)
    return TableChanges(declared, ids, before, after, *numbers, is_one_line)


def only_different(found: TableChanges, progress: Progress = SILENT) -> TableChanges:
    """The candidates that differ. Rows that are absent on both sides are equal."""
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
"""Reads some columns of the rows where a mask is true."""


def same_rows(declared: EntityType, count: int, left: ReadRows, right: ReadRows) -> Mask:
    """Which of `count` pairs of rows are equal. Wide columns are read only of otherwise equal rows."""
    same = np.ones(count, np.bool_)
    for names in plain_and_wide(declared):
        if names and same.any():
            same[same] = equal_rows(left(same, names), right(same, names), names)
    return same


def plain_and_wide(declared: EntityType) -> tuple[list[str], list[str]]:
    """The columns to compare: plain ones, and the wide vectors, lists and blobs."""
    schema = row_schema(declared)
    names = [name for name in declared.columns if name != "id"]
    wide = [name for name in names if pa.types.is_nested(schema.field(name).type)]
    return [name for name in names if name not in wide], wide


def chunks(numbers: Numbers) -> Iterator[Numbers]:
    """Split row numbers into chunks that are compared in memory."""
    for start in range(0, len(numbers), COMPARED_ROWS):
        yield numbers[start : start + COMPARED_ROWS]
