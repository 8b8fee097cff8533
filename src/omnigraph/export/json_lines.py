"""Rows of one type as JSON lines, in the order they come."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.ir import compact_json
from omnigraph.catalog.model import EdgeType, EntityType
from omnigraph.errors import ExportError
from omnigraph.language.types import PropType, Scalar
from omnigraph.rows.json_text import (
    float_texts,
    has_four_digit_year,
    joined,
    list_lengths,
    list_texts,
    moment_texts,
    null_where_null,
    quoted,
    split_batches,
    time_texts,
)

_MOMENT: Final = b'"0000-00-00T00:00:00.000"'


class NotFinite(ValueError):
    """A number that JSON cannot write, and its row."""

    def __init__(self, row: int, value: float) -> None:
        super().__init__(str(value))
        self.row = row
        self.value = value


def json_texts(column: pa.Array, kind: PropType, *, zoned: bool = False) -> pa.Array:
    """The JSON text of each value of a property. Raises `NotFinite`. Blobs: `blob_texts`.

    With `zoned`, moments are written as results show them, `"2019-05-01T08:00:00.000Z"`.
    """
    if kind.is_vector or kind.list:
        scalar = Scalar.F32 if kind.is_vector else kind.scalar
        return _array_texts(column, scalar, zoned)
    return _scalar_texts(column, kind.scalar, zoned)


def blob_texts(column: pa.Array) -> pa.Array:
    """What a load reads a blob from: its URI, or `base64:` and its bytes."""
    data, uri = column.flatten()
    inline = [
        None if value is None else "base64:" + base64.b64encode(value).decode()
        for value in data.to_pylist()
    ]
    return pc.coalesce(uri, pa.array(inline, pa.utf8()))


def _scalar_texts(column: pa.Array, scalar: Scalar, zoned: bool) -> pa.Array:
    if scalar is Scalar.STRING:
        return quoted(column)
    if scalar is Scalar.DATE:
        return pc.cast(column.view(pa.int32()), pa.utf8())
    if scalar is Scalar.DATETIME:
        return moment_texts(column) if zoned else _moment_texts(column.view(pa.int64()))
    if scalar.is_float:
        texts = float_texts(column)
        if texts.null_count > column.null_count:
            row = pc.index(pc.and_(column.is_valid(), texts.is_null()), True).as_py()
            raise NotFinite(row, column[row].as_py())
        return texts
    return pc.cast(column, pa.utf8())


def _array_texts(column: pa.Array, scalar: Scalar, zoned: bool) -> pa.Array:
    try:
        items = _scalar_texts(column.flatten(), scalar, zoned)
    except NotFinite as error:
        ends = np.cumsum(list_lengths(column))
        row = int(np.searchsorted(ends, error.row, side="right"))
        raise NotFinite(row, error.value) from None
    return list_texts(column, items)


def _moment_texts(column: pa.Array) -> pa.Array:
    """`"2019-05-01T08:00:00"`, milliseconds only where there are some.

    A time outside the years 0000 to 9999 has no text that a load reads; it is written as a number.
    """
    millis = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
    inside = has_four_digit_year(millis)
    texts = time_texts(np.where(inside, millis, 0), _MOMENT)
    whole = millis % 1000 == 0
    if whole.any():
        short = pc.binary_join_element_wise(pc.utf8_slice_codeunits(texts, 0, 20), '"', "")
        texts = pc.if_else(pa.array(whole), short, texts)
    if not inside.all():
        texts = pc.if_else(pa.array(inside), texts, pc.cast(column, pa.utf8()))
    return null_where_null(texts, column)


BlobTexts = Callable[[str, pa.RecordBatch], pa.Array]
"""A property and rows to the texts of its blobs: a URI, `base64:…`, or null."""


def export_lines(
    declared: EntityType,
    batches: Iterable[pa.RecordBatch],
    blobs: BlobTexts | None = None,
    *,
    zoned: bool = False,
) -> Iterator[pa.Buffer]:
    """The rows as UTF-8 text, one object per line, in parts of a few megabytes.

    Rows have their columns under logical names. Without `blobs`, blob columns are those of
    `omnigraph.rows.columns`. With `zoned`, times have
    the form of results. Raises `ExportError` for a number that is not finite.
    """
    for part in split_batches(batches):
        yield joined(_parts(declared, part, blobs, zoned))


def _parts(
    declared: EntityType, rows: pa.RecordBatch, blobs: BlobTexts | None, zoned: bool
) -> Iterator[object]:
    if isinstance(declared, EdgeType):
        yield from (f'{{"edge":{compact_json(declared.name)},"from":', quoted(rows.column("src")))
        yield from (',"to":', quoted(rows.column("dst")), ',"data":{"id":')
    else:
        yield f'{{"type":{compact_json(declared.name)},"data":{{"id":'
    yield quoted(rows.column("id"))
    for name in sorted(declared.properties):
        yield f",{compact_json(name)}:"
        yield pc.fill_null(_texts(declared, name, rows, blobs, zoned), "null")
    yield "}}\n"


def _texts(
    declared: EntityType, name: str, rows: pa.RecordBatch, blobs: BlobTexts | None, zoned: bool
) -> pa.Array:
    kind = declared.properties[name].type
    if kind.is_blob:
        return quoted(blobs(name, rows) if blobs else blob_texts(rows.column(name)))
    try:
        return json_texts(rows.column(name), kind, zoned=zoned)
    except NotFinite as error:
        id = rows.column("id")[error.row].as_py()
        where = f"{declared.name}.{name} of '{id}'"
        raise ExportError(f"cannot export {where}: JSON has no text for {error.value}") from None
