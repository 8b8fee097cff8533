"""Making the indexes a schema asks for, where they are missing.

What takes long, building them, is done before the branch is locked, and again under the lock only for
tables that were written meanwhile. They become part of the graph by one commit of the usual kind.
An index that is there is left as it is; folding brings it up to date.
Tests: tests/behaviour/test_indexes.py, tests/crash.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from omnigraph.catalog.indexes import IndexIntent, IndexKind, index_intents
from omnigraph.catalog.model import EntityType
from omnigraph.engine.maintain.index_report import (
    IndexedTable,
    IndexReport,
    IndexState,
    PendingIndex,
)
from omnigraph.engine.maintain.partitions import find_partitions
from omnigraph.engine.parts import GraphParts
from omnigraph.engine.read.stored_texts import StoredTexts
from omnigraph.engine.receipts import nothing_done, receipt_of
from omnigraph.engine.write.commit import TableWriter
from omnigraph.errors import OmnigraphError, SchemaMoved
from omnigraph.faults import declare
from omnigraph.progress import Progress
from omnigraph.storage.indexes import (
    BTREE,
    PARTITIONED,
    BuiltIndex,
    build_btree,
    build_partitioned,
    stage_indexes,
    stage_probes,
    uncovered_fragments,
)
from omnigraph.storage.stage import CommitMark, commit_staged
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
from omnigraph.versioning.contract import SchemaContract
from omnigraph.versioning.ids import new_ulid, now_micros
from omnigraph.versioning.locks import HeldLock
from omnigraph.versioning.manifest import ManifestState
from omnigraph.versioning.publish import Publication
from omnigraph.versioning.recovery.act import table_version
from omnigraph.versioning.recovery.classify import refuse_drift, refuse_quarantined
from omnigraph.versioning.recovery.sidecar import Quarantined, WriterKind
from omnigraph.versioning.snapshot import Snapshot, SnapshotEntry

BEFORE_TABLE = declare(
    "ensure_indices.post_stage_pre_commit_btree", "a table's indexes are built, not committed"
)
AFTER_TABLE = declare("ensure_indices.post_table_commit", "after the indexes of each table")
BEFORE_PUBLISH = declare(
    "ensure_indices.post_phase_b_pre_manifest_commit", "indexes committed, not published"
)

_KINDS: Final = {IndexKind.BTREE: BTREE, IndexKind.VECTOR: PARTITIONED}
"""Indexes that are part of a table; those of texts are kept beside it."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Looked:
    """A table as it was found: the indexes it has and those it lacks."""

    entry: SnapshotEntry
    declared: EntityType
    table: Table
    forks: bool
    existing: tuple[IndexState, ...]
    missing: tuple[IndexIntent, ...]


@dataclass(slots=True)
class _Built:
    """Indexes made for one version of a table."""

    version: int
    indexes: list[BuiltIndex] = field(default_factory=list)
    probes: dict[str, int] = field(default_factory=dict)
    created: list[IndexState] = field(default_factory=list)
    pending: list[PendingIndex] = field(default_factory=list)


def unindexed_rows(texts: StoredTexts, table: Table, intent: IndexIntent) -> int | None:
    """The rows an index does not know; None if there is no such index."""
    if intent.kind is IndexKind.TEXT:
        return texts.unindexed_rows(table, intent.column)
    uncovered = uncovered_fragments(table, intent.column, _KINDS[intent.kind])
    if not uncovered:
        return None if uncovered is None else 0
    return sum(f.rows for f in table.fragments() if f.id in uncovered)


class Indexing:
    """Makes missing indexes of one graph."""

    def __init__(self, parts: GraphParts, writer: TableWriter) -> None:
        self.parts = parts
        self.writer = writer

    def run(
        self,
        branch: BranchRef,
        contract: SchemaContract,
        *,
        actor: str | None,
        progress: Progress,
    ) -> IndexReport:
        """Make what is missing. A commit is made only if something was."""
        state = self.parts.manifest.current(branch.physical)
        looked = self._look(branch, self.parts.snapshot_of(state))
        # The line a fork will be is not there yet.
        built = {t.entry.table_key: self._build(t, progress) for t in looked if not t.forks}
        draft = _draft(contract, actor)
        commit: CommitRecord | None = None
        if any(b.indexes for b in built.values()) or any(t.forks and t.missing for t in looked):
            with self.parts.locks.hold(branch.physical, "ensure_indices") as lock:
                quarantined = self.parts.recovery.recover_locked(branch.physical, lock).quarantined
                state = self.parts.recovery.state(branch.physical)
                current = self.parts.snapshot_of(state)
                if current.catalog.ir != contract.catalog.ir:
                    raise SchemaMoved()
                looked = self._look(branch, current)
                due = list(self._due(branch, looked, built, quarantined, progress))
                if due:
                    work = _Commit(self, branch, draft, state, due, built, lock, progress)
                    commit = work.run()
        receipt = (
            nothing_done(self.parts.manifest.current(branch.physical), draft)
            if commit is None
            else receipt_of(commit, contract.catalog)
        )
        return IndexReport(tuple(_report(t, built) for t in looked), receipt)

    # -- looking ----------------------------------------------------------------------------

    def _look(self, branch: BranchRef, snapshot: Snapshot) -> list[_Looked]:
        """The tables with rows that the branch may index: not those it only reads from main."""
        found = []
        known = {declared.table_key for declared in snapshot.catalog}
        for key, entry in snapshot.entries.items():
            inherited = branch.physical is not None and entry.branch is None
            if inherited or not entry.row_count or key not in known:
                continue
            declared, table = snapshot.catalog.entity(key), snapshot.open(self.parts.tables, key)
            existing, missing = [], []
            for intent in index_intents(declared):
                rows = unindexed_rows(self.parts.texts, table, intent)
                if rows is None:
                    missing.append(intent)
                else:
                    existing.append(IndexState(intent.column, intent.kind, rows))
            forks = entry.branch != branch.physical
            found.append(_Looked(entry, declared, table, forks, tuple(existing), tuple(missing)))
        return found

    # -- building ---------------------------------------------------------------------------

    def _build(self, looked: _Looked, progress: Progress) -> _Built:
        """Build what a table lacks. What cannot be built is noted and keeps nothing else back."""
        built = _Built(looked.table.version)
        # Quick ones first, so that those are done if the others take too long.
        for intent in sorted(looked.missing, key=lambda i: i.kind is not IndexKind.BTREE):
            progress.stage(f"{looked.declared.name}.{intent.column}")
            try:
                reason = self._build_one(looked.table, intent, built)
            except OmnigraphError as error:
                name = f"{looked.declared.name}.{intent.column}"
                _log.warning("%s stays without an index: %s", name, error)
                reason = str(error)
            if reason is None:
                built.created.append(IndexState(intent.column, intent.kind))
            else:
                built.pending.append(PendingIndex(intent.column, reason))
        return built

    def _build_one(self, table: Table, intent: IndexIntent, built: _Built) -> str | None:
        """Build one index; returns why there is none."""
        if intent.column not in table.schema.names:
            return "no row has a value yet"
        match intent.kind:
            case IndexKind.BTREE:
                built.indexes.append(build_btree(table, intent.column))
            case IndexKind.TEXT:
                self.parts.texts.write(table, intent.column)
            case IndexKind.VECTOR:
                partitions = find_partitions(table, intent.column)
                if partitions is None:
                    return "no row has a vector yet"
                built.indexes.append(build_partitioned(table, intent.column, partitions.centres))
                built.probes[intent.column] = partitions.probes
        return None

    def _due(
        self,
        branch: BranchRef,
        looked: Sequence[_Looked],
        built: dict[str, _Built],
        quarantined: Sequence[Quarantined],
        progress: Progress,
    ) -> Iterator[_Looked]:
        """The tables to commit to, with what was built for them as they are under the lock."""
        for found in looked:
            key, physical = found.entry.table_key, branch.physical
            if found.forks and found.missing:
                yield found
                continue
            known = built.get(key)
            if known is None or known.version != found.table.version:
                known = built[key] = self._build(found, progress)
            if not known.indexes:
                continue
            refuse_quarantined(found.entry, physical, quarantined)
            head = self.parts.recovery.head_of(found.entry.location, physical)
            if head.version != found.entry.version:
                raise refuse_drift(self.parts.recovery.sidecars, found.entry, head, quarantined)
            yield found

    # -- effects ----------------------------------------------------------------------------

    def fork(self, found: _Looked, branch: BranchRef, progress: Progress) -> tuple[Table, _Built]:
        """The branch's own line of a table it has from another branch, with its indexes built."""
        table = self.writer.fork(found.entry, branch.physical)
        own = replace(found, table=table, forks=False)
        return table, self._build(own, progress)


@dataclass(frozen=True, slots=True)
class _Commit:
    """From the sidecar to the publish, under the lock."""

    indexing: Indexing
    branch: BranchRef
    draft: CommitDraft
    state: ManifestState
    due: Sequence[_Looked]
    built: dict[str, _Built]
    lock: HeldLock
    progress: Progress

    def run(self) -> CommitRecord:
        tables = (
            sidecar_table(f.entry, self.branch.physical, data_commits=0, forks=f.forks)
            for f in self.due
        )
        kind = WriterKind.ENSURE_INDICES
        sidecar = sidecar_of(kind, self.branch, self.state, self.draft, tables)
        operation = Operation(sidecar, self._commit_tables, BEFORE_PUBLISH)
        return self.indexing.parts.sequence.run(operation, self.lock)[0]

    def _commit_tables(self) -> list[Publication]:
        versions = [
            table_version(found.entry.table_id, self._commit_table(found)) for found in self.due
        ]
        publication = Publication(
            draft=self.draft,
            versions=tuple(versions),
            expected={found.entry.table_id: found.entry.version_ref for found in self.due},
            begun_at=self.state.sequence,
        )
        return [publication]

    def _commit_table(self, found: _Looked) -> Table:
        key, table = found.entry.table_key, found.table
        self.lock.check()
        if found.forks:
            table, self.built[key] = self.indexing.fork(found, self.branch, self.progress)
        built = self.built[key]
        operation: CommitMark = {
            "operation_id": self.draft.operation_id,
            "writer_kind": WriterKind.ENSURE_INDICES.value,
        }
        BEFORE_TABLE.hit(table=key)
        self.lock.check()
        if built.indexes:
            table = commit_staged(table, stage_indexes(table, built.indexes), **operation)
        if built.probes:
            self.lock.check()
            table = commit_staged(table, stage_probes(table, built.probes), **operation)
        AFTER_TABLE.hit(table=key)
        return table


def _draft(contract: SchemaContract, actor: str | None) -> CommitDraft:
    return CommitDraft(
        graph_commit_id=CommitId(new_ulid()),
        operation=OperationKind.ENSURE_INDICES,
        operation_id=OperationId(new_ulid()),
        created_at=now_micros(),
        schema_ir_hash=contract.hash,
        schema_ref=contract.reference,
        actor_id=actor,
    )


def _report(looked: _Looked, built: Mapping[str, _Built]) -> IndexedTable:
    made = built.get(looked.entry.table_key) or _Built(looked.table.version)
    created = {state.column for state in made.created}
    existing = tuple(state for state in looked.existing if state.column not in created)
    return IndexedTable(looked.entry.table_key, tuple(made.created), existing, tuple(made.pending))
