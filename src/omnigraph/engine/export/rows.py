"""The stored rows of a type as exports have them: under property names, blobs included."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from omnigraph.catalog.model import EntityType
from omnigraph.engine.write.columns import carried_blobs, property_columns
from omnigraph.limits import BLOB_ROWS
from omnigraph.rows.columns import row_type
from omnigraph.storage.filters import Filter
from omnigraph.storage.ordered import scan_by_id
from omnigraph.storage.scan import ROW_ID
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot


class StoredRows:
    """The rows of one type in one snapshot."""

    def __init__(self, snapshot: Snapshot, tables: TableStore, declared: EntityType) -> None:
        self.table = snapshot.open(tables, declared.table_key)
        self._declared = declared
        self._stored = property_columns(declared, self.table.schema)
        self._plain = [name for name in self._stored if name not in declared.blobs]
        self._blobs = [name for name in self._stored if name in declared.blobs]

    @property
    def columns(self) -> list[str]:
        """The stored columns that `named` has to be given, but for `ROW_ID`."""
        return [self._stored[name] for name in self._plain]

    @property
    def needs_row_ids(self) -> bool:
        """Whether `named` has to be given `ROW_ID` besides: blobs are read by it."""
        return bool(self._blobs)

    def named(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stored rows under property names; a property the stored version does not have is null."""
        declared = self._declared
        missing = {
            name: row_type(prop.type)
            for name, prop in declared.properties.items()
            if name not in self._stored
        }
        for batch in in_parts(batches, BLOB_ROWS) if self._blobs else batches:
            found = dict(zip(self._plain, batch.columns, strict=False))
            for name in self._blobs:
                found[name] = carried_blobs(self.table, self._stored[name], batch.column(ROW_ID))
            found |= {name: pa.nulls(batch.num_rows, kind) for name, kind in missing.items()}
            names = list(declared.columns)
            yield pa.RecordBatch.from_arrays([found[name] for name in names], names=names)


def read_rows(
    snapshot: Snapshot, tables: TableStore, declared: EntityType, wanted: Filter | None = None
) -> Iterator[pa.RecordBatch]:
    """Rows by id under property names."""
    rows = StoredRows(snapshot, tables, declared)
    batches: Iterable[pa.RecordBatch]
    if wanted is None:
        batches = scan_by_id(rows.table, rows.columns, with_row_ids=rows.needs_row_ids)
    else:
        batches = rows.table.scan(
            rows.columns, wanted, with_row_ids=rows.needs_row_ids, order_by="id"
        )
    return rows.named(batches)


def in_parts(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    """The same rows, at most so many in a batch."""
    for batch in batches:
        for start in range(0, batch.num_rows, size):
            yield batch.slice(start, size)
