"""Reclaiming what nobody refers to: forks of branches that are gone, tables that never were, scratch files.

Left behind by interrupted first writes, branch deletes, schema changes and loads. Each fork is reclaimed under the
lock of its branch; one that cannot be had, or that something still refers to, waits for the next time.
Tests: tests/behaviour/test_cleanup.py.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from omnigraph.engine.parts import GraphParts
from omnigraph.errors import OmnigraphError
from omnigraph.faults import InjectedFault, declare
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.scratch import list_scratch, remove_scratch
from omnigraph.versioning.branch_names import decode_physical_name
from omnigraph.versioning.branches import BranchRef
from omnigraph.versioning.ids import made_at
from omnigraph.versioning.retention import Fork, Needed
from omnigraph.versioning.rows import MANIFEST_PATH
from omnigraph.versioning.upgrade.old_layout import OLD_TABLES

BEFORE_RECLAIM = declare("cleanup.reconcile_fork", "before each orphan is reclaimed")

_FOLDERS: Final = ("nodes", "edges")
_UNTOUCHED: Final = timedelta(hours=1)
"""A table nobody has registered may belong to a change of the schema that is at work just now."""

_FINISHED: Final = timedelta(days=1)
"""A load that began longer ago than this has read its scratch files, or never will."""

_log = logging.getLogger(__name__)


class Orphans:
    """Finds and reclaims the orphans of one graph. The caller holds the lock of main."""

    def __init__(self, parts: GraphParts) -> None:
        self._parts = parts

    def reclaim(
        self, refs: Sequence[BranchRef], needed: Needed, *, dry_run: bool
    ) -> tuple[str, ...]:
        """Reclaim all orphans; returns what was reclaimed, or would be."""
        done = []
        # What was made from a fork goes before it.
        for location, branch in reversed(list(self._forks(refs, needed))):
            name = f"{location}/{branch}"
            if dry_run or self._reclaimed(location, branch):
                done.append(name)
        for location in (*self._tables_of_nobody(needed), *self._old_tables()):
            if dry_run or self._removed(location):
                done.append(location)
        objects = self._parts.objects
        done += abandoned_scratch(objects) if dry_run else remove_scratch(objects, _is_over)
        return tuple(sorted(done))

    def _forks(self, refs: Sequence[BranchRef], needed: Needed) -> Iterator[Fork]:
        """Forks that neither a branch nor a sidecar needs, older ones first."""
        live = {ref.physical for ref in refs if ref.physical is not None}
        awaited = self._parts.recovery.named_branches()
        for location in [MANIFEST_PATH, *sorted(needed.locations)]:
            if not self._parts.tables.exists(location):
                continue
            known = list(self._parts.tables.list_branches(location))
            for branch in [*known, *sorted(self._parts.tables.zombie_branches(location))]:
                if branch in awaited or decode_physical_name(branch) is None:
                    continue
                if location == MANIFEST_PATH:
                    used = branch in live
                else:
                    used = (location, branch) in needed.forks
                if not used:
                    yield location, branch

    def _reclaimed(self, location: str, branch: str) -> bool:
        try:
            with self._parts.locks.hold(branch, "cleanup", wait_ms=0) as lock:
                BEFORE_RECLAIM.hit(location=location, branch=branch)
                lock.check()
                self._parts.tables.reclaim_branch(location, branch, self._parts.objects)
        except InjectedFault:
            raise
        except OmnigraphError as error:
            _log.warning("fork %s of %s stays for now: %s", branch, location, error)
            return False
        return True

    def _tables_of_nobody(self, needed: Needed) -> Iterator[str]:
        for folder in _FOLDERS:
            for location in self._parts.tables.directories(folder):
                if location not in needed.locations and self._is_old(location):
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
