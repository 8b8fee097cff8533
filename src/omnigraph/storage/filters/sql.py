"""A bound predicate as the text the store takes.

Text and not an expression object: the store's expression reader knows neither unsigned integers nor
datetimes. Every value is written with its column's type, so that a scalar index stays usable.
"""

from __future__ import annotations

from typing import Final, assert_never

import pyarrow as pa

from omnigraph.storage.filters.bound import (
    All,
    Any,
    AsText,
    Bound,
    Compare,
    Element,
    Member,
    Null,
    TextTest,
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
        case AsText():
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
