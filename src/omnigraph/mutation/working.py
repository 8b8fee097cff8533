"""The working image: committed rows of a snapshot under what the statements so far did.

An id with a pending row or a pending deletion hides the committed row of that id. Predicates are
evaluated by the store on committed rows and in memory on pending ones, with the same meaning. An
`Overlay` holds these for one table: rows to write by id, and ids to remove.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import Catalog, EdgeType, EntityType, Group
from omnigraph.commit.change import SeenRows
from omnigraph.read.row_values import RowCondition
from omnigraph.read.stored_filters import stored_filter
from omnigraph.rows.bindings import bound_schema
from omnigraph.storage.delta import ROW_ADDRESS_COLUMNS
from omnigraph.storage.filters import And, Filter, In, Or, bind, matches
from omnigraph.storage.scan import ROW_ID
from omnigraph.storage.table import Table
from omnigraph.versioning.snapshot_rows import SnapshotRows, carried_blobs, few, rows_by_id


class Overlay:
    """The pending rows and deletions of one table. An id is in at most one of the two."""

    def __init__(self, schema: pa.Schema) -> None:
        self._pieces: list[pa.Table] = [schema.empty_table()]
        self._length = 0
        self._place: dict[str, int] = {}
        """Id to its row number in the concatenated batches; replaced rows have none."""
        self._made: set[str] = set()
        self._deleted: dict[str, None] = {}

    # -- what there is ----------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        return not self._place and not self._deleted

    @property
    def only_adds(self) -> bool:
        """Whether all it holds are new rows under ids that were made for them."""
        return not self._deleted and self._place.keys() <= self._made

    def __contains__(self, id: str) -> bool:
        return id in self._place

    def has_deleted(self, id: str) -> bool:
        return id in self._deleted

    def was_made(self, id: str) -> bool:
        """Whether the id was made by this query, so that no committed row has it."""
        return id in self._made

    def rows(self) -> pa.Table:
        """The pending rows."""
        if len(self._pieces) > 1 or len(self._place) < self._length:
            rows = pa.concat_tables(self._pieces)
            if len(self._place) < self._length:
                places = np.fromiter(self._place.values(), np.int64, len(self._place))
                places.sort()
                rows = rows.take(pa.array(places))
            rows = rows.combine_chunks()
            self._pieces, self._length = [rows], rows.num_rows
            self._place = dict(zip(_texts(rows.column("id")), range(self._length), strict=True))
        return self._pieces[0]

    def deletions(self) -> pa.Array:
        return pa.array(list(self._deleted), pa.utf8())

    def hidden(self) -> pa.Array:
        """The ids whose committed rows no longer count."""
        return pa.array([*self._place, *self._deleted], pa.utf8())

    def without_hidden(self, rows: pa.Table) -> pa.Table:
        """Committed rows that still count."""
        if self.is_empty or not rows.num_rows:
            return rows
        return rows.filter(pc.invert(pc.is_in(rows.column("id"), value_set=self.hidden())))

    # -- changing it ------------------------------------------------------------------------

    def put(self, rows: pa.Table, *, made: bool) -> None:
        """Add rows, or replace those with the same ids. `made` ids are new to the graph."""
        ids = _texts(rows.column("id"))
        self._pieces.append(rows)
        self._place.update(zip(ids, range(self._length, self._length + len(ids)), strict=True))
        self._length += len(ids)
        if made:
            self._made.update(ids)
        if self._deleted:
            for id in ids:
                self._deleted.pop(id, None)

    def drop(self, ids: Iterable[str]) -> None:
        """Forget pending rows."""
        for id in ids:
            self._place.pop(id, None)

    def delete(self, ids: Iterable[str]) -> None:
        """Mark committed rows as deleted."""
        self._deleted.update(dict.fromkeys(ids))


def _texts(column: pa.ChunkedArray) -> list[str]:
    texts: list[str] = column.to_pylist()
    return texts


@dataclass(frozen=True, slots=True)
class Found:
    """Visible rows a statement is about, by where they are; both have the same columns."""

    committed: pa.Table
    pending: pa.Table

    @property
    def count(self) -> int:
        return int(self.committed.num_rows + self.pending.num_rows)

    def select(self, columns: Sequence[str]) -> Found:
        return Found(self.committed.select(columns), self.pending.select(columns))

    def only(self, ids: pa.Array) -> Found:
        """The rows with one of these ids."""
        return Found(*(part.filter(pc.is_in(part.column("id"), value_set=ids)) for part in self))

    def __iter__(self) -> Iterator[pa.Table]:
        yield self.committed
        yield self.pending

    def rows(self) -> pa.Table:
        if not self.pending.num_rows:
            return self.committed
        if not self.committed.num_rows:
            return self.pending
        return pa.concat_tables([self.committed, self.pending])


class WorkingTable:
    """One table as the statements so far have left it, under property names.

    Bindings of vectors travel with the rows in columns of their own.
    """

    def __init__(self, declared: EntityType, committed: SnapshotRows) -> None:
        self.declared = declared
        self.schema = bound_schema(declared)
        self.overlay = Overlay(self.schema)
        self._committed = committed
        self._seen: list[pa.Table] = []

    # -- questions --------------------------------------------------------------------------

    def matching(self, condition: RowCondition, columns: Sequence[str]) -> Found:
        """The rows that meet a condition, with the named columns."""
        if condition.is_never_met:
            none = self.schema.empty_table().select(columns)
            return Found(none, none)
        if condition.ids is None:
            self._committed.note_scan(self.declared)
        else:
            self._committed.note_ids(self.declared, pa.array(condition.ids, pa.utf8()))
        pending = self.overlay.rows()
        if pending.num_rows and condition.predicate is not None:
            pending = pending.filter(matches(bind(condition.predicate, self.schema), pending))
        needed = list(dict.fromkeys([*columns, *condition.columns]))
        table = self._table()
        schema = self.schema if table is None else table.schema
        wanted = stored_filter(self.declared, condition.predicate, schema)
        committed = self._read(wanted, needed, noting=condition.ids is not None)
        return Found(
            condition.keep(committed).select(columns), condition.keep(pending).select(columns)
        )

    def with_ends_in(self, ends: Sequence[str], nodes: pa.Array) -> Found:
        """The edges that have one of the nodes at one of the named ends, ids only."""
        values = few("src", nodes)
        if values is None:
            committed = self._scan(None, ["id", *ends])
            committed = committed.filter(_any_in(committed, ends, nodes)).select(["id"])
        else:
            committed = self._scan(Or(tuple(In(end, values.values) for end in ends)), ["id"])
        pending = self.overlay.rows()
        pending = pending.filter(_any_in(pending, ends, nodes)).select(["id"])
        return Found(committed, pending)

    def with_ids(self, ids: pa.Array, columns: Sequence[str]) -> pa.Table:
        """The rows that have the ids, with the id and the named columns."""
        return self.found(ids, columns).rows()

    def found(self, ids: pa.Array, columns: Sequence[str]) -> Found:
        """The same, by where they are."""
        names = ["id", *columns]
        pending = self.overlay.rows()
        pending = pending.filter(pc.is_in(pending.column("id"), value_set=ids)).select(names)
        others = ids.filter(pc.invert(pc.is_in(ids, value_set=self.overlay.hidden())))
        self._committed.note_ids(self.declared, others)
        table = self._table() if len(others) else None
        if table is None:
            return Found(pending.slice(0, 0), pending)
        found = rows_by_id(self.declared, table, others, columns)
        self._seen.append(found.select(list(ROW_ADDRESS_COLUMNS)))
        return Found(found.select(names).cast(pending.schema), pending)

    def visible(self) -> pa.Table:
        """All rows, with all columns."""
        names = self.schema.names
        return pa.concat_tables([self._scan(None, names), self.overlay.rows().select(names)])

    def note_read(self) -> None:
        """Note that any committed row may be read."""
        self._committed.note_scan(self.declared)

    def missing(self, ids: Sequence[str]) -> set[str]:
        """Those of the ids that no row has."""
        unknown = [id for id in ids if id not in self.overlay]
        asked = [id for id in dict.fromkeys(unknown) if not self.overlay.has_deleted(id)]
        return set(unknown) - self._existing(asked)

    def count_by_source(self, sources: Sequence[str]) -> dict[str, int]:
        """How many edges leave each source."""
        assert isinstance(self.declared, EdgeType)
        wanted = pa.array(list(dict.fromkeys(sources)), pa.utf8())
        outgoing = self._committed.outgoing(self.declared, wanted, self.overlay.hidden())
        counts = dict.fromkeys(wanted.to_pylist(), 0)
        counts.update(zip(*(column.to_pylist() for column in outgoing.columns), strict=True))
        pending = self.overlay.rows().column("src")
        mine = pc.value_counts(pending.filter(pc.is_in(pending, value_set=wanted)))
        for source, count in zip(*(part.to_pylist() for part in mine.flatten()), strict=True):
            counts[source] += count
        return counts

    def holders(self, group: Group, tuples: pa.Table) -> pa.Table:
        """Rows, as id and group, among which are all that hold one of the tuples."""
        columns = ["id", *group]
        tests = []
        for name in group:
            column = self._column(name)
            if column is not None and (test := few(column, tuples.column(name))):
                tests.append(test)
        committed = self._scan(And(tuple(tests)) if tests else None, columns)
        return pa.concat_tables([committed, self.overlay.rows().select(columns)])

    # -- changes ----------------------------------------------------------------------------

    def put(self, rows: pa.Table, *, made: bool = False) -> None:
        self.overlay.put(rows, made=made)

    def remove(self, found: Found) -> None:
        """Take rows away. One that only this query has put there leaves no trace."""
        self.overlay.delete(found.committed.column("id").to_pylist())
        pending: list[str] = found.pending.column("id").to_pylist()
        self.overlay.drop(pending)
        replaced = [id for id in pending if not self.overlay.was_made(id)]
        self.overlay.delete(self._existing(replaced))

    # -- committed rows ---------------------------------------------------------------------

    def _column(self, name: str) -> str | None:
        """Where a table version that has rows keeps a property."""
        prop = self.declared.properties.get(name)
        column = name if prop is None else prop.column
        table = self._table()
        return column if table is not None and table.schema.get_field_index(column) >= 0 else None

    def _table(self) -> Table | None:
        if not self._committed.has_rows(self.declared):
            return None
        return self._committed.peek(self.declared)

    def _existing(self, ids: Sequence[str]) -> set[str]:
        if not ids:
            return set()
        found = self._committed.existing(self.declared, pa.array(ids, pa.utf8()))
        return set(found.to_pylist())

    def seen(self) -> SeenRows | None:
        """Where the rows are that were found by their ids."""
        if not self._seen:
            return None
        table = self._committed.peek(self.declared)
        places = pa.concat_tables(self._seen).group_by(list(ROW_ADDRESS_COLUMNS)).aggregate([])
        return SeenRows(table.version, table.branch, places)

    def _scan(self, wanted: Filter | None, columns: Sequence[str]) -> pa.Table:
        """Committed rows that no pending change hides."""
        self._committed.note_scan(self.declared)
        return self._read(wanted, columns)

    def _read(
        self, wanted: Filter | None, columns: Sequence[str], *, noting: bool = False
    ) -> pa.Table:
        """The same for a caller that notes what it reads; with `noting`, their places are kept."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        table = self._table()
        if table is None:
            return schema.empty_table()
        blobs = [name for name in columns if name in self.declared.blobs]
        stored = {name: self._column(name) for name in columns if name not in blobs}
        kept = list(dict.fromkeys(column for column in ("id", *stored.values()) if column))
        extra = ROW_ADDRESS_COLUMNS[1:] if noting else (ROW_ID,) if blobs else ()
        rows = table.read([*kept, *extra], wanted)
        if noting:
            self._seen.append(rows.select(list(ROW_ADDRESS_COLUMNS)))
        rows = self.overlay.without_hidden(rows)
        found = []
        for field in schema:
            column = self._column(field.name)
            if column is None:
                found.append(pa.nulls(rows.num_rows, field.type))
            elif field.name in blobs:
                row_ids = rows.column(ROW_ID).combine_chunks()
                found.append(carried_blobs(table, column, row_ids))
            else:
                found.append(rows.column(column).cast(field.type))
        return pa.Table.from_arrays(found, schema=schema)


class WorkingImage:
    """The tables a mutation has asked for so far."""

    def __init__(self, catalog: Catalog, committed: SnapshotRows) -> None:
        self.catalog = catalog
        self.committed = committed
        self._tables: dict[str, WorkingTable] = {}

    def __getitem__(self, declared: EntityType) -> WorkingTable:
        key = declared.table_key
        if key not in self._tables:
            self._tables[key] = WorkingTable(declared, self.committed)
        return self._tables[key]

    def __iter__(self) -> Iterator[WorkingTable]:
        """By table key."""
        return (self._tables[key] for key in sorted(self._tables))


def _any_in(rows: pa.Table, columns: Sequence[str], values: pa.Array) -> pa.ChunkedArray:
    found = pc.is_in(rows.column(columns[0]), value_set=values)
    for column in columns[1:]:
        found = pc.or_(found, pc.is_in(rows.column(column), value_set=values))
    return found
