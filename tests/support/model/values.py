"""Stored values of the reference graph: how input becomes one, how it compares, how it is written out.

Dates are days and datetimes milliseconds since the epoch, lists and vectors tuples, F32 the nearest
single-precision number, a Blob its bytes or, as text, the URI of an external one.
"""

from __future__ import annotations

import base64
import binascii
import math
import operator
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any, Final

from omnigraph.language.query.ast import Operator
from omnigraph.language.types import INTEGER_RANGES, PropType, Scalar
from omnigraph.language.values import format_datetime, parse_date, parse_datetime
from tests.support.outcome import Json

Value = None | bool | int | float | str | bytes | tuple["Value", ...] | dict[str, "Value"]
Row = Mapping[str, Value]

_BASE64: Final = "base64:"
_DATE_RANGE: Final = (-(2**31), 2**31 - 1)
_DATETIME_RANGE: Final = (-(2**63), 2**63 - 1)
_COMPARISONS: Final[Mapping[Operator, Callable[[Any, Any], bool]]] = {
    Operator.EQ: operator.eq,
    Operator.NE: operator.ne,
    Operator.LT: operator.lt,
    Operator.LE: operator.le,
    Operator.GT: operator.gt,
    Operator.GE: operator.ge,
}


def text_of(row: Row, column: str) -> str:
    """The id of a row, or one end of an edge: columns that always hold text."""
    value = row[column]
    assert isinstance(value, str)
    return value


class BadValue(ValueError):
    """Input that is no value of its property; the text says why."""


# -- load input ---------------------------------------------------------------------------------


def from_json(given: Json, name: str, wanted: PropType) -> Value:
    """The stored value of a JSON value in a load record. Raises `BadValue`."""
    if given is None:
        return None
    if wanted.is_vector:
        return _vector_from_json(given, name, wanted)
    if not wanted.list:
        return _scalar_from_json(given, f"property '{name}'", wanted.scalar)
    if not isinstance(given, list):
        raise BadValue(f"property '{name}' expects a JSON array, got {json_type(given)}")
    return tuple(
        None if item is None else _scalar_from_json(item, f"element {n} of '{name}'", wanted.scalar)
        for n, item in enumerate(given, 1)
    )


def json_type(given: Json) -> str:
    if isinstance(given, bool):
        return "boolean"
    if isinstance(given, int | float):
        return "number"
    if isinstance(given, str):
        return "string"
    return "array" if isinstance(given, list) else "object"


def _scalar_from_json(given: Json, subject: str, scalar: Scalar) -> Value:
    if scalar is Scalar.BLOB:
        return _blob(given, subject)
    unexpected = BadValue(f"{subject} expects {scalar.value}, got {json_type(given)}")
    if scalar is Scalar.BOOL:
        if isinstance(given, bool):
            return given
        raise unexpected
    if isinstance(given, bool):
        raise unexpected
    if scalar is Scalar.STRING:
        if isinstance(given, str):
            return given
        raise unexpected
    if scalar in (Scalar.DATE, Scalar.DATETIME):
        return _time_from_json(given, subject, scalar, unexpected)
    if scalar.is_integer:
        if isinstance(given, int):
            return _in_range(given, subject, scalar)
        raise unexpected
    if isinstance(given, int | float):
        return _nearest_float(given, subject, scalar)
    raise unexpected


def _time_from_json(given: Json, subject: str, scalar: Scalar, unexpected: BadValue) -> int:
    is_date = scalar is Scalar.DATE
    if isinstance(given, str):
        try:
            return parse_date(given) if is_date else parse_datetime(given)
        except ValueError as error:
            raise BadValue(f"{subject}: {error}") from None
    if not isinstance(given, int):
        raise unexpected
    low, high = _DATE_RANGE if is_date else _DATETIME_RANGE
    if not low <= given <= high:
        raise BadValue(f"{subject}: {scalar.value} value out of range")
    return given


def _vector_from_json(given: Json, name: str, wanted: PropType) -> Value:
    expects = f"property '{name}' expects {wanted.required().display}"
    if not isinstance(given, list):
        raise BadValue(f"{expects}, got {json_type(given)}")
    if len(given) != wanted.dimension:
        raise BadValue(_wrong_length(name, wanted, len(given)))
    components = []
    for number, item in enumerate(given, 1):
        if isinstance(item, bool) or not isinstance(item, int | float):
            raise BadValue(f"{expects}: element {number} is not a number")
        components.append(_nearest_float(item, f"element {number} of '{name}'", Scalar.F32))
    return tuple(components)


def _wrong_length(name: str, wanted: PropType, found: int) -> str:
    return f"vector property '{name}' expects {wanted.dimension} dimensions, got {found}"


def _blob(given: object, subject: str) -> bytes | str:
    if not isinstance(given, str):
        raise BadValue(f"{subject} must be a URI string or base64: prefixed data")
    if not given.startswith(_BASE64):
        return given
    try:
        return base64.b64decode(given.removeprefix(_BASE64), validate=True)
    except (binascii.Error, ValueError):
        raise BadValue(f"{subject}: invalid base64 blob data") from None


def _in_range(value: int, subject: str, scalar: Scalar) -> int:
    low, high = INTEGER_RANGES[scalar]
    if not low <= value <= high:
        raise BadValue(f"{subject}: value out of range for {scalar.value}")
    return value


def _nearest_float(value: int | float, subject: str, scalar: Scalar) -> float:
    try:
        stored = float(value) if scalar is Scalar.F64 else to_float32(float(value))
    except OverflowError:
        stored = math.inf
    if not math.isfinite(stored):
        raise BadValue(f"{subject}: value out of range for {scalar.value}")
    return stored


def to_float32(value: float) -> float:
    """The nearest single-precision number. Raises `OverflowError` beyond the largest one."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def shortest_float32(value: float) -> float:
    """The number of fewest digits that reads back to a single-precision number, also as a double."""
    if value == 0 or not math.isfinite(value):
        return value
    for digits in range(1, 10):
        near = Decimal(f"{value:.{digits - 1}e}")
        step = Decimal(1).scaleb(near.adjusted() - digits + 1)
        fitting = [d for d in (near, near - step, near + step) if _reads_back(d, value)]
        if fitting:
            return float(min(fitting, key=lambda d: abs(d - Decimal(value))))
    return value


def _reads_back(number: Decimal, value: float) -> bool:
    try:
        return to_float32(float(number)) == value
    except OverflowError:
        return False


# -- literals and parameters of mutations -------------------------------------------------------


def from_query(given: object, name: str, wanted: PropType) -> Value:
    """The stored value of a literal or bound parameter. Raises `BadValue`.

    Numbers of another kind convert when nothing is lost.
    """
    if given is None:
        return None
    if not (wanted.list or wanted.is_vector):
        return _scalar_from_query(given, name, wanted.scalar)
    assert isinstance(given, Sequence)
    if wanted.is_vector and len(given) != wanted.dimension:
        raise BadValue(_wrong_length(name, wanted, len(given)))
    element = Scalar.F32 if wanted.is_vector else wanted.scalar
    return tuple(_scalar_from_query(item, name, element) for item in given)


def _scalar_from_query(given: object, name: str, scalar: Scalar) -> Value:
    subject = f"property '{name}'"
    if scalar is Scalar.BLOB:
        return _blob(given, subject)
    if scalar.is_numeric:
        assert isinstance(given, int | float)
        if scalar.is_integer:
            if isinstance(given, float) and not given.is_integer():
                raise BadValue(f"{subject}: cannot convert {given} to {scalar.value}")
            return _in_range(int(given), subject, scalar)
        stored = _nearest_float(given, subject, scalar)
        if isinstance(given, int) and stored != given:
            raise BadValue(f"{subject}: cannot convert {given} to {scalar.value}")
        return stored
    assert isinstance(given, str | bool | int)
    return given


# -- comparison ---------------------------------------------------------------------------------


def matches(stored: Value, comparison: Operator, given: object, scalar: Scalar) -> bool:
    """Whether a stored value satisfies a predicate. A null on either side never does."""
    if stored is None or given is None:
        return False
    if scalar.is_float and isinstance(given, int | float):
        # Numbers are compared at the column's precision; one beyond it compares right as it is.
        with suppress(OverflowError):
            given = to_float32(float(given)) if scalar is Scalar.F32 else float(given)
    return _COMPARISONS[comparison](stored, given)


# -- export -------------------------------------------------------------------------------------


def to_export(stored: Value, kind: PropType) -> Json:
    """The value as export writes it and the loader reads it back."""
    if isinstance(stored, tuple):
        return [to_export(item, kind) for item in stored]
    if isinstance(stored, bytes):
        return _BASE64 + base64.b64encode(stored).decode()
    if kind.scalar is Scalar.DATETIME and isinstance(stored, int):
        return format_datetime(stored).removesuffix("Z").removesuffix(".000")
    if isinstance(stored, float) and kind.scalar in (Scalar.F32, Scalar.VECTOR):
        return shortest_float32(stored)
    assert not isinstance(stored, dict), "objects are only in results"
    return stored
