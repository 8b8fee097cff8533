"""Upserts and deletes by id as one commit, and the exclusive insert behind every publish.

Old positions of replaced and deleted rows join the deletions of their fragments. Replaced rows are
written first into new fragments and keep their row ids, so identity, row versions and diffs stay
correct; new rows follow.

`insert_exclusively` succeeds only if no other insert was committed meanwhile. Every insert names the
oldest fragment of its base version as one it rewrites, and leaves it unchanged. The library refuses a
commit that rewrites what another one has rewritten since, so of several inserts built on one version
exactly one succeeds. A compaction that removes that fragment conflicts with them too, so two inserts
never pass each other by naming different fragments. Only the publisher uses it.
Tests: tests/storage/tables/test_delta.py, test_exclusive_insert.py, tests/substrate/test_exclusive_insert.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset, LanceOperation
from lance.fragment import RowIdSequence

from omnigraph.errors import InputError, InsertConflict, StorageError
from omnigraph.storage.commit_sync import TableCommit
from omnigraph.storage.failures import Failure, cause_of, classify, naming_failures
from omnigraph.storage.filters import Filter
from omnigraph.storage.lineage import Lineage
from omnigraph.storage.scan import ROW_ADDRESS, ROW_ID
from omnigraph.storage.stage import RowCounts, Rows, StagedChange, write_rows
from omnigraph.storage.table import Table

Ids: TypeAlias = Sequence[str] | pa.Array

_ROWS_AT_ONCE: Final = 8192
"""Rows that are put in order at a time."""

_SMALL_BATCH: Final = 1024
"""Batches with fewer rows than this are put together before rows are taken from them."""

ROW_ADDRESS_COLUMNS: Final = ("id", ROW_ID, ROW_ADDRESS)
"""The columns that say where a row is."""


@dataclass(frozen=True, slots=True)
class Targets:
    """The stored rows a delta replaces or removes, found at one version of a table.

    They are the same on a branch that was made from that version.
    """

    found: pa.Table
    place: pa.Array
    """Of each upserted row, the position in `found` of the row it replaces, or null."""
    counts: RowCounts

    @property
    def is_noop(self) -> bool:
        return self.counts == RowCounts()


def find_targets(
    table: Table, upserts: pa.Table, deletes: Ids, known: pa.Table | None = None
) -> Targets:
    """Decide, at the table's version, which ids of a delta exist.

    `known` are rows of this very version with the columns of `PLACE`; the others are looked up.
    Raises `InputError` for a delta that contradicts itself.
    """
    ids = _column(upserts, "id")
    deleted_ids = pc.unique(pa.array(deletes, pa.string()))
    _check_delta(table, ids, deleted_ids)
    found = _find(table, pa.concat_arrays([ids, deleted_ids]), known)
    if len(pc.unique(found.column("id"))) != found.num_rows:
        raise StorageError(f"table '{table.lineage.name}' holds an id more than once")
    place = pc.index_in(ids, value_set=_column(found, "id"))
    updated = len(ids) - place.null_count
    counts = RowCounts(len(ids) - updated, updated, found.num_rows - updated)
    return Targets(found, place, counts)


def _find(table: Table, ids: pa.Array, known: pa.Table | None) -> pa.Table:
    if known is None or not known.num_rows:
        return table.lookup(ids, ROW_ADDRESS_COLUMNS)
    known = known.select(list(ROW_ADDRESS_COLUMNS)).filter(
        pc.is_in(known.column("id"), value_set=ids)
    )
    others = ids.filter(pc.invert(pc.is_in(ids, value_set=_column(known, "id"))))
    return (
        pa.concat_tables([known, table.lookup(others, ROW_ADDRESS_COLUMNS)])
        if len(others)
        else known
    )


def stage_delta(
    table: Table, upserts: pa.Table, deletes: Ids, targets: Targets | None = None
) -> StagedChange | None:
    """Replace or add the rows of `upserts`, remove those of `deletes`; None if nothing would change.

    `targets` are those of the same delta, if the caller has looked for them already.
    """
    targets = targets or find_targets(table, upserts, deletes)
    if targets.is_noop:
        return None
    counts = targets.counts
    removed, shrunk = delete_at(table, _column(targets.found, ROW_ADDRESS))
    return StagedChange(
        "delta",
        table.lineage,
        table.version,
        counts,
        table.row_count() + counts.inserted - counts.deleted,
        rewriting(table, removed, shrunk, write_upserts(table, upserts, targets)),
    )


def stage_deletion(table: Table, filter: Filter) -> StagedChange | None:
    """Remove the rows of a filter; None if there are none."""
    addresses = _column(table.read([ROW_ADDRESS], filter=filter), ROW_ADDRESS)
    if not len(addresses):
        return None
    removed, shrunk = delete_at(table, addresses)
    return StagedChange(
        "delta",
        table.lineage,
        table.version,
        RowCounts(deleted=len(addresses)),
        table.row_count() - len(addresses),
        LanceOperation.Delete(shrunk, removed, "rows at addresses"),
    )


def rewriting(
    table: Table,
    removed: list[int],
    shrunk: list[lance.FragmentMetadata],
    written: list[lance.FragmentMetadata],
) -> LanceOperation.Update:
    """The operation that takes rows away from fragments and adds fragments with other rows."""
    return LanceOperation.Update(
        removed_fragment_ids=removed,
        updated_fragments=shrunk,
        new_fragments=written,
        update_mode="rewrite_rows",
        # Any of them may have changed. Otherwise the library would take an index of vectors to know
        # the new fragments, and find neither their new rows nor their new vectors.
        fields_for_preserving_frag_bitmap=[f.id() for f in table.dataset.lance_schema.fields()],
    )


def _check_delta(table: Table, ids: pa.Array, deleted_ids: pa.Array) -> None:
    if not len(ids) and not len(deleted_ids):
        raise InputError(f"nothing to change in {table.path}")
    if ids.null_count or deleted_ids.null_count:
        raise InputError(f"a row of {table.path} needs an id")
    if len(pc.unique(ids)) != len(ids):
        raise InputError(f"a change of {table.path} writes one id twice")
    if pc.any(pc.is_in(deleted_ids, value_set=ids)).as_py():
        raise InputError(f"a change of {table.path} writes and deletes one id")


def delete_at(table: Table, addresses: pa.Array) -> tuple[list[int], list[lance.FragmentMetadata]]:
    """Fragments of which nothing is left without the rows at these addresses, and the shrunk ones.

    All rows to be deleted from a fragment must be given at once: of two shrunk forms of it a commit
    takes one, and says nothing.
    """
    if not len(addresses):
        return [], []
    ordered = np.sort(addresses.to_numpy())
    fragments, offsets = ordered >> np.uint64(32), ordered & np.uint64(0xFFFFFFFF)
    numbers, starts = np.unique(fragments, return_index=True)
    removed, shrunk = [], []
    with naming_failures("delete rows", table.lineage.uri):
        for number, positions in zip(numbers, np.split(offsets, starts[1:]), strict=True):
            fragment = table.dataset.get_fragment(int(number))
            assert fragment is not None, "addresses were read from this very version"
            left = fragment.delete_rows(positions.tolist())
            if left is None:
                removed.append(int(number))
            else:
                shrunk.append(left)
    return removed, shrunk


def write_upserts(
    table: Table, upserts: pa.Table, targets: Targets
) -> list[lance.FragmentMetadata]:
    """New fragments: replaced rows by row id, which keeps the list of ids short, then new rows."""
    if not upserts.num_rows:
        return []
    row_ids = _column(targets.found, ROW_ID).take(targets.place)
    # Nulls, the rows without an old row id, sort last.
    order = pc.array_sort_indices(row_ids)
    written = write_rows(table, _in_order(upserts, order))
    carried = row_ids.drop_null().sort()
    start = 0
    for fragment in written:
        ids_here = carried.slice(start, fragment.physical_rows)
        if len(ids_here):
            fragment.row_id_meta = RowIdSequence(ids_here).to_inline_metadata()
        start += fragment.physical_rows
    return written


def _in_order(rows: pa.Table, order: pa.Array) -> Rows:
    """Rows in an order; many rows chunk by chunk, to avoid a second copy of all of them."""
    numbers = order.to_numpy().astype(np.int64)
    if np.array_equal(numbers, np.arange(rows.num_rows)):
        return rows
    if rows.num_rows <= _ROWS_AT_ONCE:
        return rows.take(order)
    return pa.RecordBatchReader.from_batches(rows.schema, _taken(rows, numbers))


def _taken(rows: pa.Table, numbers: npt.NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
    """The rows with these numbers, some at a time. Taking from a table would join its batches first."""
    batches = rows.to_batches()
    if len(batches) * _SMALL_BATCH > rows.num_rows:
        batches = rows.combine_chunks().to_batches()
    starts = np.cumsum([0, *(batch.num_rows for batch in batches)])
    for first in range(0, len(numbers), _ROWS_AT_ONCE):
        wanted = numbers[first : first + _ROWS_AT_ONCE]
        homes = np.searchsorted(starts, wanted, side="right") - 1
        by_home = np.argsort(homes, kind="stable")
        found, bounds = np.unique(homes[by_home], return_index=True)
        chunks = [
            batches[home].take(pa.array(wanted[here] - starts[home]))
            for home, here in zip(found, np.split(by_home, bounds[1:]), strict=True)
        ]
        back = np.empty_like(by_home)
        back[by_home] = np.arange(len(by_home))
        chunk = pa.Table.from_batches(chunks).combine_chunks()
        yield from chunk.take(pa.array(back)).to_batches()


def _column(rows: pa.Table, name: str) -> pa.Array:
    return rows.column(name).combine_chunks()


# -- the exclusive insert -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """Rows in files that are part of nothing yet."""

    lineage: Lineage
    rows: pa.Table
    files: Sequence[lance.FragmentMetadata]


def write_ahead(table: Table, rows: pa.Table) -> WrittenRows:
    """Write rows that will be inserted into some version of a table's line."""
    return WrittenRows(table.lineage, rows, write_rows(table, rows))


def insert_exclusively(table: Table, rows: pa.Table, written: WrittenRows | None = None) -> Table:
    """Insert rows if no rows were inserted since the version of the table.

    `written` is used if it has these very rows. Raises `InsertConflict`: nothing was inserted. After
    any other error the caller finds out by reading.
    """
    lineage = table.lineage
    if lineage.sync:
        lineage.sync.commit(lineage, table.dataset)
    if written is None or written.lineage != lineage or not written.rows.equals(rows):
        written = write_ahead(table, rows)
    with naming_failures("insert", lineage.uri):
        operation = rewriting(table, [], [_oldest(table)], list(written.files))
        transaction = lance.Transaction(read_version=table.version, operation=operation)
        try:
            made = LanceDataset.commit(table.dataset, transaction, max_retries=0)
        except OSError as error:
            if classify(error) is not Failure.CONFLICT:
                raise
            raise InsertConflict(lineage.name, cause_of(error)) from error
    if lineage.sync:
        commit = TableCommit(lineage, transaction)
        if made.version == commit.version:
            # At once: a writer that finds this version unsynced looks whether its files are whole.
            lineage.sync.all_at_once([commit])
        else:
            lineage.sync.commit(lineage, made)
    return Table(lineage, made)


def _oldest(table: Table) -> lance.FragmentMetadata:
    fragments = table.dataset.get_fragments()
    if not fragments:
        raise InputError(f"{table.path} has no rows; an exclusive insert needs a fragment to name")
    return min((fragment.metadata for fragment in fragments), key=lambda found: found.id)
