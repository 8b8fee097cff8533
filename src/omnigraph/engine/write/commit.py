"""The commit sequence: staged tables, then the lock, the sidecar, the table commits and one publish.

Phase A writes the sidecar, B commits the tables, C publishes, D removes the sidecar. Nothing of a
write can be seen before C. From A on a crash is answered by recovery; an error that is no crash is
undone here, while the lock is held. Tests: tests/crash, tests/behaviour.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from omnigraph.embed.documents import DocumentVectors, TextsToEmbed
from omnigraph.engine.parts import GraphParts
from omnigraph.engine.write.change import Change
from omnigraph.engine.write.fold import Folding, is_fold_due
from omnigraph.engine.write.lookups import index_lookups, missing_lookups
from omnigraph.engine.write.moved import has_moved, is_table_moved
from omnigraph.engine.write.tables import WriteTable, stage_early, write_table
from omnigraph.errors import (
    CommitStateUnknown,
    ExpectedVersionMismatch,
    ManifestDamaged,
    PublishContention,
    SchemaMoved,
)
from omnigraph.faults import InjectedFault, declare
from omnigraph.interrupts import uninterrupted
from omnigraph.limits import PUBLISH_BUDGET_SECONDS
from omnigraph.progress import SILENT, Progress
from omnigraph.storage.stage import Staged, commit_staged
from omnigraph.storage.table import Table
from omnigraph.versioning.branches import BranchRef
from omnigraph.versioning.commits import CommitDraft, CommitId, CommitRecord, TableId, Warning
from omnigraph.versioning.ids import process_identity
from omnigraph.versioning.locks import HeldLock
from omnigraph.versioning.manifest import KeyedCommit, ManifestState
from omnigraph.versioning.publish import Publication, publish
from omnigraph.versioning.recovery.act import LateTable, table_version
from omnigraph.versioning.recovery.drift import late_drift, refuse_drift, refuse_quarantined
from omnigraph.versioning.recovery.quarantine import Quarantined, warn_of
from omnigraph.versioning.recovery.sidecar import Pointer, Sidecar, WriterKind
from omnigraph.versioning.rows import Pin, TableVersion
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


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """One atomic write of a branch, checked against a snapshot."""

    branch: BranchRef
    kind: WriterKind
    draft: CommitDraft
    change: Change
    prepare: Callable[[Snapshot], Change]
    """Makes the change on a newer snapshot; raises when the write does not hold there. Called under
    the lock, where it must not wait for an embedding provider: `TextsToEmbed` then has it called
    again without the lock."""
    complete_draft: Callable[[CommitDraft], CommitDraft] = _unchanged
    """Adds what only the last preparation can tell, right before the commit."""
    is_key_new: bool = False
    """Whether the key was made for this very call, so that no other call can have used it."""
    expected_head: CommitId | None = None
    commits_without_rows: bool = False
    ancestors: tuple[CommitRecord, ...] = ()
    """Commits of a merged branch, which the branch is to tell of as well."""
    quarantined: tuple[Quarantined, ...] = ()
    still_stored: Callable[[], None] | None = None
    """Of a merge: raises when something it refers to from now on was cleaned up meanwhile."""
    vectors: DocumentVectors = field(default_factory=DocumentVectors)
    """The vectors of the write's texts. Under the lock, no provider is asked for more of them."""
    progress: Progress = SILENT

    @property
    def locks(self) -> tuple[str | None, ...]:
        """The branches that stand still meanwhile. Only who has locked main cleans up."""
        return (self.branch.physical, *(() if self.still_stored is None else (None,)))


class AlreadyWritten(Exception):
    """The write with this key was made by another call between our look and our lock."""

    def __init__(self, found: KeyedCommit) -> None:
        self.found = found


class TableWriter:
    """Runs the commit sequence for one graph."""

    def __init__(self, parts: GraphParts) -> None:
        self.parts = parts
        self._contended: set[str] = set()
        """Tables of which the last write found that others had written them meanwhile."""
        self.folding = Folding(parts)

    def commit(self, request: WriteRequest, checked: Snapshot) -> CommitRecord | None:
        """Make a checked write visible; None if it changes nothing.

        `checked` is the snapshot the change was made on.
        """
        deadline, attempt = time.monotonic() + PUBLISH_BUDGET_SECONDS, 0
        while True:
            attempt += 1
            try:
                return self._commit(request, checked)
            except TextsToEmbed:
                if time.monotonic() > deadline:
                    raise PublishContention(request.branch.public, attempt) from None
            newest = self.parts.manifest.current(request.branch.physical)
            checked = self.parts.snapshot_of(newest)
            request = replace(request, change=request.prepare(checked))

    def _commit(self, request: WriteRequest, checked: Snapshot) -> CommitRecord | None:
        physical = request.branch.physical
        for write in request.change.writes:
            refuse_quarantined(checked.entry(write.table_key), physical, request.quarantined)
        early: dict[str, Staged] = {}
        if not (request.change.is_small and self._is_contended(request)):
            early = stage_early(self.parts.tables, physical, request.change, checked)
        pieces: list[str] = []
        with (
            self.parts.locks.hold_all(request.locks, request.kind.value.lower()) as lock,
            request.vectors.only_known(),
        ):
            if request.still_stored is not None:
                request.still_stored()
            # A writer may have died since this one looked for sidecars. What it wrote is completed or
            # undone first: this write must not be validated against a state that is about to change.
            healed = self.parts.recovery.heal_locked(physical, lock)
            request = replace(request, quarantined=healed.quarantined)
            self._refuse_repeated(request)
            state, change, tables = self._ready(request, checked, early, lock)
            if not tables and not request.commits_without_rows:
                return None
            adopted = {table.entry.table_id: table.counts for table in change.adopted}
            draft = request.complete_draft(request.draft)
            draft = replace(
                draft,
                counts=adopted | {table.entry.table_id: table.counts for table in tables},
                warnings=(*draft.warnings, *warn_of(request.quarantined)),
            )
            ready = replace(request, change=change, draft=draft)
            commit = uninterrupted(_Commit(self, ready, state, tables, lock, pieces).run)
        self.folding.after_write(request.branch, pieces, draft)
        return commit

    def _refuse_repeated(self, request: WriteRequest) -> None:
        """Raises `AlreadyWritten` when another call with the same key was quicker."""
        draft = request.draft
        if not request.is_key_new and draft.idempotency_key != draft.operation_id:
            found = self.parts.manifest.find_keyed(request.branch.physical, draft.idempotency_key)
            if found is not None:
                raise AlreadyWritten(found)

    # -- before the first effect ------------------------------------------------------------

    def _ready(
        self, request: WriteRequest, checked: Snapshot, early: dict[str, Staged], lock: HeldLock
    ) -> tuple[ManifestState, Change, list[WriteTable]]:
        """The state the write builds on, the change made on it, and its tables, staged for it."""
        change = request.change
        while True:
            state = self.parts.recovery.state(request.branch.physical)
            _refuse_moved_schema(request, state)
            self.parts.manifest.require_head(state, request.expected_head)
            current = checked if state.head == checked.commit_id else self.parts.snapshot_of(state)
            self._note_contention(change, checked, current)
            if has_moved(change, checked, current):
                change, checked, early = request.prepare(current), current, {}
            tables: list[WriteTable] = []
            late: LateTable | None = None
            for write in change.writes:
                entry = current.entry(write.table_key)
                base = self._base(request, entry)
                if entry.branch == request.branch.physical and base.version != entry.version:
                    late = self._late(request, entry, base)
                    break
                forks = entry.branch != request.branch.physical
                ready = write_table(
                    write, entry, base, forks=forks, catalog=current.catalog, early=early
                )
                if ready is not None:
                    tables.append(ready)
            if late is None:
                return state, change, tables
            self.parts.recovery.actions.discard_late(
                request.branch.physical, late, request.draft, lock.check
            )
            # The change holds for `current`, and only a table that is again what it was has moved.
            checked = self.parts.snapshot_of(self.parts.recovery.state(request.branch.physical))

    def _note_contention(self, change: Change, checked: Snapshot, current: Snapshot) -> None:
        """Remember which tables others wrote while this write was prepared and waited."""
        for write in change.writes:
            if write.table_key in current.entries and is_table_moved(
                write.table_key, checked, current
            ):
                self._contended.add(write.table_key)
            else:
                self._contended.discard(write.table_key)

    def _is_contended(self, request: WriteRequest) -> bool:
        """Whether what is staged before the lock is taken would probably be outdated by then."""
        return any(write.table_key in self._contended for write in request.change.writes)

    def _base(self, request: WriteRequest, entry: SnapshotEntry) -> Table:
        """The table as the write finds it: its head, or the version the branch inherits."""
        physical = request.branch.physical
        refuse_quarantined(entry, physical, request.quarantined)
        if entry.branch != physical:
            return self.parts.tables.open(entry.location, entry.branch, entry.version)
        return self.parts.recovery.head_of(entry.location, entry.branch)

    def _late(self, request: WriteRequest, entry: SnapshotEntry, head: Table) -> LateTable:
        """A table that moved without a publish, if operations settled long ago explain it."""
        if head.version < entry.version:
            raise ManifestDamaged(
                f"'{entry.table_key}' is at version {head.version}, "
                f"but the graph knows version {entry.version}"
            )
        operations = late_drift(self.parts.manifest, request.branch.physical, head, entry.pin)
        if operations is None:
            raise refuse_drift(self.parts.recovery.sidecars, entry, head, request.quarantined)
        return LateTable(entry.table_key, entry.table_id, head, entry.pin, operations)

    # -- effects ----------------------------------------------------------------------------

    def fork(self, entry: SnapshotEntry, physical: str | None) -> Table:
        """A line of its own for the table: the first write of a branch to it."""
        assert physical is not None, "tables of main are never forked"
        BEFORE_FORK.hit(table=entry.table_key)
        live = self.parts.manifest.current(physical).tables.get(entry.table_id)
        if live is None or (live.version, live.branch) != (entry.version, entry.branch):
            found = live.version if live else 0
            raise ExpectedVersionMismatch(entry.table_key, entry.version, found)
        if self.parts.tables.has_branch_files(entry.location, physical):
            # Nobody's: neither the manifest nor a sidecar names it, and the lock keeps others out.
            self.parts.tables.reclaim_branch(entry.location, physical, self.parts.objects)
        return self.parts.tables.create_branch(
            entry.location, physical, source_branch=entry.branch, source_version=entry.version
        )

    def pointed_at(self, entry: SnapshotEntry) -> TableVersion:
        """A stored version as a publish names it."""
        table = self.parts.tables.open(entry.location, entry.branch, entry.version)
        return table_version(entry.table_id, table)

    def publish(
        self, request: WriteRequest, state: ManifestState, publication: Publication, lock: HeldLock
    ) -> CommitRecord:
        """Publish; if somebody else did so meanwhile, only if the write still holds."""

        def hold_on(found: ManifestState) -> None:
            if found.sequence != state.sequence:
                before, now = self.parts.snapshot_of(state), self.parts.snapshot_of(found)
                if has_moved(request.change, before, now):
                    request.prepare(now)

        guarded = replace(publication, revalidate=hold_on)
        return publish(self.parts.manifest, request.branch.physical, guarded, lock.check)


@dataclass(frozen=True, slots=True)
class _Commit:
    """Phases A to D of one write, under the lock."""

    writer: TableWriter
    request: WriteRequest
    state: ManifestState
    tables: Sequence[WriteTable]
    lock: HeldLock
    pieces: list[str]
    """Tables this write leaves in too many pieces, filled in as they are committed."""

    def run(self) -> CommitRecord:
        if not self.tables:
            return self._publish([], ())
        sidecar = self._sidecar()
        recovery = self.writer.parts.recovery
        self.lock.check()
        recovery.begin(sidecar)
        try:
            versions, warnings = self._commit_tables()
            _BEFORE_PUBLISH.get(self.request.kind, BEFORE_PUBLISH).hit(
                branch=self.request.branch.physical
            )
            commit = self._publish(versions, warnings)
        except (InjectedFault, CommitStateUnknown):
            raise
        except Exception as error:
            recovery.undo_own(sidecar, self.lock, error)
            raise
        recovery.end(sidecar)
        return commit

    def _sidecar(self) -> Sidecar:
        branch = self.request.branch
        return Sidecar(
            owner=process_identity(),
            branch=None if branch.physical is None else branch.public,
            physical=branch.physical,
            base_sequence=self.state.sequence,
            writer_kind=self.request.kind,
            tables=tuple(table.pinned(branch.physical) for table in self.tables),
            draft=self.request.draft,
            pointers=tuple(
                Pointer(
                    table.entry.table_id,
                    table.entry.location,
                    table.entry.version,
                    self._pin(table.entry.table_id),
                )
                for table in self.request.change.adopted
            ),
        )

    def _pin(self, table_id: TableId) -> Pin:
        """The version of a table that the branch has now."""
        entry = self.state.tables[table_id]
        return Pin(entry.version, entry.branch)

    def _commit_tables(self) -> tuple[list[TableVersion], tuple[Warning, ...]]:
        operation = {
            "operation_id": self.request.draft.operation_id,
            "writer_kind": self.request.kind.value,
        }
        written: list[Table] = []
        warnings: list[Warning] = []
        for ready in self.tables:
            self.lock.check()
            table = ready.base
            if ready.forks:
                table = self.writer.fork(ready.entry, self.request.branch.physical)
            if ready.lacks:
                table = commit_staged(table, ready.stage_columns(table), **operation)
                AFTER_COLUMNS.hit(table=ready.write.table_key)
            staged = ready.stage_on(table, self.writer.parts.objects)
            BEFORE_TABLE.hit(table=ready.write.table_key)
            self.lock.check()
            committed = commit_staged(table, staged, **operation)
            AFTER_TABLE.hit(table=ready.write.table_key)
            written.append(committed)
            self.request.progress.advance(ready.write.row_count)
        self._index(written, operation, warnings)
        versions = []
        for ready, committed in zip(self.tables, written, strict=True):
            versions.append(table_version(ready.entry.table_id, committed))
            if is_fold_due(committed):
                self.pieces.append(ready.write.table_key)
        return versions, tuple(warnings)

    def _index(
        self, written: list[Table], operation: Mapping[str, str], warnings: list[Warning]
    ) -> None:
        """Put tables with look-up indexes in the place of those that lack some."""
        missing = [
            missing_lookups(table, ready.declared)
            for ready, table in zip(self.tables, written, strict=True)
        ]
        if not any(missing):
            return
        rows = [
            table.row_count() if lacks else 0 for table, lacks in zip(written, missing, strict=True)
        ]
        self.request.progress.stage("index", sum(rows))
        for place, columns in enumerate(missing):
            if columns:
                self.lock.check()
                written[place], unindexed = index_lookups(written[place], columns, **operation)
                key = self.tables[place].write.table_key
                warnings += [_index_pending(key, column) for column in unindexed]
                self.request.progress.advance(rows[place])

    def _publish(
        self, versions: Sequence[TableVersion], warnings: tuple[Warning, ...]
    ) -> CommitRecord:
        draft = self.request.draft
        adopted = [table.entry for table in self.request.change.adopted]
        expected = {table.entry.table_id: table.entry.pin for table in self.tables}
        publication = Publication(
            draft=replace(draft, warnings=(*draft.warnings, *warnings)),
            versions=(*versions, *(self.writer.pointed_at(entry) for entry in adopted)),
            ancestors=self.request.ancestors,
            expected=expected | {e.table_id: self._pin(e.table_id) for e in adopted},
            expected_head=self.request.expected_head,
            begun_at=self.state.sequence,
        )
        return self.writer.publish(self.request, self.state, publication, self.lock)


def _refuse_moved_schema(request: WriteRequest, state: ManifestState) -> None:
    """What was checked under one schema means nothing under another."""
    if state.schema_ref not in (None, request.draft.schema_ref):
        raise SchemaMoved()


def _index_pending(table_key: str, column: str) -> Warning:
    return Warning("index_pending", f"the index on {table_key}.{column} could not be built yet")
