"""Predicates as callers write them: physical columns, plain Python values, no types yet.

A comparison with null on either side is unknown. `Not` keeps unknown unknown, and only rows for
which the whole predicate is true are selected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Value = str | int | float | bool | None
"""Dates are days and datetimes milliseconds since the epoch, or their text."""

Operator = Literal["=", "!=", "<", "<=", ">", ">=", "contains", "starts_with"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """`contains` is a substring test on text and a membership test on lists."""

    column: str
    operator: Operator
    value: Value


@dataclass(frozen=True, slots=True)
class In:
    column: str
    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        if any(value is None for value in self.values):
            raise ValueError("null is not a value to look for; use IsNull")


@dataclass(frozen=True, slots=True)
class IsNull:
    column: str


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Not:
    part: Filter


Filter = Comparison | In | IsNull | And | Or | Not
