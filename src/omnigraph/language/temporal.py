"""Dates and times: the accepted spellings and the numbers they stand for.

One reader for literals, parameters, `@backfill` texts and load input. Dates are days since
1970-01-01, datetimes milliseconds since then in UTC, on the proleptic Gregorian calendar. Python's
own date type ends at the year 9999 and cannot hold the extended years the spellings allow.
"""

from __future__ import annotations

import re

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
