"""The door to Arrow's JSON reader: texts of one shape to a table, or a refusal.

Three things keep the reader honest. Every text begins with `{`, ends with `}` and a line end, so
that a table with as many rows as texts has exactly one row per text. Texts are checked for UTF-8
beforehand, which the reader does not do. And the reader takes NaN and infinities for numbers, so
whoever asks for a number has to look.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.json as pj


class JsonMismatch(Exception):
    """The texts are not all objects of the wanted shape."""


class SeveralRecords(Exception):
    """A text that was taken for one record holds more than one."""


def parse_objects(texts: pa.Array, shape: pa.Schema, *, ignore_others: bool = False) -> pa.Table:
    """The texts as rows of the given shape. Raises `JsonMismatch` and `SeveralRecords`.

    A key that is not in the shape is ignored, or counts as a mismatch. A missing key is null.
    """
    content = _content(texts)
    if content.size == 0:
        return shape.empty_table()
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


def is_utf8(texts: pa.Array) -> bool:
    """Whether all texts together are UTF-8. Each ends with a line end, so none leans on the next."""
    content = _content(texts)
    bounds = pa.py_buffer(np.array([0, content.size], np.int32))
    try:
        pa.Array.from_buffers(pa.utf8(), 1, [None, bounds, content]).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _content(texts: pa.Array) -> pa.Buffer:
    """The bytes of all texts, one after the other."""
    _, offsets, data = texts.buffers()
    if data is None or not len(texts):
        return pa.py_buffer(b"")
    bounds = np.frombuffer(offsets, np.int32)
    start, end = int(bounds[texts.offset]), int(bounds[texts.offset + len(texts)])
    return data.slice(start, end - start)


def only_chunk(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array, without a copy when it already is one."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
