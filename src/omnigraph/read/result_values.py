"""Result columns as public Arrow types, as Python values and as JSON text.

A Date column is `date32` and a DateTime column `timestamp[ms, UTC]`; tables store the latter as `date64`,
which other libraries read as days. In Python they are `date`, and `datetime` in UTC. In JSON, dates and
timestamps are text, a non-finite number is its name, a single-precision number has the fewest digits that
read back to it, and blobs are null. Tests: tests/unit/engine/test_result.py, tests/behaviour/test_scan.py.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.arrow import arrow_type
from omnigraph.catalog.ir import compact_json
from omnigraph.errors import InputError
from omnigraph.language.types import PropType, Scalar
from omnigraph.rows.json_text import (
    date_texts,
    float_texts,
    joined,
    list_texts,
    moment_texts,
    quoted,
    split_batches,
)

TIMESTAMP: Final = pa.timestamp("ms", "UTC")
ROWS_AT_A_TIME: Final = 4096
"""Rows that an iterator converts at a time."""


def public_type(kind: PropType) -> pa.DataType:
    """The Arrow type of a property in results."""
    if kind.scalar is not Scalar.DATETIME:
        return arrow_type(kind)
    return pa.list_(pa.field("item", TIMESTAMP)) if kind.list else TIMESTAMP


def public_column(column: pa.Array, kind: PropType) -> pa.Array:
    """A stored column in its public type, without copying values."""
    if kind.scalar is not Scalar.DATETIME:
        return column
    return column.cast(public_type(kind)) if kind.list else column.view(TIMESTAMP)


def python_rows(columns: Mapping[str, pa.ChunkedArray | pa.Array]) -> Iterator[dict[str, Any]]:
    """One dict per row. Raises `InputError` for a date or time that Python cannot represent."""
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
    return kind == TIMESTAMP or bool(pa.types.is_date32(kind))


def _times(name: str, column: pa.Array) -> list[Any]:
    """Dates or timestamps, through numpy, which is many times faster than Arrow."""
    unit = "datetime64[ms]" if column.type == TIMESTAMP else "datetime64[D]"
    found: list[Any] = column.to_numpy(zero_copy_only=False).astype(unit).tolist()
    if any(isinstance(time, int) for time in found):
        raise InputError(
            f"column '{name}' has a time outside of the years 1 to 9999, which Python cannot "
            "represent; read it as Arrow or JSON"
        )
    if column.type != TIMESTAMP:
        return found
    return [None if moment is None else moment.replace(tzinfo=dt.UTC) for moment in found]


_MAX_SAFE_INTEGER: Final = 2**53 - 1
"""The largest integer up to which every JavaScript number is exact."""


@dataclass(frozen=True, slots=True)
class RowLayout:
    """The text around, between and inside the values of a row."""

    start: str
    between: str
    colon: str
    end: str
    list_start: str = "["
    list_between: str = ","
    list_end: str = "]"


LINES: Final = RowLayout("{", ",", ":", "}\n")
"""One row per line."""

ELEMENTS: Final = RowLayout(",{", ",", ":", "}")
"""Array elements without blanks, each with a leading comma."""

INDENTED: Final = RowLayout(
    ",\n    {\n      ",
    ",\n      ",
    ": ",
    "\n    }",
    "[\n        ",
    ",\n        ",
    "\n      ]",
)
"""Array elements one level deep in a document indented by two spaces."""


def json_rows(
    table: pa.Table, types: Sequence[PropType], layout: RowLayout, *, js_safe: bool = False
) -> Iterator[pa.Buffer]:
    """The rows as UTF-8 text, in buffers of some megabytes.

    With `js_safe`, integers that JavaScript cannot represent exactly are strings.
    """
    keys = [compact_json(name) + layout.colon for name in table.column_names]
    for batch in split_batches(table.to_batches()):
        parts: list[object] = []
        for key, column, kind in zip(keys, batch.columns, types, strict=True):
            parts += [(layout.between if parts else layout.start) + key]
            parts += [pc.fill_null(_json_texts(column, kind, layout, js_safe), "null")]
        yield joined([*parts, layout.end])


def _json_texts(column: pa.Array, kind: PropType, layout: RowLayout, js_safe: bool) -> pa.Array:
    if kind.is_blob:
        return pa.nulls(len(column), pa.utf8())
    if not kind.is_vector and not kind.list:
        return _scalar_texts(column, kind.scalar, js_safe)
    items = column.flatten()
    # A non-finite number in a vector has no text and becomes null.
    texts = float_texts(items) if kind.is_vector else _scalar_texts(items, kind.scalar, js_safe)
    return list_texts(column, texts, layout.list_start, layout.list_between, layout.list_end)


def _scalar_texts(column: pa.Array, scalar: Scalar, js_safe: bool) -> pa.Array:
    if scalar is Scalar.STRING:
        return quoted(column)
    if scalar is Scalar.DATE:
        return date_texts(column)
    if scalar is Scalar.DATETIME:
        return moment_texts(column)
    if scalar.is_float:
        return _named_floats(column)
    texts = pc.cast(column, pa.utf8())
    return (
        _safe_integers(column, texts) if js_safe and scalar in (Scalar.I64, Scalar.U64) else texts
    )


def _named_floats(column: pa.Array) -> pa.Array:
    texts = float_texts(column)
    if texts.null_count > column.null_count:
        sign = pc.if_else(pc.less(column, 0.0), '"-Infinity"', '"Infinity"')
        names = pc.if_else(pc.is_nan(column), '"NaN"', sign)
        texts = pc.coalesce(texts, names)
    return texts


def _safe_integers(column: pa.Array, texts: pa.Array) -> pa.Array:
    unsafe = pc.greater(column, pa.scalar(_MAX_SAFE_INTEGER, column.type))
    if pa.types.is_signed_integer(column.type):
        unsafe = pc.or_(unsafe, pc.less(column, pa.scalar(-_MAX_SAFE_INTEGER, column.type)))
    if not pc.any(unsafe).as_py():
        return texts
    return pc.if_else(unsafe, pc.binary_join_element_wise('"', texts, '"', ""), texts)
