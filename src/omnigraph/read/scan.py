"""Scans: the visible rows of one type as a stream of Arrow batches.

A condition has the syntax and meaning of `where` in mutations and is pushed down to the table. Rows come in
storage order. Tests: tests/behaviour/test_scan.py.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from time import time_ns
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import EntityType
from omnigraph.errors import InputError, UnknownColumn
from omnigraph.language.query.parse import parse_condition
from omnigraph.language.syntax import Source
from omnigraph.limits import BLOB_ROWS
from omnigraph.plan.check_mutation import check_condition
from omnigraph.plan.ir import NOW_PARAMETER
from omnigraph.plan.params import bind_host_values
from omnigraph.read.budget import CancelToken, QueryBudget
from omnigraph.read.entities import VisibleRows, blob_of_row, find_type
from omnigraph.read.result import public_type
from omnigraph.read.row_values import RowCondition
from omnigraph.read.view import ReadView
from omnigraph.storage.scan import ROW_ID
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot
from omnigraph.versioning.snapshot_rows import carried_blobs, in_parts

_UNLIMITED: Final = QueryBudget(sys.maxsize, sys.maxsize, math.inf)


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
    fragments: Collection[int] | None = None,
) -> pa.RecordBatchReader:
    """Stream the rows of a node or edge type. Arguments are checked now, rows are read on demand.

    Columns are `id`, for an edge `src` and `dst`, and the properties; `columns` selects among them.
    Blobs are included only if named, as bytes. `where` is a condition as in a mutation; its parameters take
    the types of the properties they are compared with, and all of them must be in `params`. The default
    budget is unlimited; time between two batches does not count. `cancel` stops the scan from another
    thread. `fragments` are the only ones to read.

    Raises `UnknownType`, `UnknownColumn`, `LanguageError`, `ParameterError` or `InputError`, and
    `QueryBudgetExceeded` or `QueryCancelled` while rows are read.
    """
    shown = find_type(view.restrict(snapshot.catalog), type_name)
    names = _chosen_columns(shown, columns)
    wanted = _where_condition(shown, where, params)
    rows = VisibleRows(snapshot, tables, shown, view, fragments)
    batches = _with_blobs(rows, names, wanted)
    if budget is not None or cancel is not None:
        batches = _metered(batches, budget or _UNLIMITED, cancel)
    return pa.RecordBatchReader.from_batches(_schema(shown, names), batches)


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


def _where_condition(
    shown: EntityType, where: str | None, params: Mapping[str, object] | None
) -> RowCondition | None:
    given = {} if params is None else params
    if where is None:
        bind_host_values((), given)
        return None
    if not isinstance(where, str):
        raise InputError(f"where must be the text of a condition, not a {type(where).__name__}")
    source = Source("<where>", where)
    condition, specs = check_condition(source, shown, parse_condition(source))
    bound: dict[str, Any] = bind_host_values(specs, given)
    bound.setdefault(NOW_PARAMETER, time_ns() // 1_000_000)
    return RowCondition(shown, condition, bound)


# -- columns ------------------------------------------------------------------------------------


def _schema(shown: EntityType, names: Sequence[str]) -> pa.Schema:
    """Any property may be null: an earlier commit may lack one that is required today."""
    return pa.schema(
        pa.field(name, public_type(prop.type))
        if (prop := shown.properties.get(name))
        else pa.field(name, pa.utf8(), nullable=False)
        for name in names
    )


def _with_blobs(
    rows: VisibleRows, names: Sequence[str], wanted: RowCondition | None
) -> Iterator[pa.RecordBatch]:
    """The rows, with the bytes of blob columns."""
    schema = _schema(rows.shown, names)
    plain = [name for name in names if name not in rows.shown.blobs]
    if len(plain) == len(names):
        for batch in _matching(rows, plain, wanted):
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)
        return
    for batch in in_parts(_matching(rows, plain, wanted, with_row_ids=True), BLOB_ROWS):
        found = [
            batch.column(name) if name in plain else _bytes(rows, name, batch.column(ROW_ID))
            for name in names
        ]
        yield pa.RecordBatch.from_arrays(found, schema=schema)


def _matching(
    rows: VisibleRows,
    names: Sequence[str],
    wanted: RowCondition | None,
    *,
    with_row_ids: bool = False,
) -> Iterator[pa.RecordBatch]:
    """The named columns of the rows that meet a condition."""
    if wanted is None or not wanted.columns:
        predicate = None if wanted is None else wanted.predicate
        yield from rows.read(names, predicate, with_row_ids=with_row_ids)
        return
    more = list(dict.fromkeys([*names, *wanted.columns]))
    extra = [ROW_ID] if with_row_ids else []
    for batch in rows.read(more, wanted.predicate, with_row_ids=with_row_ids):
        columns = {name: batch.column(name) for name in wanted.columns}
        mask = wanted.rest(columns, batch.num_rows)
        kept = batch.select([*names, *extra]).filter(pa.array(mask))
        if kept.num_rows:
            yield kept


def _bytes(rows: VisibleRows, name: str, row_ids: pa.Array) -> pa.Array:
    """The blobs of rows. External blobs are read if their base URI is allowed."""
    prop, table = rows.shown.properties[name], rows.table()
    if table is None or prop.column not in table.schema.names:
        return pa.nulls(len(row_ids), pa.large_binary())
    cells = carried_blobs(table, prop.column, row_ids)
    data, uris = (pc.struct_field(cells, part) for part in ("data", "uri"))
    if uris.null_count == len(uris):
        return data
    found = data.to_pylist()
    for row, uri in enumerate(uris.to_pylist()):
        if uri is not None:
            blob = blob_of_row(table, prop, row_ids[row].as_py())
            found[row] = None if blob is None else blob.read()
    return pa.array(found, pa.large_binary())


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
