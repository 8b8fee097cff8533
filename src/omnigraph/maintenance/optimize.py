"""Compact the tables of main, drop values of dropped properties, and refresh indexes.

All tables are rewritten under one sidecar and published in one commit. Rows, ids, query results and
earlier versions stay the same. A second run finds nothing to do.
Tests: tests/behaviour/test_optimize.py, tests/behaviour/test_schema_drops.py, tests/crash.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from omnigraph.catalog.arrow import IndexKind, index_specs
from omnigraph.catalog.model import Catalog
from omnigraph.commit.background import (
    AFTER_COMPACTION,
    BEFORE_COMPACTION,
    BEFORE_PUBLISH,
    optimize_draft,
    optimize_sidecar,
    rewritten_tables,
)
from omnigraph.diagnostics import counted
from omnigraph.errors import ManifestDamaged, OmnigraphError, RecoveryPending
from omnigraph.graph.parts import GraphParts
from omnigraph.history.commits import Receipt, nothing_done, receipt_of
from omnigraph.storage.columns import fragments_with_dropped, remove_dropped_columns
from omnigraph.storage.compact import compact_with_indexes, is_compaction_needed
from omnigraph.storage.table import Table
from omnigraph.versioning.branches import BranchRef
from omnigraph.versioning.commit_sequence import Operation
from omnigraph.versioning.commits import CommitRecord
from omnigraph.versioning.contract import SchemaContract
from omnigraph.versioning.locks import HeldLock
from omnigraph.versioning.manifest import ManifestState
from omnigraph.versioning.manifest_compaction import compact_whole_manifest
from omnigraph.versioning.publish import Publication
from omnigraph.versioning.recovery.recover import Recovery
from omnigraph.versioning.recovery.sidecar import Sidecar
from omnigraph.versioning.snapshot import SnapshotEntry

DRIFTED = "drift_needs_repair"
"""The reason to skip a table whose head is not the published version."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OptimizedTable:
    """The result for one table. A table skipped for drift has both versions."""

    table_key: str
    fragments_removed: int = 0
    fragments_added: int = 0
    committed: bool = False
    skipped: str | None = None
    published: int | None = None
    found: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "table_key": self.table_key,
            "fragments_removed": self.fragments_removed,
            "fragments_added": self.fragments_added,
            "committed": self.committed,
            "skipped": self.skipped,
            "manifest_version": self.published,
            "lance_head_version": self.found,
        }


@dataclass(frozen=True, slots=True, repr=False)
class OptimizeReport:
    """All tables of main by key, and the receipt."""

    tables: tuple[OptimizedTable, ...]
    receipt: Receipt

    def __repr__(self) -> str:
        return f"<OptimizeReport {counted(len(self.tables), 'table')}: {self.receipt.summary}>"

    def to_json(self) -> dict[str, Any]:
        tables = [table.to_json() for table in self.tables]
        return {"tables": tables, **self.receipt.to_json()}


@dataclass(frozen=True, slots=True)
class TableRewrite:
    """Rewrites tables of main with the same rows and publishes them, under main's lock.

    Lance commits such work itself, in several versions that carry no operation id. All of them have
    the same content, so recovery can publish whichever version was reached. An error in one table
    does not stop the others.
    """

    parts: GraphParts
    sidecar: Sidecar
    lock: HeldLock
    rewrite: Callable[[str, Table], Table]
    """Rewrites the table of a key; returns the same table if there is nothing to do."""
    done: dict[str, Table] = field(default_factory=dict)
    """Rewritten tables by key."""
    errors: list[OmnigraphError] = field(default_factory=list)

    def run(
        self, state: ManifestState, entries: Sequence[SnapshotEntry], heads: Mapping[str, Table]
    ) -> CommitRecord | None:
        """The commit; None if no table was rewritten."""

        def commit_tables() -> list[Publication]:
            for entry in entries:
                self._rewrite(entry, heads[entry.table_key])
            moved = [(e, self.done[e.table_key]) for e in entries if e.table_key in self.done]
            return rewritten_tables(self.sidecar.draft, state, moved)

        operation = Operation(self.sidecar, commit_tables, BEFORE_PUBLISH)
        commits = self.parts.sequence.run(operation, self.lock)
        return commits[0] if commits else None

    def extend_texts(self, catalog: Catalog) -> None:
        """Refresh text indexes. They are stored outside the tables, so no lock is needed."""
        for key, table in self.done.items():
            for intent in index_specs(catalog.entity(key)):
                if intent.kind is IndexKind.TEXT:
                    self.parts.texts.extend(table, intent.column)

    def _rewrite(self, entry: SnapshotEntry, table: Table) -> None:
        self.lock.check()
        try:
            BEFORE_COMPACTION.hit(table=entry.table_key)
            rewritten = self.rewrite(entry.table_key, table)
        except OmnigraphError as error:
            _log.warning("compaction of %s is incomplete: %s", entry.table_key, error)
            self.errors.append(error)
            rewritten = self.parts.tables.open(entry.location, entry.branch)
        AFTER_COMPACTION.hit(table=entry.table_key)
        if rewritten.version != table.version:
            self.done[entry.table_key] = rewritten


class Optimizing:
    """Optimizes one graph."""

    def __init__(self, parts: GraphParts) -> None:
        self._parts = parts

    def run(
        self, main: BranchRef, contract: SchemaContract, *, actor: str | None
    ) -> OptimizeReport:
        """Compact all tables that need it, then raise the first error, if any."""
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
            chosen = [e for key, e in snapshot.entries.items() if _needs_rewrite(e, heads[key])]
            sidecar = optimize_sidecar(main, state, chosen, draft)
            rewrite = TableRewrite(
                self._parts,
                sidecar,
                lock,
                lambda _key, table: remove_dropped_columns(compact_with_indexes(table)),
            )
            commit = rewrite.run(state, chosen, heads) if chosen else None
            compact_whole_manifest(self._parts.manifest, None)
        rewrite.extend_texts(snapshot.catalog)
        if rewrite.errors:
            raise rewrite.errors[0]
        tables = tuple(
            _result(entry, heads[key], rewrite.done.get(key))
            for key, entry in snapshot.entries.items()
        )
        if commit is None:
            return OptimizeReport(tables, nothing_done(state, draft))
        return OptimizeReport(tables, receipt_of(commit, snapshot.catalog))


def refuse_pending(recovery: Recovery, operation: str) -> None:
    """Raise `RecoveryPending` if a sidecar on main is pending or quarantined.

    The caller holds main's lock.
    """
    quarantined = [found.name for found in recovery.status().quarantined]
    pending = [*recovery.waiting_on(None), *quarantined]
    if pending:
        raise RecoveryPending(operation, pending)


def refuse_older(entry: SnapshotEntry, head: Table) -> None:
    """Raise `ManifestDamaged` if a table's head is older than its published version."""
    if head.version < entry.version:
        raise ManifestDamaged(
            f"'{entry.table_key}' is at version {head.version}, "
            f"but the graph knows version {entry.version}"
        )


def _needs_rewrite(entry: SnapshotEntry, head: Table) -> bool:
    refuse_older(entry, head)
    is_published = head.version == entry.version
    return is_published and (is_compaction_needed(head) or bool(fragments_with_dropped(head)))


def _result(entry: SnapshotEntry, head: Table, rewritten: Table | None) -> OptimizedTable:
    key = entry.table_key
    if head.version != entry.version:
        return OptimizedTable(key, skipped=DRIFTED, published=entry.version, found=head.version)
    if rewritten is None:
        return OptimizedTable(key)
    before, after = ({f.id for f in table.fragments()} for table in (head, rewritten))
    return OptimizedTable(key, len(before - after), len(after - before), committed=True)
