"""Rows of tables to typed rows, as a plan says. A record is a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from omnigraph.language.types import PropType
from omnigraph.load.columns import TIME_UNITS, Converted, convert_column, plain
from omnigraph.load.given_keys import GIVEN, Mask, given_column
from omnigraph.load.record import Day, Moment, convert_value
from omnigraph.load.row_plan import KeyColumns, RowPlan
from omnigraph.load.typed_rows import MisfitValue, Numbers, Reading, TypedRows
from omnigraph.rows.columns import Misfit, StoredValue, build_column, row_type
from omnigraph.rows.keys import derived_ids

_STORED_ENDS: Final = {"from": "src", "to": "dst"}


class Cells(Protocol):
    """How the cells of a source become values: a column at a time, and exactly, one by one."""

    def column(self, column: pa.Array, wanted: PropType) -> Converted: ...

    def value(self, cell: pa.Scalar, name: str, wanted: PropType) -> StoredValue:
        """The value of a cell that its column was in doubt about. Raises `Misfit`."""
        ...


@dataclass(frozen=True, slots=True)
class TypedCells:
    """Cells with a type of their own: those of a table, or those of JSON, which are less strict."""

    typed: bool = True

    def column(self, column: pa.Array, wanted: PropType) -> Converted:
        return convert_column(column, wanted)

    def value(self, cell: pa.Scalar, name: str, wanted: PropType) -> StoredValue:
        return convert_value(python_value(cell), name, wanted, typed=self.typed)


def read_table(
    plan: RowPlan, batch: pa.RecordBatch, cells: Cells, *, patches: bool = False
) -> Reading:
    """The rows of a batch of a table of one type."""
    positions = np.arange(batch.num_rows, dtype=np.int64)
    given: dict[str, Mask] | None = {} if patches else None
    return Reading(batch.num_rows, rows=[read_cells(plan, batch, positions, cells, given)])


def read_cells(
    plan: RowPlan,
    batch: pa.RecordBatch,
    positions: Numbers,
    cells: Cells,
    given_keys: Mapping[str, Mask] | None = None,
) -> TypedRows:
    """The rows of a batch whose columns are those of the source.

    A patch says which rows have the key of a property, where not all of them do.
    """
    given = dict(zip(batch.schema.names, batch.columns, strict=True))
    reader = _Reader(given, batch.num_rows, cells, [])
    columns: dict[str, pa.Array] = {}
    for end, source in plan.ends.items():
        if isinstance(source, KeyColumns):
            columns[_STORED_ENDS[end]] = reader.end_by_key(end, source)
        else:
            columns[_STORED_ENDS[end]] = reader.texts(source)
    for name, prop in plan.declared.properties.items():
        if name in plan.columns:
            columns[name] = reader.values(plan.columns[name], name, prop.type)
        elif name in plan.constants:
            columns[name] = reader.repeated(plan.constants[name], prop.type)
        else:
            columns[name] = pa.nulls(batch.num_rows, row_type(prop.type))
    if given_keys is not None:
        none = np.zeros(batch.num_rows, np.bool_)
        loaded = plan.columns.keys() | plan.constants.keys()
        absent = dict.fromkeys(plan.declared.properties.keys() - loaded, none)
        columns[GIVEN] = given_column(plan.declared, batch.num_rows, {**given_keys, **absent})
    ids = pa.nulls(batch.num_rows, pa.utf8()) if plan.id is None else reader.texts(plan.id)
    return TypedRows(plan.declared, positions, columns, ids, tuple(reader.misfits))


@dataclass(frozen=True, slots=True)
class _Reader:
    """Columns of one batch by name; cells that do not fit are collected."""

    given: Mapping[str, pa.Array]
    count: int
    cells: Cells
    misfits: list[MisfitValue]

    def values(self, source: str, name: str, wanted: PropType) -> pa.Array:
        column, misfits = self._converted(source, name, wanted)
        self.misfits.extend(MisfitValue(row, name, text) for row, text in misfits)
        return column

    def repeated(self, value: StoredValue, wanted: PropType) -> pa.Array:
        return build_column([value], wanted).take(pa.array(np.zeros(self.count, np.int64)))

    def texts(self, source: str) -> pa.Array:
        """A column of ids; whatever is no text counts as absent."""
        column = plain(self.given[source])
        return column if kinds.is_string(column.type) else pa.nulls(self.count, pa.utf8())

    def end_by_key(self, end: str, source: KeyColumns) -> pa.Array:
        """The ids of the nodes with the given keys, null where a part of one is missing."""
        columns = {}
        for name, column_name in source.columns.items():
            wanted = source.node.properties[name].type
            column, misfits = self._converted(column_name, name, wanted)
            columns[name] = column
            self.misfits.extend(
                MisfitValue(row, end, f"'{end}': {problem}") for row, problem in misfits
            )
        ids = derived_ids(source.node, columns)
        assert ids is not None, "key columns are planned for node types with a key"
        return ids

    def _converted(
        self, source: str, name: str, wanted: PropType
    ) -> tuple[pa.Array, list[tuple[int, str]]]:
        """A column of values, and what is wrong with those that were left null."""
        column, bad = self.cells.column(self.given[source], wanted)
        if bad is None:
            return column, []
        rows = np.flatnonzero(bad).tolist()
        values: list[StoredValue] = []
        misfits: list[tuple[int, str]] = []
        for row in rows:
            value: StoredValue = None
            try:
                value = self.cells.value(self.given[source][row], name, wanted)
            except Misfit as misfit:
                misfits.append((row, str(misfit)))
            values.append(value)
        return _with(column, rows, build_column(values, wanted)), misfits


def _with(column: pa.Array, rows: Sequence[int], values: pa.Array) -> pa.Array:
    """The column with other values in some rows."""
    places = np.arange(len(column))
    places[np.asarray(rows)] = np.arange(len(column), len(column) + len(rows))
    return pa.concat_arrays([column, values]).take(pa.array(places))


def python_value(cell: pa.Scalar) -> Any:
    """A cell as the Python value that single conversion understands."""
    if not cell.is_valid:
        return None
    kind = cell.type
    if kinds.is_date32(kind):
        return Day(cell.value)
    if kinds.is_date64(kind):
        return Moment(cell.value)
    if kinds.is_timestamp(kind):
        times, divided = TIME_UNITS[kind.unit]
        return Moment(cell.value * times // divided)
    if isinstance(cell, pa.ListScalar):
        return [python_value(item) for item in cell.values]
    if isinstance(cell, pa.ExtensionScalar):
        return python_value(cell.value)
    return cell.as_py()
