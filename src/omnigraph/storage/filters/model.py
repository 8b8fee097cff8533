"""Predicates: as callers write them, and bound to column types.

Callers use physical columns and plain Python values. A comparison with null on either side is unknown.
`Not` keeps unknown unknown, and only rows for which the whole predicate is true are selected.

Binding gives a value the column's exact type where that loses nothing. An integer column is never
compared with a value outside its domain or with a fraction: the answer is known, or an integer bound is
equivalent. A value that cannot have the column's type is compared as text, in memory. A bound predicate
negates nothing above a leaf, so a leaf may answer false where it is unknown, and rows never need a
third truth value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal, Protocol, assert_never

import pyarrow as pa
from msgspec import Struct

from omnigraph.language.values import parse_date, parse_datetime

Value = str | int | float | bool | None
"""Dates are days and datetimes milliseconds since the epoch, or their text."""

Operator = Literal["=", "!=", "<", "<=", ">", ">=", "contains", "starts_with"]


class Comparison(Struct, frozen=True):
    """`contains` is a substring test on text and a membership test on lists."""

    column: str
    operator: Operator
    value: Value


class In(Struct, frozen=True):
    column: str
    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        if any(value is None for value in self.values):
            raise ValueError("null is not a value to look for; use IsNull")


class IsNull(Struct, frozen=True):
    column: str


class RowTest(Protocol):
    """A predicate that only its owner can evaluate, on columns in memory."""

    def evaluate(self, columns: Mapping[str, pa.Array], length: int) -> pa.BooleanArray:
        """One value per row, null where it is unknown. A name without a column is null in all rows."""
        ...


class Computed(Struct, frozen=True):
    """A predicate that the store cannot evaluate. `columns` maps the test's names to columns.

    A name has None as its column if the table lacks it.
    """

    columns: tuple[tuple[str, str | None], ...]
    test: RowTest


class And(Struct, frozen=True):
    parts: tuple[Filter, ...]


class Or(Struct, frozen=True):
    parts: tuple[Filter, ...]


class Not(Struct, frozen=True):
    part: Filter


Filter = Comparison | In | IsNull | Computed | And | Or | Not


Order = Literal["=", "!=", "<", "<=", ">", ">="]


class Compare(Struct, frozen=True):
    column: str
    operator: Order
    value: pa.Scalar


class Member(Struct, frozen=True):
    """The value is one of a list, or (`negated`) is not in it and not null."""

    column: str
    values: pa.Array
    negated: bool


class Null(Struct, frozen=True):
    column: str
    negated: bool


class TextTest(Struct, frozen=True):
    """A substring or prefix test, code point by code point."""

    column: str
    operator: Literal["contains", "starts_with"]
    needle: str
    negated: bool


class Element(Struct, frozen=True):
    """A list has a given element; null lists and null elements never match, negated or not."""

    column: str
    value: pa.Scalar
    negated: bool


class AsText(Struct, frozen=True):
    """A value that cannot be of the column's type is compared with the text of the column."""

    column: str
    operator: Order
    text: str


class Tested(Struct, frozen=True):
    """A predicate that is evaluated in memory; unknown rows never match, negated or not."""

    columns: tuple[tuple[str, str | None], ...]
    test: RowTest
    negated: bool


class All(Struct, frozen=True):
    parts: tuple[Bound, ...]


class Any(Struct, frozen=True):
    parts: tuple[Bound, ...]


Bound = Compare | Member | Null | TextTest | Element | AsText | Tested | All | Any

ALWAYS: Final = All(())
NEVER: Final = Any(())


def split(bound: Bound) -> tuple[Bound | None, Bound | None]:
    """The part the store can evaluate and the part that is left for memory; both must hold."""
    parts = bound.parts if isinstance(bound, All) else (bound,)
    pushed = tuple(part for part in parts if _can_push(part))
    kept = tuple(part for part in parts if not _can_push(part))
    return (All(pushed) if pushed else None), (All(kept) if kept else None)


def _can_push(bound: Bound) -> bool:
    match bound:
        case AsText() | Tested():
            return False
        case Element():
            # The store compares floats inside lists bit by bit, so -0.0 would differ from 0.0.
            return _can_name(bound.column) and not pa.types.is_floating(bound.value.type)
        case Compare() | Member() | Null() | TextTest():
            return _can_name(bound.column)
        case All(parts) | Any(parts):
            return all(map(_can_push, parts))
        case _:
            assert_never(bound)


def _can_name(column: str) -> bool:
    # The store knows no way to write a back-quote inside a name, and reads a dot as a path.
    return "`" not in column and "." not in column


def bound_columns(bound: Bound) -> frozenset[str]:
    """The columns a bound predicate reads."""
    if isinstance(bound, All | Any):
        return _columns(bound.parts)
    if isinstance(bound, Tested):
        return frozenset(column for _, column in bound.columns if column is not None)
    return frozenset({bound.column})


def _columns(parts: Iterable[Bound]) -> frozenset[str]:
    return frozenset[str]().union(*map(bound_columns, parts))


SYSTEM_COLUMNS: Final = (
    "_rowid",
    "_rowaddr",
    "_row_created_at_version",
    "_row_last_updated_at_version",
)

_NEGATED: Final[Mapping[Operator, Order]] = {
    "=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<",
}  # fmt: skip


def bind(predicate: Filter, schema: pa.Schema) -> Bound:
    """Fit a predicate to a table's columns. Raises `ValueError` for a column it cannot test."""
    return _bind(predicate, schema, negated=False)


def _bind(predicate: Filter, schema: pa.Schema, *, negated: bool) -> Bound:
    match predicate:
        case Not(part):
            return _bind(part, schema, negated=not negated)
        case And(parts) | Or(parts):
            bound = tuple(_bind(part, schema, negated=negated) for part in parts)
            return All(bound) if isinstance(predicate, And) != negated else Any(bound)
        case IsNull(column):
            _column_type(column, schema)
            return Null(column, negated)
        case Computed(columns, test):
            for _, stored in columns:
                if stored is not None:
                    _column_type(stored, schema)
            return Tested(columns, test, negated)
        case In(column, values):
            return _bind_in(column, _column_type(column, schema), values, negated)
        case Comparison(column, operator, value):
            return _bind_comparison(column, _column_type(column, schema), operator, value, negated)
        case _:
            assert_never(predicate)


def _column_type(column: str, schema: pa.Schema) -> pa.DataType:
    if column in SYSTEM_COLUMNS:
        return pa.uint64()
    position = schema.get_field_index(column)
    if position < 0:
        raise ValueError(f"cannot filter by unknown column {column!r}")
    return schema.field(position).type


def _bind_comparison(
    column: str, column_type: pa.DataType, operator: Operator, value: Value, negated: bool
) -> Bound:
    if value is None:
        return NEVER
    if operator == "starts_with" or (operator == "contains" and not _is_list(column_type)):
        if not _is_text(column_type):
            raise ValueError(f"{operator} needs text in column {column!r}, not {column_type}")
        return TextTest(column, operator, _text_of(value), negated)
    if operator == "contains":
        return _bind_element(column, column_type.value_type, value, negated)
    if pa.types.is_nested(column_type):
        raise ValueError(f"column {column!r} of type {column_type} cannot be compared")
    return _compare(column, column_type, _NEGATED[operator] if negated else operator, value)


def _bind_in(
    column: str, column_type: pa.DataType, values: tuple[Value, ...], negated: bool
) -> Bound:
    if values and _is_text(column_type):
        # The usual case by far, and lists of ids are long.
        return Member(column, pa.array(map(_text_of, values), column_type), negated)
    operator: Order = "!=" if negated else "="
    parts = [_compare(column, column_type, operator, value) for value in values]
    exact = [part.value for part in parts if isinstance(part, Compare)]
    others = [part for part in parts if not isinstance(part, Compare)]
    if exact:
        others.append(Member(column, pa.array(exact, exact[0].type), negated))
    return All((Null(column, True), *others)) if negated else Any(tuple(others))


def _bind_element(column: str, element_type: pa.DataType, value: Value, negated: bool) -> Bound:
    part = _compare(column, element_type, "=", value)
    if isinstance(part, Compare):
        return Element(column, part.value, negated)
    return Null(column, True) if negated else NEVER


def _compare(column: str, column_type: pa.DataType, operator: Order, value: Value) -> Bound:
    """One comparison; `value` is not null."""
    if _is_text(column_type):
        return Compare(column, operator, pa.scalar(_text_of(value), column_type))
    if pa.types.is_boolean(column_type) and isinstance(value, bool):
        return Compare(column, operator, pa.scalar(value, column_type))
    if pa.types.is_date(column_type) and isinstance(value, str):
        value = _parsed(parse_date if pa.types.is_date32(column_type) else parse_datetime, value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        if pa.types.is_floating(column_type):
            return Compare(column, operator, _float_scalar(value, column_type))
        if pa.types.is_integer(column_type) or pa.types.is_date(column_type):
            return _compare_integers(column, column_type, operator, value)
    return AsText(column, operator, _text_of(value))


def _compare_integers(
    column: str, column_type: pa.DataType, operator: Order, value: int | float
) -> Bound:
    if isinstance(value, float) and math.isfinite(value):
        below = math.floor(value)
        if below == value:
            value = below
        elif operator in ("<", "<="):
            operator, value = "<=", below
        elif operator in (">", ">="):
            operator, value = ">=", below + 1
        else:
            return NEVER if operator == "=" else Null(column, True)
    low, high = _domain(column_type)
    # NaN counts as greater than every number, here as in float columns.
    if not value <= high:
        return Null(column, True) if operator in ("!=", "<", "<=") else NEVER
    if value < low:
        return Null(column, True) if operator in ("!=", ">", ">=") else NEVER
    return Compare(column, operator, _integer_scalar(int(value), column_type))


def _domain(column_type: pa.DataType) -> tuple[int, int]:
    width = column_type.bit_width
    if pa.types.is_unsigned_integer(column_type):
        return 0, 2**width - 1
    return -(2 ** (width - 1)), 2 ** (width - 1) - 1


def _integer_scalar(value: int, column_type: pa.DataType) -> pa.Scalar:
    if not pa.types.is_date(column_type):
        return pa.scalar(value, column_type)
    storage = pa.int32() if pa.types.is_date32(column_type) else pa.int64()
    return pa.array([value], storage).view(column_type)[0]


def _float_scalar(value: int | float, column_type: pa.DataType) -> pa.Scalar:
    try:
        wide = float(value)
    except OverflowError:
        wide = math.inf if value > 0 else -math.inf
    # 0.0 for -0.0, which is equal to it. The cast rounds to the column's own precision.
    return pa.scalar(wide + 0.0, pa.float64()).cast(column_type, safe=False)


def _parsed(parse: Callable[[str], int], text: str) -> int | str:
    try:
        return parse(text)
    except ValueError:
        return text


def _text_of(value: Value) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case _:
            return repr(value)


def _is_text(column_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(column_type) or pa.types.is_large_string(column_type))


def _is_list(column_type: pa.DataType) -> bool:
    return bool(pa.types.is_list(column_type) or pa.types.is_large_list(column_type))
