"""The bytes of a blob, whole or in parts.

Blobs kept outside of the graph are followed only under the bases that are allowed at the moment of
reading. Tests: tests/behaviour/test_blobs.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.catalog.model import Catalog, EntityType, Property
from omnigraph.engine.read.view import ReadView
from omnigraph.errors import (
    BlobMissing,
    BlobRangeError,
    EntityNotFound,
    ExternalBlobRefused,
    InputError,
    NotABlob,
    UnknownType,
)
from omnigraph.limits import BLOB_READ_BYTES
from omnigraph.rows.blob_bases import BlobBases
from omnigraph.storage.blobs import OpenBlob, find_blob
from omnigraph.storage.scan import ROW_ID
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot


@dataclass(frozen=True, slots=True, repr=False)
class Blob:
    """One blob of a snapshot. Its bytes are read when they are asked for."""

    size: int
    uri: str | None
    """Where the bytes are, if that is outside of the graph."""
    _stored: OpenBlob

    def __repr__(self) -> str:
        return f"<Blob of {self.size:,} bytes{'' if self.uri is None else f' at {self.uri}'}>"

    def read(self, offset: int = 0, length: int | None = None) -> bytes:
        """Bytes from an offset on, up to a length or the end. Raises `BlobRangeError`."""
        return b"".join(self.parts(offset, length))

    def parts(self, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
        """The same, some megabytes at a time."""
        if offset < 0 or (length is not None and length < 0):
            raise InputError("the offset and the length of a part of a blob are not negative")
        if offset > self.size:
            raise BlobRangeError(offset, self.size)
        end = self.size if length is None else min(self.size, offset + length)
        for start in range(offset, end, BLOB_READ_BYTES):
            yield self._stored.read(start, min(BLOB_READ_BYTES, end - start))


def open_blob(
    snapshot: Snapshot,
    tables: TableStore,
    type_name: str,
    id: str,
    property: str,
    *,
    view: ReadView = ReadView.ALL,
) -> Blob:
    """The blob of one node or edge.

    Raises `UnknownType`, `NotABlob`, `EntityNotFound`, `BlobMissing` or `ExternalBlobRefused`.
    """
    declared = _blob_type(view.restrict(snapshot.catalog), type_name, property)
    if not view.sees_all:
        from omnigraph.engine.entities import get_entity

        if get_entity(snapshot, tables, type_name, id, view) is None:
            raise EntityNotFound(type_name, id)
    table = snapshot.open(tables, declared.table_key)
    rows = table.lookup(pa.array([id]), [ROW_ID]).column(ROW_ID).to_pylist()
    if not rows:
        raise EntityNotFound(type_name, id)
    blob = blob_of_row(table, declared.properties[property], rows[0])
    if blob is None:
        raise BlobMissing(type_name, id, property)
    return blob


def blob_of_row(table: Table, property: Property, row_id: int) -> Blob | None:
    """The blob of a row; None where it is null. Raises `ExternalBlobRefused`."""
    column = property.column
    place = find_blob(table, column, row_id) if column in table.schema.names else None
    if place is None:
        return None
    if place.uri is not None and not BlobBases.from_environment().allow_reading(place.uri):
        raise ExternalBlobRefused(property.name, place.uri)
    stored = place.open()
    return Blob(stored.size, place.uri, stored)


def _blob_type(catalog: Catalog, type_name: str, property: str) -> EntityType:
    declared = catalog.nodes.get(type_name) or catalog.edges.get(type_name)
    if declared is None:
        raise UnknownType("node", type_name, (found.name for found in catalog))
    if property not in declared.blobs:
        raise NotABlob(type_name, property, declared.blobs)
    return declared
