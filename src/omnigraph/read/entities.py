"""Visible rows of one type, single entities and their blobs.

External blobs are read only under the base URIs allowed at that moment.
Tests: tests/behaviour/test_scan.py, test_entities.py, test_blobs.py.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import Catalog, EdgeType, EntityType, Property
from omnigraph.errors import (
    BlobMissing,
    BlobRangeError,
    EntityNotFound,
    ExternalBlobRefused,
    InputError,
    NotABlob,
    UnknownType,
)
from omnigraph.export.json_lines import export_lines
from omnigraph.language.types import Scalar
from omnigraph.limits import BLOB_READ_BYTES
from omnigraph.plan.ir import ID_TYPE
from omnigraph.read.result import public_column, public_type, python_rows, rows_json
from omnigraph.read.stored_filters import stored_filter
from omnigraph.read.view import ReadView
from omnigraph.rows.bindings import bound_schema
from omnigraph.rows.blob_bases import BlobBases
from omnigraph.storage.blobs import BlobPlace, OpenBlob, find_blob
from omnigraph.storage.filters import And, Comparison, Filter, In, bind, matches
from omnigraph.storage.filters.model import bound_columns
from omnigraph.storage.scan import ROW_ID
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot
from omnigraph.versioning.snapshot_rows import property_columns, read_rows, rows_by_id

MIN_ENDPOINT_ROWS: Final = 65_536
"""Edges gathered before their endpoints are looked up, where a view hides nodes: a look-up of many ids
reads all ids of the node type, and batches of the store are small."""


def find_type(catalog: Catalog, name: str) -> EntityType:
    """A node or edge type by its name, or as `node:X` or `edge:X` if both have it.

    Raises `UnknownType`.
    """
    if not isinstance(name, str):
        raise InputError(f"type must be the name of a type, not a {type(name).__name__}")
    found: EntityType | None = catalog.nodes.get(name) or catalog.edges.get(name)
    if found is None and ":" in name:
        found = next((declared for declared in catalog if declared.table_key == name), None)
    if found is None:
        raise UnknownType("node or edge", name, (declared.name for declared in catalog))
    return found


@dataclass(frozen=True, slots=True)
class VisibleRows:
    """The rows of one type in one snapshot that a view shows, under property names.

    `shown` is the type without the properties that the view hides. With `fragments`, only rows of those
    fragments are read.
    """

    snapshot: Snapshot
    tables: TableStore
    shown: EntityType
    view: ReadView
    fragments: Collection[int] | None = None

    def table(self) -> Table | None:
        """The stored table; None when the snapshot has no rows of the type."""
        entry = self.snapshot.entries.get(self.shown.table_key)
        if entry is None or not entry.row_count:
            return None
        return self.snapshot.open(self.tables, self.shown.table_key)

    def read(
        self, names: Sequence[str], wanted: Filter | None, *, with_row_ids: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """The named columns, without blobs, in their public types, then row ids if wanted.

        A property that the stored version lacks is null.
        """
        table = self.table()
        if table is None:
            return
        stored = property_columns(self.shown, table.schema)
        row_ids = [ROW_ID] if with_row_ids else []
        plain = [stored[name] for name in names if name in stored]
        endpoints = (end for end, _ in self._hidden_endpoints())
        read = list(dict.fromkeys([*plain, "id", *endpoints, *row_ids]))
        scanned = table.scan(
            read, self.stored_condition(table, wanted), fragment_ids=self.fragments
        )
        for batch in self.with_visible_endpoints(scanned):
            if batch.num_rows:
                found = [_column(self.shown, name, batch, stored.get(name)) for name in names]
                found += [batch.column(name) for name in row_ids]
                yield pa.RecordBatch.from_arrays(found, names=[*names, *row_ids])

    def stored_condition(self, table: Table, wanted: Filter | None) -> Filter | None:
        """A condition on properties and that of the view, on stored columns."""
        # A view's predicate may use properties that the view hides.
        declared = find_type(self.snapshot.catalog, self.shown.name)
        parts = [part for part in (wanted, self.view.predicate(declared)) if part is not None]
        both = parts[0] if len(parts) == 1 else And(tuple(parts)) if parts else None
        return stored_filter(declared, both, table.schema)

    def _hidden_endpoints(self) -> list[tuple[str, str]]:
        """The endpoint columns of an edge type that may be hidden, each with its node type."""
        if not isinstance(self.shown, EdgeType):
            return []
        ends = (("src", self.shown.from_type), ("dst", self.shown.to_type))
        return [(end, type_name) for end, type_name in ends if type_name in self.view.rows]

    def with_visible_endpoints(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows without the edges of which an endpoint is hidden."""
        ends = self._hidden_endpoints()
        if not ends:
            yield from batches
            return
        for rows in _gathered(batches, MIN_ENDPOINT_ROWS):
            for end, type_name in ends:
                ids = self._visible(type_name, pc.unique(rows.column(end)))
                rows = rows.filter(pc.is_in(rows.column(end), value_set=ids))
            yield from rows.to_batches()

    def _visible(self, type_name: str, ids: pa.Array) -> pa.Array:
        """The ids whose nodes are visible."""
        node = self.snapshot.catalog.nodes[type_name]
        predicate = self.view.predicate(node)
        assert predicate is not None, "only asked of types with a condition"
        bound = bind(predicate, bound_schema(node))
        table = self.snapshot.open(self.tables, node.table_key)
        rows = rows_by_id(node, table, ids, sorted(bound_columns(bound)))
        return rows.filter(matches(bound, rows)).column("id").combine_chunks()


def _column(shown: EntityType, name: str, batch: pa.RecordBatch, stored: str | None) -> pa.Array:
    prop = shown.properties.get(name)
    if prop is None:
        return batch.column(name)
    kind = public_type(prop.type)
    if stored is None:
        return pa.nulls(batch.num_rows, kind)
    found = public_column(batch.column(stored), prop.type)
    return found if found.type == kind else found.cast(kind)


# -- streams ------------------------------------------------------------------------------------


def _gathered(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """The same rows in tables of at least `rows` rows, except for the last."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(part.num_rows for part in waiting) >= rows:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def get_entity(
    snapshot: Snapshot,
    tables: TableStore,
    type_name: str,
    id: str,
    view: ReadView = ReadView.ALL,
) -> dict[str, Any] | None:
    """The visible entity with an id as Python values, or None.

    Keys are `id`, for an edge `src` and `dst`, then the properties. A blob is its bytes, or the URI of an
    external blob. Raises `UnknownType`, or `InputError` for an id that is not text.
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
    blobs = {name: _blob_value(rows, name, found[ROW_ID]) for name in shown.blobs}
    return {name: blobs[name] if name in blobs else found[name] for name in shown.columns}


def _blob_value(rows: VisibleRows, name: str, row_id: int) -> bytes | str | None:
    table, column = rows.table(), rows.shown.properties[name].column
    if table is None or column not in table.schema.names:
        return None
    location = find_blob(table, column, row_id)
    if location is None or location.uri is not None:
        return None if location is None else location.uri
    blob = location.open()
    return blob.read(0, blob.size)


def read_entity(
    snapshot: Snapshot,
    tables: TableStore,
    table_key: str,
    id: str,
    view: ReadView = ReadView.ALL,
) -> dict[str, Any] | None:
    """The entity with an id as an export shows it: `id`, an edge's `src` and `dst`, then properties.

    None if the view shows no such table or id. Properties that the stored version lacks are null.
    """
    by_key = {declared.table_key: declared for declared in view.restrict(snapshot.catalog)}
    declared = by_key.get(table_key)
    if declared is None or table_key not in snapshot.entries:
        return None
    rows = visible_rows(snapshot, tables, declared, view, Comparison("id", "=", id))
    return next(iter(_documents(declared, rows, zoned=False)), None)


def visible_rows(
    snapshot: Snapshot,
    tables: TableStore,
    shown: EntityType,
    view: ReadView,
    wanted: Filter | None = None,
) -> Iterator[pa.RecordBatch]:
    """Visible rows by id under property names, as they are stored: with blobs and bare times."""
    if not view.rows:
        return read_rows(snapshot, tables, shown, _physical(snapshot, tables, shown, wanted))
    rows = VisibleRows(snapshot, tables, shown, view)
    table = rows.table()
    if table is None:
        return iter(())
    batches = read_rows(snapshot, tables, shown, rows.stored_condition(table, wanted))
    return rows.with_visible_endpoints(batches)


def _physical(
    snapshot: Snapshot, tables: TableStore, declared: EntityType, wanted: Filter | None
) -> Filter | None:
    if wanted is None:
        return None
    table = snapshot.open(tables, declared.table_key)
    return stored_filter(declared, wanted, table.schema)


def read_nodes(
    snapshot: Snapshot, tables: TableStore, type_name: str, ids: Sequence[str], view: ReadView
) -> dict[str, dict[str, Any]]:
    """Visible nodes by id, with the properties that a result can show: no blobs and no vectors."""
    shown = view.restrict(snapshot.catalog).nodes[type_name]
    types = {"id": ID_TYPE} | {
        name: prop.type
        for name, prop in shown.properties.items()
        if not prop.type.is_blob and prop.type.scalar is not Scalar.VECTOR
    }
    rows = VisibleRows(snapshot, tables, shown, view)
    found = {}
    for batch in rows.read(list(types), In("id", tuple(ids))):
        table = pa.table(dict(zip(batch.schema.names, batch.columns, strict=True)))
        for row in json.loads(rows_json(table, list(types.values()))):
            found[row["id"]] = row
    return found


def compared_documents(
    declared: EntityType, batches: Iterable[pa.RecordBatch]
) -> list[dict[str, Any]]:
    """Rows as diffs and conflicts show them: as `read_entity`, but with timestamps as in results."""
    return _documents(declared, batches, zoned=True)


def _documents(
    declared: EntityType, batches: Iterable[pa.RecordBatch], *, zoned: bool
) -> list[dict[str, Any]]:
    buffers = export_lines(declared, batches, zoned=zoned)
    lines = b"".join(buffer.to_pybytes() for buffer in buffers).splitlines()
    return [_document(declared, json.loads(line)) for line in lines]


def _document(declared: EntityType, record: dict[str, Any]) -> dict[str, Any]:
    data: dict[str, Any] = record["data"]
    if not isinstance(declared, EdgeType):
        return data
    return {"id": data.pop("id"), "src": record["from"], "dst": record["to"], **data}


@dataclass(frozen=True, slots=True, repr=False)
class Blob:
    """One blob of a snapshot. Its bytes are read on demand; `uri` is set if it is external."""

    size: int
    uri: str | None
    _stored: OpenBlob

    def __repr__(self) -> str:
        return f"<Blob of {self.size:,} bytes{'' if self.uri is None else f' at {self.uri}'}>"

    def read(self, offset: int = 0, length: int | None = None) -> bytes:
        """Bytes from an offset, up to a length or the end. Raises `BlobRangeError`."""
        return b"".join(self.parts(offset, length))

    def parts(self, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
        """As `read`, some megabytes at a time."""
        if offset < 0 or (length is not None and length < 0):
            raise InputError("offset and length must not be negative")
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
    found = locate_blob(snapshot, tables, type_name, id, property, view=view)
    return _opened(found.place, property)


@dataclass(frozen=True, slots=True, repr=False)
class BlobLocation:
    """Where a blob is; nothing of it was read. `version` identifies the stored table version."""

    place: BlobPlace
    version: str

    @property
    def uri(self) -> str | None:
        """The address of an external blob."""
        return self.place.uri

    def open(self) -> Blob:
        """A blob of the graph itself. An external one is opened by `open_blob` only."""
        stored = self.place.open()
        return Blob(stored.size, None, stored)


def locate_blob(
    snapshot: Snapshot,
    tables: TableStore,
    type_name: str,
    id: str,
    property: str,
    *,
    view: ReadView = ReadView.ALL,
) -> BlobLocation:
    """The location of the blob of one node or edge.

    Raises `UnknownType`, `NotABlob`, `EntityNotFound` or `BlobMissing`.
    """
    declared = _blob_type(view.restrict(snapshot.catalog), type_name, property)
    if not view.sees_all and get_entity(snapshot, tables, type_name, id, view) is None:
        raise EntityNotFound(type_name, id)
    table = snapshot.open(tables, declared.table_key)
    rows = table.lookup(pa.array([id]), [ROW_ID]).column(ROW_ID).to_pylist()
    if not rows:
        raise EntityNotFound(type_name, id)
    column = declared.properties[property].column
    place = find_blob(table, column, rows[0]) if column in table.schema.names else None
    if place is None:
        raise BlobMissing(type_name, id, property)
    entry = snapshot.entry(declared.table_key)
    version = f"{entry.location}@{entry.branch or ''}#{entry.version}.{rows[0]}"
    return BlobLocation(place, version)


def blob_of_row(table: Table, property: Property, row_id: int) -> Blob | None:
    """The blob of a row; None if it is null. Raises `ExternalBlobRefused`."""
    column = property.column
    place = find_blob(table, column, row_id) if column in table.schema.names else None
    return None if place is None else _opened(place, property.name)


def _opened(place: BlobPlace, property: str) -> Blob:
    uri = place.uri
    if uri is not None and not BlobBases.from_environment().allow_reading(uri):
        raise ExternalBlobRefused(property, uri)
    stored = place.open()
    return Blob(stored.size, uri, stored)


def _blob_type(catalog: Catalog, type_name: str, property: str) -> EntityType:
    declared = catalog.nodes.get(type_name) or catalog.edges.get(type_name)
    if declared is None:
        raise UnknownType("node", type_name, (found.name for found in catalog))
    if property not in declared.blobs:
        raise NotABlob(type_name, property, declared.blobs)
    return declared
