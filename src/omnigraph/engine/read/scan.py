"""The rows of one type as a stream of Arrow batches: chosen columns, a condition, a reader's view.

A condition has the language, the checks and the meaning of `where` in mutations, and is pushed down
to the table. Rows come in the order in which they are stored. Tests: tests/behaviour/test_scan.py.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import time_ns
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import Catalog, EdgeType, EntityType
from omnigraph.engine.blobs import blob_of_row
from omnigraph.engine.export.rows import in_parts
from omnigraph.engine.python_values import public_column, public_type
from omnigraph.engine.read.budget import CancelToken, QueryBudget
from omnigraph.engine.read.stored import condition_filter, id_filter, stored_filter
from omnigraph.engine.read.view import ReadView
from omnigraph.engine.write.columns import carried_blobs, property_columns, rows_by_id
from omnigraph.errors import InputError, ParameterError, UnknownColumn, UnknownType
from omnigraph.language.query.parse import parse_condition
from omnigraph.language.span import Source
from omnigraph.limits import BLOB_ROWS
from omnigraph.plan.check_mutation import check_condition
from omnigraph.plan.ir import NOW_PARAMETER
from omnigraph.plan.params import bind_host_values
from omnigraph.rows.bindings import bound_schema
from omnigraph.storage.filters import And, Filter, bind, matches
from omnigraph.storage.filters.model import bound_columns
from omnigraph.storage.scan import ROW_ID
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot

_UNLIMITED: Final = QueryBudget(sys.maxsize, sys.maxsize, math.inf)

MIN_ENDPOINT_ROWS: Final = 65_536
"""Edges whose endpoints are looked up at a time, where a view hides nodes: a look-up of many ids
reads all ids of the node type, and batches of the store are small."""


def scan_type(
    snapshot: Snapshot,
    tables: TableStore,
    type_name: str,
    *,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    params: Mapping[str, object] | None = None,
    view: ReadView = ReadView.ALL,
    budget: QueryBudget | None = None,
    cancel: CancelToken | None = None,
) -> pa.RecordBatchReader:
    """Stream the rows of a node or edge type. Arguments are checked now, rows are read on demand.

    Columns are `id`, for an edge `src` and `dst`, and the properties; `columns` chooses among them.
    Blobs come only when they are named, as their bytes. `where` is a condition as in a mutation; its
    parameters take their types from the properties they are compared with, and all of them must be
    in `params`. Without a budget the scan is not limited. Its time is that of reading, without the time
    between two batches. `cancel` ends the reading from another thread.

    Raises `UnknownType`, `UnknownColumn`, `LanguageError`, `ParameterError` or `InputError`, and
    `QueryBudgetExceeded` or `QueryCancelled` while rows are read.
    """
    shown = find_type(view.restrict(snapshot.catalog), type_name)
    names = _chosen_columns(shown, columns)
    wanted = _where_filter(shown, where, params)
    rows = VisibleRows(snapshot, tables, shown, view)
    batches = _with_blobs(rows, names, wanted)
    if budget is not None or cancel is not None:
        batches = _metered(batches, budget or _UNLIMITED, cancel)
    return pa.RecordBatchReader.from_batches(_schema(shown, names), batches)


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

    `shown` is the type without the properties that the view hides.
    """

    snapshot: Snapshot
    tables: TableStore
    shown: EntityType
    view: ReadView

    def table(self) -> Table | None:
        """The stored table; None when the snapshot has no rows of the type."""
        entry = self.snapshot.entries.get(self.shown.table_key)
        if entry is None or not entry.row_count:
            return None
        return self.snapshot.open(self.tables, self.shown.table_key)

    def read(
        self, names: Sequence[str], wanted: Filter | None, *, with_row_ids: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """The named columns, no blobs among them, in their public types, then row ids if wanted.

        A property that the stored version does not have yet is null.
        """
        table = self.table()
        if table is None:
            return
        stored = property_columns(self.shown, table.schema)
        plain = [stored[name] for name in names if name in stored]
        extra = [
            "id",
            *(end for end, _ in self._hiding_ends()),
            *([ROW_ID] if with_row_ids else []),
        ]
        read = list(dict.fromkeys([*plain, *extra]))
        for batch in self._with_visible_ends(table.scan(read, self._filter(table, wanted))):
            found = [_column(self.shown, name, batch, stored.get(name)) for name in names]
            if with_row_ids:
                found.append(batch.column(ROW_ID))
            if batch.num_rows:
                yield pa.RecordBatch.from_arrays(
                    found, names=[*names, *([ROW_ID] if with_row_ids else [])]
                )

    def _filter(self, table: Table, wanted: Filter | None) -> Filter | None:
        # The predicate of a view may ask for properties which that view hides.
        declared = find_type(self.snapshot.catalog, self.shown.name)
        parts = [part for part in (wanted, self.view.rows.get(declared.name)) if part is not None]
        both = parts[0] if len(parts) == 1 else And(tuple(parts)) if parts else None
        return stored_filter(declared, both, table.schema)

    def _hiding_ends(self) -> list[tuple[str, str]]:
        """The endpoints of an edge type that may be out of view, each with its node type."""
        if not isinstance(self.shown, EdgeType):
            return []
        ends = (("src", self.shown.from_type), ("dst", self.shown.to_type))
        return [(end, type_name) for end, type_name in ends if type_name in self.view.rows]

    def _with_visible_ends(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ends = self._hiding_ends()
        if not ends:
            yield from batches
            return
        for rows in _gathered(batches, MIN_ENDPOINT_ROWS):
            for end, type_name in ends:
                ids = self._visible(type_name, pc.unique(rows.column(end)))
                rows = rows.filter(pc.is_in(rows.column(end), value_set=ids))
            yield from rows.to_batches()

    def _visible(self, type_name: str, ids: pa.Array) -> pa.Array:
        """Those of the ids whose nodes the view shows."""
        node = self.snapshot.catalog.nodes[type_name]
        bound = bind(self.view.rows[type_name], bound_schema(node))
        table = self.snapshot.open(self.tables, node.table_key)
        rows = rows_by_id(node, table, ids, sorted(bound_columns(bound)))
        return rows.filter(matches(bound, rows)).column("id").combine_chunks()


# -- arguments ----------------------------------------------------------------------------------


def _chosen_columns(shown: EntityType, columns: Sequence[str] | None) -> list[str]:
    if columns is None:
        return [name for name in shown.columns if name not in shown.blobs]
    if isinstance(columns, str) or not isinstance(columns, Collection):
        raise InputError(f"columns must be a list of column names, not {columns!r}")
    names = list(columns)
    if not names:
        raise InputError("columns must name at least one column")
    for name in names:
        if name not in shown.columns:
            raise UnknownColumn(str(name), f"columns: type {shown.name}", shown.columns)
        if names.count(name) > 1:
            raise InputError(f"columns must name '{name}' once")
    return names


def _where_filter(
    shown: EntityType, where: str | None, params: Mapping[str, object] | None
) -> Filter | None:
    given = {} if params is None else params
    if where is None:
        bind_host_values((), given)
        return None
    if not isinstance(where, str):
        raise InputError(f"where must be the text of a condition, not a {type(where).__name__}")
    source = Source("<where>", where)
    condition, specs = check_condition(source, shown, parse_condition(source))
    bound: dict[str, Any] = bind_host_values(specs, given)
    for spec in specs:
        if spec.name not in given:
            raise ParameterError(spec.name, f"parameter '{spec.name}' not provided in params")
    bound.setdefault(NOW_PARAMETER, time_ns() // 1_000_000)
    predicate = condition_filter(condition, bound)
    return id_filter(shown, predicate) or predicate


# -- columns ------------------------------------------------------------------------------------


def _schema(shown: EntityType, names: Sequence[str]) -> pa.Schema:
    """Any property may be null: a state of the past may lack one that is required today."""
    return pa.schema(
        pa.field(name, public_type(prop.type))
        if (prop := shown.properties.get(name))
        else pa.field(name, pa.utf8(), nullable=False)
        for name in names
    )


def _column(shown: EntityType, name: str, batch: pa.RecordBatch, stored: str | None) -> pa.Array:
    prop = shown.properties.get(name)
    if prop is None:
        return batch.column(name)
    kind = public_type(prop.type)
    if stored is None:
        return pa.nulls(batch.num_rows, kind)
    found = public_column(batch.column(stored), prop.type)
    return found if found.type == kind else found.cast(kind)


def _with_blobs(
    rows: VisibleRows, names: Sequence[str], wanted: Filter | None
) -> Iterator[pa.RecordBatch]:
    """The rows with the bytes of blobs that are among the columns."""
    schema = _schema(rows.shown, names)
    plain = [name for name in names if name not in rows.shown.blobs]
    if len(plain) == len(names):
        for batch in rows.read(plain, wanted):
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)
        return
    for batch in in_parts(rows.read(plain, wanted, with_row_ids=True), BLOB_ROWS):
        found = [
            batch.column(name) if name in plain else _bytes(rows, name, batch.column(ROW_ID))
            for name in names
        ]
        yield pa.RecordBatch.from_arrays(found, schema=schema)


def _bytes(rows: VisibleRows, name: str, row_ids: pa.Array) -> pa.Array:
    """The blobs of rows. Those kept outside of the graph are followed, if that is allowed."""
    prop, table = rows.shown.properties[name], rows.table()
    if table is None or prop.column not in table.schema.names:
        return pa.nulls(len(row_ids), pa.large_binary())
    cells = carried_blobs(table, prop.column, row_ids)
    data, uris = (pc.struct_field(cells, part) for part in ("data", "uri"))
    if uris.null_count == len(uris):
        return data
    found = data.to_pylist()
    for place, uri in enumerate(uris.to_pylist()):
        if uri is not None:
            blob = blob_of_row(table, prop, row_ids[place].as_py())
            found[place] = None if blob is None else blob.read()
    return pa.array(found, pa.large_binary())


# -- streams ------------------------------------------------------------------------------------


def _gathered(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """The same rows in tables of at least that many, except for the last."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(part.num_rows for part in waiting) >= rows:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def _metered(
    batches: Iterator[pa.RecordBatch], budget: QueryBudget, cancel: CancelToken | None
) -> Iterator[pa.RecordBatch]:
    meter = budget.start(cancel)
    meter.check()
    rows = nbytes = 0
    for batch in batches:
        rows += batch.num_rows
        nbytes += batch.nbytes
        meter.check_size(rows, nbytes)
        with meter.paused():
            yield batch
    meter.check_size(rows, nbytes)
