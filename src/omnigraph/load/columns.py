"""Source columns to property columns, a whole column at a time.

One converter for parsed JSON, Parquet and data frames. A value that does not fit is marked and left
null; `omnigraph.load.row_plan` looks at marked rows again, one by one, and finds the words. So a mark
may be cautious, but a value that is not marked must be exactly what that module would have made.

Dates and datetimes are spelled as `omnigraph.language.values` says: texts that share a layout (all
digits at the same offsets) are read offset by offset, every other text goes through it one by one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from omnigraph.language.types import INTEGER_RANGES, PropType, Scalar
from omnigraph.language.values import parse_date, parse_datetime
from omnigraph.rows.columns import BASE64, blob_column, decode_base64, row_type

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


Converted = tuple[pa.Array, Mask | None]
"""A property column and the mask of rows that do not fit; None when all of them do."""

TIME_UNITS: Final = {"s": (1000, 1), "ms": (1, 1), "us": (1, 1000), "ns": (1, 1_000_000)}


def convert_column(column: pa.Array, wanted: PropType) -> Converted:
    """The property column a source column becomes.

    Integers become floats only when nothing is lost. A number that is not finite never fits.
    """
    column = plain(column)
    if kinds.is_null(column.type):
        return pa.nulls(len(column), row_type(wanted)), None
    if wanted.is_vector:
        return _vectors(column, wanted)
    if wanted.list:
        return _lists(column, wanted)
    return _scalars(column, wanted.scalar)


def plain(column: pa.Array) -> pa.Array:
    """The column without dictionary, view or extension encodings."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if kinds.is_dictionary(column.type):
        # Arrow cannot decode dictionaries of string views, which Polars makes.
        column = plain(column.dictionary).take(column.indices)
    if kinds.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    kind = column.type
    if kinds.is_large_string(kind) or kinds.is_string_view(kind):
        return pc.cast(column, pa.utf8())
    if kinds.is_binary_view(kind):
        return pc.cast(column, pa.large_binary())
    return column


def _scalars(column: pa.Array, scalar: Scalar) -> Converted:
    kind = column.type
    if scalar is Scalar.STRING and kinds.is_string(kind):
        return column, None
    if scalar is Scalar.BOOL and kinds.is_boolean(kind):
        return column, None
    if scalar is Scalar.BLOB:
        return _blobs(column)
    if scalar is Scalar.DATE or scalar is Scalar.DATETIME:
        return _times(column, scalar)
    if scalar.is_integer and kinds.is_integer(kind):
        return _integers(column, scalar)
    if scalar.is_integer and kinds.is_decimal(kind) and kind.scale == 0:
        return _cast(column, row_type(PropType(scalar)))
    if scalar.is_float and kinds.is_floating(kind):
        return _floats(column, scalar)
    if scalar.is_float and kinds.is_integer(kind):
        return _floats_from_integers(column, scalar)
    if scalar.is_float and kinds.is_decimal(kind):
        return _floats(pc.cast(column, pa.float64()), scalar)
    return _none_fits(column, row_type(PropType(scalar)))


def _none_fits(column: pa.Array, wanted: pa.DataType) -> Converted:
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    return pa.nulls(len(column), wanted), valid if valid.any() else None


def _cast(column: pa.Array, wanted: pa.DataType) -> Converted:
    try:
        return pc.cast(column, wanted), None
    except pa.ArrowInvalid:
        return _none_fits(column, wanted)


def _marked(values: pa.Array, bad: Mask) -> Converted:
    """The values without those that do not fit."""
    if not bad.any():
        return values, None
    return pc.if_else(pa.array(bad), pa.scalar(None, values.type), values), bad


# -- numbers ------------------------------------------------------------------------------------


def _numpy(column: pa.Array) -> tuple[npt.NDArray[Any], Mask]:
    """The values with zeros for nulls, and the mask of values."""
    valid: Mask = column.is_valid().to_numpy(zero_copy_only=False)
    filled = column if column.null_count == 0 else pc.fill_null(column, 0)
    return filled.to_numpy(zero_copy_only=False), valid


def _integers(column: pa.Array, scalar: Scalar) -> Converted:
    wanted = row_type(PropType(scalar))
    if column.type == wanted:
        return column, None
    low, high = INTEGER_RANGES[scalar]
    values, _ = _numpy(column)
    limits = np.iinfo(values.dtype)
    bad = (values < max(low, limits.min)) | (values > min(high, limits.max))
    return _marked(pc.cast(column, wanted, safe=False), bad)


def _floats(column: pa.Array, scalar: Scalar) -> Converted:
    converted = pc.cast(column, row_type(PropType(scalar)), safe=False)
    values, _ = _numpy(converted)
    return _marked(converted, ~np.isfinite(values))


def _floats_from_integers(column: pa.Array, scalar: Scalar) -> Converted:
    """Integers of a typed source become floats only when nothing is lost."""
    converted = pc.cast(column, row_type(PropType(scalar)), safe=False)
    values, exact = _numpy(column)[0], _numpy(converted)[0].astype(np.float64)
    limits = np.iinfo(values.dtype)
    # The largest integer has no float of its own: the next one up would wrap on the way back.
    inside = (exact >= limits.min) & (exact < float(limits.max))
    back = np.where(inside, exact, 0).astype(values.dtype)
    return _marked(converted, ~inside | (back != values))


# -- dates --------------------------------------------------------------------------------------


def _times(column: pa.Array, scalar: Scalar) -> Converted:
    kind = column.type
    is_date = scalar is Scalar.DATE
    if kinds.is_string(kind):
        values, bad = read_dates(column) if is_date else read_datetimes(column)
        return values, bad if bad.any() else None
    if kinds.is_integer(kind):
        numbers, misfits = _integers(column, Scalar.I32 if is_date else Scalar.I64)
        return numbers.view(row_type(PropType(scalar))), misfits
    if kinds.is_date32(kind):
        return (column, None) if is_date else _from_millis(column, _DAY_MS, 1, scalar)
    if kinds.is_date64(kind):
        return _from_millis(column, 1, 1, scalar)
    if kinds.is_timestamp(kind):
        return _from_millis(column, *TIME_UNITS[kind.unit], scalar)
    return _none_fits(column, row_type(PropType(scalar)))


def _from_millis(column: pa.Array, times: int, divided: int, scalar: Scalar) -> Converted:
    """Whole milliseconds, or days, of a column that counts in another unit."""
    counted = column.view(pa.int32() if kinds.is_date32(column.type) else pa.int64())
    numbers, valid = _numpy(counted)
    numbers = numbers.astype(np.int64)
    bad = (numbers > 2**63 // times - 1) | (numbers < -(2**63 // times))
    millis = np.where(bad, 0, numbers) // divided * times
    if scalar is Scalar.DATE:
        days = millis // _DAY_MS
        bad |= (days > 2**31 - 1) | (days < -(2**31))
        stored = pa.array(np.where(bad, 0, days).astype(np.int32), mask=~valid | bad)
        return stored.view(pa.date32()), bad if bad.any() else None
    stored = pa.array(millis, mask=~valid | bad)
    return stored.view(pa.date64()), bad if bad.any() else None


# -- lists, vectors, blobs ----------------------------------------------------------------------


def _as_list(column: pa.Array) -> pa.ListArray | None:
    """A column of arrays of any kind as one of plain lists."""
    kind = column.type
    if kinds.is_list(kind):
        return column
    if kinds.is_large_list(kind) or kinds.is_list_view(kind) or kinds.is_large_list_view(kind):
        return pc.cast(column, pa.list_(kind.value_field))
    if kinds.is_fixed_size_list(kind):
        lengths = np.where(_numpy(column.is_valid())[0], kind.list_size, 0)
        offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
        return pa.ListArray.from_arrays(offsets, column.flatten(), mask=column.is_null())
    return None


def _items(lists: pa.ListArray) -> tuple[pa.Array, npt.NDArray[np.int32], Mask]:
    """The elements of all lists in one column, the bounds of each list in it, and where lists are."""
    valid: Mask = lists.is_valid().to_numpy(zero_copy_only=False)
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    bounds = np.zeros(len(lists) + 1, np.int32)
    np.cumsum(lengths, out=bounds[1:])
    return lists.flatten(), bounds, valid


def _rows_with(bad_items: Mask | None, bounds: npt.NDArray[np.int32]) -> Mask | None:
    if bad_items is None:
        return None
    before = np.concatenate([[0], np.cumsum(bad_items)])
    rows: Mask = before[bounds[1:]] > before[bounds[:-1]]
    return rows


def _lists(column: pa.Array, wanted: PropType) -> Converted:
    target = row_type(wanted)
    lists = _as_list(column)
    if lists is None:
        return _none_fits(column, target)
    flat, bounds, valid = _items(lists)
    flat = plain(flat)
    if kinds.is_null(flat.type):
        items, bad_items = pa.nulls(len(flat), target.value_type), None
    else:
        items, bad_items = _scalars(flat, wanted.scalar)
    # `flatten` leaves out what lies under null lists, so the bounds are always the right ones.
    built = pa.ListArray.from_arrays(pa.array(bounds), items, type=target, mask=pa.array(~valid))
    bad = _rows_with(bad_items, bounds)
    return (built, None) if bad is None else _marked_lists(built, bad)


def _marked_lists(lists: pa.Array, bad: Mask) -> Converted:
    kept = pa.array(np.where(bad, -1, np.arange(len(lists))), mask=bad)
    return lists.take(kept), bad


def _vectors(column: pa.Array, wanted: PropType) -> Converted:
    target = row_type(wanted)
    size = target.list_size
    lists = _as_list(column)
    if lists is None:
        return _none_fits(column, target)
    flat, bounds, valid = _items(lists)
    flat = plain(flat)
    bad = valid & (np.diff(bounds) != size)
    if kinds.is_floating(flat.type) or kinds.is_decimal(flat.type):
        items, bad_items = _scalars(flat, Scalar.F32)
    elif kinds.is_integer(flat.type):
        items, bad_items = _floats_from_integers(flat, Scalar.F32)
    else:
        return _none_fits(column, target)
    null_items = items.is_null().to_numpy(zero_copy_only=False)
    bad_items = null_items if bad_items is None else bad_items | null_items
    bad |= _rows_with(bad_items, bounds) if bad_items.any() else False
    kept = valid & ~bad
    if kept.all():
        return pa.FixedSizeListArray.from_arrays(items, type=target), None
    # Rows without a vector still have an entry in a fixed-size list, so they are filled with zeros.
    values = np.zeros((len(lists), size), np.float32)
    item_kept = np.repeat(kept, np.diff(bounds))
    values[kept] = _numpy(items)[0][item_kept].reshape(-1, size)
    filled = pa.array(values.reshape(-1), pa.float32())
    vectors = pa.FixedSizeListArray.from_arrays(filled, type=target, mask=pa.array(~kept))
    return vectors, bad if bad.any() else None


def _blobs(column: pa.Array) -> Converted:
    kind = column.type
    count = len(column)
    if kinds.is_binary(kind) or kinds.is_large_binary(kind) or kinds.is_fixed_size_binary(kind):
        return blob_column(pc.cast(column, pa.large_binary()), pa.nulls(count, pa.utf8())), None
    if not kinds.is_string(kind):
        return _none_fits(column, row_type(PropType(Scalar.BLOB)))
    inline = pc.fill_null(pc.starts_with(column, BASE64), False)
    uri = pc.if_else(inline, pa.scalar(None, pa.utf8()), column)
    bad = np.zeros(count, np.bool_)
    # The cost of a blob is in its bytes; one call each is not what takes the time.
    data: list[bytes | None] = [None] * count
    for row in np.flatnonzero(inline.to_numpy(zero_copy_only=False)).tolist():
        try:
            data[row] = decode_base64(column[row].as_py().removeprefix(BASE64))
        except ValueError:
            bad[row] = True
    blobs = blob_column(pa.array(data, pa.large_binary()), uri)
    return blobs, bad if bad.any() else None
