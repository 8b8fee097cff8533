"""Remove unreferenced data: forks of deleted branches, unregistered tables, scratch and temporary files.

Interrupted first writes, branch deletes, schema applies and loads leave them behind. A fork is removed
under its branch's lock, after checking again that no branch refers to it. If the lock is taken, the fork
waits for the next cleanup.
Tests: tests/behaviour/test_cleanup.py, tests/processes/test_cleanup.py.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from omnigraph.errors import BranchLocked, OmnigraphError
from omnigraph.faults import declare
from omnigraph.graph.parts import GraphParts
from omnigraph.storage.cleanup import list_temporary_files, remove_temporary_files
from omnigraph.storage.files import FOLDER as SCRATCH_DIR
from omnigraph.storage.files import list_scratch, remove_scratch
from omnigraph.storage.objects import PROBE_DIR, ObjectStore
from omnigraph.versioning.branch_names import decode_physical_name
from omnigraph.versioning.contract import HISTORY_DIR
from omnigraph.versioning.ids import made_at
from omnigraph.versioning.locks import HeldLock
from omnigraph.versioning.retention import Fork, RetainedVersions, names_fork
from omnigraph.versioning.rows import MANIFEST_PATH, RECOVERY_DIR
from omnigraph.versioning.tags import TAGS_DIR
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
