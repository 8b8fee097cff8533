"""Rows as Python values, and the Arrow types that columns have outside of the engine.

A Date column is `date32` and a DateTime column `timestamp[ms, UTC]`; tables store the latter as
`date64`, which other libraries take for a type of days. In Python they are `date`, and `datetime`
with the zone UTC. Tests: tests/unit/engine/test_result.py, tests/behaviour/test_scan.py.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from omnigraph.catalog.arrow import arrow_type
from omnigraph.errors import InputError
from omnigraph.language.types import PropType, Scalar

MOMENT: Final = pa.timestamp("ms", "UTC")
ROWS_AT_A_TIME: Final = 4096
"""Rows that an iterator turns into dicts before it gives the first of them."""


def public_type(kind: PropType) -> pa.DataType:
    """The Arrow type in which values of a property leave the engine."""
    if kind.scalar is not Scalar.DATETIME:
        return arrow_type(kind)
    return pa.list_(pa.field("item", MOMENT)) if kind.list else MOMENT


def public_column(column: pa.Array, kind: PropType) -> pa.Array:
    """A stored column in the type of `public_type`. The values are not copied."""
    if kind.scalar is not Scalar.DATETIME:
        return column
    return column.cast(public_type(kind)) if kind.list else column.view(MOMENT)


def python_rows(columns: Mapping[str, pa.ChunkedArray | pa.Array]) -> Iterator[dict[str, Any]]:
    """One dict per row. Raises `InputError` for a date or time that Python cannot hold."""
    values = [_values(name, column) for name, column in columns.items()]
    names = list(columns)
    return (dict(zip(names, row, strict=True)) for row in zip(*values, strict=True))


def _values(name: str, column: pa.ChunkedArray | pa.Array) -> list[Any]:
    kind = column.type
    if not _has_times(kind.value_type if pa.types.is_list(kind) else kind):
        plain: list[Any] = column.to_pylist()
        return plain
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not pa.types.is_list(kind):
        return _times(name, column)
    items = iter(_times(name, column.flatten()))
    lengths = column.value_lengths().to_pylist()
    return [None if length is None else list(islice(items, length)) for length in lengths]


def _has_times(kind: pa.DataType) -> bool:
    return kind == MOMENT or bool(pa.types.is_date32(kind))


def _times(name: str, column: pa.Array) -> list[Any]:
    """Dates or moments. Through numpy, which is many times faster than Arrow's own way."""
    unit = "datetime64[ms]" if column.type == MOMENT else "datetime64[D]"
    found: list[Any] = column.to_numpy(zero_copy_only=False).astype(unit).tolist()
    if any(isinstance(time, int) for time in found):
        raise InputError(
            f"column '{name}' has a time outside of the years 1 to 9999, which Python cannot hold; "
            "read it as Arrow or as JSON"
        )
    if column.type != MOMENT:
        return found
    return [None if moment is None else moment.replace(tzinfo=dt.UTC) for moment in found]
