"""Texts that stand for values: dates and times, and `@backfill` texts.

One reader for literals, parameters, `@backfill` texts and load input. Dates are days since
1970-01-01, datetimes milliseconds since then in UTC, on the proleptic Gregorian calendar. Python's
own date type ends at the year 9999 and cannot hold the extended years the spellings allow.
"""

from __future__ import annotations

import json
import math
import re
from typing import NoReturn

from omnigraph.language.types import F32_MAX, INTEGER_RANGES, PropType, Scalar

_DATE = re.compile(r"([+-]\d{4,6}|\d{4})-(\d{1,2})-(\d{1,2})\Z", re.ASCII)
_COMPACT_DATE = re.compile(r"(\d{4})(\d{2})(\d{2})\Z", re.ASCII)
_DATETIME = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(?:\.(\d+))?"
    r"(Z|z|[+-]\d{2}(?::?\d{2})?)?\Z",
    re.ASCII,
)
_DAY_MS = 86_400_000
_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_I32 = 2**31


def parse_date(text: str) -> int:
    """Days since the epoch. Raises `ValueError` with the text of the product's message."""
    days = _date_days(text)
    if days is None and len(text) > 10:
        millis = _datetime_millis(text)
        days = None if millis is None else millis // _DAY_MS
    if days is None or not -_I32 <= days < _I32:
        raise ValueError(f"invalid Date literal '{text}'")
    return days


def parse_datetime(text: str) -> int:
    """Milliseconds since the epoch, UTC. Raises `ValueError` with the product's message."""
    millis = None
    if len(text) <= 10:
        days = _date_days(text)
        millis = None if days is None else days * _DAY_MS
    else:
        millis = _datetime_millis(text)
    if millis is None:
        raise ValueError(f"invalid DateTime literal '{text}'")
    return millis


def format_date(days: int) -> str:
    """`YYYY-MM-DD`; years beyond four digits carry a sign."""
    year, month, day = civil_from_days(days)
    shown = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+05d}"
    return f"{shown}-{month:02d}-{day:02d}"


def format_datetime(millis: int) -> str:
    """`YYYY-MM-DDTHH:MM:SS.mmmZ`."""
    days, rest = divmod(millis, _DAY_MS)
    seconds, ms = divmod(rest, 1000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{format_date(days)}T{hour:02d}:{minute:02d}:{second:02d}.{ms:03d}Z"


def _date_days(text: str) -> int | None:
    match = _DATE.match(text) or _COMPACT_DATE.match(text)
    if match is None:
        return None
    return days_from_civil(int(match[1]), int(match[2]), int(match[3]))


def _datetime_millis(text: str) -> int | None:
    match = _DATETIME.match(text)
    if match is None:
        return None
    days = days_from_civil(int(match[1]), int(match[2]), int(match[3]))
    hour, minute, second = int(match[4]), int(match[5]), int(match[6])
    offset = _zone_minutes(match[8])
    if days is None or offset is None or hour > 23 or minute > 59 or second > 59:
        return None
    millis = int((match[7] or "0")[:3].ljust(3, "0"))
    return days * _DAY_MS + ((hour * 60 + minute - offset) * 60 + second) * 1000 + millis


def _zone_minutes(zone: str | None) -> int | None:
    """Minutes east of UTC; no zone means UTC."""
    if zone is None or zone in "Zz":
        return 0
    digits = zone[1:].replace(":", "")
    hours, minutes = int(digits[:2]), int(digits[2:] or "0")
    if hours > 23 or minutes > 59:
        return None
    return (hours * 60 + minutes) * (-1 if zone[0] == "-" else 1)


def days_from_civil(year: int, month: int, day: int) -> int | None:
    """Days since the epoch of a calendar day, or None when there is no such day."""
    if not 1 <= month <= 12:
        return None
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= day <= _MONTH_DAYS[month - 1] + (leap and month == 2):
        return None
    # Count from 1 March of year 0, so that the leap day is the last day of a counted year.
    counted = year - (month <= 2)
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return counted * 365 + counted // 4 - counted // 100 + counted // 400 + day_of_year - 719_468


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Year, month and day of a number of days since the epoch."""
    days += 719_468
    era, day_of_era = divmod(days, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    year = year_of_era + era * 400 + (month <= 2)
    return year, month, day_of_year - (153 * shifted + 2) // 5 + 1


# -- backfill ----------------------------------------------------------------------------------


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
