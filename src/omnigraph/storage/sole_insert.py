"""Inserting rows only if nothing was inserted meanwhile: the compare-and-swap that publishing rests on.

Every insert names the oldest fragment of the version it was built on as one it rewrites, and leaves it
as it is. The library refuses a commit that rewrites what another one has rewritten since, so of several
inserts built on one version exactly one succeeds. A compaction that removes the fragment is in the way
of those that name it, too, so two inserts never pass each other by naming different ones.
Used by the publisher alone.
Tests: tests/substrate/test_sole_insert.py, tests/storage/tables/test_sole_insert.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import lance
import pyarrow as pa
from lance import LanceDataset

from omnigraph.errors import InputError, InsertConflict
from omnigraph.storage.conflicts import Failure, cause_of, classify, naming_failures
from omnigraph.storage.delta import rewriting
from omnigraph.storage.fragments import write_rows
from omnigraph.storage.lineage import Lineage
from omnigraph.storage.table import Table

__all__ = ["InsertConflict", "WrittenRows", "insert_alone", "write_ahead"]


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """Rows in files that are part of nothing yet."""

    lineage: Lineage
    rows: pa.Table
    files: Sequence[lance.FragmentMetadata]


def write_ahead(table: Table, rows: pa.Table) -> WrittenRows:
    """Write rows that will be inserted into some version of a table's line."""
    return WrittenRows(table.lineage, rows, write_rows(table, rows))


def insert_alone(table: Table, rows: pa.Table, written: WrittenRows | None = None) -> Table:
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
        lineage.sync.commit(lineage, made)
    return Table(lineage, made)


def _oldest(table: Table) -> lance.FragmentMetadata:
    fragments = table.dataset.get_fragments()
    if not fragments:
        raise InputError(f"{table.path} has no rows that an insert could be compared with")
    return min((fragment.metadata for fragment in fragments), key=lambda found: found.id)
