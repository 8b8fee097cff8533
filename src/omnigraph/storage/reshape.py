"""Changing what a table is, not only what it holds: for bringing older tables up to date.

Also the two things only that needs: which version inserted a row, and a table nobody else can see.
Tests: tests/storage/tables/test_reshape.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import lance
import pyarrow as pa
from lance import LanceOperation
from lance.fragment import write_fragments

from omnigraph.errors import StoreCallFailed
from omnigraph.storage.conflicts import naming_failures
from omnigraph.storage.fragments import WRITE_OPTIONS
from omnigraph.storage.lineage import Lineage
from omnigraph.storage.stage import RowCounts, Staged
from omnigraph.storage.table import Table

INSERTED_AT: Final = "_row_created_at_version"
_KEY: Final = b"lance-schema:unenforced-primary-key"


def read_with_versions(table: Table, columns: Sequence[str]) -> pa.Table:
    """Rows with the version that inserted each, in the column `INSERTED_AT`."""
    if not table.dataset.has_stable_row_ids:
        # The library would answer all the same, and say that all rows are of the first version.
        cause = "it does not record when rows were inserted; export the graph and load it anew"
        raise StoreCallFailed("read the history", table.lineage.uri, cause)
    return table.read([*columns, INSERTED_AT])


def stage_reshaped(table: Table, rows: pa.Table) -> Staged:
    """New rows in new columns instead of everything, with the metadata of the new schema."""
    with naming_failures("write", table.lineage.uri):
        written = write_fragments(rows, table.dataset, mode="overwrite", **WRITE_OPTIONS)
    return Staged(
        "overwrite",
        table.lineage,
        table.version,
        RowCounts(inserted=rows.num_rows, deleted=table.row_count()),
        rows.num_rows,
        LanceOperation.Overwrite(rows.schema, list(written)),
    )


def annotate_column(table: Table, column: str, metadata: Mapping[str, str]) -> Table:
    """Add metadata to a column, as a version of its own."""
    handle = table.writable_handle()
    with naming_failures("annotate", table.lineage.uri):
        handle.update_field_metadata({column: dict(metadata)})
    return _synced(table, handle)


def is_keyed(table: Table, column: str) -> bool:
    """Whether a column is declared as the key; the library lets that be done only once."""
    return _KEY in (table.schema.field(column).metadata or {})


def annotate_table(table: Table, metadata: Mapping[str, str]) -> Table:
    """Add metadata to the schema of a table, as a version of its own."""
    handle = table.writable_handle()
    with naming_failures("annotate", table.lineage.uri):
        handle.update_schema_metadata(dict(metadata))
    return _synced(table, handle)


def private_table(path: str, branch: str | None, rows: pa.Table) -> Table:
    """A table in memory that ends with its handle, presented as if it were the named one."""
    lineage = Lineage(path, branch, "memory://private", False, None)
    with naming_failures("create", lineage.uri):
        return Table(lineage, lance.write_dataset(rows, lineage.uri, **WRITE_OPTIONS))


def _synced(table: Table, handle: lance.LanceDataset) -> Table:
    if table.lineage.sync:
        table.lineage.sync.commit(table.lineage, handle)
    return Table(table.lineage, handle)
