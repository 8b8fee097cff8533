"""Columns of JSON texts, made a column at a time: what exports and query results have in common.

Every function gives one text per value, null where the value is null. Numbers and strings are
written as Python's own JSON writer does.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.identity import canonical_text
from omnigraph.language.types import Scalar

_NEEDS_ESCAPE: Final = r'[\x00-\x1f"\\]'
_DAY_MS: Final = 86_400_000
_MONTHS_BEFORE_1970: Final = 1970 * 12
_ZERO: Final = ord("0")
_PAIRS: Final = np.frombuffer(b"".join(b"%02d" % number for number in range(100)), np.uint16)
"""The two digits of each number below 100, as the two bytes of one number."""

# Arrow writes numbers in this range without an exponent, as Python does; outside they differ.
_LEAST_PLAIN: Final = 1e-4
_LEAST_SCIENTIFIC: Final = 1e10
_DATE: Final = b'"0000-00-00"'
_MOMENT: Final = b'"0000-00-00T00:00:00.000Z"'
_LEAST_MS: Final = -(2**63) + 1
_FIRST_MS: Final = -62_167_219_200_000
_LAST_MS: Final = 253_402_300_799_999
"""The years 0000 to 9999, those with four digits."""

_BATCH_BYTES: Final = 16 * 1024 * 1024
_MAX_BATCH_ROWS: Final = 65_536
_TEXT_FACTOR: Final = 4
"""Numbers take up to about this many times their stored bytes as text."""

Millis: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]
Counts: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int32]]
Mask: TypeAlias = np.ndarray[tuple[int], np.dtype[np.bool_]]
Floats: TypeAlias = np.ndarray[tuple[int], np.dtype[np.floating[Any]]]


def split_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows in batches whose text takes some megabytes. No batch is empty."""
    for batch in batches:
        row_bytes = max(1, _TEXT_FACTOR * batch.nbytes // max(1, batch.num_rows))
        rows = min(_MAX_BATCH_ROWS, max(1, _BATCH_BYTES // row_bytes))
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)


def joined(parts: Iterable[object]) -> pa.Buffer:
    """All rows as one text, each made of the parts: constants and columns of texts without nulls."""
    texts = pc.binary_join_element_wise(*parts, "")
    _, bounds, text = texts.buffers()
    return text.slice(0, int(np.frombuffer(bounds, np.int32)[len(texts)]))


def quoted(texts: pa.Array) -> pa.Array:
    """Each text as a JSON string."""
    return pc.binary_join_element_wise('"', json_escaped(texts), '"', "")


def float_texts(column: pa.Array) -> pa.Array:
    """The shortest text that reads back to each number, at its own precision; null if not finite."""
    numbers = pc.fill_null(column, 0.0).to_numpy(zero_copy_only=False)
    texts = pc.cast(column, pa.utf8())
    size = np.abs(numbers)
    plain = ((size >= _LEAST_PLAIN) & (size < _LEAST_SCIENTIFIC)) | (size == 0)
    whole = plain & (numbers == np.floor(numbers))
    if whole.any():
        longer = pc.binary_join_element_wise(texts, ".0", "")
        texts = pc.if_else(pa.array(whole), longer, texts)
    if not plain.all():
        odd = [
            repr(number) if finite else None
            for number, finite in zip(
                _doubles(numbers[~plain]).tolist(),
                np.isfinite(numbers[~plain]).tolist(),
                strict=True,
            )
        ]
        texts = pc.replace_with_mask(texts, pa.array(~plain), pa.array(odd, pa.utf8()))
    return texts


def _doubles(numbers: Floats) -> Floats:
    """The double with the same shortest text as each number."""
    if numbers.dtype != np.float32:
        return numbers
    doubles: Floats = np.array(pc.cast(pc.cast(pa.array(numbers), pa.utf8()), pa.float64()))
    # A text close to the middle of two single-precision numbers becomes that middle when it is read
    # as a double first, as most readers do; more digits help. No such number is among those that
    # Arrow writes as Python does: all of them were tried.
    for lost in np.flatnonzero(doubles.astype(np.float32) != numbers).tolist():
        if np.isfinite(numbers[lost]):
            doubles[lost] = float(canonical_text(float(numbers[lost]), Scalar.F32))
    return doubles


def list_lengths(column: pa.Array) -> Counts:
    """How many elements each list has that `column.flatten()` gives; a null list has none."""
    lengths: Counts = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    return lengths


def list_texts(
    column: pa.Array, items: pa.Array, start: str = "[", between: str = ",", end: str = "]"
) -> pa.Array:
    """Each list as a JSON array, from the texts of `column.flatten()`; a null text is a null."""
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    lengths = list_lengths(column)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    items = pc.fill_null(items, "null")
    lists = pa.ListArray.from_arrays(offsets, items, mask=pa.array(~valid))
    texts = pc.binary_join_element_wise(start, pc.binary_join(lists, between), end, "")
    bare = valid & (lengths == 0)
    if start + end != "[]" and bare.any():
        texts = pc.if_else(pa.array(bare), "[]", texts)
    return texts


def has_four_digit_year(millis: Millis) -> Mask:
    """Which moments `time_texts` can write."""
    return (millis >= _FIRST_MS) & (millis <= _LAST_MS)


def time_texts(millis: Millis, form: bytes) -> pa.Array:
    """Moments of the years 0000 to 9999, from milliseconds since 1970.

    `form` is `"0000-00-00T00:00:00.000"` or its beginning, in quotes; more may follow the time.
    """
    if not len(millis):
        return pa.array([], pa.utf8())
    days = millis // _DAY_MS
    day = days.astype("datetime64[D]")
    month = day.astype("datetime64[M]")
    months = month.astype(np.int32) + _MONTHS_BEFORE_1970
    year = months // 12
    pairs = [
        (1, year // 100),
        (3, year % 100),
        (6, months % 12 + 1),
        (9, (day - month).astype(np.int32) + 1),
    ]
    letters = np.empty((len(millis), len(form)), np.uint8)
    letters[:] = np.frombuffer(form, np.uint8)
    if b"T" in form:
        rest = (millis - days * _DAY_MS).astype(np.int32)
        seconds = rest // 1000
        minutes = seconds // 60
        thousandths = rest - seconds * 1000
        pairs += [
            (12, minutes // 60),
            (15, minutes % 60),
            (18, seconds % 60),
            (21, thousandths // 10),
        ]
        letters[:, 23] = thousandths % 10 + _ZERO
    for place, numbers in pairs:
        both = np.ndarray(len(millis), np.uint16, letters.data, place, (len(form),))
        both[:] = _PAIRS.take(numbers)
    bounds = pa.py_buffer(np.arange(0, letters.size + 1, len(form), dtype=np.int32))
    return pa.Array.from_buffers(pa.utf8(), len(millis), [None, bounds, pa.py_buffer(letters)])


def date_texts(column: pa.Array) -> pa.Array:
    """Days as results show them: `"2019-05-01"`."""
    days = pc.fill_null(column.view(pa.int32()), 0).to_numpy(zero_copy_only=False)
    return null_where_null(_signed_times(days.astype(np.int64) * _DAY_MS, _DATE), column)


def moment_texts(column: pa.Array) -> pa.Array:
    """Moments as results show them: `"2019-05-01T08:00:00.000Z"`."""
    millis = pc.fill_null(column.view(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return null_where_null(_signed_times(millis, _MOMENT), column)


def _signed_times(millis: Millis, form: bytes) -> pa.Array:
    """The texts in a form; a year of more or fewer than four digits is written with its sign."""
    inside = has_four_digit_year(millis)
    texts = time_texts(np.where(inside, millis, 0), form)
    if inside.all():
        return texts
    # The least number would mean "no time"; its neighbour is as good a text for so long ago.
    odd = np.maximum(millis[~inside], _LEAST_MS).astype("datetime64[ms]")
    zone = "Z" if form == _MOMENT else ""
    written = np.datetime_as_string(odd if zone else odd.astype("datetime64[D]")).tolist()
    behind_year = len("-00-00T00:00:00.000" if zone else "-00-00")
    signed = [f'"{int(t[:-behind_year]):+05}{t[-behind_year:]}{zone}"' for t in written]
    return pc.replace_with_mask(texts, pa.array(~inside), pa.array(signed, pa.utf8()))


def null_where_null(texts: pa.Array, column: pa.Array) -> pa.Array:
    """The texts, without those of values that are null."""
    if not column.null_count:
        return texts
    return pc.if_else(column.is_valid(), texts, pa.scalar(None, pa.utf8()))


def json_escaped(texts: pa.Array) -> pa.Array:
    """The texts as they stand between the quotes of JSON strings, with as few escapes as possible."""
    if not _may_need_escape(texts):
        return texts
    special = pc.match_substring_regex(texts, _NEEDS_ESCAPE)
    special = pc.fill_null(special, False)
    escaped = [json.dumps(t, ensure_ascii=False)[1:-1] for t in texts.filter(special).to_pylist()]
    return pc.replace_with_mask(texts, special, pa.array(escaped, texts.type))


def _may_need_escape(texts: pa.Array) -> bool:
    """Whether a byte that needs an escape stands anywhere in the texts, or in what nulls hide."""
    _, bounds, data = texts.buffers()
    if data is None:
        return False
    width = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    ends = np.frombuffer(bounds, width)
    used = np.frombuffer(data, np.uint8)[ends[texts.offset] : ends[texts.offset + len(texts)]]
    return bool(((used < ord(" ")) | (used == ord('"')) | (used == ord("\\"))).any())
