"""Snapshots: one immutable view of a whole graph, under the type names of its schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from omnigraph.catalog.model import Catalog, EntityType, NodeType
from omnigraph.errors import HistoryRemoved, InputError, TableMissing
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.branch_names import BranchName, public_name
from omnigraph.versioning.commits import CommitId, TableId
from omnigraph.versioning.manifest import ManifestState
from omnigraph.versioning.rows import VersionRef


@dataclass(frozen=True, slots=True)
class SnapshotEntry:
    """One table of a snapshot: exactly this version of exactly this lineage."""

    table_key: str
    table_id: TableId
    location: str
    version: int
    branch: str | None
    row_count: int

    @property
    def version_ref(self) -> VersionRef:
        return VersionRef(self.version, self.branch)

    def to_json(self) -> dict[str, Any]:
        return {
            "table_key": self.table_key,
            "table_path": self.location,
            "table_version": self.version,
            "table_branch": None if self.branch is None else public_name(self.branch),
            "row_count": self.row_count,
        }


@dataclass(frozen=True)
class Snapshot:
    """A graph at one commit. Later commits never change it."""

    branch: BranchName
    version: int
    commit_id: CommitId
    catalog: Catalog
    entries: Mapping[str, SnapshotEntry]
    _opened: dict[str, Table] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """What travels to another process: tables are opened again there."""
        return {**self.__dict__, "_opened": {}}

    @classmethod
    def of(cls, state: ManifestState, catalog: Catalog) -> Snapshot:
        """The snapshot of a manifest state under a catalog's names."""
        names = table_keys(catalog)
        entries = {}
        for table_id, entry in state.tables.items():
            registered = state.registered[table_id]
            key = names.get(table_id, f"{registered.kind}:{registered.name}")
            entries[key] = SnapshotEntry(
                key, table_id, registered.location, entry.version, entry.branch, entry.row_count
            )
        ordered = {key: entries[key] for key in sorted(entries)}
        return cls(public_name(state.branch), state.sequence, state.head, catalog, ordered)

    def entry(self, table_key: str) -> SnapshotEntry:
        """The entry of a table. Raises `InputError` for a key the snapshot does not have."""
        found = self.entries.get(table_key)
        if found is None:
            raise InputError(f"no manifest entry for '{table_key}' at version {self.version}")
        return found

    def open(self, tables: TableStore, table_key: str) -> Table:
        """The table as this snapshot sees it. It is opened once: a version never changes."""
        found = self._opened.get(table_key)
        if found is None:
            entry = self.entry(table_key)
            try:
                found = tables.open(entry.location, entry.branch, entry.version)
            except TableMissing as error:
                raise HistoryRemoved(table_key, self.version) from error
            self._opened[table_key] = found
        return found

    def take_over(self, earlier: Snapshot) -> None:
        """Use tables an earlier snapshot of the same branch has opened, where they are the same.

        Only those of the main line: the name and number of a version on a branch come again when
        the branch is deleted and created again.
        """
        for key, table in list(earlier._opened.items()):
            entry = self.entries.get(key)
            if entry is not None and entry.branch is None and entry == earlier.entries[key]:
                self._opened[key] = table

    def followed_by(self, state: ManifestState, written: Mapping[str, Table]) -> Snapshot:
        """The snapshot of a later state under the same lock, that only these tables differ in."""
        entries = dict(self.entries)
        for key in written:
            entry, now = entries[key], state.tables[entries[key].table_id]
            entries[key] = replace(
                entry, version=now.version, branch=now.branch, row_count=now.row_count
            )
        following = Snapshot(self.branch, state.sequence, state.head, self.catalog, entries)
        for key, table in self._opened.items():
            if following.entries.get(key) == self.entries[key]:
                following._opened[key] = table
        following._opened.update(written)
        return following

    def replacing(self, tables: Mapping[str, Table]) -> Snapshot:
        """This snapshot with other content of some tables, which only the result can open."""
        entries = dict(self.entries)
        for key, table in tables.items():
            entries[key] = replace(
                entries[key], version=table.version, branch=None, row_count=table.row_count()
            )
        found = Snapshot(self.branch, self.version, self.commit_id, self.catalog, entries)
        found._opened.update({k: t for k, t in self._opened.items() if k not in tables})
        found._opened.update(tables)
        return found

    def to_json(self) -> dict[str, Any]:
        return {
            "branch": self.branch,
            "manifest_version": self.version,
            "tables": [entry.to_json() for entry in self.entries.values()],
        }


def table_id(declared: EntityType) -> TableId:
    """The durable name of a type's table."""
    kind = "node" if isinstance(declared, NodeType) else "edge"
    return TableId(f"{kind}#{declared.type_id}")


def table_keys(catalog: Catalog) -> dict[TableId, str]:
    """Table ids to the public names the catalog gives them."""
    return {table_id(declared): declared.table_key for declared in catalog}
