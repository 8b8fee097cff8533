"""Branches of the graph: a branch exists exactly when its ref on the manifest does.

Creating one copies nothing and touches no table; deleting one is the removal of that ref. What a
deleted branch leaves behind in storage is unreachable and reclaimed on a best-effort basis.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import count

from omnigraph.errors import (
    BranchExists,
    BranchInUse,
    BranchNotFound,
    ForkInUse,
    InvalidBranchName,
    OmnigraphError,
    StorageError,
    SyncFailed,
)
from omnigraph.faults import declare
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.branch_names import (
    MAIN,
    BranchName,
    PhysicalName,
    branch_name,
    name_of_ref,
    physical_name,
)
from omnigraph.versioning.manifest import Manifest
from omnigraph.versioning.rows import MANIFEST_PATH

BEFORE_CREATE = declare("branch_create.before_manifest_branch_create", "before the ref is made")
BEFORE_CLEANUP = declare("branch_delete.before_table_cleanup", "before a table's fork is removed")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BranchRef:
    """A branch as storage knows it; the main lineage has no storage name and no parent."""

    public: BranchName
    physical: PhysicalName | None
    parent: str | None = None


def new_branch_name(written: str) -> BranchName:
    """Check the name of a branch to be made. Raises `InvalidBranchName`."""
    name = branch_name(written)
    if name == MAIN:
        raise InvalidBranchName(written, "cannot create branch 'main'")
    return name


class Branches:
    """The branches of one graph, listed from storage at every call.

    Changes are made under writer locks; `check_lock` raises when they were lost.
    """

    def __init__(self, manifest: Manifest, tables: TableStore, objects: ObjectStore) -> None:
        self._manifest = manifest
        self._tables = tables
        self._objects = objects

    def list(self) -> list[BranchRef]:
        """Main first, then the others by name; names that are not ours are left out."""
        found = []
        for physical, stored in self._manifest.refs().items():
            public = name_of_ref(physical, stored.metadata)
            if public is not None:
                found.append(BranchRef(public, PhysicalName(physical), stored.parent))
        return [BranchRef(MAIN, None), *sorted(found, key=lambda ref: ref.public)]

    def find(self, written: str) -> BranchRef:
        """The branch of a name. Raises `BranchNotFound` or `InvalidBranchName`."""
        name = branch_name(written)
        if name == MAIN:
            return BranchRef(MAIN, None)  # Always there; listing the others costs a request each.
        listed = self.list()
        for ref in listed:
            if ref.public == name:
                return ref
        raise BranchNotFound(name, [ref.public for ref in listed])

    def create(
        self,
        name: BranchName,
        physical: PhysicalName,
        source: BranchRef,
        check_lock: Callable[[], None],
    ) -> BranchRef:
        """Fork a branch from the newest state of another; a single step makes it exist.

        The caller holds the locks of main, of the source and of the storage name, which is free.
        """
        listed = self.list()
        if any(ref.public == name for ref in listed):
            raise BranchExists(name)
        if source.physical not in [ref.physical for ref in listed]:
            # Files of a branch that is gone could still be opened.
            raise BranchNotFound(source.public)
        newest = self._manifest.open(source.physical)
        BEFORE_CREATE.hit(branch=name)
        check_lock()
        try:
            self._tables.create_branch(
                MANIFEST_PATH,
                physical,
                source_branch=source.physical,
                source_version=newest.version,
            )
        except SyncFailed:
            raise  # It was made, and by this call.
        except OmnigraphError:
            # Two creators of one name: the refs, not the error, say who made it.
            if any(ref.public == name for ref in self.list()):
                raise BranchExists(name) from None
            raise
        self._manifest.forget(physical)
        return BranchRef(name, physical, source.physical)

    def free_name(self, name: BranchName, avoid: Collection[str] = ()) -> PhysicalName:
        """The first incarnation of a name of which nothing is stored, not even left-overs.

        `avoid` are storage names that unfinished writes of earlier branches still refer to.
        """
        refs = self._tables.list_branches(MANIFEST_PATH)
        for incarnation in count(1):
            physical = physical_name(name, incarnation)
            if physical in avoid or physical in refs:
                continue
            if self._tables.has_branch_files(MANIFEST_PATH, physical):
                continue
            return physical
        raise AssertionError("incarnations never run out")

    def delete(self, ref: BranchRef, check_lock: Callable[[], None]) -> None:
        """Remove a branch; what its tables leave behind is reclaimed if possible."""
        if ref.physical is None:
            raise InvalidBranchName(ref.public, "cannot delete branch 'main'")
        self._refuse_if_needed(ref, self.list())
        state = self._manifest.current(ref.physical)
        owned = sorted(
            state.registered[table_id].location
            for table_id, entry in state.tables.items()
            if entry.branch == ref.physical
        )
        check_lock()
        self._remove_ref(ref)
        self._manifest.forget(ref.physical)
        for location in owned:
            self._reclaim_fork(location, ref.physical, check_lock)

    def _remove_ref(self, ref: BranchRef) -> None:
        """End the branch; files of it that stay behind are nobody's and do no harm."""
        assert ref.physical is not None
        try:
            self._tables.reclaim_branch(MANIFEST_PATH, ref.physical, self._objects)
        except ForkInUse:
            raise BranchInUse(ref.public, "another branch still depends on it") from None
        except StorageError as error:
            if ref.physical in self._tables.list_branches(MANIFEST_PATH):
                raise
            _log.warning("files of branch %s stay behind: %s", ref.public, error)

    def _refuse_if_needed(self, ref: BranchRef, listed: Sequence[BranchRef]) -> None:
        if ref.physical not in [other.physical for other in listed]:
            raise BranchNotFound(ref.public)
        for other in listed:
            if other.physical == ref.physical:
                continue
            reason = f"branch '{other.public}' still depends on it"
            if other.parent == ref.physical:
                raise BranchInUse(ref.public, reason)
            if ref.physical in self._owners(other):
                raise BranchInUse(ref.public, reason)

    def _owners(self, ref: BranchRef) -> set[str | None]:
        """The branches whose tables a branch reads; none if it was deleted meanwhile."""
        try:
            return {entry.branch for entry in self._manifest.current(ref.physical).tables.values()}
        except OmnigraphError:
            if ref.physical in [other.physical for other in self.list()]:
                raise
            return set()

    def _reclaim_fork(
        self, location: str, physical: PhysicalName, check_lock: Callable[[], None]
    ) -> None:
        try:
            BEFORE_CLEANUP.hit(location=location)
            check_lock()
            self._tables.reclaim_branch(location, physical, self._objects)
        except OmnigraphError as error:
            _log.warning("fork %s of %s stays behind: %s", physical, location, error)
