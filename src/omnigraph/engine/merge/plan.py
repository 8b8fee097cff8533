"""Planning a merge: table by table, then the rules on what comes together. Nothing is committed here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from omnigraph.catalog.model import EntityType
from omnigraph.engine.merge.choices import Choices
from omnigraph.engine.merge.images import Image, Overlay
from omnigraph.engine.merge.rows import MergedRows
from omnigraph.engine.merge.rules import MergeRules, RowChange
from omnigraph.engine.merge.table_merge import TableMerge, allowed_blobs
from omnigraph.engine.parts import GraphParts
from omnigraph.engine.write.change import AdoptedTable, Change, TableWrite
from omnigraph.errors import MergeConflict, MergeConflicts, OmnigraphError
from omnigraph.limits import CONFLICTS_TOLD
from omnigraph.progress import SILENT, Progress
from omnigraph.spark.choice import INLINE, EngineChoice, compares_on_spark, session_of
from omnigraph.versioning.commits import Counts
from omnigraph.versioning.snapshot import Snapshot
from omnigraph.versioning.snapshot_rows import SnapshotRows


@dataclass(frozen=True)
class MergePlan:
    """What a merge comes to: the change it makes, or the conflicts in its way."""

    change: Change
    counts: dict[str, Counts]
    conflicts: tuple[MergeConflict, ...]
    """The first ones, if there are very many."""
    conflicts_total: int
    unused: tuple[tuple[str, str], ...]
    """Resolutions, by table key and row id, of rows that are in no conflict."""

    @property
    def rows(self) -> int:
        """How many rows are written or removed."""
        return sum(c.inserted + c.updated + c.deleted for c in self.counts.values())

    def refuse_conflicts(self) -> None:
        """Raises `MergeConflicts` that lists them, if there are any."""
        if self.conflicts:
            raise MergeConflicts(self.conflicts, self.conflicts_total)


@dataclass(frozen=True)
class MergePlanner:
    """Plans merges into one branch of one graph."""

    parts: GraphParts
    branch: str | None = None
    """The storage name of the target."""
    adopts: bool = False
    """Whether the target, if it is not main, may point at versions of the main line."""
    writes: bool = False
    """Whether tasks write the rows they have merged."""
    engine: EngineChoice = INLINE
    progress: Progress = SILENT

    def plan(self, base: Image, source: Snapshot, target: Snapshot, choices: Choices) -> MergePlan:
        """Bring what leads from base to source into the target. All conflicts are found at once."""
        theirs, ours = Image(source), Image(target)
        merges = [
            self._table_merge(declared, base, theirs, ours, choices)
            for declared in _differing_types(base, theirs, ours)
        ]
        merged = self._merge(merges)
        try:
            return self._checked(merges, merged, source, target, choices)
        except OmnigraphError:
            self._discard(merged.values())
            raise

    def combine(self, base: Image, theirs: Image, ours: Image) -> Image:
        """The merge of two images as an image; where they disagree, nothing is certain."""
        overlays = dict(ours.overlays)
        choices = Choices.of("ours")
        for declared in _differing_types(base, theirs, ours):
            merge = TableMerge(declared, self.parts.tables, base, theirs, ours, choices)
            rows = merge.run(merge.sides())
            if _has_effect(rows) or len(rows.contested):
                key = declared.table_key
                new = Overlay(rows.upserts, rows.deletes, rows.contested)
                overlays[key] = overlays[key].under(new) if key in overlays else new
        return Image(ours.snapshot, overlays)

    def _table_merge(
        self, declared: EntityType, base: Image, theirs: Image, ours: Image, choices: Choices
    ) -> TableMerge:
        takes_over = self._takes_over(declared, base, theirs.snapshot, ours.snapshot)
        return TableMerge(
            declared, self.parts.tables, base, theirs, ours, choices, is_taken_over=takes_over
        )

    def _takes_over(
        self, declared: EntityType, base: Image, source: Snapshot, target: Snapshot
    ) -> bool:
        """Whether the target can simply point at the version of the main line the source has."""
        key = declared.table_key
        is_possible = self.adopts and self.branch is not None
        if not is_possible or key not in source.entries or key not in target.entries:
            return False
        is_on_main = source.entry(key).branch is None
        owns = target.entry(key).branch == self.branch
        return is_on_main and not owns and base.has_same(Image(target), declared)

    def _merge(self, merges: list[TableMerge]) -> dict[str, MergedRows]:
        """The merged rows by table key: here, or by tasks if there are many."""
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
        from omnigraph.engine.merge.spread import merge_on_spark

        spread = list(zip(merges, sizes, strict=True))
        rows = merge_on_spark(
            session_of(self.engine), spread, self.parts.objects, self.branch, writes=self.writes
        )
        self.progress.advance(sum(sizes))
        return dict(zip(keys, rows, strict=True))

    def _checked(
        self,
        merges: list[TableMerge],
        merged: dict[str, MergedRows],
        source: Snapshot,
        target: Snapshot,
        choices: Choices,
    ) -> MergePlan:
        """What is merged as a plan, if it keeps the rules."""
        self.progress.stage("check rules")
        changes = {
            key: RowChange(rows.upserts, rows.deletes)
            for key, rows in merged.items()
            if _has_effect(rows)
        }
        rules = MergeRules(
            target.catalog,
            changes,
            SnapshotRows(source, self.parts.tables),
            SnapshotRows(target, self.parts.tables),
        )
        conflicts = [conflict for rows in merged.values() for conflict in rows.conflicts]
        total = sum(rows.conflicts_total for rows in merged.values())
        if not conflicts:
            conflicts = rules.conflicts()
            total = len(conflicts)
        if conflicts:
            self._discard(merged.values())
        taken_over = {merge.declared.table_key for merge in merges if merge.is_taken_over}
        writes = (_table_write(key, merged[key]) for key in sorted(changes.keys() - taken_over))
        adopted = (
            AdoptedTable(source.entry(key), _counts(merged[key]))
            for key in sorted(changes.keys() & taken_over)
        )
        resolved = {(key, id) for key, rows in merged.items() for id in rows.resolved}
        return MergePlan(
            Change(tuple(writes), frozenset(rules.reads - changes.keys()), tuple(adopted)),
            {key: _counts(merged[key]) for key in sorted(changes)},
            tuple(sorted(conflicts, key=lambda conflict: conflict.order)[:CONFLICTS_TOLD]),
            total,
            tuple(sorted(choices.resolutions.keys() - resolved)),
        )

    def _discard(self, merged: Iterable[MergedRows]) -> None:
        """Remove rows in files that will not be committed."""
        written = [rows.written for rows in merged if rows.written is not None]
        if written:
            from omnigraph.engine.merge.spread import remove

            with suppress(OmnigraphError):  # What stays is nobody's.
                remove(self.parts.objects, written)


def _differing_types(base: Image, theirs: Image, ours: Image) -> Iterator[EntityType]:
    """The types of which the source has other rows than both the base and the target."""
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


def _has_effect(rows: MergedRows) -> bool:
    return bool(rows.upserts.num_rows or len(rows.deletes))


def _counts(rows: MergedRows) -> Counts:
    return Counts(rows.inserted, rows.upserts.num_rows - rows.inserted, len(rows.deletes))
