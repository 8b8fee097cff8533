"""Operators and functions of values for one row, in plain Python and three-valued logic."""

from __future__ import annotations

import calendar
import datetime as dt
import math
import re
from collections.abc import Callable
from typing import Any, Final

from omnigraph.language.query.ast import Junction, Operator
from omnigraph.language.types import Scalar
from omnigraph.plan.ir import (
    RANKS,
    Case,
    Comparison,
    Compute,
    Expr,
    Logical,
    MakeList,
    Not,
    Null,
    NullTest,
    Prop,
)
from tests.support.model.read.compare import Side, holds, is_member
from tests.support.model.values import Value

_EPOCH: Final = dt.date(1970, 1, 1)
_DAY: Final = 86_400_000
_MILLIS: Final = {
    "second": 1_000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": _DAY,
    "week": 7 * _DAY,
}
_MONTHS: Final = {"month": 1, "quarter": 3, "year": 12}
_I64: Final = 2**63

COMPUTED = Comparison | Logical | Not | NullTest | Compute | Case | MakeList | Null


class Overflow(ArithmeticError):
    """An integer left 64 bits."""


def compute(expression: Any, value_of: Callable[[Expr], Value]) -> Any:
    """The value of an operator, a function or `case`."""
    match expression:
        case Comparison(left, operator, right):
            return _compared(left, operator, right, value_of)
        case Logical(junction, operands):
            values = [value_of(operand) for operand in operands]
            deciding = junction is Junction.OR
            if deciding in values:
                return deciding
            return None if None in values else not deciding
        case Not(operand):
            value = value_of(operand)
            return None if value is None else not value
        case NullTest(operand, negated):
            return (value_of(operand) is None) != negated
        case Null():
            return None
        case Case(branches, otherwise, kind):
            for condition, chosen in branches:
                if value_of(condition) is True:
                    return _widened(value_of(chosen), kind.scalar)
            return None if otherwise is None else _widened(value_of(otherwise), kind.scalar)
        case MakeList(items, kind):
            return tuple(_widened(value_of(item), kind.scalar) for item in items)
        case Compute("coalesce", arguments, kind):
            for argument in arguments:
                value = value_of(argument)
                if value is not None:
                    return _widened(value, kind.scalar)
            return None
        case Compute(name, arguments, kind):
            values = [value_of(argument) for argument in arguments]
            if None in values:
                return None
            if not name.isidentifier():
                return _arithmetic(name, values, kind.scalar)
            is_date = arguments[0].type.scalar is Scalar.DATE
            return _call(name, values, is_date=is_date)
    raise ValueError(f"not computed: {expression}")


def _widened(value: Value, scalar: Scalar) -> Value:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if is_number and scalar.is_float else value  # type: ignore[arg-type]


def _compared(
    left: Expr, operator: Operator, right: Expr, value_of: Callable[[Expr], Value]
) -> bool | None:
    sides = [
        Side(value_of(part), part.type, column=isinstance(part, Prop)) for part in (left, right)
    ]
    if any(side.value is None for side in sides):
        return False if isinstance(left, RANKS) or isinstance(right, RANKS) else None
    one, other = sides
    if operator is Operator.IN:
        if one.column and not other.column:
            items: Any = other.value
            element = other.type.element()
            return any(i is not None and holds(one, Operator.EQ, Side(i, element)) for i in items)
        return is_member(other, one)
    if operator is Operator.ENDS_WITH:
        return str(one.value).endswith(str(other.value))
    return holds(one, operator, other)


def _arithmetic(symbol: str, values: list[Any], scalar: Scalar) -> Any:
    if len(values) == 1:
        return _exact(-values[0], scalar)
    left, right = values
    if scalar is Scalar.STRING:
        return str(left) + str(right)
    if scalar is Scalar.F64:
        left, right = float(left), float(right)
    if symbol in "/%" and right == 0:
        return None
    match symbol:
        case "+":
            return _exact(left + right, scalar)
        case "-":
            return _exact(left - right, scalar)
        case "*":
            return _exact(left * right, scalar)
        case "/":
            return left / right
        case _ if scalar is Scalar.F64:
            return math.fmod(left, right)
        case _:
            return int(math.copysign(1, left)) * (abs(left) % abs(right))


def _exact(value: Any, scalar: Scalar) -> Any:
    if scalar is Scalar.I64 and not -_I64 <= value < _I64:
        raise Overflow
    return value


def _call(name: str, values: list[Any], *, is_date: bool) -> Any:
    first = values[0]
    match name:
        case "lower":
            return "".join(c.lower() if len(c.lower()) == 1 else c for c in first)
        case "upper":
            return "".join(c.upper() if len(c.upper()) == 1 else c for c in first)
        case "trim":
            return str(first).strip()
        case "length" | "size":
            return len(first)
        case "substring":
            start, count = values[1], values[2] if len(values) > 2 else len(first)
            return None if start < 0 or count < 0 else first[start : start + count]
        case "matches":
            return re.search(values[1], first) is not None
        case "abs":
            return abs(first)
        case "floor":
            return float(math.floor(first))
        case "ceil":
            return float(math.ceil(first))
        case "round":
            return float(round(first))
        case "contains_any":
            return any(item is not None and item in first for item in values[1])
        case "contains_all":
            return all(item is not None and item in first for item in values[1])
        case "to_string":
            return _text(first)
        case "to_int":
            return int(first)
        case "to_float":
            return float(first)
        case "to_date":
            return int(first // _DAY)
        case "to_datetime":
            return int(first * _DAY)
    return _date_call(name, values, is_date=is_date)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


# -- dates --------------------------------------------------------------------------------------


def _split(millis: int) -> tuple[dt.date, int]:
    days, time = divmod(millis, _DAY)
    return _EPOCH + dt.timedelta(days=days), time


def _joined(day: dt.date, time: int) -> int:
    return (day - _EPOCH).days * _DAY + time


def _date_call(name: str, values: list[Any], *, is_date: bool) -> Any:
    scale = _DAY if is_date else 1
    unit = values[-1]
    day, time = _split(values[0] * scale)
    if name == "date_diff":
        return _difference(values[0] * scale, values[1] * scale, unit)
    if name == "date_part":
        return _part(day, time, unit)
    try:
        found = _moved(day, time, values[1], unit) if name == "date_add" else _cut(day, time, unit)
    except (OverflowError, ValueError):
        return None
    return found // scale


def _moved(day: dt.date, time: int, count: int, unit: str) -> int:
    if unit in _MILLIS:
        moved, rest = _split(_joined(day, time) + count * _MILLIS[unit])
        return _joined(moved, rest)
    years, month = divmod(day.year * 12 + day.month - 1 + count * _MONTHS[unit], 12)
    if not 1 <= years <= 9999:
        raise OverflowError
    last = calendar.monthrange(years, month + 1)[1]
    return _joined(dt.date(years, month + 1, min(day.day, last)), time)


def _cut(day: dt.date, time: int, unit: str) -> int:
    match unit:
        case "year":
            return _joined(day.replace(month=1, day=1), 0)
        case "quarter":
            return _joined(day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1), 0)
        case "month":
            return _joined(day.replace(day=1), 0)
        case "week":
            return _joined(day - dt.timedelta(days=day.weekday()), 0)
        case "day":
            return _joined(day, 0)
        case _:
            return _joined(day, time // _MILLIS[unit] * _MILLIS[unit])


def _part(day: dt.date, time: int, unit: str) -> int:
    parts = {
        "year": day.year,
        "quarter": (day.month - 1) // 3 + 1,
        "month": day.month,
        "week": day.isocalendar().week,
        "day": day.day,
        "hour": time // 3_600_000,
        "minute": time // 60_000 % 60,
        "second": time // 1000 % 60,
        "weekday": day.isoweekday(),
        "yearday": day.timetuple().tm_yday,
    }
    return parts[unit]


def _difference(start: int, end: int, unit: str) -> int:
    """Complete units, counted from the earlier of the two."""
    if end < start:
        return -_difference(end, start, unit)
    if unit in _MILLIS:
        return (end - start) // _MILLIS[unit]
    (first, begin), (last, stop) = _split(start), _split(end)
    months = (last.year - first.year) * 12 + last.month - first.month
    if (last.day, stop) < (first.day, begin):
        months -= 1
    return max(months, 0) // _MONTHS[unit]
