"""Reading rows: projection, predicates, row ids, and lookups of many ids."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, Protocol

import lance
import pyarrow as pa
import pyarrow.compute as pc
from lance.dataset import ColumnOrdering

from omnigraph.errors import StoreCallFailed
from omnigraph.limits import LOOKUP_CHUNK, ROWS_SCANNED_PER_LOOKUP, SCANNED_ROWS
from omnigraph.storage.failures import naming_failures
from omnigraph.storage.filters import Bound, Filter, In, bind, matches, split, to_sql
from omnigraph.storage.filters.model import bound_columns
from omnigraph.storage.lineage import Lineage

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
    """Limit the rows read ahead of the caller."""


def scan(dataset: lance.LanceDataset, lineage: Lineage, wanted: Scan) -> pa.RecordBatchReader:
    """Stream rows. What the store cannot evaluate is filtered here, batch by batch.

    A damaged index is passed over: rows are then found by scanning.
    """
    if wanted.fragment_ids is not None and not wanted.fragment_ids:
        wanted = Scan(wanted.columns, limit=0)
    columns = list(dataset.schema.names if wanted.columns is None else wanted.columns)
    pushed, kept = _split(wanted.filter, dataset.schema)
    read = [*columns, *(bound_columns(kept) - set(columns) if kept else ())]

    def started(*, with_indexes: bool) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        with naming_failures("read", lineage.uri):
            scanner = dataset.scanner(
                columns=read,
                filter=None if pushed is None else to_sql(pushed),
                limit=None if kept else wanted.limit,
                order_by=[ColumnOrdering(wanted.order_by)] if wanted.order_by else None,
                fragments=_fragments(dataset, wanted.fragment_ids),
                fragment_readahead=_LITTLE if wanted.reads_little_ahead else None,
                batch_readahead=_LITTLE if wanted.reads_little_ahead else None,
                use_scalar_index=None if with_indexes else False,
            )
            reader = scanner.to_reader()
        return reader.schema, _named(reader, lineage.uri)

    if pushed is None or lineage.checks is None:
        found, batches = started(with_indexes=True)
    else:
        found, batches = _with_sound_indexes(started, dataset, lineage, bound_columns(pushed))
    schema = pa.schema([found.field(name) for name in columns])
    if kept is not None:
        batches = _limited(_filtered(batches, kept, columns), wanted.limit)
    return pa.RecordBatchReader.from_batches(schema, batches)


class _Start(Protocol):
    def __call__(self, *, with_indexes: bool) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]: ...


def _with_sound_indexes(
    start: _Start, dataset: lance.LanceDataset, lineage: Lineage, columns: Collection[str]
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """A scan with the indexes of a table, and without them if one of them cannot be used."""
    checks = lineage.checks
    assert checks is not None
    with naming_failures("read the indexes", lineage.uri):
        if checks.damaged(lineage, dataset):
            return start(with_indexes=False)
    try:
        schema, batches = start(with_indexes=True)
        first = next(batches, None)
    except StoreCallFailed as error:
        names = [
            index.name
            for index in dataset.describe_indices()
            if set(index.field_names) & {*columns}
        ]
        if not names:
            raise
        # Checksums cover what is on the disk when an index is first used, and not every index.
        schema, batches = start(with_indexes=False)
        first = next(batches, None)
        checks.condemn(lineage, dataset, names, error.cause)
    return schema, batches if first is None else chain([first], batches)


def lookup(
    dataset: lance.LanceDataset,
    lineage: Lineage,
    ids: pa.Array,
    columns: Sequence[str],
    fragment_ids: Collection[int] | None = None,
) -> pa.Table:
    """The rows with the given distinct ids, in no order; ids that are not there are left out.

    `fragment_ids` are those in which they may be, if the caller knows of some in which they are not.
    """
    if fragment_ids is not None and not fragment_ids:
        return scan(dataset, lineage, Scan(columns, fragment_ids=())).read_all()
    if len(ids) * ROWS_SCANNED_PER_LOOKUP > _row_count(dataset):
        return _lookup_by_scan(dataset, lineage, ids, columns, fragment_ids)
    found = []
    for start in range(0, max(len(ids), 1), LOOKUP_CHUNK):
        wanted = In("id", tuple(ids.slice(start, LOOKUP_CHUNK).to_pylist()))
        found.append(
            scan(dataset, lineage, Scan(columns, wanted, fragment_ids=fragment_ids)).read_all()
        )
    return pa.concat_tables(found)


def in_portions(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows of batches in portions that are worth comparing with a set, and fit into memory."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= SCANNED_ROWS:
            yield pa.Table.from_batches(held)
            held, rows = [], 0
    if held:
        yield pa.Table.from_batches(held)


def _lookup_by_scan(
    dataset: lance.LanceDataset,
    lineage: Lineage,
    ids: pa.Array,
    columns: Sequence[str],
    fragment_ids: Collection[int] | None,
) -> pa.Table:
    """Scan the ids and where they are, then fetch the other columns of the rows that were found."""
    wanted = Scan(["id", ROW_ID, ROW_ADDRESS], fragment_ids=fragment_ids)
    reader = scan(dataset, lineage, wanted)
    # A table may have more ids than there is memory for; only those that are found are kept.
    rows = pa.concat_tables(
        [
            reader.schema.empty_table(),
            *(
                part.filter(pc.is_in(part.column("id"), value_set=ids))
                for part in in_portions(reader)
            ),
        ]
    )
    if set(columns) <= set(rows.column_names):
        return rows.select(list(columns))
    with naming_failures("read", lineage.uri):
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
