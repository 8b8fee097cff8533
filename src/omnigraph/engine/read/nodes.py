"""The nodes of one type at one version, numbered, with columns that are decoded when needed.

A column that is asked for many rows is decoded whole and kept; for few rows just those are fetched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.arrow import arrow_type
from omnigraph.catalog.model import NodeType
from omnigraph.engine.read.numbering import Difference, Mask, Numbering, Positions
from omnigraph.engine.read.stored import filter_columns
from omnigraph.storage.filters import Filter, bind, matches
from omnigraph.storage.scan import ROW_ID

_FEW_IDS: Final = 1000
"""Ids that are looked up one by one in a table of more nodes than this."""

_FEW: Final = 0.02
"""Share of a table's rows up to which fetching single rows beats decoding a column."""


@dataclass(frozen=True, slots=True)
class DenseColumn:
    """One value per position; what stands at the position of a row that is gone means nothing."""

    values: pa.Array

    @property
    def nbytes(self) -> int:
        return int(self.values.nbytes)


class Columns(Protocol):
    """The columns of a table version, in the order of its numbering."""

    def cached(self, column: str) -> DenseColumn | None:
        """A column, if it was decoded before."""
        ...

    def load(self, column: str) -> DenseColumn:
        """A column, decoded now if need be."""
        ...


class Nodes:
    """The nodes of a type as one reader sees them."""

    def __init__(
        self,
        declared: NodeType,
        numbering: Numbering,
        columns: Columns,
        visible: Mask | None,
    ) -> None:
        self.declared = declared
        self.numbering = numbering
        self.visible = visible
        """Positions the reader may see; None when that is all of them."""
        self._columns = columns

    @property
    def size(self) -> int:
        """How many positions there are, those of dead and hidden rows included."""
        return self.numbering.size

    def all(self) -> Positions:
        if self.visible is None:
            return np.arange(self.size, dtype=np.int64)
        return np.flatnonzero(self.visible)

    def keep_visible(self, positions: Positions) -> Mask | None:
        """Which of the positions may be seen; None when all may."""
        return None if self.visible is None else self.visible[positions]

    def ids(self, positions: Positions) -> pa.Array:
        return self.values("id", positions)

    def values(self, name: str, positions: Positions) -> pa.Array:
        """The values of a property (or of `id`) at positions."""
        column = self.column_name(name)
        if column is None:
            return pa.nulls(len(positions), self.arrow_type(name))
        dense = self._columns.cached(column)
        if dense is None:
            if len(positions) <= _FEW * self.size:
                return self._fetch(column, positions)
            dense = self._columns.load(column)
        if len(positions) == self.size and _is_everything(positions):
            return dense.values
        return dense.values.take(pa.array(positions))

    def dense(self, name: str) -> pa.Array:
        """The values of a property at all positions."""
        column = self.column_name(name)
        if column is None:
            return pa.nulls(self.size, self.arrow_type(name))
        return self._columns.load(column).values

    def select(self, predicate: Filter, positions: Positions | None = None) -> Positions:
        """The positions, of all or of some, whose row meets a predicate on properties."""
        chosen = self.all() if positions is None else positions
        names = sorted(filter_columns(predicate))
        rows = pa.table({name: self.values(name, chosen) for name in names})
        met = matches(bind(predicate, rows.schema), rows)
        return np.asarray(chosen[np.asarray(met)], np.int64)

    def positions_of(self, ids: pa.Array) -> Positions:
        """The positions of ids, -1 for those no living node has, seen or not."""
        if len(ids) <= _FEW_IDS < self.size:
            positions = self._look_up(ids)
        else:
            found = pc.fill_null(pc.index_in(ids, value_set=self.dense("id")), -1)
            positions = found.to_numpy(zero_copy_only=False).astype(np.int64)
        alive = self.numbering.alive
        if alive is not None:
            positions[(positions >= 0) & ~alive[positions]] = -1
        return np.asarray(positions, np.int64)

    def _look_up(self, ids: pa.Array) -> Positions:
        rows = self.numbering.table.lookup(pc.unique(ids), ["id", ROW_ID])
        place = pc.index_in(ids, value_set=rows.column("id").combine_chunks())
        known = self.numbering.positions(rows.column(ROW_ID).to_numpy())
        found = np.append(known, -1)
        return np.asarray(found[pc.fill_null(place, -1).to_numpy(zero_copy_only=False)], np.int64)

    def arrow_type(self, name: str) -> pa.DataType:
        if name == "id":
            return pa.utf8()
        return arrow_type(self.declared.properties[name].type)

    def column_name(self, name: str) -> str | None:
        """Where a property is stored; None for one this version of the table does not have."""
        column = "id" if name == "id" else self.declared.properties[name].column
        return column if column in self.numbering.table.schema.names else None

    def _fetch(self, column: str, positions: Positions) -> pa.Array:
        if not len(positions):
            return self.numbering.table.schema.empty_table().column(column).combine_chunks()
        distinct, places = np.unique(positions, return_inverse=True)
        row_ids = pa.array(self.numbering.row_ids[distinct])
        rows = self.numbering.table.take(row_ids, [column]).column(column).combine_chunks()
        return rows.take(pa.array(places))


def read_column(numbering: Numbering, column: str) -> DenseColumn:
    """Decode a whole column of a table version, in the order of the numbering."""
    rows = numbering.table.read([column, ROW_ID])
    row_ids = rows.column(ROW_ID).to_numpy()
    values = rows.column(column).combine_chunks()
    if len(row_ids) == numbering.size and np.array_equal(row_ids, numbering.row_ids):
        return DenseColumn(values)
    places = np.full(numbering.size, -1, np.int64)
    places[numbering.positions(row_ids)] = np.arange(len(row_ids))
    return DenseColumn(values.take(pa.array(places, mask=places < 0)))


def patched_column(
    earlier: DenseColumn, numbering: Numbering, column: str, change: Difference
) -> DenseColumn:
    """The column of a later version, from that of an earlier one and the pieces that are new."""
    fresh = change.come_rows([column, ROW_ID])
    values = pa.concat_arrays([earlier.values, *fresh.column(column).chunks])
    known = len(earlier.values)
    places = np.arange(numbering.size, dtype=np.int64)
    places[numbering.positions(fresh.column(ROW_ID).to_numpy())] = known + np.arange(fresh.num_rows)
    return DenseColumn(values.take(pa.array(places)))


def _is_everything(positions: Positions) -> bool:
    return bool(len(positions) == 0 or (positions[0] == 0 and np.all(np.diff(positions) == 1)))
