"""Columns of JSON texts: what stands behind the colon for every value, null where there is none.

The texts are those of Python's own JSON writer, made a column at a time.
"""

from __future__ import annotations

import base64
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.types import PropType, Scalar
from omnigraph.rows.text import json_escaped

_DAY_MS: Final = 86_400_000
_ZERO: Final = ord("0")
# Arrow writes numbers in this range without an exponent, as Python does; outside they differ.
_LEAST_PLAIN: Final = 1e-4
_LEAST_SCIENTIFIC: Final = 1e10
_FIRST_MS: Final = -62_167_219_200_000
_LAST_MS: Final = 253_402_300_799_999
"""The years 0000 to 9999, which the text of a moment can express."""


class NotFinite(ValueError):
    """A number that JSON has no text for, and the row of the column it stands in."""

    def __init__(self, row: int, value: float) -> None:
        super().__init__(str(value))
        self.row = row
        self.value = value


def json_texts(column: pa.Array, kind: PropType) -> pa.Array:
    """The JSON text of each value of a property. Raises `NotFinite`. Blobs: `blob_texts`."""
    if kind.is_vector or kind.list:
        scalar = Scalar.F32 if kind.is_vector else kind.scalar
        return _array_texts(column, scalar)
    return _scalar_texts(column, kind.scalar)


def quoted(texts: pa.Array) -> pa.Array:
    """Each text as a JSON string."""
    return pc.binary_join_element_wise('"', json_escaped(texts), '"', "")


def blob_texts(column: pa.Array) -> pa.Array:
    """What a load reads a blob from: its URI, or `base64:` and its bytes."""
    data, uri = column.flatten()
    inline = [
        None if value is None else "base64:" + base64.b64encode(value).decode()
        for value in data.to_pylist()
    ]
    return pc.coalesce(uri, pa.array(inline, pa.utf8()))


def _scalar_texts(column: pa.Array, scalar: Scalar) -> pa.Array:
    if scalar is Scalar.STRING:
        return quoted(column)
    if scalar is Scalar.DATE:
        return pc.cast(column.view(pa.int32()), pa.utf8())
    if scalar is Scalar.DATETIME:
        return _moment_texts(column.view(pa.int64()))
    if scalar.is_float:
        return _float_texts(column)
    return pc.cast(column, pa.utf8())


def _array_texts(column: pa.Array, scalar: Scalar) -> pa.Array:
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    try:
        items = pc.fill_null(_scalar_texts(column.flatten(), scalar), "null")
    except NotFinite as error:
        row = int(np.searchsorted(bounds, error.row, side="right")) - 1
        raise NotFinite(row, error.value) from None
    offsets = pa.array(bounds, pa.int32())
    lists = pa.ListArray.from_arrays(offsets, items, mask=pa.array(~valid))
    return pc.binary_join_element_wise("[", pc.binary_join(lists, ","), "]", "")


def _float_texts(column: pa.Array) -> pa.Array:
    column = pc.cast(column, pa.float64())
    numbers = pc.fill_null(column, 0.0).to_numpy(zero_copy_only=False)
    finite = np.isfinite(numbers)
    if not finite.all():
        row = int(np.argmin(finite))
        raise NotFinite(row, float(numbers[row]))
    texts = pc.cast(column, pa.utf8())
    size = np.abs(numbers)
    plain = ((size >= _LEAST_PLAIN) & (size < _LEAST_SCIENTIFIC)) | (size == 0)
    whole = plain & (numbers == np.floor(numbers))
    if whole.any():
        longer = pc.binary_join_element_wise(texts, ".0", "")
        texts = pc.if_else(pa.array(whole), longer, texts)
    if not plain.all():
        odd = [repr(number) for number in numbers[~plain].tolist()]
        texts = pc.replace_with_mask(texts, pa.array(~plain), pa.array(odd, pa.utf8()))
    return texts


def _moment_texts(column: pa.Array) -> pa.Array:
    """`"2019-05-01T08:00:00"`, milliseconds only where there are some.

    A moment outside the years 0000 to 9999 has no text that a load reads; its number is read.
    """
    millis = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
    inside = (millis >= _FIRST_MS) & (millis <= _LAST_MS)
    texts = _written_moments(np.where(inside, millis, 0))
    if not inside.all():
        texts = pc.if_else(pa.array(inside), texts, pc.cast(column, pa.utf8()))
    if column.null_count:
        texts = pc.if_else(column.is_valid(), texts, pa.scalar(None, pa.utf8()))
    return texts


def _written_moments(millis: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Array:
    days, rest = np.divmod(millis, _DAY_MS)
    seconds, fraction = np.divmod(rest, 1000)
    year = days.astype("datetime64[D]").astype("datetime64[Y]")
    month = days.astype("datetime64[D]").astype("datetime64[M]")
    fields = (
        (1, 4, year.astype(np.int64) + 1970),
        (6, 2, (month - year).astype(np.int64) + 1),
        (9, 2, (days.astype("datetime64[D]") - month).astype(np.int64) + 1),
        (12, 2, seconds // 3600),
        (15, 2, seconds // 60 % 60),
        (18, 2, seconds % 60),
        (21, 3, fraction),
    )
    letters = np.empty((len(millis), 25), np.uint8)
    letters[:] = np.frombuffer(b'"0000-00-00T00:00:00.000"', np.uint8)
    for start, width, numbers in fields:
        for place in range(width - 1, -1, -1):
            letters[:, start + place] = numbers % 10 + _ZERO
            numbers = numbers // 10
    bounds = pa.py_buffer(np.arange(0, letters.size + 1, 25, dtype=np.int32))
    long = pa.Array.from_buffers(pa.utf8(), len(millis), [None, bounds, pa.py_buffer(letters)])
    whole = fraction == 0
    if not whole.any():
        return long
    short = pc.binary_join_element_wise(pc.utf8_slice_codeunits(long, 0, 20), '"', "")
    return pc.if_else(pa.array(whole), short, long)
