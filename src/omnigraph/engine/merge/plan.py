"""Planning a merge: table by table, then the rules on what comes together. Nothing is written here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import EntityType
from omnigraph.engine.merge.choices import Choices
from omnigraph.engine.merge.images import Image, Overlay, differing
from omnigraph.engine.merge.rows import MergedRows, ThreeSides, merge_rows
from omnigraph.engine.merge.rules import MergeRules, RowChange, columns_of_rules
from omnigraph.engine.write.change import AdoptedTable, Change, TableWrite
from omnigraph.engine.write.committed import SnapshotRows
from omnigraph.errors import ExternalBlobRefused, MergeConflict, MergeConflicts
from omnigraph.rows.blob_bases import NO_BASES, BlobBases
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.commits import Counts
from omnigraph.versioning.snapshot import Snapshot


@dataclass(frozen=True)
class MergePlan:
    """What a merge comes to: the change it makes, or the conflicts in its way."""

    change: Change
    counts: dict[str, Counts]
    conflicts: tuple[MergeConflict, ...]
    unused: tuple[tuple[str, str], ...]
    """Resolutions, by table key and row id, of rows that are in no conflict."""

    def refuse_conflicts(self) -> None:
        """Raises `MergeConflicts` that lists all of them, if there are any."""
        if self.conflicts:
            raise MergeConflicts(self.conflicts)


@dataclass(frozen=True)
class MergePlanner:
    """Plans merges into one branch of one graph."""

    tables: TableStore
    adopts_on: str | None = None
    """The storage name of a branch that may point at versions of the main line; None if none may."""

    def plan(self, base: Image, source: Snapshot, target: Snapshot, choices: Choices) -> MergePlan:
        """Bring what leads from base to source into the target. All conflicts are found at once."""
        merged: dict[str, MergedRows] = {}
        adopted: list[AdoptedTable] = []
        theirs, ours = Image(source), Image(target)
        for declared in _differing_types(base, theirs, ours):
            takes_over = self._takes_over(declared, base, source, target)
            keep = columns_of_rules(declared) if takes_over else None
            rows = self._merge(declared, base, theirs, ours, choices, keep)
            merged[declared.table_key] = rows
            if not takes_over:
                _refuse_outside(declared, rows.upserts)
            if takes_over and _has_effect(rows):
                entry = source.entry(declared.table_key)
                adopted.append(AdoptedTable(entry, _counts(rows)))
        changes = {
            key: RowChange(rows.upserts, rows.deletes)
            for key, rows in merged.items()
            if _has_effect(rows)
        }
        conflicts = [conflict for rows in merged.values() for conflict in rows.conflicts]
        rules = MergeRules(
            target.catalog,
            changes,
            SnapshotRows(source, self.tables),
            SnapshotRows(target, self.tables),
        )
        if not conflicts:
            conflicts = rules.conflicts()
        pointed = {table.entry.table_key for table in adopted}
        writes = tuple(
            TableWrite(key, "delta", change.upserts, change.deletes)
            for key, change in sorted(changes.items())
            if key not in pointed
        )
        resolved = {(key, id) for key, rows in merged.items() for id in rows.resolved}
        return MergePlan(
            Change(writes, frozenset(rules.reads - changes.keys()), tuple(adopted)),
            {key: _counts(merged[key]) for key in sorted(changes)},
            tuple(sorted(conflicts, key=lambda conflict: conflict.order)),
            tuple(sorted(choices.resolutions.keys() - resolved)),
        )

    def combine(self, base: Image, theirs: Image, ours: Image) -> Image:
        """The merge of two images as an image; where they disagree, nothing is certain."""
        overlays = dict(ours.overlays)
        choices = Choices.of("ours")
        for declared in _differing_types(base, theirs, ours):
            rows = self._merge(declared, base, theirs, ours, choices, None)
            if _has_effect(rows) or len(rows.contested):
                key = declared.table_key
                new = Overlay(rows.upserts, rows.deletes, rows.contested)
                overlays[key] = overlays[key].under(new) if key in overlays else new
        return Image(ours.snapshot, overlays)

    def _merge(
        self,
        declared: EntityType,
        base: Image,
        theirs: Image,
        ours: Image,
        choices: Choices,
        keep: list[str] | None,
    ) -> MergedRows:
        sides = ThreeSides(
            *differing(declared, self.tables, base, theirs),
            *differing(declared, self.tables, base, ours),
            unclear=base.unclear(declared),
        )
        return merge_rows(declared, sides, choices, keep=keep)

    def _takes_over(
        self, declared: EntityType, base: Image, source: Snapshot, target: Snapshot
    ) -> bool:
        """Whether the target can simply point at the version of the main line the source has."""
        key = declared.table_key
        if self.adopts_on is None or key not in source.entries or key not in target.entries:
            return False
        is_on_main = source.entry(key).branch is None
        owns = target.entry(key).branch == self.adopts_on
        return is_on_main and not owns and base.has_same(Image(target), declared)


def _differing_types(base: Image, theirs: Image, ours: Image) -> Iterator[EntityType]:
    """The types of which the source has other rows than both the base and the target."""
    for declared in ours.snapshot.catalog:
        if theirs.has_same(ours, declared) or theirs.has_same(base, declared):
            continue
        if declared.table_key in ours.snapshot.entries:
            yield declared


def _refuse_outside(declared: EntityType, rows: pa.Table) -> None:
    """Blobs kept elsewhere are written again only where they may be. Raises `ExternalBlobRefused`."""
    allowed = BlobBases.from_environment() if declared.blobs else NO_BASES
    for name in sorted(declared.blobs):
        for uri in pc.unique(pc.struct_field(rows.column(name), "uri")).drop_null().to_pylist():
            if not allowed.allow(uri):
                raise ExternalBlobRefused(name, uri)


def _has_effect(rows: MergedRows) -> bool:
    return bool(rows.upserts.num_rows or len(rows.deletes))


def _counts(rows: MergedRows) -> Counts:
    return Counts(rows.inserted, rows.upserts.num_rows - rows.inserted, len(rows.deletes))
