"""Storing the same rows better: fewer and fuller pieces, indexes that know all rows.

Main only. All tables that need it are done under one sidecar and become part of the graph in one
commit; rows, ids and answers stay, and so do earlier versions. A second run finds nothing to do.
Tests: tests/behaviour/test_optimize.py, tests/crash.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from omnigraph.catalog.indexes import IndexKind, index_intents
from omnigraph.catalog.model import EntityType
from omnigraph.engine.parts import GraphParts
from omnigraph.engine.receipts import Receipt, nothing_done, receipt_of
from omnigraph.engine.write.fold import (
    AFTER_FOLD,
    BEFORE_FOLD,
    BEFORE_PUBLISH,
    optimize_draft,
    optimize_sidecar,
)
from omnigraph.engine.write.uninterrupted import uninterrupted
from omnigraph.errors import (
    CommitStateUnknown,
    ManifestDamaged,
    OmnigraphError,
    RecoveryPending,
)
from omnigraph.faults import InjectedFault
from omnigraph.storage.compact import fold, is_fold_needed
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.branches import BranchRef
from omnigraph.versioning.commits import CommitRecord
from omnigraph.versioning.contract import SchemaContract
from omnigraph.versioning.locks import HeldLock
from omnigraph.versioning.manifest import Manifest, ManifestState
from omnigraph.versioning.publish import Publication, publish
from omnigraph.versioning.recovery.act import table_version
from omnigraph.versioning.recovery.heal import Recovery
from omnigraph.versioning.recovery.sidecar import Sidecar
from omnigraph.versioning.snapshot import SnapshotEntry
from omnigraph.versioning.upkeep import fold_manifest

DRIFTED = "drift_needs_repair"
"""Why a table was left alone: it is not where the graph knows it to be."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OptimizedTable:
    """What became of one table. Versions are told where it was left alone because of them."""

    table_key: str
    fragments_removed: int = 0
    fragments_added: int = 0
    committed: bool = False
    skipped: str | None = None
    pinned: int | None = None
    found: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "table_key": self.table_key,
            "fragments_removed": self.fragments_removed,
            "fragments_added": self.fragments_added,
            "committed": self.committed,
            "skipped": self.skipped,
            "manifest_version": self.pinned,
            "lance_head_version": self.found,
        }


@dataclass(frozen=True, slots=True)
class OptimizeReport:
    """All tables of main by key, and the receipt of the commit, if there was one."""

    tables: tuple[OptimizedTable, ...]
    receipt: Receipt

    def to_json(self) -> dict[str, Any]:
        tables = [table.to_json() for table in self.tables]
        return {"tables": tables, **self.receipt.to_json()}


class Optimizing:
    """Optimizes one graph."""

    def __init__(self, parts: GraphParts) -> None:
        self._parts = parts

    def run(
        self, main: BranchRef, contract: SchemaContract, *, actor: str | None
    ) -> OptimizeReport:
        """Fold what needs it. One table's error keeps no other back, and is raised in the end."""
        with self._parts.locks.hold(None, "optimize") as lock:
            refuse_pending(self._parts.recovery, "optimize")
            state = self._parts.recovery.state(None)
            snapshot = self._parts.snapshot_of(state)
            reference = state.schema_ref or contract.reference
            draft = optimize_draft(snapshot.catalog.hash, reference, actor)
            heads = {
                key: self._parts.recovery.head_of(entry.location, entry.branch)
                for key, entry in snapshot.entries.items()
            }
            due = [e for key, e in snapshot.entries.items() if _is_due(e, heads[key])]
            sidecar = optimize_sidecar(main, state, due, draft)
            folding = _Folding(
                self._parts.tables, self._parts.manifest, self._parts.recovery, sidecar, lock
            )
            commit = uninterrupted(lambda: folding.run(state, due, heads)) if due else None
            fold_manifest(self._parts.manifest, None)
        for key, table in folding.done.items():
            self._extend_texts(snapshot.catalog.entity(key), table)
        if folding.errors:
            raise folding.errors[0]
        tables = tuple(
            _outcome(entry, heads[key], folding.done.get(key))
            for key, entry in snapshot.entries.items()
        )
        if commit is None:
            return OptimizeReport(tables, nothing_done(state, draft))
        return OptimizeReport(tables, receipt_of(commit, snapshot.catalog))

    def _extend_texts(self, declared: EntityType, table: Table) -> None:
        for intent in index_intents(declared):
            if intent.kind is IndexKind.TEXT:
                self._parts.texts.extend(table, intent.column)


def refuse_pending(recovery: Recovery, operation: str) -> None:
    """Raises `RecoveryPending` while something on main waits to be settled, or waits for a person.

    The caller holds the lock of main.
    """
    quarantined = [found.name for found in recovery.status().quarantined]
    waiting = [*recovery.waiting_on(None), *quarantined]
    if waiting:
        raise RecoveryPending(operation, waiting)


@dataclass(frozen=True, slots=True)
class _Folding:
    """From the sidecar to the publish, under the lock of main."""

    tables: TableStore
    manifest: Manifest
    recovery: Recovery
    sidecar: Sidecar
    lock: HeldLock
    done: dict[str, Table] = field(default_factory=dict)
    """Tables that moved, by key."""
    errors: list[OmnigraphError] = field(default_factory=list)

    def run(
        self, state: ManifestState, due: Sequence[SnapshotEntry], heads: Mapping[str, Table]
    ) -> CommitRecord | None:
        self.lock.check()
        self.recovery.sidecars.write(self.sidecar)
        try:
            for entry in due:
                self._fold(entry, heads[entry.table_key])
            commit = self._publish(state, [e for e in due if e.table_key in self.done])
        except (InjectedFault, CommitStateUnknown):
            raise
        except OmnigraphError:
            self.recovery.undo_own(self.sidecar, self.lock)
            raise
        self._forget()
        return commit

    def _fold(self, entry: SnapshotEntry, table: Table) -> None:
        self.lock.check()
        try:
            BEFORE_FOLD.hit(table=entry.table_key)
            folded = fold(table)
        except InjectedFault:
            raise
        except OmnigraphError as error:
            _log.warning("%s is not optimized completely: %s", entry.table_key, error)
            self.errors.append(error)
            folded = self.tables.open(entry.location, entry.branch)
        AFTER_FOLD.hit(table=entry.table_key)
        if folded.version != table.version:
            self.done[entry.table_key] = folded

    def _publish(self, state: ManifestState, moved: Sequence[SnapshotEntry]) -> CommitRecord | None:
        if not moved:
            return None
        BEFORE_PUBLISH.hit(branch=None)
        publication = Publication(
            draft=self.sidecar.draft,
            versions=tuple(table_version(e.table_id, self.done[e.table_key]) for e in moved),
            expected={entry.table_id: entry.pin for entry in moved},
            begun_at=state.sequence,
        )
        return publish(self.manifest, None, publication, self.lock.check)

    def _forget(self) -> None:
        try:
            self.recovery.sidecars.delete(self.sidecar.name)
        except InjectedFault:
            raise
        except OmnigraphError as error:
            _log.warning("sidecar %s stays behind: %s", self.sidecar.name, error)


def _is_due(entry: SnapshotEntry, head: Table) -> bool:
    if head.version < entry.version:
        raise ManifestDamaged(
            f"'{entry.table_key}' is at version {head.version}, "
            f"but the graph knows version {entry.version}"
        )
    return head.version == entry.version and is_fold_needed(head)


def _outcome(entry: SnapshotEntry, head: Table, folded: Table | None) -> OptimizedTable:
    if head.version != entry.version:
        return OptimizedTable(
            entry.table_key, skipped=DRIFTED, pinned=entry.version, found=head.version
        )
    if folded is None:
        return OptimizedTable(entry.table_key)
    before, after = ({f.id for f in table.fragments()} for table in (head, folded))
    return OptimizedTable(entry.table_key, len(before - after), len(after - before), committed=True)
