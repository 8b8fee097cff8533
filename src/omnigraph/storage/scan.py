"""Reading rows: projection, predicates, row ids, and lookups of many ids."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import lance
import pyarrow as pa
import pyarrow.compute as pc
from lance.dataset import ColumnOrdering

from omnigraph.limits import LOOKUP_CHUNK, ROWS_SCANNED_PER_LOOKUP
from omnigraph.storage.conflicts import naming_failures
from omnigraph.storage.filters import Bound, Filter, In, bind, matches, split, to_sql
from omnigraph.storage.filters.bound import bound_columns

ROW_ID: Final = "_rowid"
ROW_ADDRESS: Final = "_rowaddr"
"""Columns every table has besides its own, read by naming them."""

_LITTLE: Final = 2
"""Fragments and batches read ahead when memory counts; the store would otherwise take dozens."""


@dataclass(frozen=True, slots=True)
class Scan:
    """What to read. `columns` None stands for all of the table's own columns."""

    columns: Sequence[str] | None = None
    filter: Filter | None = None
    limit: int | None = None
    order_by: str | None = None
    fragment_ids: Collection[int] | None = None
    """Only rows stored in these fragments."""
    reads_little_ahead: bool = False
    """Keep few rows in memory that nobody has asked for yet."""


def scan(dataset: lance.LanceDataset, uri: str, wanted: Scan) -> pa.RecordBatchReader:
    """Stream rows. What the store cannot evaluate is filtered here, batch by batch."""
    columns = list(dataset.schema.names if wanted.columns is None else wanted.columns)
    pushed, kept = _split(wanted.filter, dataset.schema)
    read = [*columns, *(bound_columns(kept) - set(columns) if kept else ())]
    with naming_failures("read", uri):
        scanner = dataset.scanner(
            columns=read,
            filter=None if pushed is None else to_sql(pushed),
            limit=None if kept else wanted.limit,
            order_by=[ColumnOrdering(wanted.order_by)] if wanted.order_by else None,
            fragments=_fragments(dataset, wanted.fragment_ids),
            fragment_readahead=_LITTLE if wanted.reads_little_ahead else None,
            batch_readahead=_LITTLE if wanted.reads_little_ahead else None,
        )
        reader = scanner.to_reader()
        schema = pa.schema([reader.schema.field(name) for name in columns])
    batches = _named(reader, uri)
    if kept is not None:
        batches = _limited(_filtered(batches, kept, columns), wanted.limit)
    return pa.RecordBatchReader.from_batches(schema, batches)


def lookup(
    dataset: lance.LanceDataset,
    uri: str,
    ids: pa.Array,
    columns: Sequence[str],
    fragment_ids: Collection[int] | None = None,
) -> pa.Table:
    """The rows with the given distinct ids, in no order; ids that are not there are left out.

    `fragment_ids` are those in which they may be, if the caller knows of some in which they are not.
    """
    if len(ids) * ROWS_SCANNED_PER_LOOKUP > _row_count(dataset):
        return _lookup_by_scan(dataset, uri, ids, columns)
    found = []
    for start in range(0, max(len(ids), 1), LOOKUP_CHUNK):
        wanted = In("id", tuple(ids.slice(start, LOOKUP_CHUNK).to_pylist()))
        found.append(
            scan(dataset, uri, Scan(columns, wanted, fragment_ids=fragment_ids)).read_all()
        )
    return pa.concat_tables(found)


def _lookup_by_scan(
    dataset: lance.LanceDataset, uri: str, ids: pa.Array, columns: Sequence[str]
) -> pa.Table:
    """Scan the ids and where they are, then fetch the other columns of the rows that were found."""
    rows = scan(dataset, uri, Scan(["id", ROW_ID, ROW_ADDRESS])).read_all()
    rows = rows.filter(pc.is_in(rows.column("id"), value_set=ids))
    if set(columns) <= set(rows.column_names):
        return rows.select(list(columns))
    with naming_failures("read", uri):
        taken = dataset._take_rows(rows.column(ROW_ID).to_pylist(), columns=list(columns))
    return pa.table(taken).select(list(columns))


def _fragments(
    dataset: lance.LanceDataset, wanted: Collection[int] | None
) -> list[lance.LanceFragment] | None:
    if wanted is None:
        return None
    return [fragment for fragment in dataset.get_fragments() if fragment.fragment_id in wanted]


def _row_count(dataset: lance.LanceDataset) -> int:
    return int(dataset.count_rows())


def _split(predicate: Filter | None, schema: pa.Schema) -> tuple[Bound | None, Bound | None]:
    return (None, None) if predicate is None else split(bind(predicate, schema))


def _named(reader: pa.RecordBatchReader, uri: str) -> Iterator[pa.RecordBatch]:
    while True:
        with naming_failures("read", uri):
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                return
        yield batch


def _filtered(
    batches: Iterator[pa.RecordBatch], kept: Bound, columns: list[str]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.filter(matches(kept, batch)).select(columns)


def _limited(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if limit is not None:
            batch = batch.slice(0, limit)
            limit -= batch.num_rows
        yield batch
        if limit == 0:
            return
