"""Writing rows into new files of a table. Nothing written here is part of the table yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import lance
import pyarrow as pa
from lance.fragment import write_fragments

from omnigraph.errors import InputError, StoreCallFailed
from omnigraph.limits import ROWS_PER_FRAGMENT
from omnigraph.storage.blobs import as_blob_column, is_blob
from omnigraph.storage.conflicts import naming_failures
from omnigraph.storage.table import Table, file_names

Rows: TypeAlias = "pa.Table | pa.RecordBatchReader"

FILE_FORMAT: Final = "2.2"

WRITE_OPTIONS: Final[dict[str, Any]] = {
    "data_storage_version": FILE_FORMAT,
    "max_rows_per_file": ROWS_PER_FRAGMENT,
    # Which references are allowed is decided before rows come here.
    "allow_external_blob_outside_bases": True,
}


def write_rows(table: Table, rows: Rows) -> list[lance.FragmentMetadata]:
    """New files with these rows, of about `ROWS_PER_FRAGMENT` rows each.

    An error raised by a stream of rows while it is read is raised again as it was.
    """
    source = _Source(rows, table.schema)
    try:
        with naming_failures("write", table.lineage.uri):
            written = write_fragments(
                source.reader(), table.dataset, mode="append", **WRITE_OPTIONS
            )
    except StoreCallFailed as failure:
        if source.error is not None:
            raise source.error from failure
        raise
    if isinstance(rows, pa.Table) and len(written) == 1:
        stored = [f.name for f in rows.schema if table.schema.field(f.name).type == f.type]
        table.lineage.known.learn(file_names(written[0]), rows.select(stored))
    return list(written)


def fit_rows(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows in the column order and types of a table. Raises `InputError` if they do not fit."""
    _check_columns(rows.schema, schema)
    return pa.Table.from_batches([_fit(batch, schema) for batch in rows.to_batches()], schema)


class _Source:
    """Rows on their way to the table library, which would turn their own errors into text."""

    def __init__(self, rows: Rows, schema: pa.Schema) -> None:
        _check_columns(rows.schema, schema)
        self._batches = rows.to_batches() if isinstance(rows, pa.Table) else rows
        self._schema = schema
        self.error: Exception | None = None

    def reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self._schema, self._fitted())

    def _fitted(self) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._batches:
                yield _fit(batch, self._schema)
        except Exception as error:
            self.error = error
            raise


def _check_columns(given: pa.Schema, schema: pa.Schema) -> None:
    missing = [name for name in schema.names if name not in given.names]
    unknown = [name for name in given.names if name not in schema.names]
    if missing or unknown:
        raise InputError(f"rows do not fit the table: missing {missing}, unknown {unknown}")


def _fit(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [_column(batch.column(field.name), field) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(column: pa.Array, field: pa.Field) -> pa.Array:
    if is_blob(field.type):
        return as_blob_column(column)
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type)
    except pa.ArrowInvalid as error:
        raise InputError(f"column '{field.name}' does not fit the table: {error}") from error
