"""Reclaiming what nobody refers to: forks of branches that are gone, tables that never were, scratch files,
temporary files of writers that were killed.

Left behind by interrupted first writes, branch deletes, schema changes and loads. Each fork is reclaimed under the
lock of its branch, after another look at whether the branch exists and what it names; one whose lock cannot be had,
or that something still refers to, waits for the next time.
Tests: tests/behaviour/test_cleanup.py, tests/processes/test_cleanup.py.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from omnigraph.engine.parts import GraphParts
from omnigraph.errors import BranchLocked, OmnigraphError
from omnigraph.faults import declare
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
"""Where a graph keeps its files. What else is beside them is not ours."""
_UNTOUCHED: Final = timedelta(hours=1)
"""A table nobody has registered may belong to a change of the schema that is at work just now."""

_FINISHED: Final = timedelta(days=1)
"""A load that began longer ago than this has read its scratch files, or never will."""

_log = logging.getLogger(__name__)


class Orphans:
    """Finds and reclaims the orphans of one graph. The caller holds the lock of main."""

    def __init__(self, parts: GraphParts, needed: RetainedVersions, lock: HeldLock) -> None:
        self._parts = parts
        self._needed = needed
        self._lock = lock

    def reclaim(self, *, dry_run: bool) -> tuple[str, ...]:
        """Reclaim all orphans; returns what was reclaimed, or would be."""
        done = []
        # What was made from a fork goes before it.
        for fork in reversed(list(self._unneeded_forks())):
            if self._reclaimed(fork, dry_run=dry_run):
                done.append("/".join(fork))
        for location in (*self._tables_of_nobody(), *self._old_tables()):
            if dry_run or self._removed(location):
                done.append(location)
        objects = self._parts.objects
        done += abandoned_scratch(objects) if dry_run else remove_scratch(objects, _is_over)
        return tuple(sorted(done))

    def remove_temporary(self, *, dry_run: bool) -> int:
        """Remove temporary objects of writers that were killed; how many went, or would.

        No lock is needed: they belong to nothing, and a writer at work has touched its own lately.
        """
        root, objects = self._parts.tables.root, self._parts.objects
        age = _FINISHED.total_seconds()
        probes = [path for path in objects.list_dir(PROBE_DIR) if _is_over(path.rpartition("/")[2])]
        if dry_run:
            return len(probes) + len(list_temporary_files(root, GRAPH_FOLDERS, age))
        for path in probes:
            objects.delete(path)
        return len(probes) + len(remove_temporary_files(root, GRAPH_FOLDERS, age))

    def _unneeded_forks(self) -> Iterator[Fork]:
        """Forks that no branch needed when all were asked, older ones first.

        A branch is a fork of the manifest, and one that has a ref exists, unless it was retired. Of a
        branch that is being made there are files before there is a ref.
        """
        tables = self._parts.tables
        for branch in (*sorted(self._needed.unneeded), *self._parts.branches.incomplete()):
            yield MANIFEST_PATH, branch
        for branch in sorted(tables.zombie_branches(MANIFEST_PATH)):
            if decode_physical_name(branch) is not None:
                yield MANIFEST_PATH, branch
        for location in sorted(self._needed.locations):
            if not tables.exists(location):
                continue
            known = list(tables.list_branches(location))
            for branch in [*known, *sorted(tables.zombie_branches(location))]:
                fork = (location, branch)
                if fork not in self._needed.forks and decode_physical_name(branch) is not None:
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
            return False  # It is being written to, made or deleted.
        except OmnigraphError as error:
            _log.warning("fork %s of %s stays for now: %s", branch, location, error)
            return False
        return True

    def _is_used(self, fork: Fork) -> bool:
        """Whether a fork is in use now, for one who holds the lock of its branch.

        The branch may have written to the table for the first time since all were asked, or may
        have been made just then; or a writer of it has died and left the fork to recovery.
        """
        location, branch = fork
        if branch in self._parts.recovery.named_branches() or branch in self._needed.moved:
            return True
        if branch not in [ref.physical for ref in self._parts.branches.list()]:
            return False
        return location == MANIFEST_PATH or names_fork(self._parts.manifest.current(branch), fork)

    def _tables_of_nobody(self) -> Iterator[str]:
        for folder in _FOLDERS:
            for location in self._parts.tables.directories(folder):
                if location not in self._needed.locations and self._is_old(location):
                    yield location

    def _old_tables(self) -> Iterator[str]:
        """Tables of an older format. A graph that is written to has been converted."""
        return (path for path in OLD_TABLES if self._parts.tables.exists(path))

    def _is_old(self, location: str) -> bool:
        try:
            written = self._parts.tables.open(location).written_at.astimezone()
        except OmnigraphError as error:
            _log.warning("%s stays, as nobody can tell its age: %s", location, error)
            return False
        return datetime.now(UTC) - written > _UNTOUCHED

    def _removed(self, location: str) -> bool:
        try:
            self._lock.check()
            self._parts.tables.remove(location, self._parts.objects)
        except OmnigraphError as error:
            _log.warning("%s stays for now: %s", location, error)
            return False
        return True


def abandoned_scratch(objects: ObjectStore) -> list[str]:
    """Scratch files of loads that ended without removing them."""
    return list_scratch(objects, _is_over)


def _is_over(job: str) -> bool:
    began = made_at(job)
    return began is not None and datetime.now(UTC) - began > _FINISHED
