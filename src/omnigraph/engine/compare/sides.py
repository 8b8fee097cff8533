"""The rows of one table that a comparison is about, as one of the two states has them.

Rows go by property names and by numbers: their places in `ids`. They stay where they are stored until
somebody reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import EntityType
from omnigraph.engine.write.columns import carried_blobs, property_columns
from omnigraph.rows.bindings import bound_schema
from omnigraph.storage.changed_rows import (
    Numbers,
    RowAddresses,
    Wanted,
    all_rows,
    differing_rows,
)
from omnigraph.storage.scan import ROW_ID
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot, SnapshotEntry

ABSENT = -1
"""The number of a row that a side does not have."""


class Side(Protocol):
    """Rows of one table in one state."""

    @property
    def ids(self) -> pa.Array: ...

    def read(self, numbers: Numbers, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows with these numbers, in their order; all columns if none are named."""


class StoredSide:
    """Rows of a stored version."""

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
    """Rows held in memory."""

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
    """The numbers of the rows with these ids, `ABSENT` where the side has none."""
    if not len(side.ids):
        return np.full(len(ids), ABSENT, np.int64)
    found = pc.fill_null(pc.index_in(ids, value_set=side.ids), ABSENT)
    numbers: Numbers = found.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


Stored = tuple[Snapshot, SnapshotEntry]
"""A table as a snapshot has it."""


def differing_sides(
    declared: EntityType,
    tables: TableStore,
    before: Stored | None,
    after: Stored | None,
    wanted: Wanted | None = None,
) -> tuple[Side, Side]:
    """The rows of a table in which two snapshots can differ, as either has them.

    An id that only one side has is in that snapshot alone; one that both have may be the same in both.
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
