"""Two snapshots, table by table: what may differ, and what does. It travels to tasks as it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from omnigraph.catalog.model import Catalog, EdgeType, EntityType
from omnigraph.engine.compare.changes import TableChanges, candidates, only_different
from omnigraph.engine.compare.sides import Side, Stored, differing_sides
from omnigraph.engine.compare.sight import Sight, Turned, ends_of, in_sight, with_turned_ends
from omnigraph.engine.read.view import ReadView
from omnigraph.progress import SILENT, Progress
from omnigraph.storage.changed_rows import Wanted
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot, SnapshotEntry


@dataclass(frozen=True, slots=True)
class ComparedTable:
    """One table in two snapshots: its type, and as the reader sees it."""

    declared: EntityType
    shown: EntityType
    before: SnapshotEntry | None
    after: SnapshotEntry | None

    @property
    def is_same(self) -> bool:
        """Whether both snapshots have the very same version of it."""
        if self.before is None or self.after is None:
            return False
        return self.before.version_ref == self.after.version_ref

    @property
    def is_one_line(self) -> bool:
        """Whether both snapshots have versions of one line of it."""
        if self.before is None or self.after is None:
            return False
        return self.before.branch == self.after.branch


@dataclass(frozen=True)
class Comparison:
    """Two snapshots as a reader sees them. Tables are matched by their durable names."""

    before: Snapshot
    after: Snapshot
    tables: TableStore
    view: ReadView = ReadView.ALL
    turned: Turned = field(default_factory=dict)

    def all_tables(self) -> Iterator[ComparedTable]:
        """The tables that the reader knows of, by table key."""
        old, new = ({e.table_id: e for e in s.entries.values()} for s in (self.before, self.after))
        catalogs = [self.after.catalog, self.before.catalog]
        shown = [self.view.restrict(catalog) for catalog in catalogs]
        found = []
        for table_id in old.keys() | new.keys():
            entries = new.get(table_id), old.get(table_id)
            declared, visible = _declared(entries, catalogs), _declared(entries, shown)
            if declared is not None and visible is not None:
                found.append(ComparedTable(declared, visible, entries[1], entries[0]))
        return iter(sorted(found, key=lambda table: table.declared.table_key))

    def may_differ(self, table: ComparedTable) -> bool:
        if not table.is_same:
            return True
        edge = table.declared
        return isinstance(edge, EdgeType) and any(
            len(self.turned.get(name, ())) for _, name in ends_of(edge)
        )

    def sides(self, table: ComparedTable, wanted: Wanted | None = None) -> tuple[Side, Side]:
        """The rows that can differ, as either snapshot has them."""
        stored = _stored(self.before, table.before), _stored(self.after, table.after)
        sides = differing_sides(table.declared, self.tables, *stored, wanted)
        if not isinstance(table.declared, EdgeType):
            return sides
        return with_turned_ends(table.declared, self.tables, stored, sides, self.turned, wanted)

    def changes(
        self, table: ComparedTable, sides: tuple[Side, Side], progress: Progress = SILENT
    ) -> TableChanges:
        """The rows that do differ for the reader, by id."""
        found = candidates(table.declared, *sides, is_one_line=table.is_one_line)
        if not self.view.sees_all:
            sights = (Sight(self.view, s, self.tables) for s in (self.before, self.after))
            found = in_sight(found, table.shown, *sights)
        return only_different(found, progress)


def _stored(snapshot: Snapshot, entry: SnapshotEntry | None) -> Stored | None:
    return None if entry is None else (snapshot, entry)


def _declared(
    entries: tuple[SnapshotEntry | None, ...], catalogs: Sequence[Catalog]
) -> EntityType | None:
    """The type of a table, as the later schema that has it declares it."""
    for entry, catalog in zip(entries, catalogs, strict=True):
        if entry is not None:
            by_key: Mapping[str, EntityType] = {found.table_key: found for found in catalog}
            return by_key.get(entry.table_key)
    return None
