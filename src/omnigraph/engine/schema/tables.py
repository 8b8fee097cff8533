"""Tables that a change of the schema moves: staged before the first effect, committed after it.

Look-up indexes that the schema asks for from now on are built here; those of texts and vectors, which
take their time, are left to whoever makes indexes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from omnigraph.catalog.indexes import IndexKind
from omnigraph.engine.schema.fragments import EachFragment
from omnigraph.engine.schema.new_columns import stage_change
from omnigraph.engine.schema.work import ColumnChange
from omnigraph.errors import OmnigraphError
from omnigraph.storage.indexes import build_btree, stage_indexes, uncovered_fragments
from omnigraph.storage.stage import CommitMark, StagedChange, commit_staged
from omnigraph.storage.table import Table
from omnigraph.versioning.commit_sequence import sidecar_table
from omnigraph.versioning.recovery.classify import refuse_drift
from omnigraph.versioning.recovery.recover import Recovery
from omnigraph.versioning.recovery.sidecar import SidecarTable, WriterKind
from omnigraph.versioning.snapshot import Snapshot, SnapshotEntry, table_id

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MovedTable:
    """A table at the version the graph knows, with what comes next staged.

    Indexes on new columns can be built only when those are there.
    """

    entry: SnapshotEntry
    base: Table
    staged: StagedChange
    later_indexes: tuple[str, ...] = ()

    def sidecar_entry(self) -> SidecarTable:
        return sidecar_table(
            self.entry, None, data_commits=1 if self.staged.kind == "columns" else 0
        )

    def commit(self, operation_id: str) -> Table:
        kind = WriterKind.SCHEMA_APPLY.value
        operation: CommitMark = {"operation_id": operation_id, "writer_kind": kind}
        table = commit_staged(self.base, self.staged, **operation)
        staged = _staged_indexes(table, self.later_indexes)
        return table if staged is None else commit_staged(table, staged, **operation)


def ready_tables(
    recovery: Recovery, snapshot: Snapshot, changes: Sequence[ColumnChange], each: EachFragment
) -> tuple[MovedTable, ...]:
    """Stage the changes. Raises `TableDrift` for a table that is not where the graph knows it.

    A table that needs nothing in the end is left out.
    """
    entries = {entry.table_id: entry for entry in snapshot.entries.values()}
    return tuple(_ready(recovery, [(entries[table_id(c.declared)], c) for c in changes], each))


def _ready(
    recovery: Recovery,
    changes: Sequence[tuple[SnapshotEntry, ColumnChange]],
    each: EachFragment,
) -> Iterator[MovedTable]:
    for entry, change in changes:
        table = recovery.head_of(entry.location, entry.branch)
        if table.version != entry.version:
            raise refuse_drift(recovery.sidecars, entry, table, ())
        indexed = tuple(i.column for i in change.indexes if i.kind is IndexKind.BTREE)
        if change.changes_columns:
            yield MovedTable(entry, table, stage_change(table, change, each), indexed)
        else:
            staged = _staged_indexes(table, indexed)
            if staged is not None:
                yield MovedTable(entry, table, staged)


def _staged_indexes(table: Table, columns: Sequence[str]) -> StagedChange | None:
    """Indexes that are missing on a table with rows; None if there is nothing to make."""
    built = []
    for column in columns if table.row_count() else ():
        try:
            if uncovered_fragments(table, column) is None:
                built.append(build_btree(table, column))
        except OmnigraphError as error:
            _log.warning("%s stays without an index on %s: %s", table, column, error)
    return stage_indexes(table, built) if built else None
