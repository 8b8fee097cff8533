"""Commit row changes under the branch lock, alone or in a turn shared with other writers.

A change that is made alone is prepared before its sidecar is written, so that recovery can complete
it. Turns shared by writers of this process are in `turn`.
Tests: tests/crash, tests/behaviour.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from omnigraph.commit.background import BackgroundCompactor, PendingEndings, due_compactions
from omnigraph.commit.change import Change, has_moved, preparing, touched_ids
from omnigraph.commit.tables import (
    EarlyStaging,
    WriteTable,
    index_lookups,
    missing_lookups,
    stage_early,
    write_table,
)
from omnigraph.errors import (
    ExpectedVersionMismatch,
    ManifestDamaged,
    PublishContention,
    SchemaMoved,
)
from omnigraph.faults import declare
from omnigraph.graph.parts import GraphParts
from omnigraph.limits import INDEXED_UNDER_LOCK_ROWS, PUBLISH_BUDGET_SECONDS
from omnigraph.progress import SILENT, Progress
from omnigraph.providers.documents import DocumentVectors, TextsToEmbed
from omnigraph.side_by_side import begin, in_parallel
from omnigraph.storage.stage import CommitMark, commit_staged, commit_together
from omnigraph.storage.table import Table
from omnigraph.versioning.branches import BranchRef
from omnigraph.versioning.commit_sequence import Ending, Operation, sidecar_of
from omnigraph.versioning.commits import CommitDraft, CommitId, CommitRecord, TableId, Warning
from omnigraph.versioning.locks import HeldLock
from omnigraph.versioning.manifest import KeyedCommit, ManifestState
from omnigraph.versioning.publish import Publication, RowsAhead, write_rows_ahead
from omnigraph.versioning.recent_commits import RecentCommits
from omnigraph.versioning.recovery.act import LateTable, table_version
from omnigraph.versioning.recovery.classify import late_drift, refuse_drift, refuse_quarantined
from omnigraph.versioning.recovery.sidecar import Pointer, Quarantined, WriterKind, warn_of
from omnigraph.versioning.rows import TableVersion, VersionRef
from omnigraph.versioning.snapshot import Snapshot, SnapshotEntry

BEFORE_FORK = declare("fork.before_classify", "before a branch's first write to a table")
AFTER_COLUMNS = declare("mutation.post_columns", "after a table of an older format got columns")
BEFORE_TABLE = declare("mutation.pre_table_commit", "before each table commit")
AFTER_TABLE = declare("mutation.post_table_commit", "after each table commit")
BEFORE_PUBLISH = declare("mutation.post_finalize_pre_publisher", "tables done, not published")
BEFORE_MERGE_PUBLISH = declare(
    "branch_merge.post_phase_b_pre_manifest_commit", "tables of a merge done, not published"
)
_BEFORE_PUBLISH = {WriterKind.BRANCH_MERGE: BEFORE_MERGE_PUBLISH}


def _unchanged(draft: CommitDraft) -> CommitDraft:
    return draft


@dataclass(slots=True)
class LockTime:
    """How long a write held the lock of its branch, measured where it is alone in a turn."""

    seconds: float = 0.0

    @contextmanager
    def measured(self) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            self.seconds += time.monotonic() - started


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """One atomic write of a branch."""

    branch: BranchRef
    kind: WriterKind
    draft: CommitDraft
    prepare: Callable[[Snapshot], Change]
    """Makes the change on a newer snapshot; raises when the write does not hold there. Called under
    the lock, where it must not wait for an embedding provider: `TextsToEmbed` then has it called
    again without the lock. It may be called by the thread of another writer."""
    change: Change | None = None
    """What was prepared without the lock, if anything, on the snapshot `checked`."""
    checked: Snapshot | None = None
    may_write: frozenset[str] | None = None
    """The tables that a preparation may change, for a small write that may share a turn."""
    complete_draft: Callable[[CommitDraft], CommitDraft] = _unchanged
    """Adds what only the last preparation can tell, right before the commit."""
    is_key_new: bool = False
    """Whether the key was made for this very call, so that no other call can have used it."""
    expected_head: CommitId | None = None
    commits_without_rows: bool = False
    ancestors: tuple[CommitRecord, ...] = ()
    """Commits of a merged branch, which the branch records as well."""
    quarantined: tuple[Quarantined, ...] = ()
    still_stored: Callable[[], None] | None = None
    """Of a merge: raises when something it refers to from now on was cleaned up meanwhile."""
    vectors: DocumentVectors = field(default_factory=DocumentVectors)
    """The vectors of the write's texts. Under the lock, no provider is asked for more of them."""
    progress: Progress = SILENT
    lock_time: LockTime = field(default_factory=LockTime)
    indexes_later: bool = False
    """Whether the caller builds look-up indexes of large tables after the write."""

    @property
    def locks(self) -> tuple[str | None, ...]:
        """The branches to lock. Locking main also excludes cleanup."""
        return (self.branch.physical, *(() if self.still_stored is None else (None,)))

    @property
    def is_shareable(self) -> bool:
        """Whether it may be one of several changes of a turn. One that expects a certain head may
        not: there the other changes would already be in its way."""
        return self.may_write is not None and self.expected_head is None

    def holds_on(self, current: Snapshot, recent: RecentCommits) -> bool:
        """Whether the prepared change can be written on a snapshot unchanged."""
        if self.change is None or self.checked is None:
            return False
        return not has_moved(self.change, self.checked, current, recent)

    def prepared_on(self, current: Snapshot) -> WriteRequest:
        """The request with its change prepared on a snapshot, without asking for vectors."""
        with self.vectors.only_known():
            return replace(self, change=self.prepare(current), checked=current)


class AlreadyWritten(Exception):
    """Another call has made the write with this key since the caller looked."""

    def __init__(self, found: KeyedCommit) -> None:
        self.found = found


class TableWriter:
    """Commits row changes to one graph."""

    def __init__(self, parts: GraphParts) -> None:
        self.parts = parts
        self._contended: set[str] = set()
        """Tables whose last write had to be prepared again, because of what others had written."""
        self.in_turns: frozenset[str] = frozenset()
        """The tables that changed in the last turn that several writers shared."""
        self.compactor = BackgroundCompactor(parts, self.note_compaction)
        self.endings = PendingEndings()

    def commit(self, request: WriteRequest) -> CommitRecord | None:
        """Make a write visible; None if it changes nothing."""
        from omnigraph.commit.turn import commit_in_turn

        deadline, attempt = time.monotonic() + PUBLISH_BUDGET_SECONDS, 0
        while True:
            attempt += 1
            self._refuse_quarantined(request)
            try:
                if request.is_shareable:
                    return commit_in_turn(self, request)
                return self._commit_alone(request)
            except TextsToEmbed:
                if time.monotonic() > deadline:
                    raise PublishContention(request.branch.public, attempt) from None
            newest = self.parts.manifest.current(request.branch.physical)
            checked = self.parts.snapshot_of(newest)
            request = replace(request, change=request.prepare(checked), checked=checked)

    def note_compaction(self, commit: CommitRecord) -> None:
        """A compaction changes no row: writes that were prepared before it still hold."""
        if commit.parent_commit_id is not None:
            self.parts.manifest.recent.add(commit.graph_commit_id, commit.parent_commit_id, {})

    def _refuse_quarantined(self, request: WriteRequest) -> None:
        if request.change is not None and request.checked is not None:
            for write in request.change.writes:
                entry = request.checked.entry(write.table_key)
                refuse_quarantined(entry, request.branch.physical, request.quarantined)

    def _commit_alone(self, request: WriteRequest) -> CommitRecord | None:
        early = self.begin_early(request)
        due: dict[str, int] = {}
        with (
            self.parts.locks.hold_all(request.locks, request.kind.value.lower()) as lock,
            request.lock_time.measured(),
        ):
            if request.still_stored is not None:
                request.still_stored()
            # A writer may have died since this one looked for sidecars. What it wrote is completed or
            # undone first: this write must not be validated against a state that is about to change.
            recovered = self.parts.recovery.recover_locked(request.branch.physical, lock)
            request = replace(request, quarantined=recovered.quarantined)
            commit = self.make(request, early, lock, due)
        if commit is not None:
            self.compactor.after_write(request.branch, due, request.draft)
        return commit

    def wait(self) -> None:
        """Return when all acknowledged writes have ended and compaction is done."""
        self.endings.wait()
        self.compactor.wait()

    def begin_early(self, request: WriteRequest) -> Callable[[], EarlyStaging]:
        """Begin what can be done before the lock is taken, unless it would be outdated then.

        On an object store it is done while the writer waits for its lock. What is returned waits for
        the end of it.
        """
        change, checked, physical = request.change, request.checked, request.branch.physical
        if change is None or checked is None:
            return EarlyStaging
        if change.is_small and any(w.table_key in self._contended for w in change.writes):
            return EarlyStaging
        tables = self.parts.tables
        if tables.is_remote and change.is_small:
            return begin(lambda: stage_early(tables, physical, change, checked))
        with preparing(tables):
            early = stage_early(tables, physical, change, checked)
        return lambda: early

    # -- under the lock ---------------------------------------------------------------------

    def make(
        self,
        request: WriteRequest,
        early: Callable[[], EarlyStaging],
        lock: HeldLock,
        due: dict[str, int],
        endings: list[Ending] | None = None,
    ) -> CommitRecord | None:
        """Commit one change on its own; the lock is held and the branch is recovered.

        Adds the tables that have too many small files now to `due`, and phase D to `endings`.
        """
        self.refuse_repeated(request)
        request, state, tables = self._ready(request, early(), lock)
        if not tables and not request.commits_without_rows:
            return None
        ready = replace(request, draft=final_draft(request, tables))
        work = SingleChange(self, ready, state, tables, lock)
        commit = work.run(endings)
        assert request.change is not None
        if not request.change.adopted and commit.parent_commit_id is not None:
            touched = touched_ids(request.change.writes)
            self.parts.manifest.recent.add(commit.graph_commit_id, commit.parent_commit_id, touched)
        keys = (table.entry.table_key for table in tables)
        due |= due_compactions(zip(keys, work.written, strict=True)) if work.written else {}
        return commit

    def refuse_repeated(self, request: WriteRequest) -> None:
        """Raises `AlreadyWritten` when another call with the same key has committed."""
        draft = request.draft
        if not request.is_key_new and draft.idempotency_key != draft.operation_id:
            found = self.parts.manifest.find_keyed(request.branch.physical, draft.idempotency_key)
            if found is not None:
                raise AlreadyWritten(found)

    def _ready(
        self, request: WriteRequest, early: EarlyStaging, lock: HeldLock
    ) -> tuple[WriteRequest, ManifestState, list[WriteTable]]:
        """The change as it holds on the state it builds on, and its tables, staged for that."""
        while True:
            state = self.parts.recovery.state(request.branch.physical, lock)
            refuse_moved_schema(request, state)
            self.parts.manifest.require_head(state, request.expected_head)
            checked = request.checked
            is_known = checked is not None and state.head == checked.commit_id
            current = checked if checked and is_known else self.parts.snapshot_of(state)
            holds = request.holds_on(current, self.parts.manifest.recent)
            self.note_contention(request, holds=holds)
            if not holds:
                request, early = request.prepared_on(current), EarlyStaging()
            assert request.change is not None
            tables: list[WriteTable] = []
            late: LateTable | None = None
            for write in request.change.writes:
                entry = current.entry(write.table_key)
                base = self.base_of(request, entry, lock, early)
                if entry.branch == request.branch.physical and base.version != entry.version:
                    late = self._late(request, entry, base)
                    break
                forks = entry.branch != request.branch.physical
                ready = write_table(
                    write, entry, base, forks=forks, catalog=current.catalog, early=early.staged
                )
                if ready is not None:
                    tables.append(ready)
            if late is None:
                return request, state, tables
            self.parts.recovery.actions.discard_late(
                request.branch.physical, late, request.draft, lock.check
            )
            early = EarlyStaging()
            # The change holds for `current`, and only a table that is again what it was has moved.
            state = self.parts.recovery.state(request.branch.physical)
            request = replace(request, checked=self.parts.snapshot_of(state))

    def note_contention(self, request: WriteRequest, *, holds: bool) -> None:
        """Remember the tables of a write that has to be prepared again: what the next one stages
        before it has the lock would be outdated, too."""
        if request.change is not None:
            keys = {write.table_key for write in request.change.writes}
            self._contended = self._contended - keys if holds else self._contended | keys

    def base_of(
        self, request: WriteRequest, entry: SnapshotEntry, lock: HeldLock, early: EarlyStaging
    ) -> Table:
        """The table as the write finds it: its head, or the version the branch inherits."""
        physical = request.branch.physical
        refuse_quarantined(entry, physical, request.quarantined)
        seen = early.heads.get(entry.table_key)
        is_left = self.parts.recovery.is_undisturbed(physical, lock)
        if (
            seen is not None
            and is_left
            and VersionRef(seen.version, seen.branch) == entry.version_ref
        ):
            return seen
        if entry.branch != physical:
            return self.parts.tables.open(entry.location, entry.branch, entry.version)
        return self.parts.recovery.head_of(entry.location, entry.branch)

    def bases_of(
        self, request: WriteRequest, entries: Sequence[SnapshotEntry], lock: HeldLock
    ) -> dict[str, Table]:
        """The same for several tables; on an object store they are opened concurrently."""

        def base(entry: SnapshotEntry) -> Table:
            return self.base_of(request, entry, lock, EarlyStaging())

        is_remote = self.parts.tables.is_remote
        found = in_parallel(base, entries) if is_remote else [base(entry) for entry in entries]
        return {entry.table_key: table for entry, table in zip(entries, found, strict=True)}

    def _late(self, request: WriteRequest, entry: SnapshotEntry, head: Table) -> LateTable:
        """A table that moved without a publish, if operations recovered long ago explain it."""
        if head.version < entry.version:
            raise ManifestDamaged(
                f"'{entry.table_key}' is at version {head.version}, "
                f"but the graph knows version {entry.version}"
            )
        operations = late_drift(
            self.parts.manifest, request.branch.physical, head, entry.version_ref
        )
        if operations is None:
            raise refuse_drift(self.parts.recovery.sidecars, entry, head, request.quarantined)
        return LateTable(entry.table_key, entry.table_id, head, entry.version_ref, operations)

    # -- effects ----------------------------------------------------------------------------

    def fork(self, entry: SnapshotEntry, physical: str | None) -> Table:
        """Fork a table for the first write of a branch to it."""
        assert physical is not None, "tables of main are never forked"
        BEFORE_FORK.hit(table=entry.table_key)
        live = self.parts.manifest.current(physical).tables.get(entry.table_id)
        if live is None or (live.version, live.branch) != (entry.version, entry.branch):
            found = live.version if live else 0
            raise ExpectedVersionMismatch(entry.table_key, entry.version, found)
        if self.parts.tables.has_branch_files(entry.location, physical):
            # Neither the manifest nor a sidecar names it, and the lock keeps other writers out.
            self.parts.tables.reclaim_branch(entry.location, physical, self.parts.objects)
        return self.parts.tables.create_branch(
            entry.location, physical, source_branch=entry.branch, source_version=entry.version
        )

    def line_of(self, ready: WriteTable, branch: str | None, mark: CommitMark) -> Table:
        """The line of versions that a change is committed to, with all columns it needs."""
        table = self.fork(ready.entry, branch) if ready.forks else ready.base
        if ready.lacks:
            table = commit_staged(table, ready.stage_columns(table), **mark)
            AFTER_COLUMNS.hit(table=ready.write.table_key)
        return table

    def index(
        self,
        request: WriteRequest,
        tables: Sequence[WriteTable],
        written: list[Table],
        mark: CommitMark,
        lock: HeldLock,
    ) -> list[Warning]:
        """Build missing look-up indexes of the written tables."""
        # Others have to wait for it. A small write that finds a large table without its indexes leaves
        # them to the load that has made it large, or to the next one.
        is_small = request.change is not None and request.change.is_small
        waits = request.indexes_later or is_small
        missing = [
            ()
            if waits and table.row_count() > INDEXED_UNDER_LOCK_ROWS
            else missing_lookups(table, ready.declared)
            for ready, table in zip(tables, written, strict=True)
        ]
        warnings: list[Warning] = []
        if not any(missing):
            return warnings
        rows = [
            table.row_count() if lacks else 0 for table, lacks in zip(written, missing, strict=True)
        ]
        request.progress.stage("index", sum(rows))
        for place, columns in enumerate(missing):
            if columns:
                lock.check()
                written[place], unindexed = index_lookups(written[place], columns, **mark)
                key = tables[place].write.table_key
                warnings += [_index_pending(key, column) for column in unindexed]
                request.progress.advance(rows[place])
        return warnings


@dataclass(slots=True)
class SingleChange:
    """One change with its own operation, which recovery can complete."""

    writer: TableWriter
    request: WriteRequest
    state: ManifestState
    tables: Sequence[WriteTable]
    lock: HeldLock
    written: list[Table] = field(default_factory=list)

    def run(self, endings: list[Ending] | None) -> CommitRecord:
        sequence, physical = self.writer.parts.sequence, self.request.branch.physical
        if not self.tables:
            return sequence.publish_only(physical, self._publication([], []), self.lock)
        request = self.request
        sidecar = sidecar_of(
            request.kind,
            request.branch,
            self.state,
            request.draft,
            (table.sidecar_entry(physical) for table in self.tables),
            pointers=self._pointers(),
        )
        before_publish = _BEFORE_PUBLISH.get(request.kind, BEFORE_PUBLISH)
        operation = Operation(
            sidecar, self._commit_tables, before_publish, ahead=self._begin_publication()
        )
        [commit] = sequence.run(operation, self.lock, endings)
        self.writer.parts.tables.keep(self.written)
        return commit

    def _begin_publication(self) -> RowsAhead | None:
        """On an object store: begin to write the rows of the publish, which can be foreseen unless
        a table is given other versions than one with the rows of the write."""
        parts, physical = self.writer.parts, self.request.branch.physical
        if not parts.tables.is_remote or self.request.ancestors or self._adopted():
            return None
        versions = [table.foreseen() for table in self.tables]
        if None in versions:
            return None
        publication = self._publication([v for v in versions if v is not None], [])
        return begin(lambda: write_rows_ahead(parts.manifest, physical, [publication]))

    def _adopted(self) -> list[SnapshotEntry]:
        assert self.request.change is not None
        return [table.entry for table in self.request.change.adopted]

    def _pointers(self) -> list[Pointer]:
        found = ((entry, self._version_ref(entry.table_id)) for entry in self._adopted())
        return [
            Pointer(entry.table_id, entry.location, entry.version, before.version, before.branch)
            for entry, before in found
        ]

    def _version_ref(self, table_id: TableId) -> VersionRef:
        """The current table version of the branch."""
        entry = self.state.tables[table_id]
        return VersionRef(entry.version, entry.branch)

    def _commit_tables(self) -> list[Publication]:
        request, writer = self.request, self.writer
        mark: CommitMark = {
            "operation_id": request.draft.operation_id,
            "writer_kind": request.kind.value,
        }
        staged = []
        for ready in self.tables:
            self.lock.check()
            line = writer.line_of(ready, request.branch.physical, mark)
            staged.append((line, ready.stage_on(line, writer.parts.objects)))
        names = {
            line.lineage.uri: ready.write.table_key
            for (line, _), ready in zip(staged, self.tables, strict=True)
        }

        def before_each(table: Table) -> None:
            BEFORE_TABLE.hit(table=names[table.lineage.uri])
            self.lock.check()

        def after_each(table: Table) -> None:
            AFTER_TABLE.hit(table=names[table.lineage.uri])

        self.written += commit_together(
            staged, **mark, before_each=before_each, after_each=after_each
        )
        request.progress.advance(sum(ready.write.row_count for ready in self.tables))
        warnings = writer.index(request, self.tables, self.written, mark, self.lock)
        return [self._publication(table_versions(self.tables, self.written), warnings)]

    def _publication(
        self, versions: Sequence[TableVersion], warnings: Sequence[Warning]
    ) -> Publication:
        draft, adopted = self.request.draft, self._adopted()
        expected = {table.entry.table_id: table.entry.version_ref for table in self.tables}
        return Publication(
            draft=replace(draft, warnings=(*draft.warnings, *warnings)),
            versions=(*versions, *(self._pointed_at(entry) for entry in adopted)),
            ancestors=self.request.ancestors,
            expected=expected | {e.table_id: self._version_ref(e.table_id) for e in adopted},
            expected_head=self.request.expected_head,
            revalidate=self._revalidate,
            begun_at=self.state.sequence,
            is_key_new=self.request.is_key_new,
        )

    def _pointed_at(self, entry: SnapshotEntry) -> TableVersion:
        """A stored version as a publish names it."""
        table = self.writer.parts.tables.open(entry.location, entry.branch, entry.version)
        return table_version(entry.table_id, table)

    def _revalidate(self, found: ManifestState) -> None:
        """Check that the write still holds if another writer has published meanwhile."""
        if found.sequence != self.state.sequence:
            parts, change = self.writer.parts, self.request.change
            before, now = parts.snapshot_of(self.state), parts.snapshot_of(found)
            assert change is not None
            if has_moved(change, before, now):
                self.request.prepare(now)


def table_versions(tables: Sequence[WriteTable], written: Sequence[Table]) -> list[TableVersion]:
    """Committed tables as a publish names them."""
    return [
        table_version(ready.entry.table_id, table)
        for ready, table in zip(tables, written, strict=True)
    ]


def final_draft(request: WriteRequest, tables: Sequence[WriteTable]) -> CommitDraft:
    """The draft, completed after the last preparation."""
    assert request.change is not None
    draft = request.complete_draft(request.draft)
    adopted = {table.entry.table_id: table.counts for table in request.change.adopted}
    return replace(
        draft,
        counts=adopted | {table.entry.table_id: table.counts for table in tables},
        warnings=(*draft.warnings, *warn_of(request.quarantined)),
    )


def refuse_moved_schema(request: WriteRequest, state: ManifestState) -> None:
    """Refuse a change that was validated under another schema."""
    if state.schema_ref not in (None, request.draft.schema_ref):
        raise SchemaMoved()


def _index_pending(table_key: str, column: str) -> Warning:
    return Warning("index_pending", f"the index on {table_key}.{column} could not be built yet")
