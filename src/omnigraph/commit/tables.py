"""The tables of one write: open them, stage the change, and build missing look-up indexes.

Tables are opened under the branch lock. A table the branch has not forked yet is only read: its fork
is made after the sidecar is written, and the change goes there. A write builds the B-tree indexes of a
table that has grown large enough; text and vector indexes take longer and are left to `ensure_indices`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.arrow import IndexKind, index_specs
from omnigraph.catalog.model import Catalog, EntityType
from omnigraph.commit.change import Change, TableWrite, WriteMode, WrittenTable
from omnigraph.errors import ExpectedVersionMismatch, HistoryRemoved, OmnigraphError
from omnigraph.limits import INDEX_MIN_ROWS
from omnigraph.rows.bindings import binding_fields
from omnigraph.side_by_side import both, each
from omnigraph.storage.columns import stage_columns
from omnigraph.storage.delta import Targets, find_targets, stage_delta
from omnigraph.storage.indexes import (
    BuiltIndex,
    build_btree,
    stage_indexes,
    uncovered_fragments,
)
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.stage import (
    RowCounts,
    StagedChange,
    commit_staged,
    stage_append,
    stage_overwrite,
)
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.storage.versions import VersionObject, version_info
from omnigraph.storage.written import by_fragment, move_written, shrink, stage_written
from omnigraph.versioning.commit_sequence import sidecar_table
from omnigraph.versioning.commits import Counts
from omnigraph.versioning.recovery.sidecar import SidecarTable
from omnigraph.versioning.rows import TableVersion
from omnigraph.versioning.snapshot import Snapshot, SnapshotEntry
from omnigraph.versioning.snapshot_rows import stored_rows


@dataclass(frozen=True, slots=True)
class WriteTable:
    """One table of a write: what it is built on, what will be written, what that comes to."""

    write: TableWrite
    declared: EntityType
    entry: SnapshotEntry
    base: Table
    """The version the write replaces; of the line it is forked from if `forks`."""
    forks: bool
    rows: pa.Table
    counts: Counts
    staged: StagedChange | None = None
    targets: Targets | None = None
    lacks: tuple[pa.Field, ...] = ()
    """Columns of bindings that a table of an older format does not have. They are added first."""

    def stage_columns(self, table: Table) -> StagedChange:
        """The columns that the table lacks, staged for the line they will be committed to."""
        return stage_columns(table, empty=self.lacks)

    def stage_on(self, table: Table, objects: ObjectStore) -> StagedChange:
        """The change, staged for the line it will be committed to."""
        if self.staged is not None:
            return self.staged
        if self.write.written is not None:
            return _stage_moved(table, self.write.written, self.write.mode, objects)
        rows = _stored(self.declared, self.write, table) if self.lacks else self.rows
        staged = _stage(table, self.write, rows, self.targets)
        assert staged is not None, "a write that changes nothing is left out before"
        return staged

    def foreseen(self) -> TableVersion | None:
        """What a publish will say of the table after the write, if that is known before."""
        if self.staged is None or self.forks or self.lacks:
            return None
        lineage, version = self.base.lineage, self.base.version + 1
        info = version_info(lineage, version).to_json()
        rows = self.staged.row_count_after
        return TableVersion(self.entry.table_id, version, lineage.branch, rows, info)

    def sidecar_entry(self, branch: str | None) -> SidecarTable:
        commits = 2 if self.lacks else 1
        return sidecar_table(self.entry, branch, data_commits=commits, forks=self.forks)


@dataclass(frozen=True, slots=True)
class EarlyStaging:
    """What was done for a write before it had the lock."""

    staged: Mapping[str, StagedChange] = field(default_factory=dict)
    heads: Mapping[str, Table] = field(default_factory=dict)
    """Tables whose newest version was looked at, on an object store. They are right for a writer
    whose lock no other process has had since."""


def stage_early(
    tables: TableStore, branch: str | None, change: Change, checked: Snapshot
) -> EarlyStaging:
    """Stage, without any lock, what goes to lines the branch has already."""
    if not tables.is_remote:
        return EarlyStaging(_staged_early(tables, branch, change, checked))
    keys = [write.table_key for write in change.writes]
    owned = [key for key in keys if checked.entry(key).branch == branch]

    def newest(key: str) -> VersionObject | None:
        return tables.newest_object(checked.entry(key).location, branch)

    staged, found = both(
        lambda: _staged_early(tables, branch, change, checked),
        lambda: each([partial(newest, key) for key in owned]),
    )
    opened = {key: checked.open(tables, key) for key in staged}
    return EarlyStaging(
        staged,
        {
            key: opened[key]
            for key, head in zip(owned, found, strict=True)
            if key in opened and head is not None and head.version == opened[key].version
        },
    )


def _staged_early(
    tables: TableStore, branch: str | None, change: Change, checked: Snapshot
) -> dict[str, StagedChange]:
    staged: dict[str, StagedChange] = {}
    for write in change.writes:
        if checked.entry(write.table_key).branch != branch:
            continue
        try:
            table = checked.open(tables, write.table_key)
        except HistoryRemoved:
            # Cleaned up since the caller looked. The newest version is for the lock to find.
            continue
        if write.written is not None:
            if write.written.table.version == table.version:
                staged[write.table_key] = _stage_written(table, write.written, write.mode)
            continue
        declared = checked.catalog.entity(write.table_key)
        if _lacking(declared, table):
            continue
        rows = _stored(declared, write, table)
        change_of_table = _stage(table, write, rows, None)
        if change_of_table is not None:
            staged[write.table_key] = change_of_table
    return staged


def write_table(
    write: TableWrite,
    entry: SnapshotEntry,
    base: Table,
    *,
    forks: bool,
    catalog: Catalog,
    early: Mapping[str, StagedChange],
    looked_up_in: Table | None = None,
) -> WriteTable | None:
    """A table made ready under the lock; None if the write would change nothing in it.

    `looked_up_in` is an earlier version that has the same rows under the ids of the write.
    """
    declared = catalog.entity(write.table_key)
    staged = early.get(write.table_key)
    if staged is not None and staged.read_version != base.version:
        staged = None if write.written is not None else staged.moved_to(base)
    if write.written is not None:
        written, mode = write.written, write.mode
        if staged is None and not forks:
            staged = _stage_written(base, written, mode)
        counts = _written_counts(base, written, mode)
        return WriteTable(write, declared, entry, base, forks, write.rows, counts, staged)
    rows, lacks = _stored(declared, write, base), _lacking(declared, base)
    moves_first = forks or bool(lacks)
    if staged is None and write.mode == "delta":
        targets = _targets(looked_up_in or base, write, rows)
        if targets.is_noop:
            return None
        counts = _net(targets.counts)
        ready = None if moves_first else stage_delta(base, rows, write.deletes, targets)
        return WriteTable(write, declared, entry, base, forks, rows, counts, ready, targets, lacks)
    if staged is None and not moves_first:
        staged = _stage(base, write, rows, None)
    counts = _counts(base, write, staged)
    return WriteTable(
        write, declared, entry, base, forks, rows, counts, staged, targets=None, lacks=lacks
    )


def _lacking(declared: EntityType, table: Table) -> tuple[pa.Field, ...]:
    """The columns of bindings that a table does not have."""
    return tuple(f for f in binding_fields(declared) if f.name not in table.schema.names)


def _stored(declared: EntityType, write: TableWrite, table: Table) -> pa.Table:
    return stored_rows(declared, write.rows, table.schema)


def _stage(
    table: Table, write: TableWrite, rows: pa.Table, targets: Targets | None
) -> StagedChange | None:
    if write.mode == "append":
        return stage_append(table, rows)
    if write.mode == "overwrite":
        return stage_overwrite(table, rows)
    return stage_delta(table, rows, write.deletes, targets or _targets(table, write, rows))


def _stage_written(table: Table, written: WrittenTable, mode: WriteMode) -> StagedChange:
    """Rows in files, on the version they were written for or, if they replace nothing, a later one."""
    if mode == "delta" and table.version != written.table.version:
        raise ExpectedVersionMismatch(table.path, written.table.version, table.version)
    return stage_written(table, mode, written.parts, written.shrunk)


def _stage_moved(
    table: Table, written: WrittenTable, mode: WriteMode, objects: ObjectStore
) -> StagedChange:
    """Rows in files of the line a table was forked from, brought over to its own."""
    fragments = [text for part in written.parts for text in part.fragments]
    move_written(objects, written.table.lineage, table.lineage, fragments)
    shrunk = [shrink(table, addresses) for addresses in by_fragment(written.parts)]
    return stage_written(table, mode, written.parts, shrunk)


def _written_counts(base: Table, written: WrittenTable, mode: WriteMode) -> Counts:
    known = sum(part.known for part in written.parts)
    removed = sum(part.removed for part in written.parts)
    gone = base.row_count() - known if mode == "overwrite" else removed
    return Counts(written.rows - known, known, gone)


def _targets(table: Table, write: TableWrite, rows: pa.Table) -> Targets:
    seen = write.seen
    if seen is not None and (seen.version, seen.branch) == (table.version, table.branch):
        return find_targets(table, rows, write.deletes, seen.places)
    return find_targets(table, rows, write.deletes)


def _counts(base: Table, write: TableWrite, staged: StagedChange | None) -> Counts:
    """Net change by id: a row that an overwrite brings back is an update."""
    new = write.rows.num_rows
    if write.mode == "append":
        return Counts(inserted=new)
    if write.mode == "overwrite":
        if not base.row_count():
            return Counts(inserted=new)
        old = base.read(["id"]).column("id")
        kept = pc.sum(pc.is_in(write.rows.column("id"), value_set=old)).as_py() or 0
        return Counts(new - kept, kept, len(old) - kept)
    assert staged is not None
    return _net(staged.counts)


def _net(counts: RowCounts) -> Counts:
    return Counts(counts.inserted, counts.updated, counts.deleted)


_log = logging.getLogger(__name__)


def missing_lookups(table: Table, declared: EntityType) -> tuple[str, ...]:
    """The columns that are looked up and have no index, in a table large enough for one."""
    if table.row_count() < INDEX_MIN_ROWS:
        return ()
    return tuple(
        intent.column
        for intent in index_specs(declared)
        if intent.kind is IndexKind.BTREE
        and intent.column in table.schema.names
        and _lacks_index(table, intent.column)
    )


def index_lookups(
    table: Table, columns: Sequence[str], *, operation_id: str, writer_kind: str
) -> tuple[Table, tuple[str, ...]]:
    """Build look-up indexes of a table that was just written.

    Returns the table and the columns whose index could not be built, which never fails a write.
    """
    built: dict[str, BuiltIndex] = {}
    pending: list[str] = []
    for column in columns:
        try:
            built[column] = build_btree(table, column)
        except OmnigraphError as error:
            _log.warning("could not build the index of %s.%s: %s", table.lineage.uri, column, error)
            pending.append(column)
    if not built:
        return table, tuple(pending)
    try:
        staged = stage_indexes(table, list(built.values()))
        table = commit_staged(table, staged, operation_id=operation_id, writer_kind=writer_kind)
    except OmnigraphError as error:
        _log.warning("could not commit the indexes of %s: %s", table.lineage.uri, error)
        pending += built
    return table, tuple(pending)


def _lacks_index(table: Table, column: str) -> bool:
    try:
        return uncovered_fragments(table, column) is None
    except OmnigraphError:
        return True  # Building it reports what is wrong.
