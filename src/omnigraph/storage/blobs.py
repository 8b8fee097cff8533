"""Blob columns: how they are declared to the store, written, and carried from row to row.

Outside of storage a blob column is large binary, or, where cells may also refer to a file elsewhere,
`BLOB_CELL`. Scans return the store's descriptors instead of the bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from lance.blob import BlobFile, BlobType

from omnigraph.storage.failures import naming_failures
from omnigraph.storage.scan import ROW_ADDRESS, ROW_ID
from omnigraph.storage.table import Table

BLOB_CELL: Final = BlobType().storage_type
"""A blob by value (`data`) or by reference (`uri`, optionally a range of it), never both."""

_EXTERNAL: Final = 3
"""The kind of descriptor that refers to a file outside of the table."""


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """A schema with the store's blob type in the place of large binary."""
    fields = [
        field.with_type(BlobType()) if pa.types.is_large_binary(field.type) else field
        for field in schema
    ]
    return pa.schema(fields, metadata=schema.metadata)


def is_blob(kind: pa.DataType) -> bool:
    return isinstance(kind, BlobType)


def as_blob_column(column: pa.Array) -> pa.Array:
    """A column of bytes or of blob cells in the form the store takes."""
    if is_blob(column.type):
        return column
    if pa.types.is_large_binary(column.type):
        empty = {field.name: pa.nulls(len(column), field.type) for field in BLOB_CELL}
        column = pa.StructArray.from_arrays(
            list((empty | {"data": column}).values()),
            fields=list(BLOB_CELL),
            mask=column.is_null(),
        )
    return pa.ExtensionArray.from_storage(BlobType(), column.cast(BLOB_CELL))


def read_blob_cells(table: Table, column: str, row_ids: pa.Array) -> pa.Array:
    """The blob cells of rows in the order of their row ids, to be written to other rows.

    Bytes are read; references stay references and are not followed.
    """
    dataset = table.dataset
    with naming_failures("read blobs", table.lineage.uri):
        found = dataset._take_rows(row_ids.to_pylist(), columns=[column, ROW_ID, ROW_ADDRESS])
        place = pc.index_in(row_ids, value_set=found.column(ROW_ID).combine_chunks())
        rows = found.take(place).select([column, ROW_ADDRESS]).to_pylist()
        inside = [r[ROW_ADDRESS] for r in rows if r[column] and r[column]["kind"] != _EXTERNAL]
        payloads = dict(dataset.read_blobs(column, addresses=inside)) if inside else {}
    cells = [
        None if row[column] is None else _cell(row[column], payloads.get(row[ROW_ADDRESS]))
        for row in rows
    ]
    return pa.array(cells, BLOB_CELL)


def _cell(descriptor: dict[str, object], payload: bytes | None) -> dict[str, object]:
    if descriptor["kind"] != _EXTERNAL:
        return {"data": payload}
    whole = descriptor["size"] == 0
    return {
        "uri": descriptor["blob_uri"],
        "position": None if whole else descriptor["position"],
        "size": None if whole else descriptor["size"],
    }


@dataclass(frozen=True, slots=True)
class BlobPlace:
    """Where one blob is: in the table, or at an address outside of it."""

    table: Table
    column: str
    address: int
    uri: str | None

    def open(self) -> OpenBlob:
        """The blob, to be read in parts; an address is followed."""
        where = self.uri or self.table.lineage.uri
        with naming_failures("read a blob", where):
            (found,) = self.table.dataset.take_blobs(self.column, addresses=[self.address])
        assert found is not None, "a place is that of a blob which is there"
        return OpenBlob(where, found.size(), found)


@dataclass(frozen=True, slots=True)
class OpenBlob:
    """A blob that can be read."""

    where: str
    size: int
    _file: BlobFile

    def read(self, offset: int, length: int) -> bytes:
        """A part that lies within the blob."""
        with naming_failures("read a blob", self.where):
            return bytes(self._file.read_range(offset, length))


def find_blob(table: Table, column: str, row_id: int) -> BlobPlace | None:
    """The place of the blob of a row; None where it is null."""
    row = table.take(pa.array([row_id]), [column, ROW_ADDRESS]).to_pylist()[0]
    descriptor = row[column]
    if descriptor is None:
        return None
    uri = descriptor["blob_uri"] if descriptor["kind"] == _EXTERNAL else None
    return BlobPlace(table, column, row[ROW_ADDRESS], uri)
