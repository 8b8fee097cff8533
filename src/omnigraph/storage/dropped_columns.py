"""Columns a table no longer has, but whose values are still in its files.

Dropping a column leaves the files as they are, because other columns are in them too. Here fragments
are written again without it: same rows, row ids and row versions. The values are gone when the
versions that name the old files are.
Tests: tests/storage/tables/test_dropped_columns.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from lance.optimize import CompactionTask, RewriteResult

from omnigraph.limits import ROWS_PER_FRAGMENT
from omnigraph.storage.compact import commit_rewritten
from omnigraph.storage.conflicts import naming_failures
from omnigraph.storage.fragments import FILE_FORMAT
from omnigraph.storage.table import Table

_OPTIONS: Final = {
    "target_rows_per_fragment": ROWS_PER_FRAGMENT,
    "max_rows_per_group": 1024,
    "materialize_deletions": True,
    "materialize_deletions_threshold": 0.0,
    "defer_index_remap": False,
    "enable_binary_copy": False,
    "enable_binary_copy_force": False,
    "data_storage_version": FILE_FORMAT,
}


def fragments_with_dropped(table: Table) -> list[int]:
    """The numbers of the fragments whose files hold a column that the table does not have."""
    known = set(_field_ids(table.dataset.lance_schema.fields()))
    return [
        fragment.fragment_id
        for fragment in table.dataset.get_fragments()
        if any(_holds_others(file, known) for file in fragment.metadata.files)
    ]


def rewrite_fragment(table: Table, number: int) -> RewriteResult:
    """Write a fragment again with the columns the table has. The result travels between processes.

    The library plans such work by itself only where fragments are small or rows were deleted, so it
    is given a plan.
    """
    with naming_failures("rewrite a fragment", table.lineage.uri):
        fragment = table.dataset.get_fragment(number)
        assert fragment is not None, "whoever asks has listed the fragments of this version"
        work = {"fragments": [fragment.metadata.to_json()]}
        plan = {"task": work, "read_version": table.version, "options": _OPTIONS}
        tasks: Any = CompactionTask  # Its stub does not have all its methods.
        rewritten: RewriteResult = tasks.from_json(json.dumps(plan)).execute(table.dataset)
        return rewritten


def shed_columns(table: Table) -> Table:
    """Rewrite all such fragments; the table that was given if there are none."""
    numbers = fragments_with_dropped(table)
    if not numbers:
        return table
    return commit_rewritten(table, [rewrite_fragment(table, number) for number in numbers])


def _field_ids(fields: Iterable[Any]) -> Iterator[int]:
    for field in fields:
        yield field.id()
        yield from _field_ids(field.children())


def _holds_others(file: Any, known: set[int]) -> bool:
    # Negative numbers stand for columns that were taken out of the file's description before.
    return any(number >= 0 and number not in known for number in file.fields)
