"""Kernels of date arithmetic. All times are UTC; weeks begin on Monday."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.read.positions import Mask

Integers = npt.NDArray[np.int64]

_MILLIS: Final = {
    "second": 1_000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 7 * 86_400_000,
}
_MONTHS: Final = {"month": 1, "quarter": 3, "year": 12}
_DAY: Final = _MILLIS["day"]
_FIRST: Final = int(np.datetime64("0001-01-01", "ms").astype(np.int64))
_LAST: Final = int(np.datetime64("9999-12-31T23:59:59.999", "ms").astype(np.int64))
"""The years a date can have."""

_PARTS: Final[dict[str, Callable[[pa.Array], pa.Array]]] = {
    "second": pc.second,
    "minute": pc.minute,
    "hour": pc.hour,
    "day": pc.day,
    "week": pc.iso_week,
    "month": pc.month,
    "quarter": pc.quarter,
    "year": pc.year,
    "weekday": lambda values: pc.day_of_week(values, count_from_zero=False, week_start=1),
    "yearday": pc.day_of_year,
}


def moments(values: pa.Array) -> pa.Array:
    """Dates and datetimes as timestamps, with the time of the day that a `date64` may hold."""
    if pa.types.is_date64(values.type):
        return values.view(pa.timestamp("ms"))
    return values.cast(pa.timestamp("ms"))


def _integers(values: pa.Array) -> Integers:
    return np.asarray(pc.fill_null(values, 0).to_numpy(zero_copy_only=False), np.int64)


def _millis(values: pa.Array) -> Integers:
    return _integers(moments(values).cast(pa.int64()))


def _known(*columns: pa.Array) -> Mask:
    found = np.ones(len(columns[0]), np.bool_)
    for column in columns:
        found &= np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
    return found


def _calendar(millis: Integers) -> tuple[Integers, Integers, Integers]:
    """Months since 1970, days since the first of the month, milliseconds of the day."""
    days = millis // _DAY
    dates = days.astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    return months.astype(np.int64), (dates - months).astype(np.int64), millis - days * _DAY


def _date_add(values: pa.Array, count: pa.Array, unit: str) -> pa.Array:
    millis, steps, known = _millis(values), _integers(count), _known(values, count)
    # No step of more units than there are between the first and the last date stays among them.
    known &= np.abs(steps.astype(np.float64)) * _shortest(unit) <= float(_LAST - _FIRST)
    steps = np.where(known, steps, 0)
    if unit in _MILLIS:
        found = millis + steps * _MILLIS[unit]
    else:
        months, day, time = _calendar(millis)
        target = (months + steps * _MONTHS[unit]).astype("datetime64[M]")
        start = target.astype("datetime64[D]").astype(np.int64)
        last = (target + 1).astype("datetime64[D]").astype(np.int64) - start - 1
        found = (start + np.minimum(day, last)) * _DAY + time
    known &= (found >= _FIRST) & (found <= _LAST)
    return pa.array(np.where(known, found, 0), mask=~known).cast(pa.timestamp("ms"))


def _shortest(unit: str) -> int:
    return _MILLIS[unit] if unit in _MILLIS else 28 * _DAY * _MONTHS[unit]


def _date_diff(start: pa.Array, end: pa.Array, unit: str) -> pa.Array:
    first, last, known = _millis(start), _millis(end), _known(start, end)
    if unit in _MILLIS:
        return pa.array(_toward_zero(last - first, _MILLIS[unit]), mask=~known)
    one, other = _calendar(first), _calendar(last)
    months = other[0] - one[0]
    within = [day * _DAY + time for _, day, time in (one, other)]
    months -= (months > 0) & (within[1] < within[0])
    months += (months < 0) & (within[1] > within[0])
    return pa.array(_toward_zero(months, _MONTHS[unit]), mask=~known)


def _toward_zero(numbers: Integers, divisor: int) -> Integers:
    return np.asarray(np.sign(numbers) * (np.abs(numbers) // divisor), np.int64)


def _date_trunc(values: pa.Array, unit: str) -> pa.Array:
    return pc.floor_temporal(moments(values), unit=unit)


def _date_part(values: pa.Array, unit: str) -> pa.Array:
    return _PARTS[unit](moments(values)).cast(pa.int64())


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "date_add": _date_add,
    "date_diff": _date_diff,
    "date_trunc": _date_trunc,
    "date_part": _date_part,
}
