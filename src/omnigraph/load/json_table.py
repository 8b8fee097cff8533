"""The door to Arrow's JSON reader: texts of one shape to a table, or a refusal.

Four things keep the reader honest. Every text begins with `{`, ends with `}` and a line end, so
that a table with as many rows as texts has exactly one row per text. No text begins with
anything but an object or holds a bare `null`, which is checked here: that can end the process. Texts are checked for UTF-8
beforehand, which the reader does not do. And the reader takes NaN and infinities for numbers, so
whoever asks for a number has to look. A key that an object has twice is a mismatch, as long as the
shape has the key.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.json as pj

from omnigraph.catalog.arrow import arrow_type
from omnigraph.language.types import PropType, Scalar

TIMES: Final = (Scalar.DATE, Scalar.DATETIME)

_OPEN: Final = ord("{")
# Only an object can stand before it: the reader stops at any other value outside of an object.
_NULL: Final = rb"\}[ \t\r\n]*+(null)"
_NULL_AFTER_OBJECT: Final = re.compile(_NULL)
_STRING_OR_NULL: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"|' + _NULL, re.DOTALL)


class JsonMismatch(Exception):
    """The texts are not all objects of the wanted shape."""


class SeveralRecords(Exception):
    """A text that was taken for one record holds more than one."""


def json_shape(wanted: PropType, *, numeric_times: bool = False) -> pa.DataType:
    """What the reader is asked to find for a property; times are texts or numbers."""
    if wanted.is_vector:
        return pa.list_(pa.float64())
    single = _scalar_shape(wanted.scalar, numeric_times=numeric_times)
    return pa.list_(single) if wanted.list else single


def _scalar_shape(scalar: Scalar, *, numeric_times: bool) -> pa.DataType:
    if scalar in TIMES:
        number = pa.int32() if scalar is Scalar.DATE else pa.int64()
        return number if numeric_times else pa.utf8()
    if scalar.is_integer or scalar is Scalar.BOOL:
        return arrow_type(PropType(scalar))
    # F32 is read as a double and rounded once more, as a single value would be.
    return pa.float64() if scalar.is_float else pa.utf8()


def parse_objects(texts: pa.Array, shape: pa.Schema, *, ignore_others: bool = False) -> pa.Table:
    """The texts as rows of the given shape. Raises `JsonMismatch` and `SeveralRecords`.

    A key that is not in the shape is ignored, or counts as a mismatch. A missing key is null.
    """
    content = content_of(texts)
    if content.size == 0:
        return shape.empty_table()
    _check_objects(texts, content)
    try:
        table = pj.read_json(
            pa.BufferReader(content),
            read_options=pj.ReadOptions(use_threads=False, block_size=content.size + 1),
            parse_options=pj.ParseOptions(
                explicit_schema=shape,
                unexpected_field_behavior="ignore" if ignore_others else "error",
            ),
        )
    except pa.ArrowException as error:
        raise JsonMismatch(str(error)) from None
    if table.num_rows != len(texts):
        raise SeveralRecords
    return table


def _check_objects(texts: pa.Array, content: pa.Buffer) -> None:
    """Raises `JsonMismatch` for a text that does not begin with an object, and `SeveralRecords`.

    The reader reads memory that is not its own, and may end the process, when it meets a `null` that is
    not inside an object. Other values there it refuses.
    """
    bounds = _bounds(texts)
    starts = bounds[:-1] - bounds[0]
    if not (np.frombuffer(content, np.uint8)[starts] == _OPEN).all():
        raise JsonMismatch("a text does not begin with an object")
    suspicious = [match.start() for match in _NULL_AFTER_OBJECT.finditer(content)]
    if suspicious:
        for text in np.unique(np.searchsorted(starts, suspicious, "right") - 1).tolist():
            found = _STRING_OR_NULL.finditer(texts[text].as_py())
            if any(match.lastindex for match in found):
                raise SeveralRecords


def is_utf8(texts: pa.Array) -> bool:
    """Whether all texts together are UTF-8. Each ends with a line end, so none leans on the next."""
    content = content_of(texts)
    bounds = pa.py_buffer(np.array([0, content.size], np.int32))
    try:
        pa.Array.from_buffers(pa.utf8(), 1, [None, bounds, content]).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def content_of(texts: pa.Array) -> pa.Buffer:
    """The bytes of all texts, one after the other."""
    data = texts.buffers()[2]
    if data is None or not len(texts):
        return pa.py_buffer(b"")
    bounds = _bounds(texts)
    return data.slice(int(bounds[0]), int(bounds[-1] - bounds[0]))


def _bounds(texts: pa.Array) -> npt.NDArray[np.int32]:
    """Where each text begins in the bytes of all, and where the last one ends."""
    bounds = np.frombuffer(texts.buffers()[1], np.int32)
    return bounds[texts.offset : texts.offset + len(texts) + 1]


def only_chunk(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array, without a copy when it already is one."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
