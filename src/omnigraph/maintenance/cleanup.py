"""Delete old table versions of main by a policy, except those that a branch or tag needs, and orphans.

A branch keeps its own versions until it is deleted. Commits stay listed, but deleted states can no longer
be read. An error in one table is reported and does not stop the others.

Orphans are forks of deleted branches, unregistered tables, scratch and temporary files. Interrupted first
writes, branch deletes, schema applies and loads leave them behind. A fork is removed under its branch's lock,
after checking again that no branch refers to it. If the lock is taken, the fork waits for the next cleanup.
Tests: tests/behaviour/test_cleanup.py, tests/processes/test_cleanup.py, tests/crash."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from omnigraph.diagnostics import counted
from omnigraph.errors import BranchLocked, InputError, OmnigraphError, RecoveryPending, TableDrift
from omnigraph.faults import declare
from omnigraph.graph.parts import GraphParts
from omnigraph.limits import CLEANUP_MIN_AGE_SECONDS
from omnigraph.maintenance.optimize import refuse_pending
from omnigraph.storage.cleanup import (
    RemovedFiles,
    StoredVersion,
    list_temporary_files,
    remove_leftovers,
    remove_temporary_files,
    remove_versions,
    stored_versions,
)
from omnigraph.storage.files import FOLDER as SCRATCH_DIR
from omnigraph.storage.files import list_scratch, remove_scratch
from omnigraph.storage.objects import PROBE_DIR, ObjectStore
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.branch_names import decode_physical_name
from omnigraph.versioning.commits import TableId
from omnigraph.versioning.contract import HISTORY_DIR
from omnigraph.versioning.ids import made_at
from omnigraph.versioning.locks import HeldLock
from omnigraph.versioning.manifest import ManifestState
from omnigraph.versioning.retention import Fork, RetainedVersions, find_retained, names_fork
from omnigraph.versioning.rows import MANIFEST_PATH, RECOVERY_DIR
from omnigraph.versioning.tags import TAGS_DIR, Tags
from omnigraph.versioning.upgrade.old_layout import OLD_TABLES

BEFORE_RECLAIM = declare("cleanup.reconcile_fork", "before each orphan is reclaimed")

_FOLDERS: Final = ("nodes", "edges")
GRAPH_FOLDERS: Final = (
    *_FOLDERS, MANIFEST_PATH, *OLD_TABLES, RECOVERY_DIR, TAGS_DIR, HISTORY_DIR, PROBE_DIR, SCRATCH_DIR,
)  # fmt: skip
"""The folders that a graph owns. Other files beside them are never touched."""
MIN_ORPHAN_AGE: Final = timedelta(hours=1)
"""A younger unregistered table may belong to a running schema apply."""

MIN_SCRATCH_AGE: Final = timedelta(days=1)
"""Younger scratch and temporary files may belong to a running load."""

_log = logging.getLogger(__name__)


class Orphans:
    """Finds and removes the orphans of one graph. The caller holds main's lock."""

    def __init__(self, parts: GraphParts, retained: RetainedVersions, lock: HeldLock) -> None:
        self._parts = parts
        self._retained = retained
        self._lock = lock

    def reclaim(self, *, dry_run: bool) -> tuple[str, ...]:
        """Remove all orphans; returns their locations, also of a dry run."""
        done = []
        # A fork's own forks go first.
        for fork in reversed(list(self._unneeded_forks())):
            if self._reclaimed(fork, dry_run=dry_run):
                done.append("/".join(fork))
        for location in (*self._unregistered_tables(), *self._old_tables()):
            if dry_run or self._removed(location):
                done.append(location)
        objects = self._parts.objects
        done += abandoned_scratch(objects) if dry_run else remove_scratch(objects, _is_abandoned)
        return tuple(sorted(done))

    def remove_temporary(self, *, dry_run: bool) -> int:
        """Remove temporary files of killed writers; returns their number, also of a dry run.

        No lock is needed: a running writer's files are younger than the minimum age.
        """
        root, objects = self._parts.tables.root, self._parts.objects
        age = MIN_SCRATCH_AGE.total_seconds()
        probes = [
            path for path in objects.list_dir(PROBE_DIR) if _is_abandoned(path.rpartition("/")[2])
        ]
        if dry_run:
            return len(probes) + len(list_temporary_files(root, GRAPH_FOLDERS, age))
        for path in probes:
            objects.delete(path)
        return len(probes) + len(remove_temporary_files(root, GRAPH_FOLDERS, age))

    def _unneeded_forks(self) -> Iterator[Fork]:
        """Forks that no branch needed when retention was computed, oldest first.

        A branch is a fork of the manifest. It exists if it has a ref, unless it was retired. A branch
        that is being created has files before it has a ref.
        """
        tables = self._parts.tables
        for branch in (*sorted(self._retained.unneeded), *self._parts.branches.incomplete()):
            yield MANIFEST_PATH, branch
        for branch in sorted(tables.zombie_branches(MANIFEST_PATH)):
            if decode_physical_name(branch) is not None:
                yield MANIFEST_PATH, branch
        for location in sorted(self._retained.locations):
            if not tables.exists(location):
                continue
            known = list(tables.list_branches(location))
            for branch in [*known, *sorted(tables.zombie_branches(location))]:
                fork = (location, branch)
                if fork not in self._retained.forks and decode_physical_name(branch) is not None:
                    yield fork

    def _reclaimed(self, fork: Fork, *, dry_run: bool) -> bool:
        location, branch = fork
        try:
            with self._parts.locks.hold(branch, "cleanup", wait_ms=0) as lock:
                if self._is_used(fork):
                    return False
                if not dry_run:
                    BEFORE_RECLAIM.hit(location=location, branch=branch)
                    self._lock.check()
                    lock.check()
                    self._parts.tables.reclaim_branch(location, branch, self._parts.objects)
        except BranchLocked:
            return False  # A writer of the branch is active.
        except OmnigraphError as error:
            _log.warning("removal of fork %s of %s postponed: %s", branch, location, error)
            return False
        return True

    def _is_used(self, fork: Fork) -> bool:
        """Whether a fork is in use now. The caller holds its branch's lock.

        Since retention was computed, the branch may have been created or have written to the table for
        the first time, or its writer may have died and left the fork to recovery.
        """
        location, branch = fork
        if branch in self._parts.recovery.named_branches() or branch in self._retained.moved:
            return True
        if branch not in [ref.physical for ref in self._parts.branches.list()]:
            return False
        return location == MANIFEST_PATH or names_fork(self._parts.manifest.current(branch), fork)

    def _unregistered_tables(self) -> Iterator[str]:
        for folder in _FOLDERS:
            for location in self._parts.tables.directories(folder):
                if location not in self._retained.locations and self._is_old(location):
                    yield location

    def _old_tables(self) -> Iterator[str]:
        """Tables of an older format, which the conversion has replaced."""
        return (path for path in OLD_TABLES if self._parts.tables.exists(path))

    def _is_old(self, location: str) -> bool:
        try:
            written = self._parts.tables.open(location).written_at.astimezone()
        except OmnigraphError as error:
            _log.warning("keeping %s: cannot determine its age: %s", location, error)
            return False
        return datetime.now(UTC) - written > MIN_ORPHAN_AGE

    def _removed(self, location: str) -> bool:
        try:
            self._lock.check()
            self._parts.tables.remove(location, self._parts.objects)
        except OmnigraphError as error:
            _log.warning("removal of %s postponed: %s", location, error)
            return False
        return True


def abandoned_scratch(objects: ObjectStore) -> list[str]:
    """Scratch files of killed loads."""
    return list_scratch(objects, _is_abandoned)


def _is_abandoned(job: str) -> bool:
    began = made_at(job)
    return began is not None and datetime.now(UTC) - began > MIN_SCRATCH_AGE


BEFORE_TABLE = declare("cleanup.table_gc", "before versions of each table are removed")

MIN_MANIFEST_AGE: Final = timedelta(hours=1)
"""Manifest versions are kept at least this long, far longer than a publish takes."""

MIN_AGE: Final = timedelta(seconds=CLEANUP_MIN_AGE_SECONDS)


@dataclass(frozen=True, slots=True)
class CleanupPolicy:
    """Which versions may be deleted: beyond the newest `keep_versions` and older than `older_than`.

    With both, both must hold. A version that was current within `min_age` is kept, because a query
    or merge that started then may still read it.
    """

    keep_versions: int | None = None
    older_than: timedelta | None = None
    min_age: timedelta = MIN_AGE

    def __post_init__(self) -> None:
        if self.keep_versions is None and self.older_than is None:
            raise InputError(
                "cleanup needs a policy: how many versions to keep, or from what age on"
            )
        if self.keep_versions is not None and self.keep_versions < 1:
            raise InputError("at least the newest version of every table is kept")
        if min(self.older_than or timedelta(), self.min_age) < timedelta():
            raise InputError("an age is not negative")

    def why_kept(self, stored: Sequence[StoredVersion], index: int, now: datetime) -> str | None:
        """The reason to keep one of the versions, oldest first; None if it may be deleted."""
        newer = len(stored) - index - 1
        if not newer:
            return "the newest"
        if self.keep_versions is not None and newer < self.keep_versions:
            return f"among the newest {self.keep_versions}"
        if now - stored[index + 1].written_at < self.min_age:
            return "replaced too recently"
        if self.older_than is not None and now - stored[index].written_at < self.older_than:
            return "not old enough"
        return None

    def keeps_dropped(self, age: timedelta) -> bool:
        """Whether to keep the table of a type that was dropped this long ago."""
        return self.older_than is None or age < max(self.older_than, self.min_age)

    def to_json(self) -> dict[str, Any]:
        age = self.older_than
        return {
            "keep_versions": self.keep_versions,
            "older_than_secs": None if age is None else int(age.total_seconds()),
            "min_age_secs": int(self.min_age.total_seconds()),
        }


@dataclass(frozen=True, slots=True)
class CleanedTable:
    """What was deleted of one table, the number of versions kept per reason, or an error."""

    table_key: str
    removed: RemovedFiles = field(default_factory=RemovedFiles)
    kept: Mapping[str, int] = field(default_factory=dict)
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "table_key": self.table_key,
            "bytes_removed": self.removed.bytes,
            "old_versions_removed": self.removed.versions,
            "kept": dict(self.kept),
            "error": self.error,
        }


@dataclass(frozen=True, slots=True, repr=False)
class CleanupReport:
    """What a cleanup deleted, or would delete."""

    policy: CleanupPolicy
    dry_run: bool
    tables: tuple[CleanedTable, ...]
    orphans: tuple[str, ...]
    temporary: int = 0
    """The number of temporary files and empty folders of killed writers."""

    def __repr__(self) -> str:
        what = "would remove" if self.dry_run else "removed"
        found = counted(len(self.tables), "table")
        return f"<CleanupReport: {what} {self.removed.versions} versions of {found}>"

    @property
    def removed(self) -> RemovedFiles:
        return sum((table.removed for table in self.tables), RemovedFiles())

    @property
    def failed(self) -> tuple[CleanedTable, ...]:
        return tuple(table for table in self.tables if table.error is not None)

    def to_json(self) -> dict[str, Any]:
        return {
            **self.policy.to_json(),
            "dry_run": self.dry_run,
            "tables": [table.to_json() for table in self.tables],
            "orphans": list(self.orphans),
            "temporary_files": self.temporary,
        }


class Cleanup:
    """Cleans up one graph."""

    def __init__(self, parts: GraphParts) -> None:
        self._parts = parts
        self._tags = Tags(parts.objects)

    def run(self, policy: CleanupPolicy, *, dry_run: bool) -> CleanupReport:
        """Delete unneeded versions by a policy, and all orphans. Raises `RecoveryPending`."""
        with self._parts.locks.hold(None, "cleanup") as lock:
            refuse_pending(self._parts.recovery, "cleanup")
            merges = self._parts.recovery.interrupted_merges()
            if merges:
                # Recovery will complete them and needs the versions they refer to.
                raise RecoveryPending("cleanup", merges)
            state = self._parts.recovery.state(None)
            retained = find_retained(self._parts.manifest, self._parts.branches, self._tags.list())
            orphans = Orphans(self._parts, retained, lock)
            reclaimed = orphans.reclaim(dry_run=dry_run)
            sweep = _Sweep(self._parts.tables, self._parts.objects, policy, retained, lock, dry_run)
            snapshot = self._parts.snapshot_of(state)
            cleaned = [
                sweep.table(entry.table_key, entry.table_id, entry.location, entry.version)
                for entry in snapshot.entries.values()
            ]
            cleaned += sweep.dropped(state, self._dropped_at(state))
            cleaned.append(sweep.manifest())
            if not dry_run:
                self._parts.locks.forget_others(ref.physical for ref in self._parts.branches.list())
        temporary = orphans.remove_temporary(dry_run=dry_run)
        return CleanupReport(policy, dry_run, tuple(cleaned), reclaimed, temporary)

    def _dropped_at(self, state: ManifestState) -> Mapping[TableId, datetime]:
        """When each registered table that main no longer has was dropped."""
        if state.registered.keys() == state.tables.keys():
            return {}
        made = {
            commit.sequence: commit.draft.created_at
            for commit in self._parts.manifest.commits(None)
        }
        return {
            table: datetime.fromtimestamp(made[sequence] / 1e6, UTC)
            for table, sequence in self._parts.manifest.drops(None).items()
        }


@dataclass(frozen=True, slots=True)
class _Sweep:
    """Cleans the tables of main, under its lock."""

    tables: TableStore
    objects: ObjectStore
    policy: CleanupPolicy
    retained: RetainedVersions
    lock: HeldLock
    dry_run: bool

    def table(self, key: str, table_id: TableId, location: str, published: int) -> CleanedTable:
        def clean() -> CleanedTable:
            table = self.tables.open(location)
            if table.version != published:
                raise TableDrift(key, published, table.version, "a repair has to decide")
            return self._clean(key, table, self.retained.versions.get(table_id, {}), self.policy)

        return self._guarded(key, clean)

    def dropped(
        self, state: ManifestState, dropped_at: Mapping[TableId, datetime]
    ) -> Iterator[CleanedTable]:
        """Clean tables of dropped types: delete them if they were dropped long enough ago."""
        for table_id, moment in sorted(dropped_at.items()):
            registered = state.registered[table_id]
            key = f"{registered.kind}:{registered.name}"
            if self.tables.exists(registered.location):
                kept = self.retained.versions.get(table_id, {})
                age = datetime.now(UTC) - moment
                yield self._guarded(key, partial(self._drop, key, registered.location, kept, age))

    def _drop(
        self, key: str, location: str, kept: Mapping[int, str], age: timedelta
    ) -> CleanedTable:
        table = self.tables.open(location)
        has_forks = any(forked == location for forked, _ in self.retained.forks)
        if kept or has_forks or self.retained.moved or self.policy.keeps_dropped(age):
            return self._clean(key, table, kept, self.policy)
        size = RemovedFiles(len(stored_versions(table)), table.stored_bytes())
        if not self.dry_run:
            self.tables.remove(location, self.objects)
        return CleanedTable(key, size)

    def manifest(self) -> CleanedTable:
        """Clean the manifest. Its rows hold the history, so old versions of it are not needed."""
        age = max(self.policy.older_than or timedelta(), MIN_MANIFEST_AGE)
        policy = CleanupPolicy(older_than=age, min_age=timedelta())
        return self._guarded(
            MANIFEST_PATH,
            lambda: self._clean(MANIFEST_PATH, self.tables.open(MANIFEST_PATH), {}, policy),
        )

    def _guarded(self, key: str, clean: Callable[[], CleanedTable]) -> CleanedTable:
        try:
            self.lock.check()
            BEFORE_TABLE.hit(table=key)
            return clean()
        except OmnigraphError as error:
            return CleanedTable(key, error=str(error))

    def _clean(
        self, key: str, table: Table, retained: Mapping[int, str], policy: CleanupPolicy
    ) -> CleanedTable:
        kept: Counter[str] = Counter()
        unneeded: list[int] = []
        now = datetime.now(UTC)
        stored = stored_versions(table)
        for index, version in enumerate(stored):
            reason = retained.get(version.number) or policy.why_kept(stored, index, now)
            if reason is None and self.retained.moved:
                reason = "a branch made at another address may need it"
            if reason is None:
                unneeded.append(version.number)
            else:
                kept[reason] += 1
        removed = remove_versions(table, unneeded, dry_run=self.dry_run)
        if len(unneeded) > removed.versions:
            kept["branched or tagged"] += len(unneeded) - removed.versions
        removed += remove_leftovers(table, dry_run=self.dry_run)
        return CleanedTable(key, removed, dict(sorted(kept.items())))
