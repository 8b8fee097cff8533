"""Predicates fitted to column types: no negation above a leaf, every value of its column's type.

Because nothing is negated above a leaf, a leaf may answer false where it is unknown, so rows never
need a third truth value.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, assert_never

import pyarrow as pa
from msgspec import Struct

Order = Literal["=", "!=", "<", "<=", ">", ">="]


class Compare(Struct, frozen=True):
    column: str
    operator: Order
    value: pa.Scalar


class Member(Struct, frozen=True):
    """The value is one of a list, or (`negated`) is none of them and not null."""

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


class All(Struct, frozen=True):
    parts: tuple[Bound, ...]


class Any(Struct, frozen=True):
    parts: tuple[Bound, ...]


Bound = Compare | Member | Null | TextTest | Element | AsText | All | Any

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
        case AsText():
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
    return frozenset({bound.column})


def _columns(parts: Iterable[Bound]) -> frozenset[str]:
    return frozenset[str]().union(*map(bound_columns, parts))
