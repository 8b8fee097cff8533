"""Find the table versions and forks that cleanup must keep.

These are the current state of every branch, the merge bases of any two branches, and tagged commits. If
a branch cannot be read, its versions might be needed, so after an error nothing may be removed.

The caller holds the lock of main. While it does, no branch is created or deleted and nothing is merged, so a
branch can come to name only a fork of its own, made by its first write to a table. Before a fork is
removed, the state of its branch is checked again under the branch lock (`names_fork`).
Tests: tests/behaviour/test_cleanup.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, combinations

from omnigraph.errors import TableMissing
from omnigraph.storage.cleanup import stored_versions
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.ancestry import Tip, read_by_merge
from omnigraph.versioning.branch_names import public_name
from omnigraph.versioning.branches import Branches
from omnigraph.versioning.commits import TableId
from omnigraph.versioning.manifest import Manifest, ManifestState
from omnigraph.versioning.rows import TableRegistration
from omnigraph.versioning.tags import StoredTag

Fork = tuple[str, str]
"""The location of a table and the storage name of a branch of it."""


@dataclass(frozen=True, slots=True)
class RetainedVersions:
    """Retained versions of the main line by table, each with its reason, and retained forks."""

    versions: Mapping[TableId, Mapping[int, str]]
    forks: frozenset[Fork]
    registered: Mapping[TableId, TableRegistration]
    unneeded: frozenset[str] = frozenset()
    """Storage names of branches that were retired and that no merge would read any more."""
    moved: frozenset[str] = frozenset()
    """Storage names of branches that were created at another address and cannot be read."""

    @property
    def locations(self) -> frozenset[str]:
        return frozenset(table.location for table in self.registered.values())


def find_retained(
    manifest: Manifest, branches: Branches, tags: Sequence[StoredTag]
) -> RetainedVersions:
    """Collect what all branches and tags need."""
    versions: dict[TableId, dict[int, str]] = {}
    forks: set[Fork] = set()
    registered: dict[TableId, TableRegistration] = {}
    lines: set[str | None] = set()
    listed = branches.list()
    heads = branches.states(listed)
    moved = {ref.physical for ref in listed} - {state.branch for state in heads}
    readable = {state.branch for state in heads}
    tagged = (
        (manifest.at(tag.branch, tag.version), f"tagged as {tag.name}")
        for tag in tags
        if tag.branch in readable  # Of a branch that is gone or cannot be asked, nothing is left.
    )
    for state, reason in chain(_states(manifest, heads, branches), tagged):
        lines.add(state.branch)
        registered |= state.registered
        for table, entry in state.tables.items():
            if entry.branch is None:
                versions.setdefault(table, {}).setdefault(entry.version, reason)
            else:
                forks.add((state.registered[table].location, entry.branch))
    retired = {ref.physical for ref in branches.retired() if ref.physical is not None}
    return RetainedVersions(
        versions,
        frozenset(forks),
        registered,
        unneeded=frozenset(retired - lines),
        moved=frozenset(name for name in moved if name is not None),
    )


def names_fork(state: ManifestState, fork: Fork) -> bool:
    """Whether a state names a version of a branch's fork of a table."""
    location, branch = fork
    return any(
        entry.branch == branch and state.registered[table].location == location
        for table, entry in state.tables.items()
    )


def removed_tables(tables: TableStore, state: ManifestState) -> Iterator[TableId]:
    """Tables whose main-line version named by a state is no longer stored.

    Opening the version is not enough, as it may be cached.
    """
    for table_id, entry in state.tables.items():
        if entry.branch is None:
            try:
                stored = stored_versions(tables.open(state.registered[table_id].location))
            except TableMissing:
                stored = []
            if entry.version not in [version.number for version in stored]:
                yield table_id


def _states(
    manifest: Manifest, heads: Sequence[ManifestState], branches: Branches
) -> Iterator[tuple[ManifestState, str]]:
    for state in heads:
        yield state, f"current on {public_name(state.branch)}"
    whole = cache(branches.history)
    for left, right in combinations(heads, 2):
        names = f"{public_name(left.branch)} and {public_name(right.branch)}"
        for home in read_by_merge(manifest, Tip.of(left), Tip.of(right), whole).values():
            yield manifest.at(home.branch, home.sequence), f"merge base of {names}"
