"""Rows of one type as JSON lines, in the order they come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.ir import compact_json
from omnigraph.catalog.model import EdgeType, EntityType
from omnigraph.errors import ExportError
from omnigraph.export.values import NotFinite, blob_texts, json_texts, quoted

BlobTexts = Callable[[str, pa.RecordBatch], pa.Array]
"""A property and rows to the texts of its blobs: a URI, `base64:…`, or null."""

_PIECE_BYTES: Final = 16 * 1024 * 1024
_MOST_ROWS: Final = 65_536
_TEXT_FACTOR: Final = 4
"""Numbers take up to about this many times their stored bytes as text."""


def export_lines(
    declared: EntityType, batches: Iterable[pa.RecordBatch], blobs: BlobTexts | None = None
) -> Iterator[pa.Buffer]:
    """The rows as UTF-8 text, one object per line, in pieces of some megabytes.

    Rows have their columns under logical names. Without `blobs`, blob columns are those of
    `omnigraph.rows.schema`. Raises `ExportError` for a number that is not finite.
    """
    for batch in batches:
        row_bytes = max(1, _TEXT_FACTOR * batch.nbytes // max(1, batch.num_rows))
        rows = min(_MOST_ROWS, max(1, _PIECE_BYTES // row_bytes))
        for start in range(0, batch.num_rows, rows):
            lines = _lines(declared, batch.slice(start, rows), blobs)
            _, bounds, text = lines.buffers()
            yield text.slice(0, int(np.frombuffer(bounds, np.int32)[len(lines)]))


def _lines(declared: EntityType, rows: pa.RecordBatch, blobs: BlobTexts | None) -> pa.Array:
    parts: list[object] = []
    if isinstance(declared, EdgeType):
        parts += [f'{{"edge":{compact_json(declared.name)},"from":', quoted(rows.column("src"))]
        parts += [',"to":', quoted(rows.column("dst")), ',"data":{"id":']
    else:
        parts.append(f'{{"type":{compact_json(declared.name)},"data":{{"id":')
    parts.append(quoted(rows.column("id")))
    for name in sorted(declared.properties):
        texts = _texts(declared, name, rows, blobs)
        if texts.null_count:
            texts = pc.fill_null(texts, "null")
        parts += [f",{compact_json(name)}:", texts]
    return pc.binary_join_element_wise(*parts, "}}\n", "")


def _texts(
    declared: EntityType, name: str, rows: pa.RecordBatch, blobs: BlobTexts | None
) -> pa.Array:
    kind = declared.properties[name].type
    if kind.is_blob:
        return quoted(blobs(name, rows) if blobs else blob_texts(rows.column(name)))
    try:
        return json_texts(rows.column(name), kind)
    except NotFinite as error:
        id = rows.column("id")[error.row].as_py()
        where = f"{declared.name}.{name} of '{id}'"
        raise ExportError(f"cannot export {where}: JSON has no text for {error.value}") from None
