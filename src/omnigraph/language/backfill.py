"""The value an `@backfill` text stands for."""

from __future__ import annotations

import json
import math
import re
from typing import NoReturn

from omnigraph.language.temporal import parse_date, parse_datetime
from omnigraph.language.types import F32_MAX, INTEGER_RANGES, PropType, Scalar

_INTEGER = re.compile(r"-?[0-9]+\Z", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?\Z", re.ASCII)

Value = str | int | float | bool | list["Value | None"] | None


def backfill_value(text: str, target: PropType) -> Value:
    """Convert the text to the property's type. Raises `ValueError` that says what is wrong.

    Dates are days and datetimes milliseconds since the epoch, as they are stored.
    """
    if target.is_blob:
        raise ValueError("a Blob cannot be backfilled")
    if target.list or target.is_vector:
        return _array(text, target)
    value = _scalar(text, target.scalar)
    if target.enum_values is not None and value not in target.enum_values:
        raise ValueError(f"'{text}' is not one of {', '.join(target.enum_values)}")
    return value


def _scalar(text: str, scalar: Scalar) -> str | int | float | bool:
    if scalar is Scalar.STRING:
        return text
    if scalar is Scalar.BOOL:
        if text not in ("true", "false"):
            raise ValueError(f"'{text}' is not `true` or `false`")
        return text == "true"
    if scalar is Scalar.DATE:
        return parse_date(text)
    if scalar is Scalar.DATETIME:
        return parse_datetime(text)
    if scalar.is_integer:
        if not _INTEGER.match(text) or len(text) > 40:
            raise ValueError(f"'{text}' is not an integer")
        return _in_range(int(text), scalar)
    if not _NUMBER.match(text):
        raise ValueError(f"'{text}' is not a number")
    return _finite(float(text), scalar)


def _in_range(value: int, scalar: Scalar) -> int:
    low, high = INTEGER_RANGES[scalar]
    if not low <= value <= high:
        raise ValueError(f"{value} is out of range for {scalar.value}")
    return value


def _finite(value: float, scalar: Scalar) -> float:
    if math.isinf(value) or (scalar is Scalar.F32 and abs(value) > F32_MAX):
        raise ValueError(f"{value} is out of range for {scalar.value}")
    return value


def _array(text: str, target: PropType) -> list[Value]:
    try:
        items = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"'{text}' is not JSON") from error
    if not isinstance(items, list):
        raise ValueError(f"'{text}' is not a JSON array")
    if target.is_vector and len(items) != target.dimension:
        raise ValueError(f"expected {target.dimension} values, got {len(items)}")
    element = Scalar.F32 if target.is_vector else target.scalar
    return [_element(item, element, nullable=not target.is_vector) for item in items]


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _element(item: object, scalar: Scalar, *, nullable: bool) -> Value:
    if item is None and nullable:
        return None
    wanted: tuple[type, ...] = (str,)
    if scalar is Scalar.BOOL:
        wanted = (bool,)
    elif scalar.is_integer:
        wanted = (int,)
    elif scalar.is_float:
        wanted = (int, float)
    if not isinstance(item, wanted) or (isinstance(item, bool) and scalar is not Scalar.BOOL):
        raise ValueError(f"element {json.dumps(item)} is not {scalar.value}")
    if scalar is Scalar.DATE:
        return parse_date(str(item))
    if scalar is Scalar.DATETIME:
        return parse_datetime(str(item))
    if isinstance(item, bool | str):
        return item
    if isinstance(item, int) and scalar.is_integer:
        return _in_range(item, scalar)
    assert isinstance(item, int | float)
    try:
        return _finite(float(item), scalar)
    except OverflowError:
        raise ValueError(f"element is out of range for {scalar.value}") from None
