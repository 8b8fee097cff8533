"""When a comparison holds. Null on either side never compares."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from omnigraph.language.query.ast import Operator
from omnigraph.language.types import PropType, Scalar
from tests.support.model.values import Value, to_float32

_COMPARISONS: Final[Mapping[Operator, Callable[[Any, Any], bool]]] = {
    Operator.EQ: operator.eq,
    Operator.NE: operator.ne,
    Operator.LT: operator.lt,
    Operator.LE: operator.le,
    Operator.GT: operator.gt,
    Operator.GE: operator.ge,
}


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison. `column` marks a stored value, whose precision counts."""

    value: Value
    type: PropType
    column: bool = False


def holds(left: Side, comparison: Operator, right: Side) -> bool:
    """Whether a comparison is true; unknown is not."""
    if left.value is None or right.value is None:
        return False
    if comparison is Operator.STARTS_WITH:
        return _text(left.value).startswith(_text(right.value))
    if comparison is Operator.CONTAINS:
        if not left.type.list:
            return _text(right.value) in _text(left.value)
        return is_member(left, right)
    # Python compares integers and floats by value, exactly, and text by code point.
    return _COMPARISONS[comparison](_fitted(left, right), _fitted(right, left))


def is_member(items: Side, needle: Side) -> bool:
    """Whether a list has the needle. In a stored list it is looked for at the list's precision."""
    assert isinstance(items.value, tuple)
    if items.column:
        wanted = at_precision(needle.value, items.type.scalar)
        return any(item is not None and item == wanted for item in items.value)
    return any(holds(Side(item, items.type.element()), Operator.EQ, needle) for item in items.value)


def at_precision(given: Value, scalar: Scalar) -> Value:
    """A number as a float column would hold it; one beyond its range compares right as it is."""
    if isinstance(given, tuple):
        return tuple(at_precision(item, scalar) for item in given)
    if isinstance(given, int | float) and not isinstance(given, bool):
        with suppress(OverflowError):
            if scalar in (Scalar.F32, Scalar.VECTOR):
                return to_float32(float(given))
            if scalar is Scalar.F64:
                return float(given)
    return given


def _fitted(side: Side, other: Side) -> Value:
    """Literals and parameters are rounded to the column they are compared with."""
    if other.column and not side.column:
        return at_precision(side.value, other.type.scalar)
    return side.value


def _text(value: Value) -> str:
    assert isinstance(value, str)
    return value
