"""Branches of the graph: a branch exists exactly when its ref on the manifest does.

Creating one copies nothing and touches no table. One that begins at an earlier commit of its source
gets a manifest without the later ones first, and exists once its ref names it. Deleting a branch is the
removal of its ref, or a note in it that the branch is kept for merges only. What a deleted branch leaves
behind in storage is unreachable and reclaimed on a best-effort basis.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import combinations, count
from typing import TYPE_CHECKING

from omnigraph.errors import (
    BranchExists,
    BranchInUse,
    BranchNotFound,
    ForkInUse,
    GraphMoved,
    InvalidBranchName,
    OmnigraphError,
    StorageError,
    StoreCallFailed,
    SyncFailed,
    TagExists,
)
from omnigraph.faults import declare
from omnigraph.side_by_side import both
from omnigraph.storage.filters import Comparison
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.refs import StoredBranch
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.branch_names import (
    MAIN,
    PUBLIC_NAME_KEY,
    RETIRED_KEY,
    BranchName,
    PhysicalName,
    branch_name,
    is_incomplete,
    name_of_ref,
    physical_name,
)
from omnigraph.versioning.manifest import Manifest, ManifestState
from omnigraph.versioning.rows import MANIFEST_PATH

if TYPE_CHECKING:
    from omnigraph.versioning.ancestry import KnownCommits

BEFORE_CREATE = declare("branch_create.before_manifest_branch_create", "before the ref is made")
BEFORE_CUT = declare("branch_create.before_later_commits_go", "before later commits are removed")
BEFORE_NAME = declare("branch_create.before_ref_is_named", "before the ref names the branch")
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


@dataclass(frozen=True, slots=True)
class BranchSurroundings:
    """What the creation of a branch depends on, read under the lock of main."""

    refs: Mapping[str, StoredBranch]
    has_tag: bool
    """Whether a tag has the name that the branch is to have."""
    source: Table
    """The manifest that the branch is made from."""


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
        return [BranchRef(MAIN, None), *self._stored(retired=False)]

    def retired(self) -> Sequence[BranchRef]:
        """Branches that were deleted while a commit of theirs was the merge base of two others.

        They exist only for merges, which compare with that commit, and cleanup, which
        removes them when no two branches have such a commit in common any more.
        """
        return self._stored(retired=True)

    def _stored(self, *, retired: bool) -> Sequence[BranchRef]:
        return branches_of(self._manifest.refs(), retired=retired)

    def history(self, first: BranchRef | None = None) -> KnownCommits:
        """Every commit that any branch records, read from a branch that exists where there is one.

        `first` is a branch that is about to be deleted: read from it is what no other has.
        """
        from omnigraph.versioning.ancestry import Tip, whole_history

        listed = [ref for ref in (*self.retired(), *self.list()) if ref != first]
        refs = listed if first is None else [first, *listed]
        return whole_history(self._manifest, [Tip.of(state) for state in self.states(refs)])

    def states(self, refs: Sequence[BranchRef]) -> Sequence[ManifestState]:
        """The newest state of those of the branches that were made at this address."""
        found = []
        for ref in refs:
            with suppress(GraphMoved):
                found.append(self._manifest.current(ref.physical))
        return found

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

    def look_around(
        self, name: BranchName, source: BranchRef, *, is_source_known: bool = False
    ) -> BranchSurroundings:
        """What `create` has to know; on an object store it is read concurrently.

        `is_source_known` is for a source that is as this process has left it.
        """
        from omnigraph.versioning.tags import Tags

        def has_tag() -> bool:
            return Tags(self._objects).find(name) is not None

        def open_source() -> Table:
            known = self._manifest.last_table(source.physical) if is_source_known else None
            return known or self._manifest.open(source.physical)

        def rest() -> tuple[bool, Table]:
            return both(has_tag, open_source)

        if self._objects.is_remote:
            refs, (is_tag, newest) = both(self._manifest.refs, rest)
            return BranchSurroundings(refs, is_tag, newest)
        refs = self._manifest.refs()
        if source.physical is not None and source.physical not in refs:
            raise BranchNotFound(source.public)
        return BranchSurroundings(refs, has_tag(), self._manifest.open(source.physical))

    def create(
        self,
        name: BranchName,
        physical: PhysicalName,
        source: BranchRef,
        check_lock: Callable[[], None],
        sequence: int | None = None,
        around: BranchSurroundings | None = None,
    ) -> BranchRef:
        """Fork a branch from the newest state of another; a single step makes it exist.

        With a storage name for that, it begins at an earlier commit of the source, `sequence`. The
        caller holds the locks of main and of the source. It also holds that of the storage name,
        which is free, or has reserved the name.
        """
        around = around or self.look_around(name, source)
        listed = branches_of(around.refs, retired=False)
        if any(ref.public == name for ref in listed):
            raise BranchExists(name)
        if around.has_tag:
            raise TagExists(name)
        if source.physical is not None and source.physical not in [ref.physical for ref in listed]:
            # Files of a branch that is gone could still be opened.
            raise BranchNotFound(source.public)
        BEFORE_CREATE.hit(branch=name)
        check_lock()
        try:
            self._tables.fork(around.source, physical)
        except SyncFailed:
            raise  # It was made, and by this call.
        except OmnigraphError:
            # Two creators of one name: the refs, not the error, say who made it.
            if any(ref.public == name for ref in self.list()):
                raise BranchExists(name) from None
            raise
        if sequence is not None:
            made = self._tables.open(MANIFEST_PATH, physical)
            self._complete_cut(made, name, physical, sequence, check_lock)
        self._manifest.forget(physical)
        return BranchRef(name, physical, source.physical)

    def _complete_cut(
        self,
        made: Table,
        name: BranchName,
        physical: PhysicalName,
        sequence: int,
        check_lock: Callable[[], None],
    ) -> None:
        """Take later commits out of the manifest of a new branch; its name in the ref is the last step."""
        from omnigraph.storage.delta import stage_deletion
        from omnigraph.storage.stage import commit_staged
        from omnigraph.versioning.ids import new_ulid

        BEFORE_CUT.hit(branch=name)
        later = stage_deletion(made, Comparison("commit_seq", ">", sequence))
        if later is not None:
            check_lock()
            commit_staged(made, later, operation_id=new_ulid(), writer_kind="BranchCreate")
        BEFORE_NAME.hit(branch=name)
        check_lock()
        self._describe(physical, {PUBLIC_NAME_KEY: name})

    def incomplete(self) -> Sequence[PhysicalName]:
        """Storage names of branches that a creator which died has left without their last step."""
        refs = self._manifest.refs().items()
        return sorted(PhysicalName(p) for p, ref in refs if is_incomplete(p, ref.metadata))

    def reclaim_incomplete(self, check_lock: Callable[[], None]) -> None:
        """Remove them. Main is locked, so that their creators are gone."""
        for physical in self.incomplete():
            check_lock()
            self._tables.reclaim_branch(MANIFEST_PATH, physical, self._objects)

    def free_name(
        self,
        name: BranchName,
        avoid: Collection[str] = (),
        *,
        is_cut: bool = False,
        refs: Collection[str] | None = None,
        reserve: Callable[[str], bool] | None = None,
    ) -> PhysicalName:
        """The first incarnation of a name of which nothing is stored, not even left-overs.

        `avoid` are storage names that unfinished writes of earlier branches still refer to. `is_cut`
        is for a branch that begins at an earlier commit of its source. `refs` are the storage names
        in use, if the caller has just read them. `reserve` tells whether a name was never used,
        where a name is used only once: then there cannot be left-overs.
        """
        used = self._tables.list_branches(MANIFEST_PATH) if refs is None else refs
        for incarnation in count(1):
            physical = physical_name(name, incarnation, is_cut=is_cut)
            if physical in avoid or physical in used:
                continue
            if reserve is not None:
                if reserve(physical):
                    return physical
            elif not self._tables.has_branch_files(MANIFEST_PATH, physical):
                return physical
        raise AssertionError("incarnations never run out")

    def delete(self, ref: BranchRef, check_lock: Callable[[], None]) -> None:
        """Remove a branch; what its tables leave behind is reclaimed if possible.

        One with a commit that a merge of two others would compare with is retired instead. The
        caller holds the locks of main and of the branch, so that nothing is merged meanwhile.
        """
        self.require_deletable(ref)
        assert ref.physical is not None
        owned = sorted(self._owned(ref.physical))
        is_needed = self._is_read_by_merges(ref)
        check_lock()
        if is_needed:
            self._retire(ref.physical)
            return
        self.reclaim_incomplete(check_lock)  # They may have been made from it.
        self._remove_ref(ref)
        self._manifest.forget(ref.physical)
        for location in owned:
            self._reclaim_fork(location, ref.physical, check_lock)

    def require_deletable(self, ref: BranchRef) -> None:
        """Raise `BranchInUse`, `BranchNotFound` or `InvalidBranchName` for a branch that has to stay."""
        if ref.physical is None:
            raise InvalidBranchName(ref.public, "cannot delete branch 'main'")
        self._refuse_if_needed(ref, self.list())

    def _retire(self, physical: PhysicalName) -> None:
        self._describe(physical, {RETIRED_KEY: "true"})

    def _describe(self, physical: PhysicalName, more: Mapping[str, str]) -> None:
        """Note something in the ref of a branch, beside what is noted there."""
        noted = {**self._manifest.refs()[physical].metadata, **more}
        self._tables.describe_branch(MANIFEST_PATH, physical, noted, self._objects)

    def _is_read_by_merges(self, ref: BranchRef) -> bool:
        """Whether a merge of two other branches would read a commit from this one.

        Whatever two branches will have in common later, two have in common now: what a merge brings
        to one of them, it brings from a branch that exists.
        """
        from omnigraph.versioning.ancestry import Tip, read_by_merge

        assert ref.physical is not None
        for other in self.retired():
            if other.parent == ref.physical or ref.physical in self._owners(other):
                return True  # What is kept of the other rests on this one.
        try:
            made = self._manifest.made_on(ref.physical)
        except GraphMoved:
            return False  # Nothing can be compared with it here.
        if not made:
            return False
        others = [other for other in self.list() if other.physical != ref.physical]
        tips = [
            Tip.of(state)
            for state in self.states(others)
            if self._manifest.recorded(self._manifest.open(state.branch), made)
        ]
        if len(tips) < 2:
            return False
        whole = cache(lambda: self.history(first=ref))
        pairs = combinations(tips, 2)
        read = (read_by_merge(self._manifest, one, other, whole) for one, other in pairs)
        return any(home.branch == ref.physical for found in read for home in found.values())

    def _owned(self, physical: PhysicalName) -> Sequence[str]:
        """The locations of tables that a branch has a fork of."""
        try:
            state = self._manifest.current(physical)
        except GraphMoved:
            # What the branch names cannot be read, but there are branches only under one schema.
            registered = self._manifest.current(None).registered.values()
            found = [table.location for table in registered if self._tables.exists(table.location)]
            return [place for place in found if self._tables.has_branch_files(place, physical)]
        return [
            state.registered[table_id].location
            for table_id, entry in state.tables.items()
            if entry.branch == physical
        ]

    def moved(self) -> Iterator[GraphMoved]:
        """The branches that were made at another location, by name. Each one is opened."""
        for ref in self.list():
            try:
                self._manifest.newest(ref.physical)
            except GraphMoved as moved:
                yield moved
            except OmnigraphError as error:
                _log.warning("could not open branch %s: %s", ref.public, error)

    def refuse_moved(self, ref: BranchRef) -> None:
        """Raise `GraphMoved` for a branch that was made at another location.

        For main it is a warning, when the oldest branch was; looking for that is quick on a local
        disk and not done elsewhere.
        """
        if ref.physical is not None:
            with suppress(StoreCallFailed):  # Readers report what is torn or damaged.
                self._manifest.newest(ref.physical)
            return
        oldest = self._tables.oldest_branch(MANIFEST_PATH)
        if oldest is not None:
            try:
                self._manifest.newest(oldest)
            except GraphMoved as moved:
                _log.warning("%s", moved)
            except OmnigraphError:
                pass  # That is for those to hear who use the branch.

    def _remove_ref(self, ref: BranchRef) -> None:
        """End the branch; files it leaves behind are unused and harmless."""
        assert ref.physical is not None
        try:
            self._tables.reclaim_branch(MANIFEST_PATH, ref.physical, self._objects)
        except ForkInUse:
            raise BranchInUse(ref.public, "another branch still depends on it") from None
        except StorageError as error:
            if ref.physical in self._tables.list_branches(MANIFEST_PATH):
                raise
            _log.warning("could not delete files of branch %s: %s", ref.public, error)

    def _refuse_if_needed(self, ref: BranchRef, listed: Sequence[BranchRef]) -> None:
        from omnigraph.versioning.tags import Tags

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
        tags = [tag.name for tag in Tags(self._objects).list() if tag.branch == ref.physical]
        if tags:
            named = ", ".join(f"'{tag}'" for tag in tags)
            what = "tag" if len(tags) == 1 else "tags"
            raise BranchInUse(ref.public, f"a commit of it is named by {what} {named}")

    def _owners(self, ref: BranchRef) -> set[str | None]:
        """The branches whose tables a branch reads; none if it was deleted meanwhile.

        One made at another address reads nothing here, and its parent is known from its ref.
        """
        try:
            return {entry.branch for entry in self._manifest.current(ref.physical).tables.values()}
        except GraphMoved:
            return set()
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
            _log.warning("could not delete fork %s of %s: %s", physical, location, error)


def branches_of(refs: Mapping[str, StoredBranch], *, retired: bool) -> Sequence[BranchRef]:
    """The branches that refs describe, by name; names that are not ours are left out."""
    found = []
    for physical, stored in refs.items():
        public = name_of_ref(physical, stored.metadata)
        if public is not None and retired == (RETIRED_KEY in stored.metadata):
            found.append(BranchRef(public, PhysicalName(physical), stored.parent))
    return sorted(found, key=lambda ref: (ref.public, ref.physical))
