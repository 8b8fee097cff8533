"""Background work after a write is acknowledged: compaction, and the end of the write itself.

Every small write adds a small fragment, and an id look-up has to scan the fragments that no index
covers. Past a limit they are merged and the indexes extended: same rows, same row ids, one commit. The
manifest is compacted likewise. A thread does this while there is work: writers never wait for it, and a
process that exits waits until it is done. Compaction is best effort; a failure is logged and the write
stands.

Ending a write deletes its sidecar and releases its lock. On an object store each of these is a request.
The write is already visible, and recovery finds it complete if the process dies here. So only the next
writer of the branch waits, not the caller. A process that exits waits for the ends in progress.
Tests: tests/behaviour/test_compaction.py.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock, RLock, Thread
from typing import Final

from omnigraph.catalog.arrow import IndexKind, index_specs
from omnigraph.catalog.model import EntityType
from omnigraph.errors import (
    BranchLocked,
    BranchNotFound,
    CommitStateUnknown,
    OmnigraphError,
)
from omnigraph.faults import declare
from omnigraph.graph.parts import GraphParts
from omnigraph.instruments import Event, Step, count, timed
from omnigraph.limits import (
    INDEX_LAG_ROWS,
    MAX_SMALL_FRAGMENTS,
    OVERDUE_FRAGMENTS,
    SMALL_FRAGMENT_ROWS,
)
from omnigraph.side_by_side import begin
from omnigraph.storage.compact import compact_with_indexes, small_fragments
from omnigraph.storage.table import Table
from omnigraph.versioning.branches import BranchRef
from omnigraph.versioning.commit_sequence import Operation, sidecar_of, sidecar_table
from omnigraph.versioning.commits import (
    CommitDraft,
    CommitId,
    CommitRecord,
    OperationId,
    OperationKind,
)
from omnigraph.versioning.ids import new_ulid, now_micros
from omnigraph.versioning.locks import HeldLock
from omnigraph.versioning.manifest import ManifestState
from omnigraph.versioning.manifest_compaction import compact_manifest, is_manifest_due
from omnigraph.versioning.publish import Publication
from omnigraph.versioning.recovery.act import table_version
from omnigraph.versioning.recovery.sidecar import Sidecar, WriterKind
from omnigraph.versioning.snapshot import Snapshot, SnapshotEntry

BEFORE_COMPACTION = declare("optimize.pre_table_fold", "before each table is compacted")
AFTER_COMPACTION = declare("optimize.post_table_fold", "after each compacted table")
BEFORE_PUBLISH = declare("optimize.post_phase_b_pre_manifest_commit", "compacted, not published")

THREAD_NAME: Final = "omnigraph-compact"

_log = logging.getLogger(__name__)


def is_compaction_due(table: Table) -> bool:
    return small_fragments(table, SMALL_FRAGMENT_ROWS) > MAX_SMALL_FRAGMENTS


def due_compactions(tables: Iterable[tuple[str, Table]]) -> dict[str, int]:
    """The tables that have too many small fragments, by key, and how many those are."""
    counted = {key: small_fragments(table, SMALL_FRAGMENT_ROWS) for key, table in tables}
    return {key: count for key, count in counted.items() if count > MAX_SMALL_FRAGMENTS}


@dataclass(frozen=True, slots=True)
class _Due:
    """Pending compaction of a branch: its tables, or only the manifest."""

    branch: BranchRef
    table_keys: tuple[str, ...]
    draft: CommitDraft
    is_overdue: bool = False


class BackgroundCompactor:
    """Compacts the tables of one graph in the background."""

    def __init__(
        self, parts: GraphParts, committed: Callable[[CommitRecord], None] = lambda _: None
    ) -> None:
        """`committed` is called for every compaction, while the branch is locked."""
        self._parts = parts
        self._committed = committed
        self._guard = Lock()
        self._due: dict[str | None, _Due] = {}
        self._thread: Thread | None = None

    def after_write(
        self,
        branch: BranchRef,
        fragments: Mapping[str, int],
        draft: CommitDraft,
    ) -> None:
        """Schedule the `due_compactions` of a write, and of the manifest."""
        if not fragments and not is_manifest_due(self._parts.manifest, branch.physical):
            return
        with self._guard:
            waiting = self._due.get(branch.physical)
            keys = dict.fromkeys((*(waiting.table_keys if waiting else ()), *fragments))
            overdue = max(fragments.values(), default=0) > OVERDUE_FRAGMENTS
            self._due[branch.physical] = _Due(branch, tuple(keys), draft, overdue)
            if self._thread is None:
                self._thread = Thread(target=self._work, name=THREAD_NAME)
                try:
                    self._thread.start()
                except RuntimeError as error:
                    # No more threads, or the interpreter is ending: the next writer will compact.
                    self._thread = None
                    _log.warning("compaction postponed: %s", error)

    def wait(self) -> None:
        """Return when no compaction is running."""
        while (thread := self._thread) is not None:
            thread.join()

    def _work(self) -> None:
        try:
            while (due := self._take()) is not None:
                self._compact_if_free(due)
        except BaseException:
            with self._guard:
                self._thread = None
            raise

    def _take(self) -> _Due | None:
        """The next thing to do. Without one the thread is gone: the next write makes another."""
        with self._guard:
            if self._due:
                return self._due.pop(next(iter(self._due)))
            self._thread = None
            return None

    def _compact_if_free(self, due: _Due) -> None:
        """Compact, unless a writer holds the lock: the next write schedules it again.

        A long overdue compaction waits for its turn, like a writer.
        """
        wait_ms = None if due.is_overdue else 0
        try:
            with self._parts.locks.hold(due.branch.physical, "compact", wait_ms=wait_ms) as lock:
                with timed(Step.COMPACT):
                    compacted = self._compact(due.branch, due.table_keys, due.draft, lock)
                lock.check()
                compact_manifest(self._parts.manifest.newest(due.branch.physical))
                # Released with the lock, for those that open the graph: the head as it is now.
                self._parts.manifest.current(due.branch.physical)
            for declared, table in compacted:
                self._extend_texts(declared, table)
            count(Event.COMPACTION, "done")
        except (BranchLocked, BranchNotFound):
            count(Event.COMPACTION, "busy")
        except CommitStateUnknown as error:
            count(Event.COMPACTION, "failed")
            _log.warning("compaction left to the next writer: %s", error)
        except OmnigraphError as error:
            count(Event.COMPACTION, "failed")
            names = ", ".join(due.table_keys) or "the manifest"
            _log.warning("compaction of %s postponed: %s", names, error)

    def _compact(
        self, branch: BranchRef, table_keys: Sequence[str], written: CommitDraft, lock: HeldLock
    ) -> list[tuple[EntityType, Table]]:
        self._parts.recovery.recover_locked(branch.physical, lock)
        state = self._parts.recovery.state(branch.physical)
        current = self._parts.snapshot_of(state)
        due = [(e, t) for e, t in self._heads(branch, current, table_keys) if is_compaction_due(t)]
        if not due:
            return []
        draft = optimize_draft(written.schema_ir_hash, written.schema_ref)
        done: list[tuple[EntityType, Table]] = []

        def commit_tables() -> list[Publication]:
            versions = []
            for entry, table in due:
                lock.check()
                BEFORE_COMPACTION.hit(table=entry.table_key)
                compacted = compact_with_indexes(table, SMALL_FRAGMENT_ROWS, INDEX_LAG_ROWS)
                AFTER_COMPACTION.hit(table=entry.table_key)
                if compacted.version != table.version:
                    versions.append((entry, compacted))
                done.append((current.catalog.entity(entry.table_key), compacted))
            return rewritten_tables(draft, state, versions)

        sidecar = optimize_sidecar(branch, state, [entry for entry, _ in due], draft)
        operation = Operation(sidecar, commit_tables, BEFORE_PUBLISH)
        for commit in self._parts.sequence.run(operation, lock):
            self._committed(commit)
        return done

    def _extend_texts(self, declared: EntityType, table: Table) -> None:
        """Bring indexes of texts up to date. They are no part of the graph, so no lock is needed."""
        for intent in index_specs(declared):
            if intent.kind is IndexKind.TEXT:
                self._parts.texts.extend(table, intent.column)

    def _heads(
        self, branch: BranchRef, current: Snapshot, table_keys: Sequence[str]
    ) -> list[tuple[SnapshotEntry, Table]]:
        """Tables the branch owns whose newest version is the one the graph knows."""
        found = []
        for key in table_keys:
            entry = current.entries.get(key)
            if entry is None or entry.branch != branch.physical:
                continue
            table = self._parts.tables.open(entry.location, entry.branch)
            if table.version == entry.version:
                found.append((entry, table))
        return found


def optimize_draft(schema_ir_hash: str, schema_ref: str, actor: str | None = None) -> CommitDraft:
    """The commit draft of a compaction."""
    return CommitDraft(
        graph_commit_id=CommitId(new_ulid()),
        operation=OperationKind.OPTIMIZE,
        operation_id=OperationId(new_ulid()),
        created_at=now_micros(),
        schema_ir_hash=schema_ir_hash,
        schema_ref=schema_ref,
        actor_id=actor,
    )


def optimize_sidecar(
    branch: BranchRef, state: ManifestState, entries: Sequence[SnapshotEntry], draft: CommitDraft
) -> Sidecar:
    """The sidecar of a compaction. Any version of a table will do, as its content stays the same."""
    tables = (sidecar_table(entry, branch.physical, data_commits=0) for entry in entries)
    return sidecar_of(WriterKind.OPTIMIZE, branch, state, draft, tables)


def rewritten_tables(
    draft: CommitDraft, state: ManifestState, moved: Sequence[tuple[SnapshotEntry, Table]]
) -> list[Publication]:
    """What publishes compacted tables; nothing if none has moved."""
    if not moved:
        return []
    return [
        Publication(
            draft=draft,
            versions=tuple(table_version(entry.table_id, table) for entry, table in moved),
            expected={entry.table_id: entry.version_ref for entry, _ in moved},
            begun_at=state.sequence,
        )
    ]


class PendingEndings:
    """Acknowledged writes whose end is still in progress. Thread-safe."""

    def __init__(self) -> None:
        self._waits: dict[object, Callable[[], None]] = {}
        self._guard = RLock()

    def begin(self, end: Callable[[], None]) -> None:
        """End a write in a background thread."""
        token = object()

        def run() -> None:
            try:
                end()
            finally:
                with self._guard:
                    self._waits.pop(token, None)

        with self._guard:
            self._waits[token] = begin(run)

    def wait(self) -> None:
        """Return when all acknowledged writes have ended. Raises the error of one that could not."""
        with self._guard:
            waits = list(self._waits.values())
        for wait in waits:
            wait()
