"""Rows of tables to typed rows. A record is a row; columns without a property are ignored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from omnigraph.catalog.model import EdgeType, EntityType
from omnigraph.load.columns import TIME_UNITS, convert_column, plain
from omnigraph.load.record import Day, Moment, convert_value
from omnigraph.load.typed_rows import MisfitValue, Reading, TypedRows
from omnigraph.rows.build import StoredValue, build_column
from omnigraph.rows.schema import row_type
from omnigraph.rows.values import Misfit


def read_table(declared: EntityType, batch: pa.RecordBatch) -> Reading:
    """The rows of a batch of a table of one type."""
    given = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns: dict[str, pa.Array] = {}
    if isinstance(declared, EdgeType):
        columns["src"], columns["dst"] = (_texts(given, key, batch) for key in ("from", "to"))
    misfits: list[MisfitValue] = []
    for name, prop in declared.properties.items():
        if name not in given:
            columns[name] = pa.nulls(batch.num_rows, row_type(prop.type))
            continue
        column, bad = convert_column(given[name], prop.type, typed=True)
        if bad is not None:
            rows = np.flatnonzero(bad).tolist()
            values: list[StoredValue] = []
            for row in rows:
                value: StoredValue = None
                try:
                    value = convert_value(
                        python_value(given[name][row]), name, prop.type, typed=True
                    )
                except Misfit as misfit:
                    misfits.append(MisfitValue(row, name, str(misfit)))
                values.append(value)
            column = _with(column, rows, build_column(values, prop.type))
        columns[name] = column
    positions = np.arange(batch.num_rows, dtype=np.int64)
    ids = _texts(given, "id", batch)
    rows_read = TypedRows(declared, positions, columns, ids, tuple(misfits))
    return Reading(batch.num_rows, rows=[rows_read])


def _texts(given: Mapping[str, pa.Array], name: str, batch: pa.RecordBatch) -> pa.Array:
    """A column of ids; whatever is no text counts as absent."""
    column = plain(given[name]) if name in given else None
    if column is None or not kinds.is_string(column.type):
        return pa.nulls(batch.num_rows, pa.utf8())
    return column


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
