"""One value at a time: the exact rules of conversion, and the message of every misfit.

`omnigraph.load.columns` converts whole columns. Values it marks as doubtful come here, so this module
decides what is accepted and what is reported about the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, TypeGuard

from omnigraph.language.types import PropType, Scalar
from omnigraph.language.values import parse_date, parse_datetime
from omnigraph.rows.columns import (
    Misfit,
    StoredValue,
    blob_value,
    check_dimension,
    in_range,
    nearest_float,
)

_DAY_MS: Final = 86_400_000
_DAYS: Final = (-(2**31), 2**31 - 1)
_MILLIS: Final = (-(2**63), 2**63 - 1)
_NON_FINITE: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


@dataclass(frozen=True, slots=True)
class Day:
    """A calendar day from a table, as days since the epoch."""

    number: int


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time from a table, as whole milliseconds since the epoch."""

    millis: int


def json_type(given: object) -> str:
    """The name of a value's type in messages."""
    match given:
        case bool():
            return "boolean"
        case int() | float() | Decimal():
            return "number"
        case str():
            return "string"
        case bytes():
            return "binary"
        case Day():
            return "date"
        case Moment():
            return "timestamp"
        case Sequence():
            return "array"
        case _:
            return "object"


# -- values -------------------------------------------------------------------------------------


def convert_value(given: object, name: str, wanted: PropType, *, typed: bool) -> StoredValue:
    """The stored value of a source value. Raises `Misfit`.

    Integers of a typed source (a table) become floats only when nothing is lost.
    """
    if given is None:
        return None
    if wanted.is_vector:
        return _vector(given, name, wanted, typed=typed)
    subject = f"property '{name}'"
    if not wanted.list:
        return _scalar(given, subject, wanted.scalar, typed=typed)
    if not _is_array(given):
        raise Misfit(f"{subject} expects a JSON array, got {json_type(given)}")
    return [
        None
        if item is None
        else _scalar(item, f"element {n} of '{name}'", wanted.scalar, typed=typed)
        for n, item in enumerate(given, 1)
    ]


def _is_array(given: object) -> TypeGuard[Sequence[object]]:
    return json_type(given) == "array"


def _scalar(given: object, subject: str, scalar: Scalar, *, typed: bool) -> StoredValue:
    if scalar is Scalar.BLOB:
        return blob_value(given, subject)
    if isinstance(given, bool):
        if scalar is Scalar.BOOL:
            return given
    elif scalar is Scalar.STRING:
        if isinstance(given, str):
            return given
    elif scalar is Scalar.DATE or scalar is Scalar.DATETIME:
        if isinstance(given, str | int | Day | Moment):
            return _time(given, subject, scalar)
    elif scalar.is_integer:
        if isinstance(given, int) or (
            isinstance(given, Decimal) and given == given.to_integral_value()
        ):
            return in_range(int(given), subject, scalar)
    elif scalar.is_float and isinstance(given, int | float | Decimal):
        return _nearest_float(given, subject, scalar, typed=typed)
    raise Misfit(f"{subject} expects {scalar.value}, got {json_type(given)}")


def _time(given: str | int | Day | Moment, subject: str, scalar: Scalar) -> int:
    is_date = scalar is Scalar.DATE
    match given:
        case str():
            try:
                return parse_date(given) if is_date else parse_datetime(given)
            except ValueError as error:
                raise Misfit(f"{subject}: {error}") from None
        case Day(days):
            number = days if is_date else days * _DAY_MS
        case Moment(millis):
            number = millis // _DAY_MS if is_date else millis
        case int():
            number = given
    low, high = _DAYS if is_date else _MILLIS
    if not low <= number <= high:
        raise Misfit(f"{subject}: {scalar.value} value out of range")
    return number


def _nearest_float(
    given: int | float | Decimal, subject: str, scalar: Scalar, *, typed: bool
) -> float:
    if typed and isinstance(given, float) and not math.isfinite(given):
        raise Misfit(f"{subject}: {_NON_FINITE[str(given)]} is not a finite number")
    stored = nearest_float(given, subject, scalar)
    if typed and isinstance(given, int) and stored != given:
        raise Misfit(f"{subject}: {given} has no exact {scalar.value}")
    return stored


def _vector(given: object, name: str, wanted: PropType, *, typed: bool) -> StoredValue:
    expects = f"property '{name}' expects {wanted.required().display}"
    if not _is_array(given):
        raise Misfit(f"{expects}, got {json_type(given)}")
    check_dimension(name, wanted, len(given))
    components = []
    for number, item in enumerate(given, 1):
        if isinstance(item, bool) or not isinstance(item, int | float | Decimal):
            raise Misfit(f"{expects}: element {number} is not a number")
        subject = f"element {number} of '{name}'"
        components.append(_nearest_float(item, subject, Scalar.F32, typed=typed))
    return components
