"""Parameter values: from JSON or Python to what the plan expects.

`bind_parameters` takes JSON values as the CLI and HTTP deliver them; `bind_host_values` takes
Python values and holds them to the same rules. Both return stored forms: dates are days, datetimes
milliseconds since the epoch, vectors and lists are Python lists.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import NoReturn, TypeGuard, cast

from omnigraph.diagnostics import suggest
from omnigraph.errors import HostValueError, ParameterError
from omnigraph.language.temporal import parse_date, parse_datetime
from omnigraph.language.types import F32_MAX, INTEGER_RANGES, PropType, Scalar
from omnigraph.plan.ir import DATETIME_TYPE, NOW_PARAMETER, ParameterSpec

BoundValue = str | int | float | bool | list["BoundValue"] | None
BoundParameters = dict[str, BoundValue]

_I64_MIN, _I64_MAX = INTEGER_RANGES[Scalar.I64]
_JS_SAFE = 2**53 - 1
_INTEGER_TEXT = re.compile(r"[+-]?[0-9]{1,40}\Z", re.ASCII)


class JsonParameters(dict[str, object]):
    """Parameters that came as JSON text and are held to the rules for JSON, not for Python."""


class Mode(Enum):
    """How numbers are read: `JS_SAFE` is for hosts whose numbers are all floats."""

    STANDARD = "standard"
    JS_SAFE = "js_safe"


def bind_parameters(
    parameters: Iterable[ParameterSpec], given: object, mode: Mode = Mode.STANDARD
) -> BoundParameters:
    """Convert a JSON object of parameters. Raises `ParameterError` that names the parameter."""
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        raise ParameterError(None, "params must be a JSON object")
    bound: BoundParameters = {}
    specs = tuple(parameters)
    declared = {parameter.name for parameter in specs}
    for parameter in specs:
        name, wanted = parameter.name, parameter.type
        value = given.get(name)
        if value is None:
            if not wanted.nullable:
                _refuse_missing(name, given, declared)
            bound[name] = None
        else:
            bound[name] = _Converter(name, mode).convert(value, wanted)
    for name, value in given.items():
        if name == NOW_PARAMETER:
            bound[name] = _Converter(name, mode).convert(value, DATETIME_TYPE)
        elif name not in declared:
            bound[name] = _infer(name, value)
    return bound


def bind_host_values(
    parameters: Iterable[ParameterSpec], given: Mapping[str, object]
) -> BoundParameters:
    """Convert Python values: text, numbers, booleans, lists, dates, datetimes, arrays, None."""
    specs = tuple(parameters)
    if isinstance(given, JsonParameters):
        return bind_parameters(specs, given)
    types = {p.name: p.type for p in specs}
    plain = {name: _from_host(name, value, types.get(name)) for name, value in given.items()}
    return bind_parameters(specs, plain)


def _refuse_missing(name: str, given: Mapping[str, object], declared: set[str]) -> NoReturn:
    if name in given:
        message = f"param '{name}': null is not accepted for non-nullable parameter"
        raise ParameterError(name, message)
    message = f"parameter '{name}' not provided"
    near = suggest(name, (other for other in given if other not in declared))
    if near is not None:
        message += f", but there is '{near}'; did you mean `{name}`?"
    raise ParameterError(name, message)


class _Converter:
    """Converts the values of one parameter."""

    def __init__(self, name: str, mode: Mode) -> None:
        self._name = name
        self._mode = mode

    def convert(self, value: object, wanted: PropType) -> BoundValue:
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
                    self._fail(f"expected string, got {json_type(value)}")
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

    def _refuse(self, message: str, value: object) -> NoReturn:
        """Fail; hosts in JavaScript mode are also told what they sent."""
        if self._mode is Mode.JS_SAFE:
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


def _infer(name: str, value: object) -> BoundValue:
    """The value of a parameter nobody declared; the query cannot use it, so only its shape counts."""
    match value:
        case None | bool() | str() | float():
            return value
        case int():
            if _I64_MIN <= value <= _I64_MAX:
                return value
            try:
                return float(value)
            except OverflowError:
                raise ParameterError(name, f"param '{name}': number is too large") from None
        case list() | tuple():
            return [_infer(name, item) for item in value]
        case _:
            raise ParameterError(name, f"param '{name}': object is not supported")


def _from_host(name: str, value: object, wanted: PropType | None) -> object:
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
    if isinstance(value, list | tuple):
        if _are_finite_floats(value):
            return value
        return [_from_host(name, item, wanted) for item in value]
    to_list = getattr(value, "tolist", None)
    if callable(to_list):
        # numpy arrays and scalars, Arrow and pandas columns: all know how to become plain Python.
        return _from_host(name, to_list(), wanted)
    raise HostValueError(name, f"a value of type {type(value).__name__} is not supported")


def _are_finite_floats(items: Sequence[object]) -> TypeGuard[Sequence[float]]:
    """Whether there is nothing to check or convert: vectors have hundreds of numbers."""
    if set(map(type, items)) != {float}:
        return False
    return all(map(math.isfinite, cast("Sequence[float]", items)))


def _host_temporal(name: str, value: dt.date, wanted: PropType | None) -> str:
    """ISO text of a date or datetime, refused where the query expects another kind of value."""
    is_datetime = isinstance(value, dt.datetime)
    kind = Scalar.DATETIME if is_datetime else Scalar.DATE
    if wanted is not None and wanted.scalar is not kind:
        message = f"expected {wanted.display}, got a Python {type(value).__name__}"
        raise ParameterError(name, f"param '{name}': {message}")
    if isinstance(value, dt.datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
        try:
            return moment.astimezone(dt.UTC).isoformat(timespec="milliseconds")
        except OverflowError:
            raise HostValueError(name, f"{value} is outside the years 1 to 9999 in UTC") from None
    return value.isoformat()


def _shown(number: int) -> str:
    return str(number) if abs(number) < 10**40 else "a number of more than 40 digits"
