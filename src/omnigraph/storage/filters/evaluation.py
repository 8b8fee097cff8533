"""Evaluate a bound predicate: as text for the store, or on rows in memory, with equal results.

The store gets text, not an expression object, because its expression reader knows neither unsigned
integers nor datetimes. Every value is written with its column's type, so a scalar index stays usable.
In memory, two rules of the store apply: NaN equals itself and is greater than every number, and -0.0
equals 0.0.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Final, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.values import format_date, format_datetime
from omnigraph.storage.filters.model import (
    All,
    Any,
    AsText,
    Bound,
    Compare,
    Element,
    Filter,
    Member,
    Null,
    Order,
    Tested,
    TextTest,
    bind,
)

_TYPE_NAMES: Final = {
    pa.int8(): "Int8",
    pa.int16(): "Int16",
    pa.int32(): "Int32",
    pa.int64(): "Int64",
    pa.uint8(): "UInt8",
    pa.uint16(): "UInt16",
    pa.uint32(): "UInt32",
    pa.uint64(): "UInt64",
    pa.float32(): "Float32",
    pa.float64(): "Float64",
}


def to_sql(bound: Bound) -> str:
    """The predicate as filter text. It must be one that `split` said can be pushed."""
    match bound:
        case Compare(column, operator, value):
            return f"{_name(column)} {operator} {_literal(value)}"
        case Member(column, values, negated):
            listed = ",".join(_literals(values))
            return f"{_name(column)} {'not in' if negated else 'in'} ({listed})"
        case Null(column, negated):
            return f"{_name(column)} is {'not null' if negated else 'null'}"
        case TextTest(column, function, needle, negated):
            return f"{_not(negated)}{function}({_name(column)}, {_quoted(needle)})"
        case Element(column, value, negated):
            return f"{_not(negated)}array_has({_name(column)}, {_literal(value)})"
        case All(parts):
            return _joined(parts, " and ", "true")
        case Any(parts):
            return _joined(parts, " or ", "false")
        case AsText() | Tested():
            raise ValueError(f"{bound} can only be evaluated in memory")
        case _:
            assert_never(bound)


def _joined(parts: tuple[Bound, ...], word: str, empty: str) -> str:
    return word.join(f"({to_sql(part)})" for part in parts) or empty


def _not(negated: bool) -> str:
    return "not " if negated else ""


def _name(column: str) -> str:
    return f"`{column}`"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _literal(scalar: pa.Scalar) -> str:
    return _literals(pa.array([scalar], scalar.type))[0]


def _literals(values: pa.Array) -> list[str]:
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return [_quoted(text) for text in values.to_pylist()]
    if pa.types.is_boolean(kind):
        return ["true" if value else "false" for value in values.to_pylist()]
    if pa.types.is_date(kind):
        # Through integers: Python's dates have neither milliseconds nor all the years.
        storage, name = (
            (pa.int32(), "Date32") if pa.types.is_date32(kind) else (pa.int64(), "Date64")
        )
        return [f"arrow_cast({number}, '{name}')" for number in _literals(values.view(storage))]
    # From text: the store's parser would read large or negative bare numbers as floats.
    return [f"arrow_cast('{value!r}', '{_TYPE_NAMES[kind]}')" for value in values.to_pylist()]


_COMPUTE: Final[Mapping[Order, Callable[..., pa.Array]]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def select(predicate: Filter, rows: pa.Table) -> pa.Table:
    """The rows for which a predicate is true."""
    return rows.filter(matches(bind(predicate, rows.schema), rows))


def matches(bound: Bound, rows: pa.Table | pa.RecordBatch) -> pa.BooleanArray:
    """For every row whether a bound predicate is true; never null."""
    match bound:
        case All(()) | Any(()):
            return pa.array(np.full(rows.num_rows, isinstance(bound, All)))
        case All(parts):
            return functools.reduce(pc.and_, (matches(part, rows) for part in parts))
        case Any(parts):
            return functools.reduce(pc.or_, (matches(part, rows) for part in parts))
        case Tested(columns, test, negated):
            there = {name: _array(rows.column(at)) for name, at in columns if at is not None}
            found = test.evaluate(there, rows.num_rows)
            return pc.fill_null(pc.invert(found) if negated else found, False)
        case _:
            found = _leaf(bound, _array(rows.column(bound.column)))
            return pc.fill_null(found, False) if found.null_count else found


def _leaf(
    bound: Compare | Member | Null | TextTest | Element | AsText, column: pa.Array
) -> pa.Array:
    match bound:
        case Compare(_, operator, value):
            return _compared(column, operator, value)
        case Member(_, values, negated):
            return _member(column, values, negated)
        case Null(_, negated):
            return column.is_valid() if negated else column.is_null()
        case TextTest(_, operator, needle, negated):
            test = pc.match_substring if operator == "contains" else pc.starts_with
            found = test(column, needle)
            return pc.invert(found) if negated else found
        case Element(_, value, negated):
            found = _has_element(column, value)
            return pc.and_(column.is_valid(), pc.invert(found)) if negated else found
        case AsText(_, operator, text):
            return _COMPUTE[operator](_texts(column), text)
        case _:
            assert_never(bound)


def _compared(column: pa.Array, operator: Order, value: pa.Scalar) -> pa.Array:
    compared = _COMPUTE[operator](column, value)
    if not pa.types.is_floating(column.type):
        return compared
    if math.isnan(value.as_py()):
        return _compared_with_nan(column, operator)
    return pc.or_(compared, pc.is_nan(column)) if operator in (">", ">=") else compared


def _compared_with_nan(column: pa.Array, operator: Order) -> pa.Array:
    match operator:
        case "=" | ">=":
            return pc.is_nan(column)
        case "!=" | "<":
            return pc.invert(pc.is_nan(column))
        case "<=":
            return column.is_valid()
        case ">":
            return pa.array(np.zeros(len(column), dtype=bool))


def _member(column: pa.Array, values: pa.Array, negated: bool) -> pa.Array:
    valid = column.is_valid()
    if pa.types.is_floating(column.type):
        column, values = pc.add(column, _zero(column.type)), pc.add(values, _zero(values.type))
    found = pc.is_in(column, value_set=values)
    return pc.and_(valid, pc.invert(found)) if negated else pc.and_(valid, found)


def _has_element(column: pa.Array, value: pa.Scalar) -> pa.Array:
    found = np.zeros(len(column), dtype=bool)
    rows = np.flatnonzero(column.is_valid())
    # A null list may still span elements, which its owner must not be credited with.
    lists = column.drop_null()
    hits = pc.fill_null(_compared(pc.list_flatten(lists), "=", value), False)
    found[rows[pc.list_parent_indices(lists).filter(hits)]] = True
    return pa.array(found)


def _texts(column: pa.Array) -> pa.Array:
    if not pa.types.is_date(column.type):
        return column.cast(pa.string())
    # Python's own dates end at the year 9999, so the texts are made from the stored numbers.
    is_day = pa.types.is_date32(column.type)
    numbers = column.view(pa.int32() if is_day else pa.int64()).to_pylist()
    written = format_date if is_day else format_datetime
    return pa.array([None if n is None else written(n) for n in numbers], pa.string())


def _zero(kind: pa.DataType) -> pa.Scalar:
    return pa.scalar(0.0, kind)


def _array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
