"""Staged changes: rows written in full that become a table version with one commit.

A staged change is committed at most once, on the version it was built on, and must become exactly the
next version. The committer holds the branch lock: without it, the library would silently rebase the
change onto a concurrent commit.
Tests: tests/storage/tables.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias, TypedDict

import lance
import pyarrow as pa
from lance import LanceDataset, LanceOperation
from lance.fragment import write_fragments

from omnigraph.errors import InputError, StoreCallFailed, TableConflict, TableOvertaken
from omnigraph.limits import ROWS_PER_FRAGMENT
from omnigraph.side_by_side import in_parallel
from omnigraph.storage.blobs import as_blob_column, is_blob
from omnigraph.storage.commit_sync import TableCommit
from omnigraph.storage.failures import Failure, cause_of, classify, naming_failures
from omnigraph.storage.lineage import Lineage
from omnigraph.storage.table import Table, file_names
from omnigraph.storage.versions import OPERATION_ID, WRITER_KIND

Rows: TypeAlias = "pa.Table | pa.RecordBatchReader"

FILE_FORMAT: Final = "2.2"

WRITE_OPTIONS: Final[dict[str, Any]] = {
    "data_storage_version": FILE_FORMAT,
    "max_rows_per_file": ROWS_PER_FRAGMENT,
    # Which references are allowed is decided before rows come here.
    "allow_external_blob_outside_bases": True,
}


def write_rows(table: Table, rows: Rows) -> list[lance.FragmentMetadata]:
    """New files with these rows, of about `ROWS_PER_FRAGMENT` rows each.

    An error raised by a stream of rows while it is read is raised again as it was.
    """
    source = _Source(rows, table.schema)
    try:
        with naming_failures("write", table.lineage.uri):
            written = write_fragments(
                source.reader(), table.dataset, mode="append", **WRITE_OPTIONS
            )
    except StoreCallFailed as failure:
        if source.error is not None:
            raise source.error from failure
        raise
    if table.lineage.is_local:
        _refuse_short_files(table.lineage, written)
    if isinstance(rows, pa.Table) and len(written) == 1:
        stored = [f.name for f in rows.schema if table.schema.field(f.name).type == f.type]
        table.lineage.known.learn(file_names(written[0]), rows.select(stored))
    return list(written)


def _refuse_short_files(lineage: Lineage, written: Iterable[lance.FragmentMetadata]) -> None:
    """Raise for a file that lacks its end: the library does not always report a full disk."""
    for fragment in written:
        for file in fragment.files:
            size = file.file_size_bytes
            if size is not None and os.path.getsize(lineage.file(f"data/{file.path}")) < size:
                cause = f"{file.path} was not written completely; is the disk full?"
                raise StoreCallFailed("write", lineage.uri, cause)


def fit_rows(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows in the column order and types of a table. Raises `InputError` if they do not fit."""
    _check_columns(rows.schema, schema)
    return pa.Table.from_batches([_fit(batch, schema) for batch in rows.to_batches()], schema)


class _Source:
    """Rows on their way to the table library, which would turn their own errors into text."""

    def __init__(self, rows: Rows, schema: pa.Schema) -> None:
        _check_columns(rows.schema, schema)
        self._batches = rows.to_batches() if isinstance(rows, pa.Table) else rows
        self._schema = schema
        self.error: Exception | None = None

    def reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self._schema, self._fitted())

    def _fitted(self) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._batches:
                yield _fit(batch, self._schema)
        except Exception as error:
            self.error = error
            raise


def _check_columns(given: pa.Schema, schema: pa.Schema) -> None:
    missing = [name for name in schema.names if name not in given.names]
    unknown = [name for name in given.names if name not in schema.names]
    if missing or unknown:
        raise InputError(f"rows do not fit the table: missing {missing}, unknown {unknown}")


def _fit(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [_column(batch.column(field.name), field) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(column: pa.Array, field: pa.Field) -> pa.Array:
    if is_blob(field.type):
        return as_blob_column(column)
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type)
    except pa.ArrowInvalid as error:
        raise InputError(f"column '{field.name}' does not fit the table: {error}") from error


StagedKind = Literal["append", "delta", "overwrite", "columns", "index", "note", "restore"]


@dataclass(frozen=True, slots=True)
class RowCounts:
    """How many rows a change adds, replaces and removes, decided at the version it is built on."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0


@dataclass(slots=True)
class StagedChange:
    """A change that waits for its commit. Its files belong to one line of versions of one table."""

    kind: StagedKind
    lineage: Lineage
    read_version: int
    counts: RowCounts
    row_count_after: int
    operation: LanceOperation.BaseOperation
    committed: bool = field(default=False, init=False)

    @property
    def is_bound_to_version(self) -> bool:
        """Whether it means nothing on another version than the one it was built on."""
        return self.kind in ("delta", "columns", "index")

    def moved_to(self, table: Table) -> StagedChange | None:
        """The change for another version of the line, of which it replaces and removes no row; None
        if it has to be staged again."""
        if table.lineage != self.lineage or self.counts.updated or self.counts.deleted:
            return None
        if table.version == self.read_version:
            return self
        if self.kind not in ("append", "delta"):
            return None
        rows = table.row_count() + self.counts.inserted
        return replace(self, read_version=table.version, row_count_after=rows)


def stage_append(table: Table, rows: Rows) -> StagedChange:
    """New rows, whose ids the caller knows to be new. Raises `InputError` for no rows."""
    written = write_rows(table, rows)
    added = _stored_rows(written)
    if not added:
        raise InputError(f"nothing to append to {table.path}")
    return StagedChange(
        "append",
        table.lineage,
        table.version,
        RowCounts(inserted=added),
        table.row_count() + added,
        LanceOperation.Append(written),
    )


def stage_overwrite(table: Table, rows: Rows) -> StagedChange:
    """New content instead of the present one; no rows means an empty table."""
    written = write_rows(table, rows)
    added = _stored_rows(written)
    return StagedChange(
        "overwrite",
        table.lineage,
        table.version,
        RowCounts(inserted=added, deleted=table.row_count()),
        added,
        LanceOperation.Overwrite(table.dataset.lance_schema, written if added else []),
    )


def stage_restore(table: Table, version: int) -> StagedChange:
    """The content of an earlier version as the next one. It discards whatever came in between."""
    with naming_failures("restore", table.lineage.uri):
        rows = int(table.dataset.checkout_version(version).count_rows())
    return StagedChange(
        "restore",
        table.lineage,
        table.version,
        RowCounts(),
        rows,
        LanceOperation.Restore(version),
    )


class CommitMark(TypedDict):
    """What marks a table commit as part of an operation, passed on as keyword arguments."""

    operation_id: str
    writer_kind: str


class DeferredSyncs:
    """Table commits whose files are synced together, in any order, before they are published.

    For commits that recovery undoes unless they are published.
    """

    def __init__(self) -> None:
        self._commits: list[TableCommit] = []

    def add(self, commit: TableCommit) -> None:
        self._commits.append(commit)

    def sync(self) -> None:
        """Bring everything onto the disk. Raises `SyncFailed`."""
        if self._commits and (sync := self._commits[0].lineage.sync):
            sync.all_at_once(self._commits, with_records=False)
        self._commits.clear()


def commit_staged(
    table: Table,
    staged: StagedChange,
    *,
    operation_id: str,
    writer_kind: str,
    deferred: DeferredSyncs | None = None,
) -> Table:
    """Make a staged change the next version of the table that is given.

    Raises `TableConflict` when it was refused and the table did not move, `TableOvertaken` when it
    landed but not as the next version, and `StorageError` when the outcome is unknown.
    """
    commit = _next_commit(table, staged, operation_id, writer_kind)
    sync = table.lineage.sync
    if sync and deferred is None:
        sync.before_commits([commit])
    committed = _commit(table, commit)
    if deferred is not None:
        deferred.add(commit)
    elif sync:
        sync.after_commits([commit])
    return committed


def commit_together(
    changes: Sequence[tuple[Table, StagedChange]],
    *,
    operation_id: str,
    writer_kind: str,
    before_each: Callable[[Table], None],
    after_each: Callable[[Table], None],
) -> list[Table]:
    """Commit staged changes of several tables; raises as `commit_staged`.

    On an object store they are made side by side, and when one of them fails, the others are
    finished before the error is raised. A local disk answers too quickly for that; there, the files
    are synced in two batches, one before the first commit and one after the last.
    """
    commits = [_next_commit(table, staged, operation_id, writer_kind) for table, staged in changes]
    sync = commits[0].lineage.sync if commits else None
    if sync:
        sync.before_commits(commits)

    def commit_one(number: int) -> Table:
        table, _ = changes[number]
        before_each(table)
        committed = _commit(table, commits[number])
        after_each(table)
        return committed

    is_remote = any(table.lineage.is_remote for table, _ in changes)
    numbers = range(len(changes))
    committed = in_parallel(commit_one, numbers) if is_remote else [*map(commit_one, numbers)]
    if sync:
        sync.after_commits(commits)
    return committed


def _next_commit(
    table: Table, staged: StagedChange, operation_id: str, writer_kind: str
) -> TableCommit:
    _check_commit(table, staged)
    staged.committed = True
    transaction = lance.Transaction(
        read_version=table.version,
        operation=staged.operation,
        transaction_properties={OPERATION_ID: operation_id, WRITER_KIND: writer_kind},
    )
    return TableCommit(table.lineage, transaction)


def _check_commit(table: Table, staged: StagedChange) -> None:
    if staged.committed:
        raise ValueError("a staged change is committed once; what became of it must be looked up")
    if table.lineage != staged.lineage:
        raise ValueError(f"staged for {staged.lineage.name}, not for {table.lineage.name}")
    if staged.is_bound_to_version and table.version != staged.read_version:
        raise ValueError(f"staged at version {staged.read_version}, not at {table.version}")


def _commit(table: Table, commit: TableCommit) -> Table:
    with naming_failures("commit", table.lineage.uri):
        try:
            made = LanceDataset.commit(table.dataset, commit.transaction, max_retries=0)
        except OSError as error:
            if classify(error) is not Failure.CONFLICT:
                raise
            raise TableConflict(table.lineage.name, table.version, cause_of(error)) from error
    if made.version != commit.version:
        raise TableOvertaken(table.lineage.name, commit.version, made.version)
    return Table(table.lineage, made)


def _stored_rows(fragments: Iterable[lance.FragmentMetadata]) -> int:
    return sum(fragment.physical_rows for fragment in fragments)
