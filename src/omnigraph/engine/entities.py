"""Single entities: as Python values, as JSON in the forms of an export, or of a comparison.

Tests: tests/behaviour/test_entities.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from omnigraph.catalog.model import EdgeType, EntityType
from omnigraph.engine.python_values import python_rows
from omnigraph.engine.read.scan import VisibleRows, find_type
from omnigraph.engine.read.view import ReadView
from omnigraph.errors import InputError
from omnigraph.export.json_lines import export_lines
from omnigraph.storage.blobs import find_blob
from omnigraph.storage.filters import Comparison
from omnigraph.storage.scan import ROW_ID
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot
from omnigraph.versioning.snapshot_rows import read_rows


def get_entity(
    snapshot: Snapshot,
    tables: TableStore,
    type_name: str,
    id: str,
    view: ReadView = ReadView.ALL,
) -> dict[str, Any] | None:
    """The entity of a type with an id as Python values, or None if the view shows no such row.

    Keys are `id`, for an edge `src` and `dst`, then the properties. A blob is its bytes, or the URI
    of a blob that is kept outside of the graph. Raises `UnknownType`, or `InputError` for an id that
    is not text.
    """
    if not isinstance(id, str):
        raise InputError(f"id must be the text of an id, not a {type(id).__name__}")
    shown = find_type(view.restrict(snapshot.catalog), type_name)
    rows = VisibleRows(snapshot, tables, shown, view)
    plain = [name for name in shown.columns if name not in shown.blobs]
    batch = next(rows.read(plain, Comparison("id", "=", id), with_row_ids=True), None)
    if batch is None:
        return None
    (found,) = python_rows(dict(zip(batch.schema.names, batch.columns, strict=True)))
    blobs = {name: _blob(rows, name, found[ROW_ID]) for name in shown.blobs}
    return {name: blobs[name] if name in blobs else found[name] for name in shown.columns}


def _blob(rows: VisibleRows, name: str, row_id: int) -> bytes | str | None:
    table, column = rows.table(), rows.shown.properties[name].column
    if table is None or column not in table.schema.names:
        return None
    place = find_blob(table, column, row_id)
    if place is None or place.uri is not None:
        return None if place is None else place.uri
    blob = place.open()
    return blob.read(0, blob.size)


def read_entity(
    snapshot: Snapshot, tables: TableStore, table_key: str, id: str
) -> dict[str, Any] | None:
    """The entity with an id: `id`, the ends of an edge, then its properties by name.

    None when the snapshot has no such table or the table no such id. Properties that the stored
    version does not have yet are null.
    """
    by_key = {declared.table_key: declared for declared in snapshot.catalog}
    declared = by_key.get(table_key)
    if declared is None or table_key not in snapshot.entries:
        return None
    rows = read_rows(snapshot, tables, declared, Comparison("id", "=", id))
    return next(iter(_documents(declared, rows, zoned=False)), None)


def compared_documents(
    declared: EntityType, batches: Iterable[pa.RecordBatch]
) -> list[dict[str, Any]]:
    """Rows under property names as diffs and conflicts show them, in their order.

    Moments look as in results; everything else is as `read_entity` gives it.
    """
    return _documents(declared, batches, zoned=True)


def _documents(
    declared: EntityType, batches: Iterable[pa.RecordBatch], *, zoned: bool
) -> list[dict[str, Any]]:
    pieces = export_lines(declared, batches, zoned=zoned)
    lines = b"".join(piece.to_pybytes() for piece in pieces).splitlines()
    return [_document(declared, json.loads(line)) for line in lines]


def _document(declared: EntityType, record: dict[str, Any]) -> dict[str, Any]:
    data: dict[str, Any] = record["data"]
    if not isinstance(declared, EdgeType):
        return data
    return {"id": data.pop("id"), "src": record["from"], "dst": record["to"], **data}
