"""Plan a merge: merge table by table, then validate the result. Nothing is committed here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from omnigraph.catalog.model import EntityType
from omnigraph.commit.change import AdoptedTable, Change, TableWrite
from omnigraph.errors import MergeConflict, MergeConflicts, OmnigraphError
from omnigraph.graph.parts import GraphParts
from omnigraph.limits import MAX_REPORTED_CONFLICTS
from omnigraph.merge.resolution import ConflictResolution
from omnigraph.merge.rows import MergedRows
from omnigraph.merge.table_merge import (
    GraphState,
    Overlay,
    TableMerge,
    allowed_blobs,
    merge_on_spark,
    remove_files,
)
from omnigraph.merge.validation import MergeValidator, RowChange
from omnigraph.progress import SILENT, Progress
from omnigraph.spark.choice import INLINE, EngineChoice, compares_on_spark, session_of
from omnigraph.versioning.commits import Counts
from omnigraph.versioning.snapshot import Snapshot
from omnigraph.versioning.snapshot_rows import SnapshotRows


@dataclass(frozen=True)
class MergePlan:
    """The change that a merge makes, or the conflicts that prevent it."""

    change: Change
    counts: dict[str, Counts]
    conflicts: tuple[MergeConflict, ...]
    """At most `MAX_REPORTED_CONFLICTS`."""
    conflicts_total: int
    unused: tuple[tuple[str, str], ...]
    """Table key and row id of resolutions for rows without a conflict."""

    @property
    def rows(self) -> int:
        """The number of rows that are written or deleted."""
        return sum(c.inserted + c.updated + c.deleted for c in self.counts.values())

    def refuse_conflicts(self) -> None:
        """Raise `MergeConflicts` if there are conflicts."""
        if self.conflicts:
            raise MergeConflicts(self.conflicts, self.conflicts_total)


@dataclass(frozen=True)
class MergePlanner:
    """Plans merges into one branch of one graph."""

    parts: GraphParts
    branch: str | None = None
    """The target's storage name."""
    adopts: bool = False
    """Whether a target other than main may refer to table versions of main."""
    writes: bool = False
    """Whether Spark tasks write the rows they merge."""
    engine: EngineChoice = INLINE
    progress: Progress = SILENT

    def plan(
        self, base: GraphState, source: Snapshot, target: Snapshot, resolution: ConflictResolution
    ) -> MergePlan:
        """Apply the changes from base to source to the target. Finds all conflicts."""
        theirs, ours = GraphState(source), GraphState(target)
        merges = [
            TableMerge(
                declared,
                self.parts.tables,
                base,
                theirs,
                ours,
                resolution,
                is_adopted=self._adopts(declared, base, source, target),
            )
            for declared in _differing_types(base, theirs, ours)
        ]
        merged = self._merge(merges)
        try:
            return self._validated(merges, merged, source, target, resolution)
        except OmnigraphError:
            self._discard(merged.values())
            raise

    def combine(self, base: GraphState, theirs: GraphState, ours: GraphState) -> GraphState:
        """Merge two states into one; rows on which they disagree become unclear."""
        overlays = dict(ours.overlays)
        resolution = ConflictResolution.parse("ours")
        for declared in _differing_types(base, theirs, ours):
            merge = TableMerge(declared, self.parts.tables, base, theirs, ours, resolution)
            rows = merge.run(merge.sides())
            if rows.has_effect or len(rows.contested):
                key = declared.table_key
                new = Overlay(rows.upserts, rows.deletes, rows.contested)
                overlays[key] = overlays[key].under(new) if key in overlays else new
        return GraphState(ours.snapshot, overlays)

    def _adopts(
        self, declared: EntityType, base: GraphState, source: Snapshot, target: Snapshot
    ) -> bool:
        """Whether the target can refer to the source's table version, which belongs to main."""
        key = declared.table_key
        is_possible = self.adopts and self.branch is not None
        if not is_possible or key not in source.entries or key not in target.entries:
            return False
        is_on_main = source.entry(key).branch is None
        owns = target.entry(key).branch == self.branch
        return is_on_main and not owns and base.has_same(GraphState(target), declared)

    def _merge(self, merges: list[TableMerge]) -> dict[str, MergedRows]:
        """Merge the rows by table key: in this process, or on Spark if there are many."""
        self.progress.stage("find rows")
        sides = [merge.sides() for merge in merges]
        sizes = [len(side.ids) for side in sides]
        self.progress.stage("merge rows", sum(sizes))
        keys = [merge.declared.table_key for merge in merges]
        if not compares_on_spark(self.engine, sum(sizes), shared=self.parts.tables.is_shared):
            found = {}
            blobs = allowed_blobs(merges)
            for key, merge, side in zip(keys, merges, sides, strict=True):
                found[key] = merge.run(side, self.progress)
                merge.check_blobs(found[key], blobs)
            return found
        rows = merge_on_spark(
            session_of(self.engine),
            list(zip(merges, sizes, strict=True)),
            self.parts.objects,
            self.branch,
            writes=self.writes,
        )
        self.progress.advance(sum(sizes))
        return dict(zip(keys, rows, strict=True))

    def _validated(
        self,
        merges: list[TableMerge],
        merged: dict[str, MergedRows],
        source: Snapshot,
        target: Snapshot,
        resolution: ConflictResolution,
    ) -> MergePlan:
        """Validate merged rows and make them a plan."""
        self.progress.stage("check rules")
        changes = {
            key: RowChange(rows.upserts, rows.deletes)
            for key, rows in merged.items()
            if rows.has_effect
        }
        validator = MergeValidator(
            target.catalog,
            changes,
            SnapshotRows(source, self.parts.tables),
            SnapshotRows(target, self.parts.tables),
        )
        conflicts = [conflict for rows in merged.values() for conflict in rows.conflicts]
        total = sum(rows.conflicts_total for rows in merged.values())
        if not conflicts:
            conflicts = validator.conflicts()
            total = len(conflicts)
        if conflicts:
            self._discard(merged.values())
        adopted_keys = {merge.declared.table_key for merge in merges if merge.is_adopted}
        writes = (_table_write(key, merged[key]) for key in sorted(changes.keys() - adopted_keys))
        adopted = (
            AdoptedTable(source.entry(key), _counts(merged[key]))
            for key in sorted(changes.keys() & adopted_keys)
        )
        resolved = {(key, id) for key, rows in merged.items() for id in rows.resolved}
        return MergePlan(
            Change(tuple(writes), frozenset(validator.reads - changes.keys()), tuple(adopted)),
            {key: _counts(merged[key]) for key in sorted(changes)},
            tuple(sorted(conflicts, key=lambda conflict: conflict.order)[:MAX_REPORTED_CONFLICTS]),
            total,
            tuple(sorted(resolution.resolutions.keys() - resolved)),
        )

    def _discard(self, merged: Iterable[MergedRows]) -> None:
        """Remove files that will not be committed."""
        written = [rows.written for rows in merged if rows.written is not None]
        if written:
            with suppress(OmnigraphError):  # Cleanup removes leftover files.
                remove_files(self.parts.objects, written)


def _differing_types(
    base: GraphState, theirs: GraphState, ours: GraphState
) -> Iterator[EntityType]:
    """Types whose rows in the source differ from both the base and the target."""
    for declared in ours.snapshot.catalog:
        if theirs.has_same(ours, declared) or theirs.has_same(base, declared):
            continue
        if declared.table_key in ours.snapshot.entries:
            yield declared


def _table_write(key: str, rows: MergedRows) -> TableWrite:
    if rows.written is None:
        return TableWrite(key, "delta", rows.upserts, rows.deletes)
    nothing = rows.written.table.schema.empty_table()
    return TableWrite(key, "delta", nothing, written=rows.written)


def _counts(rows: MergedRows) -> Counts:
    return Counts(rows.inserted, rows.upserts.num_rows - rows.inserted, len(rows.deletes))
