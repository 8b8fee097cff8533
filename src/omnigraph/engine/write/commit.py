"""The commit sequence: staged tables, then the lock, the table commits and one publish.

Changes are staged before the branch's lock is taken, wherever the branch has a line of its own for
the table. What moved in between is staged again under the lock, so that every table commit builds
on the version the publish will replace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import Catalog
from omnigraph.engine.write.columns import stored_rows
from omnigraph.engine.write.lookups import index_lookups
from omnigraph.errors import ExpectedVersionMismatch, ForkExists, HeadMoved, TableDrift
from omnigraph.faults import declare
from omnigraph.storage.delta import stage_delta
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.stage import Staged, commit_staged, stage_append, stage_overwrite
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uris import GraphRoot
from omnigraph.versioning.branches import BranchRef
from omnigraph.versioning.commits import (
    CommitDraft,
    CommitId,
    CommitRecord,
    Counts,
    TableId,
    Warning,
)
from omnigraph.versioning.manifest import Manifest, ManifestState
from omnigraph.versioning.publish import Publication, publish
from omnigraph.versioning.rows import TableVersion
from omnigraph.versioning.snapshot import Snapshot, SnapshotEntry
from omnigraph.versioning.writer_lock import writer_lock

BEFORE_FORK = declare("fork.before_classify", "before a branch's first write to a table")
AFTER_TABLE = declare("mutation.post_table_commit", "after each table commit")
BEFORE_PUBLISH = declare("mutation.post_finalize_pre_publisher", "tables done, not published")

WriteMode = Literal["append", "merge", "overwrite"]


@dataclass(frozen=True, slots=True)
class TableWrite:
    """The rows one write brings to one table, under property names."""

    table_key: str
    mode: WriteMode
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """One atomic write of a branch."""

    branch: BranchRef
    writer_kind: str
    draft: CommitDraft
    writes: tuple[TableWrite, ...]
    expected_head: CommitId | None = None
    revalidate: Callable[[Snapshot], None] | None = None
    """Called under the lock when the branch moved since the write was checked."""


class TableWriter:
    """Runs the commit sequence for one graph."""

    def __init__(
        self, root: GraphRoot, tables: TableStore, objects: ObjectStore, manifest: Manifest
    ) -> None:
        self._root = root
        self._tables = tables
        self._objects = objects
        self._manifest = manifest

    def commit(
        self,
        request: WriteRequest,
        checked: Snapshot,
        snapshot_of: Callable[[ManifestState], Snapshot],
    ) -> CommitRecord:
        """Make a checked write visible. `checked` is the snapshot its checks looked at."""
        staged = self._stage_early(request, checked)
        physical = request.branch.physical
        with writer_lock(self._root, physical, request.writer_kind.lower()):
            state = self._manifest.current(physical)
            if request.expected_head is not None and request.expected_head != state.head:
                raise HeadMoved(request.branch.public, request.expected_head, state.head)
            current = snapshot_of(state)
            if current.commit_id != checked.commit_id and request.revalidate is not None:
                request.revalidate(current)
            entries = [current.entry(write.table_key) for write in request.writes]
            versions: list[TableVersion] = []
            counts: dict[TableId, Counts] = {}
            warnings = list(request.draft.warnings)
            for write, entry in zip(request.writes, entries, strict=True):
                early = staged.get(write.table_key)
                table, change = self._ready(request, current.catalog, write, entry, early)
                committed = commit_staged(
                    table,
                    change,
                    operation_id=request.draft.operation_id,
                    writer_kind=request.writer_kind,
                )
                AFTER_TABLE.hit(table=write.table_key)
                committed, unindexed = index_lookups(
                    committed,
                    current.catalog.entity(write.table_key),
                    operation_id=request.draft.operation_id,
                    writer_kind=request.writer_kind,
                )
                versions.append(_version(entry, committed))
                counts[entry.table_id] = _net_counts(table, write, change)
                warnings += [_index_pending(write.table_key, column) for column in unindexed]
            BEFORE_PUBLISH.hit(branch=physical)
            publication = Publication(
                draft=replace(request.draft, counts=counts, warnings=tuple(warnings)),
                versions=tuple(versions),
                expected={e.table_id: e.pin for e in entries},
                expected_head=request.expected_head,
            )
            return publish(self._manifest, physical, publication)

    def _stage_early(self, request: WriteRequest, checked: Snapshot) -> Mapping[str, Staged]:
        staged = {}
        for write in request.writes:
            entry = checked.entry(write.table_key)
            if entry.branch == request.branch.physical:
                table = self._tables.open(entry.location, entry.branch, entry.version)
                staged[write.table_key] = _stage(table, checked.catalog, write)
        return staged

    def _ready(
        self,
        request: WriteRequest,
        catalog: Catalog,
        write: TableWrite,
        entry: SnapshotEntry,
        early: Staged | None,
    ) -> tuple[Table, Staged]:
        """The table at its pinned head, and the change staged for exactly that version."""
        table = self._head(request.branch, entry)
        if early is None or early.read_version == table.version:
            return table, early or _stage(table, catalog, write)
        if write.mode == "overwrite":
            # Replacing content nobody has looked at would lose it; the caller must look again.
            raise ExpectedVersionMismatch(write.table_key, early.read_version, table.version)
        if write.mode == "append":
            return table, early
        return table, _stage(table, catalog, write)

    def _head(self, branch: BranchRef, entry: SnapshotEntry) -> Table:
        if entry.branch == branch.physical:
            table = self._tables.open(entry.location, entry.branch)
            if table.version != entry.version:
                raise TableDrift(entry.table_key, entry.version, table.version)
            return table
        return self._fork(branch, entry)

    def _fork(self, branch: BranchRef, entry: SnapshotEntry) -> Table:
        """A line of its own for the table: the first write of a branch to it."""
        physical = branch.physical
        assert physical is not None, "tables of main are never forked"
        BEFORE_FORK.hit(table=entry.table_key)
        if self._tables.has_branch_files(entry.location, physical):
            # Nobody's: the manifest does not name it, and the lock keeps other writers out.
            self._tables.reclaim_branch(entry.location, physical, self._objects)
        try:
            return self._tables.create_branch(
                entry.location,
                physical,
                source_branch=entry.branch,
                source_version=entry.version,
            )
        except ForkExists as error:
            raise TableDrift(entry.table_key, entry.version, entry.version) from error


def _stage(table: Table, catalog: Catalog, write: TableWrite) -> Staged:
    rows = stored_rows(catalog.entity(write.table_key), write.rows, table.schema)
    if write.mode == "append":
        return stage_append(table, rows)
    if write.mode == "overwrite":
        return stage_overwrite(table, rows)
    staged = stage_delta(table, rows, ())
    assert staged is not None, "a merge without rows is not staged"
    return staged


def _net_counts(before: Table, write: TableWrite, change: Staged) -> Counts:
    """Net change by id: a row that an overwrite brings back is an update."""
    counts = change.counts
    if write.mode == "overwrite" and before.row_count():
        old = before.read(["id"]).column("id")
        kept = pc.sum(pc.is_in(write.rows.column("id"), value_set=old)).as_py() or 0
        return Counts(write.rows.num_rows - kept, kept, len(old) - kept)
    return Counts(counts.inserted, counts.updated, counts.deleted)


def _index_pending(table_key: str, column: str) -> Warning:
    return Warning("index_pending", f"the index on {table_key}.{column} could not be built yet")


def _version(entry: SnapshotEntry, committed: Table) -> TableVersion:
    return TableVersion(
        table_id=entry.table_id,
        version=committed.version,
        branch=committed.branch,
        row_count=committed.row_count(),
        info=committed.version_info().to_json(),
    )
