"""Compaction: fewer, larger fragments and indexes that cover them. Content stays the same.

These calls commit by themselves; the library cannot stage them. They move a table by several
versions, so they are used only by maintenance steps that expect it.
Tests: tests/storage/tables/test_compact.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import lance
from lance.optimize import Compaction, RewriteResult

from omnigraph.errors import TableConflict
from omnigraph.limits import ROWS_PER_FRAGMENT
from omnigraph.storage.failures import Failure, cause_of, classify, naming_failures
from omnigraph.storage.indexes import PARTITIONED, Index, list_indexes
from omnigraph.storage.table import Table

_SMALL_PART: Final = 0.1
"""Later parts of an index of vectors with fewer rows than this share of the first stay apart."""


def small_fragments(table: Table, below_rows: int) -> int:
    """How many fragments hold fewer rows than this."""
    return sum(fragment.rows < below_rows for fragment in table.fragments())


def compact_with_indexes(
    table: Table, target_rows: int = ROWS_PER_FRAGMENT, index_lag: int = 0
) -> Table:
    """Merge fragments of fewer rows and drop deleted rows, after extending the indexes over all rows.

    In this order, because only fragments that the same indexes cover are merged. Up to `index_lag`
    rows an index may stay as it is: the fragments it does not cover are merged among themselves,
    which is much less work. Returns the table it was given if there was nothing to do. Raises
    `TableConflict` if a concurrent change is in the way; what was done until then is complete.
    """
    indexes = list_indexes(table)
    # Merging fragments under indexes of the line this one was branched from would make the library
    # write adapted copies here and then look for them there.
    borrowed = any(index.is_borrowed for index in indexes)
    extended = table
    if borrowed or _uncovered_rows(table, indexes) > index_lag:
        extended = extend_indexes(table)
        if extended is table and borrowed:
            return table
    return compact(extended, target_rows)


def is_compaction_needed(table: Table, target_rows: int = ROWS_PER_FRAGMENT) -> bool:
    """Whether `compact_with_indexes` would do anything."""
    if _uncovered_rows(table, list_indexes(table)):
        return True
    with naming_failures("plan a compaction", table.lineage.uri):
        plan = Compaction.plan(table.dataset, {"target_rows_per_fragment": target_rows})
    return bool(plan.num_tasks())


def _uncovered_rows(table: Table, indexes: Sequence[Index]) -> int:
    """The rows the least complete index does not know."""
    fragments = table.fragments()
    return max(
        (sum(f.rows for f in fragments if f.id not in index.fragment_ids) for index in indexes),
        default=0,
    )


def extend_indexes(table: Table) -> Table:
    """Bring every index of a table up to date with the rows it does not cover."""
    current = {fragment.id for fragment in table.fragments()}
    if all(current <= index.fragment_ids for index in list_indexes(table)):
        return table
    handle = table.writable_handle()
    # Left to itself, the library adds a part to an index of vectors every time. Fragments in
    # different parts are never merged, so a table would end up with ever more fragments.
    vectors = {i.name: i for i in list_indexes(table) if i.kind == PARTITIONED}
    others = [i.name for i in list_indexes(table) if i.name not in vectors]
    with naming_failures("extend the indexes", table.lineage.uri):
        try:
            if others:
                handle.optimize.optimize_indices(index_names=others)
            for name, index in vectors.items():
                merged = _parts_to_merge(table, index)
                handle.optimize.optimize_indices(index_names=[name], num_indices_to_merge=merged)
        except OSError as error:
            raise _conflict(table, error) from error
    return _synced(table, handle)


def _parts_to_merge(table: Table, index: Index) -> int:
    """How many of the latest parts of an index of vectors become one with the rows it lacks.

    All of them, unless the first is so much larger than the others together that rewriting it would
    be most of the work. A borrowed one is always rewritten, as its fragments could not be merged.
    """
    if index.is_borrowed:
        return len(index.parts)
    rows = {fragment.id: fragment.rows for fragment in table.fragments()}
    first = sum(rows.get(number, 0) for number in index.parts[0])
    rest = sum(rows.values()) - first
    is_first_large = first > ROWS_PER_FRAGMENT and rest < _SMALL_PART * first
    return len(index.parts) - 1 if is_first_large else len(index.parts)


def compact(table: Table, target_rows: int = ROWS_PER_FRAGMENT) -> Table:
    """Merge fragments of fewer rows and drop deleted ones; row ids and row versions are kept."""
    handle = table.writable_handle()
    with naming_failures("compact", table.lineage.uri):
        plan = Compaction.plan(handle, {"target_rows_per_fragment": target_rows})
        if not plan.num_tasks():
            return table
        results = [task.execute(handle) for task in plan.tasks]
    return commit_rewritten(table, results)


def commit_rewritten(table: Table, results: Sequence[RewriteResult]) -> Table:
    """Replace fragments with their rewritten form. Raises `TableConflict`."""
    handle = table.writable_handle()
    if table.lineage.sync:
        for result in results:
            table.lineage.sync.fragments(table.lineage, result.new_fragments)
    with naming_failures("compact", table.lineage.uri):
        try:
            Compaction.commit(handle, list(results))
        except OSError as error:
            raise _conflict(table, error) from error
    return _synced(table, handle)


def _conflict(table: Table, error: OSError) -> Exception:
    if classify(error) is not Failure.CONFLICT:
        return error
    return TableConflict(table.lineage.name, table.version, cause_of(error))


def _synced(table: Table, handle: lance.LanceDataset) -> Table:
    if table.lineage.checks is not None:
        table.lineage.checks.write(table.lineage, handle, since=table.dataset)
    if table.lineage.sync:
        table.lineage.sync.commits(table.lineage, handle, after=table.version)
    return Table(table.lineage, handle)
