"""Exporting a snapshot: tables by key, rows by id, one JSON object per line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TextIO

import pyarrow as pa

from omnigraph.catalog.model import EntityType
from omnigraph.engine.write.columns import carried_blobs, property_columns
from omnigraph.export import export_lines, select_types
from omnigraph.rows.schema import row_type
from omnigraph.storage.filters import Filter
from omnigraph.storage.scan import ROW_ID
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
        for piece in export_lines(declared, read_rows(snapshot, tables, declared)):
            out.write(piece.to_pybytes().decode())
    return rows


def read_rows(
    snapshot: Snapshot, tables: TableStore, declared: EntityType, wanted: Filter | None = None
) -> Iterator[pa.RecordBatch]:
    """Rows by id under property names; a property the stored version does not have is null."""
    table = snapshot.open(tables, declared.table_key)
    stored = property_columns(declared, table.schema)
    plain = [name for name in stored if name not in declared.blobs]
    blobs = [name for name in stored if name in declared.blobs]
    columns = [stored[name] for name in plain]
    missing = {n: row_type(p.type) for n, p in declared.properties.items() if n not in stored}
    for batch in table.scan(columns, wanted, with_row_ids=bool(blobs), order_by="id"):
        found = dict(zip(plain, batch.columns, strict=False))
        for name in blobs:
            found[name] = carried_blobs(table, stored[name], batch.column(ROW_ID))
        found |= {name: pa.nulls(batch.num_rows, kind) for name, kind in missing.items()}
        names = list(declared.columns)
        yield pa.RecordBatch.from_arrays([found[name] for name in names], names=names)
