"""Entities as JSON: a single one in the value forms of an export, or those of a comparison."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from omnigraph.catalog.model import EdgeType, EntityType
from omnigraph.engine.export.rows import read_rows
from omnigraph.export import export_lines
from omnigraph.storage.filters import Comparison
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot


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
