"""What a graph of format 1 to 3 looks like on disk. All its names are here, and all that reads it.

The manifest has table rows only, keyed by type name, and what a row means depends on the stored
version that inserted it. Commits, their actors and the recoveries are three tables beside it; the
commits have a branch for each branch of the manifest. Branches are stored under the names people
gave them. Stored compiled schemas have no allocated identities.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import pyarrow as pa

from omnigraph.errors import InvalidBranchName, TableMissing
from omnigraph.storage.columns import INSERTED_AT, read_with_versions
from omnigraph.storage.refs import StoredBranch
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.branch_names import (
    PUBLIC_NAME_KEY,
    branch_name,
    decode_physical_name,
)
from omnigraph.versioning.rows import MANIFEST_PATH

COMMITS_PATH: Final = "_graph_commits.lance"
ACTORS_PATH: Final = "_graph_commit_actors.lance"
RECOVERIES_PATH: Final = "_graph_commit_recoveries.lance"
OLD_TABLES: Final = (COMMITS_PATH, ACTORS_PATH, RECOVERIES_PATH)
"""What a converted graph still has and nothing reads any more."""
IR_VERSION: Final = 1

KEYED_STAMP: Final = 2
"""From this stamp on, the manifest's key column is declared as such."""
WITHOUT_RUNS_STAMP: Final = 3
"""From this stamp on, there are no branches left that only served a single write."""
_RUN_PREFIX: Final = "__run__"

_ROW_TYPES: Final = ("table", "table_version", "table_tombstone")
_ROW_COLUMNS: Final = (
    "object_type",
    "location",
    "metadata",
    "table_key",
    "table_version",
    "table_branch",
    "row_count",
)
_TIME: Final = "created_at"


@dataclass(frozen=True, slots=True)
class OldRow:
    """A row of the manifest and the stored version that inserted it."""

    object_type: str
    location: str | None
    metadata: str | None
    table_key: str
    table_version: int | None
    table_branch: str | None
    row_count: int | None
    inserted_at: int


@dataclass(frozen=True, slots=True)
class OldCommit:
    """A commit stands for the state of the manifest at a stored version of it."""

    graph_commit_id: str
    manifest_branch: str | None
    manifest_version: int
    parent_commit_id: str | None
    merged_parent_commit_id: str | None
    created_at: int
    actor_id: str | None

    @property
    def place(self) -> tuple[int, int, str]:
        return self.manifest_version, self.created_at, self.graph_commit_id


@dataclass(frozen=True, slots=True)
class OldRecovery:
    graph_commit_id: str
    recovery_kind: str
    recovery_for_actor: str | None
    operation_id: str
    sidecar_writer_kind: str
    per_table_outcomes_json: str
    created_at: int


@dataclass(frozen=True, slots=True)
class OldBranch:
    """Everything known about one branch, commits in their order."""

    name: str | None
    rows: tuple[OldRow, ...]
    commits: tuple[OldCommit, ...]
    recoveries: tuple[OldRecovery, ...]


class OldGraph:
    """The tables of a graph of an older format."""

    def __init__(self, tables: TableStore) -> None:
        self._tables = tables

    def branches(self, stamp: int) -> dict[str, StoredBranch]:
        """The branches that people made; each ref says the branch's public name where it must.

        Names that no branch can have are not ours.
        """
        return {
            name: replace(stored, metadata=_named_metadata(name, stored.metadata))
            for name, stored in self.all_branches().items()
            if _is_public(name) and (stamp >= WITHOUT_RUNS_STAMP or not is_run(name))
        }

    def all_branches(self) -> dict[str, StoredBranch]:
        """Every branch of the manifest as stored, including internal ones."""
        return self._tables.list_branches(MANIFEST_PATH)

    def branch(self, manifest: Table) -> OldBranch:
        """What there is to know about the branch of an opened manifest."""
        commits = self._commits(manifest.branch)
        own = {commit.graph_commit_id for commit in commits}
        recoveries = (r for r in self._recoveries() if r.graph_commit_id in own)
        return OldBranch(
            manifest.branch,
            manifest_rows(manifest),
            tuple(sorted(commits, key=lambda commit: commit.place)),
            tuple(sorted(recoveries, key=lambda recovery: recovery.created_at)),
        )

    def beside(self, branch: str | None) -> tuple[int | None, ...]:
        """The versions of the tables beside the manifest: they change after it, one by one."""
        places = ((COMMITS_PATH, branch), (ACTORS_PATH, None), (RECOVERIES_PATH, None))
        tables = (self._table(path, branch) for path, branch in places)
        return tuple(None if table is None else table.version for table in tables)

    def _commits(self, branch: str | None) -> list[OldCommit]:
        table = self._table(COMMITS_PATH, branch)
        if table is not None:
            actors = self._actors()
            return [
                OldCommit(
                    **{**row, "manifest_branch": _none_if_main(row["manifest_branch"])},
                    actor_id=actors.get(row["graph_commit_id"]),
                )
                for row in _read(table, OldCommit, without=("actor_id",))
            ]
        if branch is None:
            return []
        # The commits got their branch after the manifest had its own, unless a crash came between.
        stored = self.all_branches()[branch]
        inherited = self._commits(stored.parent)
        return [c for c in inherited if c.manifest_version <= stored.parent_version]

    def _actors(self) -> Mapping[str, str]:
        table = self._table(ACTORS_PATH, None)
        if table is None:
            return {}
        rows = table.read(["graph_commit_id", "actor_id"]).to_pylist()
        return {row["graph_commit_id"]: row["actor_id"] for row in rows}

    def _recoveries(self) -> list[OldRecovery]:
        table = self._table(RECOVERIES_PATH, None)
        return [] if table is None else [OldRecovery(**r) for r in _read(table, OldRecovery)]

    def _table(self, path: str, branch: str | None) -> Table | None:
        try:
            return self._tables.open(path, branch)
        except TableMissing:
            return None


def manifest_rows(manifest: Table) -> tuple[OldRow, ...]:
    """The rows of an opened manifest, in the order of their insertion."""
    found = read_with_versions(manifest, _ROW_COLUMNS).to_pylist()
    rows = (OldRow(inserted_at=row.pop(INSERTED_AT), **row) for row in found)
    known = (row for row in rows if row.object_type in _ROW_TYPES)
    return tuple(sorted(known, key=lambda row: row.inserted_at))


def is_run(name: str) -> bool:
    """Whether a branch only served a single write."""
    return name.lstrip("/").startswith(_RUN_PREFIX)


def _named_metadata(name: str, metadata: Mapping[str, str]) -> Mapping[str, str]:
    """The metadata of a branch's ref, completed by its name if the storage name does not tell it."""
    decoded = decode_physical_name(name)
    if decoded is not None and decoded.public == name:
        return metadata
    return {**metadata, PUBLIC_NAME_KEY: name}


def _is_public(name: str) -> bool:
    try:
        branch_name(name)
    except InvalidBranchName:
        return False
    return True


def _none_if_main(branch: str | None) -> str | None:
    return None if branch == "main" else branch


def _read(table: Table, kind: type[Any], without: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """The columns of a table that a class has fields for, times as microseconds."""
    found = table.read([f.name for f in fields(kind) if f.name not in without])
    times = found.column(_TIME).cast(pa.int64())
    rows: list[dict[str, Any]] = found.set_column(
        found.column_names.index(_TIME), _TIME, times
    ).to_pylist()
    return rows
