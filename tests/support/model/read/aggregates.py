"""Aggregates over the values of a group. Nulls do not take part."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final, assert_never

from omnigraph.language.query.ast import AggregateFunction
from tests.support.model.values import Value

_EXACT: Final = 2**53
"""Doubles hold every integer up to here."""


class Rounded(float):
    """A sum or mean. Its last digits depend on the order of addition: any number within `slack`
    is as right as this one."""

    slack: float

    def __new__(cls, exact: Fraction, slack: float) -> Rounded:
        try:
            made = super().__new__(cls, float(exact))
        except OverflowError:
            made = super().__new__(cls, math.copysign(math.inf, exact))
        made.slack = slack
        return made


def aggregate(function: AggregateFunction, values: Sequence[Value]) -> Value:
    present: list[Any] = [value for value in values if value is not None]
    match function:
        case AggregateFunction.COUNT:
            return len(present)
        case AggregateFunction.SUM:
            return _sum(present, 1) if present else None
        case AggregateFunction.AVG:
            return _sum(present, len(present)) if present else None
        case AggregateFunction.MIN:
            return min(present, default=None)
        case AggregateFunction.MAX:
            return max(present, default=None)
        case AggregateFunction.COLLECT:
            return tuple(present)
        case _:
            assert_never(function)


def _sum(numbers: Sequence[int | float], parts: int) -> Rounded:
    fractions = [Fraction(number) for number in numbers]
    size = sum(map(abs, fractions), Fraction(0))
    steps = math.lcm(*(fraction.denominator for fraction in fractions))
    slack = 0.0
    # Where every partial sum is a double, the order of addition does not matter.
    if size * steps > _EXACT:
        try:
            slack = float(size) * 1e-12
        except OverflowError:
            slack = math.inf
    return Rounded(sum(fractions, Fraction(0)) / parts, slack)
