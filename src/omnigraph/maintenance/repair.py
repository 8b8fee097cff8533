"""Repair: resolve table changes that were never published, by an operator's decision.

Inspects every table that a branch owns, and only reports without confirmation. It never rewrites data:
a table is either published as found or restored to its published version.
Tests: tests/crash/recovery/test_repair.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from omnigraph.diagnostics import counted
from omnigraph.errors import InputError, RecoveryPending, StorageError
from omnigraph.graph.parts import GraphParts
from omnigraph.history.commits import Commit, new_draft
from omnigraph.maintenance.optimize import refuse_older
from omnigraph.storage.stage import commit_staged, stage_restore
from omnigraph.storage.table import Table
from omnigraph.versioning.branches import BranchRef
from omnigraph.versioning.commits import (
    CommitDraft,
    CommitRecord,
    OperationKind,
    TableId,
)
from omnigraph.versioning.contract import SchemaContract
from omnigraph.versioning.locks import HeldLock
from omnigraph.versioning.publish import Publication, publish
from omnigraph.versioning.recovery.act import table_version
from omnigraph.versioning.recovery.sidecar import Quarantined
from omnigraph.versioning.rows import TableVersion
from omnigraph.versioning.snapshot import SnapshotEntry

REPAIR_ACTOR: Final = "omnigraph:repair"
FORCED_REPAIR_ACTOR: Final = "omnigraph:repair:force"

_ROW_PRESERVING: Final = frozenset(["rewrite", "unnamed"])
"""Lance operations that change no row: compaction, and the fragment ids it reserves first."""


class Drift(Enum):
    """How a table's head differs from its published version."""

    NONE = "no_drift"
    MAINTENANCE = "verified_maintenance"
    SUSPICIOUS = "suspicious"
    UNVERIFIABLE = "unverifiable"


class Action(Enum):
    NO_OP = "no_op"
    PREVIEW = "preview"
    HEALED = "healed"
    FORCED = "forced"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class RepairOptions:
    """What a repair may do. Raises `InputError` for an invalid combination."""

    confirm: bool = False
    force: bool = False
    rollback: bool = False

    def __post_init__(self) -> None:
        if self.force and not self.confirm:
            raise InputError("force requires confirm: look at the preview first")
        if self.rollback and not self.force:
            raise InputError("rollback requires confirm and force: it discards what it finds")


@dataclass(frozen=True, slots=True)
class RepairedTable:
    """One table: its drift, and the action taken."""

    table_key: str
    published: int
    found: int
    drift: Drift
    action: Action
    operations: tuple[str, ...] = ()
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "table_key": self.table_key,
            "manifest_version": self.published,
            "lance_head_version": self.found,
            "classification": self.drift.value,
            "action": self.action.value,
            "operations": list(self.operations),
            "error": self.error,
        }


@dataclass(frozen=True, slots=True, repr=False)
class RepairReport:
    """The result of a repair of one branch."""

    branch: str
    options: RepairOptions
    tables: tuple[RepairedTable, ...]
    quarantined: tuple[Quarantined, ...]
    removed_sidecars: tuple[str, ...]
    commit: Commit | None

    def __repr__(self) -> str:
        return f"<RepairReport {self.branch}: {counted(len(self.tables), 'table')}>"

    @property
    def refused(self) -> tuple[RepairedTable, ...]:
        return tuple(table for table in self.tables if table.action is Action.REFUSED)

    def to_json(self) -> dict[str, Any]:
        return {
            "branch": self.branch,
            "confirm": self.options.confirm,
            "force": self.options.force,
            "manifest_version": self.commit.number if self.commit else None,
            "graph_commit_id": self.commit.id if self.commit else None,
            "tables": [table.to_json() for table in self.tables],
            "quarantined": [found.to_json() for found in self.quarantined],
            "removed_sidecars": list(self.removed_sidecars),
        }


class Repair:
    """Repairs branches of one graph."""

    def __init__(self, parts: GraphParts) -> None:
        self._parts = parts

    def run(
        self, branch: BranchRef, contract: SchemaContract, options: RepairOptions
    ) -> RepairReport:
        with self._parts.locks.hold(branch.physical, "repair") as lock:
            pending = self._parts.recovery.waiting_on(branch.physical)
            if pending:
                raise RecoveryPending("repair", pending)
            # Read before publishing: afterwards the tables of a sidecar look recovered.
            quarantined = self._parts.recovery.status().quarantined
            state = self._parts.recovery.state(branch.physical)
            owned = [
                (entry, self._parts.recovery.head_of(entry.location, entry.branch))
                for entry in self._parts.snapshot_of(state).entries.values()
                if entry.branch == branch.physical
            ]
            tables = tuple(_classify(entry, head, options) for entry, head in owned)
            commit = self._publish(branch, contract, options, owned, tables, lock)
            removed: tuple[str, ...] = ()
            if options.force:
                removed = self._remove_sidecars(branch, quarantined)
        kept = tuple(found for found in quarantined if found.name not in removed)
        made = None if commit is None else Commit.of(commit, contract.catalog)
        return RepairReport(branch.public, options, tables, kept, removed, made)

    def _publish(
        self,
        branch: BranchRef,
        contract: SchemaContract,
        options: RepairOptions,
        owned: Sequence[tuple[SnapshotEntry, Table]],
        tables: Sequence[RepairedTable],
        lock: HeldLock,
    ) -> CommitRecord | None:
        chosen = [
            (entry, head)
            for (entry, head), table in zip(owned, tables, strict=True)
            if table.action in (Action.HEALED, Action.FORCED)
        ]
        if not chosen:
            return None
        forced = any(table.action is Action.FORCED for table in tables)
        actor = FORCED_REPAIR_ACTOR if forced else REPAIR_ACTOR
        draft = new_draft(OperationKind.REPAIR, contract, actor)
        versions = tuple(_version(entry, head, draft, options, lock) for entry, head in chosen)
        publication = Publication(
            draft=draft, versions=versions, expected={e.table_id: e.version_ref for e, _ in chosen}
        )
        return publish(self._parts.manifest, branch.physical, publication, lock.check)

    def _remove_sidecars(
        self, branch: BranchRef, quarantined: Sequence[Quarantined]
    ) -> tuple[str, ...]:
        """Remove sidecars whose tables are all at their published versions."""
        drifted = self._drifted(branch.physical)
        removed = []
        for found in quarantined:
            if found.tables is None:
                # It may concern any table of any branch.
                branches = self._parts.branches
                keep = any(self._drifted(s.branch) for s in branches.states(branches.list()))
            else:
                keep = found.branch != branch.physical or bool(found.tables & drifted)
            if not keep:
                self._parts.recovery.sidecars.delete(found.name)
                removed.append(found.name)
        return tuple(removed)

    def _drifted(self, branch: str | None) -> set[tuple[TableId, str | None]]:
        """The tables of a branch whose heads are not their published versions."""
        entries = self._parts.snapshot_of(self._parts.manifest.current(branch)).entries.values()
        return {
            (entry.table_id, entry.branch)
            for entry in entries
            if entry.branch == branch and not self._is_published(entry)
        }

    def _is_published(self, entry: SnapshotEntry) -> bool:
        try:
            return self._parts.tables.open(entry.location, entry.branch).version == entry.version
        except StorageError:
            return False


def _classify(entry: SnapshotEntry, head: Table, options: RepairOptions) -> RepairedTable:
    refuse_older(entry, head)
    drift, operations, error = _drift(entry, head)
    action = _action(drift, options)
    return RepairedTable(
        entry.table_key, entry.version, head.version, drift, action, operations, error
    )


def _drift(entry: SnapshotEntry, head: Table) -> tuple[Drift, tuple[str, ...], str | None]:
    operations = []
    for version in range(entry.version + 1, head.version + 1):
        try:
            operations.append(head.record(version).operation)
        except StorageError as error:
            return Drift.UNVERIFIABLE, tuple(operations), str(error)
    if not operations:
        return Drift.NONE, (), None
    harmless = _ROW_PRESERVING.issuperset(operations)
    return Drift.MAINTENANCE if harmless else Drift.SUSPICIOUS, tuple(operations), None


def _action(drift: Drift, options: RepairOptions) -> Action:
    if drift is Drift.NONE:
        return Action.NO_OP
    if not options.confirm:
        return Action.PREVIEW
    if options.rollback:
        return Action.FORCED
    if drift is Drift.MAINTENANCE:
        return Action.HEALED
    return Action.FORCED if options.force else Action.REFUSED


def _version(
    entry: SnapshotEntry, head: Table, draft: CommitDraft, options: RepairOptions, lock: HeldLock
) -> TableVersion:
    """The version to publish: the head, or a restore of the published content on top of it.

    A crash after the restore leaves the table drifted, for the next repair.
    """
    if options.rollback:
        staged = stage_restore(head, entry.version)
        lock.check()
        head = commit_staged(head, staged, operation_id=draft.operation_id, writer_kind="Repair")
    return table_version(entry.table_id, head)
