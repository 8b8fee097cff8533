"""The committed rows of a snapshot under property names, and rows as tables store them.

One place maps property names to stored columns, for reads, writes, merges and exports alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import EdgeType, EntityType, Group
from omnigraph.limits import BLOB_ROWS, LOOKUP_VALUES, SMALL_WRITE_ROWS
from omnigraph.rows.bindings import bound_schema
from omnigraph.rows.columns import BLOB, row_type
from omnigraph.rows.keys import comparable
from omnigraph.storage.blobs import read_blob_cells
from omnigraph.storage.delta import ROW_ADDRESS_COLUMNS
from omnigraph.storage.filters import Filter, In, Or
from omnigraph.storage.ordered import scan_by_id
from omnigraph.storage.scan import ROW_ID, in_portions
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot


def stored_rows(declared: EntityType, rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows as a table's columns; columns that the rows do not have are null."""
    names = {p.column: p.name for p in declared.properties.values()}
    # Asking Arrow for all names takes as long as there are columns.
    present = set(rows.column_names)
    columns = []
    for field in schema:
        name = names.get(field.name, field.name)
        if name in present:
            columns.append(rows.column(name))
        else:
            columns.append(pa.nulls(rows.num_rows, field.type))
    return pa.table(columns, names=schema.names)


def property_columns(declared: EntityType, schema: pa.Schema) -> dict[str, str]:
    """Logical column to stored column, for those a table version has."""
    logical = {name: name for name in declared.columns if name in ("id", "src", "dst")}
    logical |= {p.name: p.column for p in declared.properties.values()}
    present = set(schema.names)
    return {name: column for name, column in logical.items() if column in present}


def rows_by_id(declared: EntityType, table: Table, ids: pa.Array, names: Sequence[str]) -> pa.Table:
    """The stored rows with the given distinct ids, in no order, with their row addresses.

    `names` are properties and bindings. What the table version does not have is null.
    """
    schema = bound_schema(declared)
    stored = property_columns(declared, table.schema)
    present = set(table.schema.names)
    stored |= {name: name for name in schema.names if name in present}
    wanted = [name for name in names if name not in ROW_ADDRESS_COLUMNS]
    plain = [name for name in wanted if name in stored and name not in declared.blobs]
    rows = table.lookup(ids, [*ROW_ADDRESS_COLUMNS, *(stored[name] for name in plain)])
    found = rows.select(list(ROW_ADDRESS_COLUMNS))
    for name in wanted:
        kind = schema.field(name).type
        if name in plain:
            column = rows.column(stored[name]).cast(kind)
        elif name in stored:
            column = carried_blobs(table, stored[name], rows.column(ROW_ID).combine_chunks())
        else:
            column = pa.nulls(rows.num_rows, kind)
        found = found.append_column(name, column)
    return found


def carried_blobs(table: Table, column: str, row_ids: pa.Array) -> pa.Array:
    """The stored blobs of rows as rows carry them: the bytes, or the reference as it is."""
    cells = read_blob_cells(table, column, row_ids)
    storage = cells.storage if isinstance(cells, pa.ExtensionArray) else cells
    parts = [storage.field(field.name).cast(field.type) for field in BLOB]
    return pa.StructArray.from_arrays(parts, fields=list(BLOB), mask=storage.is_null())


class SnapshotRows:
    """The committed rows of a snapshot, read as often as needed.

    It notes what is read: certain ids of a table, or the table as a whole.
    """

    def __init__(self, snapshot: Snapshot, tables: TableStore) -> None:
        self._snapshot = snapshot
        self._tables = tables
        self._opened: dict[str, Table] = {}
        self._looked_up: dict[str, set[str]] = {}
        self._scanned: set[str] = set()

    def __reduce__(self) -> tuple[type[SnapshotRows], tuple[Snapshot, TableStore]]:
        return SnapshotRows, (self._snapshot, self._tables)

    def existing(self, declared: EntityType, ids: pa.Array) -> pa.Array:
        """Those of the ids that a committed row of the type has."""
        self.note_ids(declared, ids)
        if not len(ids) or not self.has_rows(declared):
            return ids.slice(0, 0)
        return _column(self.peek(declared).lookup(ids, ["id"]), "id")

    def owners(
        self, declared: EntityType, group: Group, tuples: pa.Table, without: pa.Array
    ) -> pa.Table:
        """Committed rows that hold one of the tuples and whose id is not in `without`."""
        self.note_scan(declared)
        names = ["id", *(name for name in group if name != "id")]
        if not tuples.num_rows or not self.has_rows(declared):
            return pa.table(
                {n: pa.array([], tuples.schema.field(n).type) for n in group}
            ).append_column("id", pa.array([], pa.utf8()))
        table = self.open(declared)
        stored = property_columns(declared, table.schema)
        first = group[0]
        wanted = few(stored[first], tuples.column(first))
        columns = [stored[name] for name in names]
        held = [table.schema.empty_table().select(columns)]
        owners = [
            _owners(rows.rename_columns(names), group, tuples, without)
            for rows in chain(held, in_portions(table.scan(columns, wanted)))
        ]
        return pa.concat_tables(owners)

    def stored(self, declared: EntityType, ids: pa.Array, names: Sequence[str]) -> pa.Table:
        """The committed rows with these ids: the id and the named properties and bindings."""
        self.note_ids(declared, ids)
        wanted = ["id", *names]
        if not len(ids) or not names or not self.has_rows(declared):
            return _select(bound_schema(declared), wanted).empty_table()
        return rows_by_id(declared, self.peek(declared), ids, wanted).select(wanted)

    def outgoing(self, edge: EdgeType, sources: pa.Array, without: pa.Array) -> pa.Table:
        """How many committed edges leave each source, not counting those in `without`."""
        self.note_scan(edge)
        if not len(sources) or not self.has_rows(edge):
            return pa.table({"src": pa.array([], pa.utf8()), "count": pa.array([], pa.int64())})
        found = [pa.array([], pa.utf8())]
        for rows in in_portions(self.open(edge).scan(["id", "src"], few("src", sources))):
            left = pc.and_(
                pc.is_in(rows.column("src"), value_set=sources),
                pc.invert(pc.is_in(rows.column("id"), value_set=without)),
            )
            found.append(rows.column("src").filter(left).combine_chunks())
        counted = pc.value_counts(pa.concat_arrays(found))
        return pa.table({"src": counted.field("values"), "count": counted.field("counts")})

    def leaving(self, edge: EdgeType, sources: pa.Array, without: pa.Array) -> pa.Array:
        """The ids of committed edges that leave one of the sources, but for those in `without`."""
        if not len(sources) or not self.has_rows(edge):
            return sources.slice(0, 0)
        ids = _column(self.edges_at(edge, {"src": sources}), "id")
        return ids.filter(pc.invert(pc.is_in(ids, value_set=without)))

    def edges_at(self, edge: EdgeType, endpoints: Mapping[str, pa.Array]) -> pa.Table:
        """Ids and endpoints of committed edges that have one of these nodes at `src` or `dst`."""
        tests = [test for end, nodes in endpoints.items() if (test := few(end, nodes)) is not None]
        wanted = Or(tuple(tests)) if len(tests) == len(endpoints) else None
        rows = self.open(edge).read(["id", "src", "dst"], filter=wanted)
        hit = [pc.is_in(rows.column(end), value_set=nodes) for end, nodes in endpoints.items()]
        return rows.filter(hit[0] if len(hit) == 1 else pc.or_(*hit))

    def has_rows(self, declared: EntityType) -> bool:
        """Known without opening the table."""
        return self._snapshot.entry(declared.table_key).row_count > 0

    def open(self, declared: EntityType) -> Table:
        """The table of a type, opened once, to read any of its rows."""
        self.note_scan(declared)
        return self.peek(declared)

    def peek(self, declared: EntityType) -> Table:
        """The same for a caller that notes what it reads."""
        key = declared.table_key
        if key not in self._opened:
            self._opened[key] = self._snapshot.open(self._tables, key)
        return self._opened[key]

    # -- what was read ----------------------------------------------------------------------

    def note_ids(self, declared: EntityType, ids: pa.Array | pa.ChunkedArray) -> None:
        """Note that rows are looked up by id, be they there or not."""
        if len(ids) > SMALL_WRITE_ROWS:
            self.note_scan(declared)
        else:
            self._looked_up.setdefault(declared.table_key, set()).update(ids.to_pylist())

    def note_scan(self, declared: EntityType) -> None:
        """Note that any row of a table may have been read."""
        self._scanned.add(declared.table_key)

    def was_read(self, declared: EntityType) -> bool:
        return declared.table_key in self._scanned or declared.table_key in self._looked_up

    def looked_up(self, table_keys: Iterable[str]) -> dict[str, frozenset[str]]:
        """The ids that were looked up in each of these tables, unless it was read otherwise."""
        return {
            key: frozenset(self._looked_up.get(key, ()))
            for key in table_keys
            if key not in self._scanned
        }


def _owners(rows: pa.Table, group: Group, tuples: pa.Table, without: pa.Array) -> pa.Table:
    """The rows that have one of the tuples, but for those with an id in `without`."""
    rows = rows.filter(pc.invert(pc.is_in(rows.column("id"), value_set=without)))
    # A join compares bits, and the two zeros differ in one.
    for name in group:
        column = rows.schema.get_field_index(name)
        rows = rows.set_column(column, name, comparable(rows.column(name)))
    return rows.join(tuples.select(list(group)), keys=list(group), join_type="left semi")


def _select(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    return pa.schema([schema.field(name) for name in names])


def few(column: str, values: pa.Array | pa.ChunkedArray) -> In | None:
    """A filter the store can look up when it is short; beyond that a scan is cheaper."""
    distinct = pc.unique(values)
    if len(distinct) > LOOKUP_VALUES:
        return None
    if pa.types.is_date(distinct.type):
        # Python's dates end at the year 9999 and have no time of day.
        is_day = pa.types.is_date32(distinct.type)
        distinct = distinct.view(pa.int32() if is_day else pa.int64())
    return In(column, tuple(distinct.to_pylist()))


def _column(table: pa.Table, name: str) -> pa.Array:
    return table.column(name).combine_chunks()


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
    """The same rows, at most `size` in a batch."""
    for batch in batches:
        for start in range(0, batch.num_rows, size):
            yield batch.slice(start, size)
