"""Parameter values: from JSON or Python to what the plan expects.

`bind_parameters` takes JSON values as the CLI and HTTP deliver them; `bind_host_values` takes
Python values and holds them to the same rules. Both return stored forms: dates are days, datetimes
milliseconds since the epoch, vectors and lists are Python lists.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import NoReturn, TypeGuard, cast
from uuid import UUID

from omnigraph.errors import HostValueError, ParameterError, UnknownParameter
from omnigraph.language.types import F32_MAX, INTEGER_RANGES, PropType, Scalar
from omnigraph.language.values import parse_date, parse_datetime
from omnigraph.plan.ir import DATETIME_TYPE, NOW_PARAMETER, ParameterSpec

BoundValue = str | int | float | bool | list["BoundValue"] | None
BoundParameters = dict[str, BoundValue]

_I64_MIN, _I64_MAX = INTEGER_RANGES[Scalar.I64]
_JS_SAFE = 2**53 - 1
_INTEGER_TEXT = re.compile(r"[+-]?[0-9]{1,40}\Z", re.ASCII)


class JsonParameters(dict[str, object]):
    """Parameters that came as JSON text and are held to the rules for JSON, not for Python."""


class Mode(Enum):
    """Where values come from: JSON, a host whose numbers are all floats, or Python."""

    STANDARD = "standard"
    JS_SAFE = "js_safe"
    PYTHON = "python"


def bind_parameters(
    parameters: Iterable[ParameterSpec], given: object, mode: Mode = Mode.STANDARD
) -> BoundParameters:
    """Convert a JSON object of parameters. Raises `ParameterError` that names the parameter.

    A parameter with a default that is not given stays absent: see `omnigraph.read.defaults`.
    """
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        raise ParameterError(None, "params must be a JSON object")
    specs = tuple(parameters)
    check_names(specs, given)
    bound: BoundParameters = {}
    for parameter in specs:
        name, wanted = parameter.name, parameter.type
        if parameter.default is not None and name not in given:
            continue
        value = given.get(name)
        if value is None:
            if not wanted.nullable or (parameter.is_inferred and name not in given):
                _refuse_missing(name, given)
            bound[name] = None
        else:
            bound[name] = _Converter(name, wanted, mode).convert(value)
    if NOW_PARAMETER in given:
        now = _Converter(NOW_PARAMETER, DATETIME_TYPE, mode)
        bound[NOW_PARAMETER] = now.convert(given[NOW_PARAMETER])
    return bound


def bind_host_values(
    parameters: Iterable[ParameterSpec], given: Mapping[str, object]
) -> BoundParameters:
    """Convert Python values, or JSON values that came as `JsonParameters`.

    Values are text, numbers, booleans, dates, datetimes, where a datetime without a zone is UTC,
    UUIDs as text, bytes for blobs, None, and sequences or arrays of them. Raises `ParameterError`
    or `HostValueError`, which name the parameter.
    """
    specs = tuple(parameters)
    if isinstance(given, JsonParameters):
        return bind_parameters(specs, given)
    if not isinstance(given, Mapping):
        raise ParameterError(
            None, f"params must be a mapping of names to values, not a {type(given).__name__}"
        )
    check_names(specs, given)
    types = {parameter.name: parameter.type for parameter in specs}
    plain = {
        name: _from_host(name, value, types.get(name, DATETIME_TYPE))
        for name, value in given.items()
    }
    return bind_parameters(specs, plain, Mode.PYTHON)


def check_names(parameters: Iterable[ParameterSpec], given: Mapping[str, object]) -> None:
    """Raises `UnknownParameter` for a name that is not a declared parameter."""
    declared = [parameter.name for parameter in parameters]
    for name in given:
        if name not in declared and name != NOW_PARAMETER:
            raise UnknownParameter(str(name), declared)


def _refuse_missing(name: str, given: Mapping[str, object]) -> NoReturn:
    if name in given:
        message = f"param '{name}': null is not accepted for non-nullable parameter"
        raise ParameterError(name, message)
    raise ParameterError(name, f"parameter '{name}' not provided")


class _Converter:
    """Converts the values of one parameter."""

    def __init__(self, name: str, wanted: PropType, mode: Mode) -> None:
        self._name = name
        self._wanted = wanted
        self._mode = mode

    def convert(self, value: object) -> BoundValue:
        wanted = self._wanted
        if wanted.is_vector:
            return self._vector(value, wanted)
        if wanted.list:
            if not isinstance(value, list | tuple):
                self._refuse(f"expected array for {wanted.required().display}", value)
            return [self._scalar(item, wanted.scalar) for item in value]
        return self._scalar(value, wanted.scalar)

    def _scalar(self, value: object, scalar: Scalar) -> BoundValue:
        if scalar.is_integer:
            return self._integer(value, scalar)
        if scalar.is_float:
            return self._float(value, scalar)
        match scalar:
            case Scalar.BOOL:
                if not isinstance(value, bool):
                    self._refuse("expected boolean", value)
                return value
            case Scalar.DATE:
                return self._temporal(value, "date", parse_date)
            case Scalar.DATETIME:
                return self._temporal(value, "datetime", parse_datetime)
            case Scalar.BLOB:
                if not isinstance(value, str):
                    self._refuse("expected blob URI string", value)
                return self._text(value)
            case _:
                if not isinstance(value, str):
                    self._refuse("expected string", value, shows_found=True)
                return self._text(value)

    def _text(self, value: str) -> str:
        try:
            value.encode()
        except UnicodeEncodeError:
            self._fail("string holds half of a surrogate pair")
        return value

    def _integer(self, value: object, scalar: Scalar) -> int:
        signed = scalar in (Scalar.I32, Scalar.I64)
        expected = "expected integer" if signed else "expected unsigned integer"
        if isinstance(value, str):
            if not _INTEGER_TEXT.match(value) or (not signed and value.startswith("-")):
                self._fail(f"{expected} string, got '{value}'")
            number = int(value)
        elif isinstance(value, bool) or not isinstance(value, int | float):
            self._refuse(expected, value)
        else:
            number = self._whole(value, f"{expected} number")
            if number < 0 and not signed:
                self._refuse(f"{expected} number", value)
        if scalar is Scalar.U64 and number > _I64_MAX:
            self._fail(f"value {_shown(number)} exceeds current engine range for U64")
        low, high = INTEGER_RANGES[scalar]
        if not low <= number <= high:
            self._fail(f"value {_shown(number)} exceeds {scalar.value}")
        return number

    def _whole(self, value: int | float, expected: str) -> int:
        js_safe = self._mode is Mode.JS_SAFE
        if isinstance(value, float):
            if not js_safe or not value.is_integer():
                self._refuse(expected, value)
            value = int(value)
        if js_safe and abs(value) > _JS_SAFE:
            message = f"value {_shown(value)} exceeds JS safe integer range; pass a decimal string"
            self._refuse(message, value)
        return value

    def _float(self, value: object, scalar: Scalar) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._refuse("expected float", value)
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            self._fail("expected float that is finite")
        if scalar is Scalar.F32 and abs(number) > F32_MAX:
            self._fail(f"value {number} exceeds F32")
        return number

    def _temporal(self, value: object, word: str, parse: Callable[[str], int]) -> int:
        if not isinstance(value, str):
            self._refuse(f"expected {word} string", value)
        try:
            return parse(value)
        except ValueError as error:
            self._fail(str(error))

    def _vector(self, value: object, wanted: PropType) -> BoundValue:
        shown = wanted.required().display
        if not isinstance(value, list | tuple):
            self._refuse(f"expected array for {shown}", value)
        if len(value) != wanted.dimension:
            self._fail(f"expected {wanted.dimension} values for {shown}, got {len(value)}")
        if _are_finite_floats(value) and max(map(abs, value)) <= F32_MAX:
            return list(value)
        elements: list[BoundValue] = []
        for item in value:
            if isinstance(item, bool) or not isinstance(item, int | float):
                self._refuse("vector element is not numeric", item)
            elements.append(self._float(item, Scalar.F32))
        return elements

    def _refuse(self, message: str, value: object, *, shows_found: bool = False) -> NoReturn:
        """Fail; errors for hosts also name the type they sent."""
        if self._mode is Mode.PYTHON:
            shown = self._wanted.required().display
            declared = "" if shown in message else f" ({shown})"
            message = f"{message}{declared}, got a Python {type(value).__name__}"
        elif shows_found or self._mode is Mode.JS_SAFE:
            message = f"{message}, got {json_type(value)}"
        self._fail(message)

    def _fail(self, message: str) -> NoReturn:
        raise ParameterError(self._name, f"param '{self._name}': {message}")


def json_type(value: object) -> str:
    """The JSON name of a value's type."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list() | tuple():
            return "array"
        case _:
            return "object"


def _from_host(name: str, value: object, wanted: PropType) -> object:
    """A Python value in its JSON form."""
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, int):
        if not _I64_MIN <= value <= _I64_MAX:
            raise HostValueError(name, f"{_shown(value)} exceeds current engine range")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise HostValueError(name, f"invalid float parameter: {value}")
        return value
    if isinstance(value, dt.datetime | dt.date):
        return _host_temporal(name, value, wanted)
    if isinstance(value, UUID):
        _expect(name, value, wanted, Scalar.STRING)
        return str(value)
    if isinstance(value, bytes | bytearray):
        _expect(name, value, wanted, Scalar.BLOB)
        return "base64:" + b64encode(value).decode()
    if isinstance(value, list | tuple):
        if _are_finite_floats(value):
            return value
        return [_from_host(name, item, wanted) for item in value]
    to_list = getattr(value, "tolist", None)
    if callable(to_list):
        # numpy arrays and scalars, Arrow and pandas columns: all know how to become plain Python.
        return _from_host(name, to_list(), wanted)
    raise HostValueError(name, f"a value of type {type(value).__name__} is not supported")


def _expect(name: str, value: object, wanted: PropType, scalar: Scalar) -> None:
    """Refuse a value of a Python type that only one kind of parameter takes."""
    if wanted.scalar is not scalar:
        message = f"expected {wanted.display}, got a Python {type(value).__name__}"
        raise ParameterError(name, f"param '{name}': {message}")


def _are_finite_floats(items: Sequence[object]) -> TypeGuard[Sequence[float]]:
    """Whether there is nothing to check or convert: vectors have hundreds of numbers."""
    if set(map(type, items)) != {float}:
        return False
    return all(map(math.isfinite, cast("Sequence[float]", items)))


def _host_temporal(name: str, value: dt.date, wanted: PropType) -> str:
    """ISO text of a date or datetime, refused where the query expects another kind of value."""
    _expect(name, value, wanted, Scalar.DATETIME if isinstance(value, dt.datetime) else Scalar.DATE)
    if isinstance(value, dt.datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
        try:
            return moment.astimezone(dt.UTC).isoformat(timespec="milliseconds")
        except OverflowError:
            raise HostValueError(name, f"{value} is outside the years 1 to 9999 in UTC") from None
    return value.isoformat()


def _shown(number: int) -> str:
    return str(number) if abs(number) < 10**40 else "a number of more than 40 digits"
