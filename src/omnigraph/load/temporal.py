"""Columns of date and datetime texts, read at the speed of columns.

The spellings are those of `omnigraph.language.values`, which decides: texts that share a
layout (all digits at the same offsets) are read offset by offset, every other text goes through it
one by one. A text that it refuses is marked and left null.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.language.values import parse_date, parse_datetime

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_Bytes = npt.NDArray[np.uint8]

_DAY_MS: Final = 86_400_000
_DATE_DIGITS: Final = (0, 1, 2, 3, 5, 6, 8, 9)
_TIME_DIGITS: Final = (11, 12, 14, 15, 17, 18)
_MONTH_DAYS: Final = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int64)
_LAYOUT: Final = re.compile(
    rb"\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d:\d\d(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)?)?\Z"
)


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where the digits of a text are: a day, or a time with fractional digits and a zone."""

    is_moment: bool
    fraction_digits: int
    zone_length: int


def read_dates(texts: pa.Array) -> tuple[pa.Array, Mask]:
    """Days of each text, and the mask of texts that are not dates."""
    values, bad = _read(texts, _days_of_dates, parse_date)
    return pa.array(values.astype(np.int32), mask=_absent(texts, bad)).view(pa.date32()), bad


def read_datetimes(texts: pa.Array) -> tuple[pa.Array, Mask]:
    """Milliseconds of each text, and the mask of texts that are not datetimes."""
    values, bad = _read(texts, _millis, parse_datetime)
    return pa.array(values, mask=_absent(texts, bad)).view(pa.date64()), bad


_Reader = Callable[[_Bytes, _Layout], tuple[Numbers, Mask]]


def _read(texts: pa.Array, read: _Reader, parse: Callable[[str], int]) -> tuple[Numbers, Mask]:
    count = len(texts)
    values = np.zeros(count, np.int64)
    bad = np.zeros(count, np.bool_)
    if count == 0:
        return values, bad
    starts, lengths, data = _text_buffers(texts)
    left = texts.is_valid().to_numpy(zero_copy_only=False).copy()
    for length in np.unique(lengths[left]):
        rows = np.flatnonzero(left & (lengths == length))
        sample = data[starts[rows[0]] : starts[rows[0]] + length].tobytes()
        match = _LAYOUT.match(sample)
        if match is None:
            continue
        layout = _Layout(length > 10, len(match[1] or b""), len(match[2] or b""))
        # One row per offset in the text, so that each step works on neighbouring bytes.
        chars = data[starts[rows][None, :] + np.arange(length)[:, None]]
        found, fits = read(chars, layout)
        values[rows[fits]] = found[fits]
        left[rows[fits]] = False
    rest = np.flatnonzero(left)
    encoded = texts.take(pa.array(rest)).dictionary_encode()
    parsed = [_parsed(parse, text) for text in encoded.dictionary.to_pylist()]
    if parsed:
        codes = encoded.indices.to_numpy()
        values[rest] = np.array([0 if p is None else p for p in parsed], np.int64)[codes]
        bad[rest] = np.array([p is None for p in parsed])[codes]
    return values, bad


def _parsed(parse: Callable[[str], int], text: str) -> int | None:
    try:
        return parse(text)
    except ValueError:
        return None


def _text_buffers(texts: pa.Array) -> tuple[Numbers, Numbers, _Bytes]:
    _, offsets, data = texts.buffers()
    content = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    bounds = np.frombuffer(offsets, np.int32).astype(np.int64)
    bounds = bounds[texts.offset : texts.offset + len(texts) + 1]
    return bounds[:-1], bounds[1:] - bounds[:-1], content


def _absent(texts: pa.Array, bad: Mask) -> Mask:
    absent: Mask = texts.is_null().to_numpy(zero_copy_only=False) | bad
    return absent


def _days_of_dates(chars: _Bytes, layout: _Layout) -> tuple[Numbers, Mask]:
    if not layout.is_moment:
        return _days(chars)
    millis, fits = _millis(chars, layout)
    return millis // _DAY_MS, fits


def _days(chars: _Bytes) -> tuple[Numbers, Mask]:
    fits = (chars[4] == ord("-")) & (chars[7] == ord("-")) & _are_digits(chars, _DATE_DIGITS)
    year, month, day = _number(chars, 0, 4), _number(chars, 5, 7), _number(chars, 8, 10)
    fits &= (month >= 1) & (month <= 12) & (day >= 1)
    month = np.where(fits, month, 1)
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    fits &= day <= _MONTH_DAYS[month] + (leap & (month == 2))
    # Count from 1 March of year 0, so that the leap day is the last day of a counted year.
    counted = year - (month <= 2)
    day_of_year = (153 * (month + np.where(month > 2, -3, 9)) + 2) // 5 + day - 1
    days = counted * 365 + counted // 4 - counted // 100 + counted // 400 + day_of_year - 719_468
    return days, fits


def _millis(chars: _Bytes, layout: _Layout) -> tuple[Numbers, Mask]:
    days, fits = _days(chars)
    if not layout.is_moment:
        return days * _DAY_MS, fits
    fits &= _is_one_of(chars[10], b"Tt ") & (chars[13] == ord(":")) & (chars[16] == ord(":"))
    fits &= _are_digits(chars, _TIME_DIGITS)
    hour, minute, second = _number(chars, 11, 13), _number(chars, 14, 16), _number(chars, 17, 19)
    fits &= (hour < 24) & (minute < 60) & (second < 60)
    millis = ((hour * 60 + minute) * 60 + second) * 1000
    end = 19
    if layout.fraction_digits:
        end = 20 + layout.fraction_digits
        fits &= (chars[19] == ord(".")) & _are_digits(chars, range(20, end))
        kept = min(layout.fraction_digits, 3)
        millis += _number(chars, 20, 20 + kept) * 10 ** (3 - kept)
    if layout.zone_length == 1:
        fits &= _is_one_of(chars[end], b"Zz")
    elif layout.zone_length:
        zone_digits = (end + 1, end + 2, end + 4, end + 5)
        fits &= _is_one_of(chars[end], b"+-") & (chars[end + 3] == ord(":"))
        fits &= _are_digits(chars, zone_digits)
        hours, minutes = _number(chars, end + 1, end + 3), _number(chars, end + 4, end + 6)
        fits &= (hours < 24) & (minutes < 60)
        east = np.where(chars[end] == ord("-"), -1, 1)
        millis -= east * (hours * 60 + minutes) * 60_000
    return days * _DAY_MS + millis, fits


def _number(chars: _Bytes, start: int, end: int) -> Numbers:
    """The number that the characters at these offsets spell, if they are digits."""
    total: Numbers = chars[start].astype(np.int64) - ord("0")
    for offset in range(start + 1, end):
        total = total * 10 + (chars[offset].astype(np.int64) - ord("0"))
    return total


def _are_digits(chars: _Bytes, offsets: Sequence[int]) -> Mask:
    # Characters before "0" wrap around to large numbers.
    inside = np.ones(chars.shape[1], np.bool_)
    for offset in offsets:
        inside &= chars[offset] - np.uint8(ord("0")) <= 9
    return inside


def _is_one_of(characters: _Bytes, allowed: bytes) -> Mask:
    found: Mask = characters == allowed[0]
    for other in allowed[1:]:
        found |= characters == other
    return found
