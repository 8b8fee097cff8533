"""Predicates as callers write them: physical columns, plain Python values, no types yet.

A comparison with null on either side is unknown. `Not` keeps unknown unknown, and only rows for
which the whole predicate is true are selected.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

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


class And(Struct, frozen=True):
    parts: tuple[Filter, ...]


class Or(Struct, frozen=True):
    parts: tuple[Filter, ...]


class Not(Struct, frozen=True):
    part: Filter


Filter = Comparison | In | IsNull | And | Or | Not
