"""Exporting a snapshot: tables by key, rows by id, one JSON object per line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TextIO

import pyarrow as pa

from omnigraph.catalog.model import EntityType
from omnigraph.engine.write.columns import property_columns
from omnigraph.export import export_lines, select_types
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
    """Rows by id under property names; a property the version does not have yet is null."""
    table = snapshot.open(tables, declared.table_key)
    stored = property_columns(declared, table.schema)
    names = [name for name in declared.columns if name in stored]
    for batch in table.scan([stored[name] for name in names], order_by="id"):
        yield batch.rename_columns(names)
