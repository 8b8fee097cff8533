"""What validation asks about committed rows, answered from one snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import EdgeType, EntityType, Group
from omnigraph.engine.write.columns import property_columns, rows_by_id
from omnigraph.limits import LOOKUP_VALUES
from omnigraph.rows.bindings import bound_schema
from omnigraph.rows.keys import comparable
from omnigraph.storage.filters import In, Or
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot


class SnapshotRows:
    """The committed rows of a snapshot, read as often as needed."""

    def __init__(self, snapshot: Snapshot, tables: TableStore) -> None:
        self._snapshot = snapshot
        self._tables = tables
        self._opened: dict[str, Table] = {}

    def __reduce__(self) -> tuple[type[SnapshotRows], tuple[Snapshot, TableStore]]:
        return SnapshotRows, (self._snapshot, self._tables)

    def existing(self, declared: EntityType, ids: pa.Array) -> pa.Array:
        """Those of the ids that a committed row of the type has."""
        if not len(ids) or not self.has_rows(declared):
            return ids.slice(0, 0)
        return _column(self.open(declared).lookup(ids, ["id"]), "id")

    def owners(
        self, declared: EntityType, group: Group, tuples: pa.Table, without: pa.Array
    ) -> pa.Table:
        """Committed rows that hold one of the tuples and whose id is not in `without`."""
        names = ["id", *(name for name in group if name != "id")]
        if not tuples.num_rows or not self.has_rows(declared):
            return pa.table(
                {n: pa.array([], tuples.schema.field(n).type) for n in group}
            ).append_column("id", pa.array([], pa.utf8()))
        table = self.open(declared)
        stored = property_columns(declared, table.schema)
        first = group[0]
        wanted = few(stored[first], tuples.column(first))
        rows = table.read([stored[name] for name in names], filter=wanted).rename_columns(names)
        rows = rows.filter(pc.invert(pc.is_in(rows.column("id"), value_set=without)))
        # A join compares bits, and the two zeros differ in one.
        for name in group:
            place = rows.schema.get_field_index(name)
            rows = rows.set_column(place, name, comparable(rows.column(name)))
        return rows.join(tuples.select(list(group)), keys=list(group), join_type="left semi")

    def stored(self, declared: EntityType, ids: pa.Array, names: Sequence[str]) -> pa.Table:
        """The committed rows with these ids: the id and the named properties and bindings."""
        wanted = ["id", *names]
        if not len(ids) or not names or not self.has_rows(declared):
            return _select(bound_schema(declared), wanted).empty_table()
        return rows_by_id(declared, self.open(declared), ids, wanted).select(wanted)

    def outgoing(self, edge: EdgeType, sources: pa.Array, without: pa.Array) -> pa.Table:
        """How many committed edges leave each source, not counting those in `without`."""
        if not len(sources) or not self.has_rows(edge):
            return pa.table({"src": pa.array([], pa.utf8()), "count": pa.array([], pa.int64())})
        rows = self.open(edge).read(["id", "src"], filter=few("src", sources))
        left = pc.and_(
            pc.is_in(rows.column("src"), value_set=sources),
            pc.invert(pc.is_in(rows.column("id"), value_set=without)),
        )
        counted = rows.filter(left).group_by("src").aggregate([("id", "count")])
        return counted.select(["src", "id_count"]).rename_columns(["src", "count"])

    def edges_at(self, edge: EdgeType, ends: Mapping[str, pa.Array]) -> pa.Table:
        """Ids and ends of committed edges that have one of these nodes at `src` or `dst`."""
        tests = [test for end, nodes in ends.items() if (test := few(end, nodes)) is not None]
        wanted = Or(tuple(tests)) if len(tests) == len(ends) else None
        rows = self.open(edge).read(["id", "src", "dst"], filter=wanted)
        hit = [pc.is_in(rows.column(end), value_set=nodes) for end, nodes in ends.items()]
        return rows.filter(hit[0] if len(hit) == 1 else pc.or_(*hit))

    def has_rows(self, declared: EntityType) -> bool:
        """Known without opening the table."""
        return self._snapshot.entry(declared.table_key).row_count > 0

    def open(self, declared: EntityType) -> Table:
        """The table of a type, opened once."""
        key = declared.table_key
        if key not in self._opened:
            self._opened[key] = self._snapshot.open(self._tables, key)
        return self._opened[key]


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
