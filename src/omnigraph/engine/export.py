"""Exporting a snapshot: tables by key, rows by id, one JSON object per line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TextIO

import pyarrow as pa

from omnigraph.catalog.model import EntityType
from omnigraph.engine.write.columns import property_columns
from omnigraph.export import export_lines, select_types
from omnigraph.rows.schema import BLOB
from omnigraph.storage.blobs import read_blob_cells
from omnigraph.storage.scan import ROW_ID
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot


def export_snapshot(
    snapshot: Snapshot, tables: TableStore, out: TextIO, wanted: Sequence[str] = ()
) -> int:
    """Write a snapshot's rows in the form loads read. Returns how many there were."""
    rows = 0
    for declared in select_types(snapshot.catalog, wanted):
        entry = snapshot.entries.get(declared.table_key)
        if entry is None or not entry.row_count:
            continue
        rows += entry.row_count
        for piece in export_lines(declared, _batches(snapshot, tables, declared)):
            out.write(piece.to_pybytes().decode())
    return rows


def _batches(
    snapshot: Snapshot, tables: TableStore, declared: EntityType
) -> Iterator[pa.RecordBatch]:
    """Rows by id under property names."""
    table = snapshot.open(tables, declared.table_key)
    stored = property_columns(declared, table.schema)
    names = [name for name in declared.columns if name in stored]
    blobs = [name for name in names if name in declared.blobs]
    plain = [name for name in names if name not in declared.blobs]
    columns = [stored[name] for name in plain]
    for batch in table.scan(columns, with_row_ids=bool(blobs), order_by="id"):
        found = dict(zip(plain, batch.columns, strict=False))
        for name in blobs:
            found[name] = _blob_column(table, stored[name], batch.column(ROW_ID))
        yield pa.RecordBatch.from_arrays([found[name] for name in names], names=names)


def _blob_column(table: Table, column: str, row_ids: pa.Array) -> pa.Array:
    """Blobs as rows carry them: the bytes, or the reference as it is."""
    cells = read_blob_cells(table, column, row_ids)
    storage = cells.storage if isinstance(cells, pa.ExtensionArray) else cells
    parts = [storage.field(field.name).cast(field.type) for field in BLOB]
    return pa.StructArray.from_arrays(parts, fields=list(BLOB), mask=storage.is_null())
