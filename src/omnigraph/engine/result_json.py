"""The rows of a result as JSON text, made from whole columns.

Values have the forms of the wire: dates and moments are text, a number that is not finite is its
name, a single-precision number has the fewest digits that read back to it, blobs are null.
Tests: tests/unit/engine/test_result.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.ir import compact_json
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

_MOST_SAFE: Final = 2**53 - 1
"""The integers up to here, and no others, are all exact as the doubles of JavaScript."""


@dataclass(frozen=True, slots=True)
class RowLayout:
    """What stands around, between and inside the values of a row."""

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
"""Elements of an array without blanks, each with the comma before it."""

INDENTED: Final = RowLayout(
    ",\n    {\n      ",
    ",\n      ",
    ": ",
    "\n    }",
    "[\n        ",
    ",\n        ",
    "\n      ]",
)
"""Elements of an array one level deep in a document indented by two blanks."""


def json_rows(
    table: pa.Table, types: Sequence[PropType], layout: RowLayout, *, js_safe: bool = False
) -> Iterator[pa.Buffer]:
    """The rows as UTF-8 text, in split_batches of some megabytes.

    With `js_safe`, integers that JavaScript cannot hold exactly are strings of their digits.
    """
    keys = [compact_json(name) + layout.colon for name in table.column_names]
    for piece in split_batches(table.to_batches()):
        parts: list[object] = []
        for key, column, kind in zip(keys, piece.columns, types, strict=True):
            parts += [(layout.between if parts else layout.start) + key]
            parts += [pc.fill_null(_texts(column, kind, layout, js_safe), "null")]
        yield joined([*parts, layout.end])


def _texts(column: pa.Array, kind: PropType, layout: RowLayout, js_safe: bool) -> pa.Array:
    if kind.is_blob:
        return pa.nulls(len(column), pa.utf8())
    if not kind.is_vector and not kind.list:
        return _scalar_texts(column, kind.scalar, js_safe)
    items = column.flatten()
    # A number in a vector that is not finite has no text, and so becomes a null.
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
    unsafe = pc.greater(column, pa.scalar(_MOST_SAFE, column.type))
    if pa.types.is_signed_integer(column.type):
        unsafe = pc.or_(unsafe, pc.less(column, pa.scalar(-_MOST_SAFE, column.type)))
    if not pc.any(unsafe).as_py():
        return texts
    return pc.if_else(unsafe, pc.binary_join_element_wise('"', texts, '"', ""), texts)
