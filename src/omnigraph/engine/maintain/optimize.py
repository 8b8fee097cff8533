"""Storing the same rows better: fewer and fuller pieces without dropped columns, complete indexes.

Main only. All tables that need it are done under one sidecar and become part of the graph in one
commit; rows, ids and answers stay, and so do earlier versions. A second run finds nothing to do.
Tests: tests/behaviour/test_optimize.py, tests/crash.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omnigraph.diagnostics import counted
from omnigraph.engine.maintain.rewrite import TableRewrite
from omnigraph.engine.parts import GraphParts
from omnigraph.engine.receipts import Receipt, nothing_done, receipt_of
from omnigraph.engine.write.background import optimize_draft, optimize_sidecar
from omnigraph.errors import ManifestDamaged, RecoveryPending
from omnigraph.json_structs import Document
from omnigraph.storage.columns import fragments_with_dropped, remove_dropped_columns
from omnigraph.storage.compact import compact_with_indexes, is_compaction_needed
from omnigraph.storage.table import Table
from omnigraph.versioning.branches import BranchRef
from omnigraph.versioning.contract import SchemaContract
from omnigraph.versioning.manifest_compaction import compact_whole_manifest
from omnigraph.versioning.recovery.recover import Recovery
from omnigraph.versioning.snapshot import SnapshotEntry

DRIFTED = "drift_needs_repair"
"""Why a table was left alone: it is not where the graph knows it to be."""


class OptimizedTable(
    Document, frozen=True, rename={"pinned": "manifest_version", "found": "lance_head_version"}
):
    """What became of one table. Versions are told where it was left alone because of them."""

    table_key: str
    fragments_removed: int = 0
    fragments_added: int = 0
    committed: bool = False
    skipped: str | None = None
    pinned: int | None = None
    found: int | None = None


@dataclass(frozen=True, slots=True, repr=False)
class OptimizeReport:
    """All tables of main by key, and the receipt of the commit, if there was one."""

    tables: tuple[OptimizedTable, ...]
    receipt: Receipt

    def __repr__(self) -> str:
        return f"<OptimizeReport {counted(len(self.tables), 'table')}: {self.receipt.summary}>"

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
            rewrite = TableRewrite(self._parts, sidecar, lock, _improved)
            commit = rewrite.run(state, due, heads) if due else None
            compact_whole_manifest(self._parts.manifest, None)
        rewrite.extend_texts(snapshot.catalog)
        if rewrite.errors:
            raise rewrite.errors[0]
        tables = tuple(
            _outcome(entry, heads[key], rewrite.done.get(key))
            for key, entry in snapshot.entries.items()
        )
        if commit is None:
            return OptimizeReport(tables, nothing_done(state, draft))
        return OptimizeReport(tables, receipt_of(commit, snapshot.catalog))


def refuse_pending(recovery: Recovery, operation: str) -> None:
    """Raises `RecoveryPending` while something on main waits to be settled, or waits for a person.

    The caller holds the lock of main.
    """
    quarantined = [found.name for found in recovery.status().quarantined]
    waiting = [*recovery.waiting_on(None), *quarantined]
    if waiting:
        raise RecoveryPending(operation, waiting)


def _is_due(entry: SnapshotEntry, head: Table) -> bool:
    if head.version < entry.version:
        raise ManifestDamaged(
            f"'{entry.table_key}' is at version {head.version}, "
            f"but the graph knows version {entry.version}"
        )
    is_known = head.version == entry.version
    return is_known and (is_compaction_needed(head) or bool(fragments_with_dropped(head)))


def _improved(_key: str, table: Table) -> Table:
    return remove_dropped_columns(compact_with_indexes(table))


def _outcome(entry: SnapshotEntry, head: Table, folded: Table | None) -> OptimizedTable:
    if head.version != entry.version:
        return OptimizedTable(
            entry.table_key, skipped=DRIFTED, pinned=entry.version, found=head.version
        )
    if folded is None:
        return OptimizedTable(entry.table_key)
    before, after = ({f.id for f in table.fragments()} for table in (head, folded))
    return OptimizedTable(entry.table_key, len(before - after), len(after - before), committed=True)
