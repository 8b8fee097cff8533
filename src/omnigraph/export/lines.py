"""Rows of one type as JSON lines, in the order they come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.ir import compact_json
from omnigraph.catalog.model import EdgeType, EntityType
from omnigraph.errors import ExportError
from omnigraph.export.values import NotFinite, blob_texts, json_texts
from omnigraph.rows.json_text import joined, quoted, split_batches

BlobTexts = Callable[[str, pa.RecordBatch], pa.Array]
"""A property and rows to the texts of its blobs: a URI, `base64:…`, or null."""


def export_lines(
    declared: EntityType,
    batches: Iterable[pa.RecordBatch],
    blobs: BlobTexts | None = None,
    *,
    zoned: bool = False,
) -> Iterator[pa.Buffer]:
    """The rows as UTF-8 text, one object per line, in split_batches of some megabytes.

    Rows have their columns under logical names. Without `blobs`, blob columns are those of
    `omnigraph.rows.columns`. With `zoned`, moments have the form of results. Raises `ExportError` for a number that is not finite.
    """
    for piece in split_batches(batches):
        yield joined(_parts(declared, piece, blobs, zoned))


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
