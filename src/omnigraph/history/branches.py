"""Create branches at any stored state, and delete them.

Creating copies no data. A branch from an earlier commit has the history up to that commit only, so that
a merge finds the right merge base.
Tests: tests/behaviour/test_branches_from_refs.py, tests/crash.
"""

from __future__ import annotations

from contextlib import suppress

from omnigraph.errors import BranchExists, BranchNotFound, CommitNotFound, GraphMoved
from omnigraph.graph.parts import GraphParts
from omnigraph.history.refs import (
    Ref,
    ResolvedRef,
    home_of,
    refuse_other_schema,
    refuse_removed,
    resolve_ref,
)
from omnigraph.side_by_side import both
from omnigraph.versioning.branch_names import BranchName
from omnigraph.versioning.branches import (
    BranchRef,
    BranchSurroundings,
    branches_of,
    new_branch_name,
)
from omnigraph.versioning.commits import CommitId
from omnigraph.versioning.ids import made_at
from omnigraph.versioning.locks import HeldLock
from omnigraph.versioning.recovery.recover import RecoveryOutcome


def resolve_source(
    parts: GraphParts, bound: BranchRef, ref: Ref, *, argument: str = "source"
) -> ResolvedRef:
    """Resolve the source of a new branch or a merge. An unknown name raises `BranchNotFound`."""
    try:
        return resolve_ref(parts, bound, ref, argument=argument)
    except CommitNotFound:
        if not isinstance(ref, str) or made_at(ref) is not None:
            raise
        parts.branches.find(ref)
        raise


def create_branch(parts: GraphParts, name: str, source: ResolvedRef) -> BranchRef:
    """Create a branch at the current head of another branch, or at a commit.

    Raises `InvalidBranchName`, `BranchExists`, `TagExists`, `RefUnderOtherSchema`, and
    `HistoryRemoved` if cleanup deleted the commit. Nothing is created then.
    """
    checked = new_branch_name(name)
    origin = source.branch if source.is_branch_head else home_of(parts, source)
    # Main is locked whatever the source is: branches are created one at a time, and never during a
    # cleanup.
    with parts.locks.hold(None, "branch create") as main_lock:
        around = _recover_and_look(parts, checked, origin, main_lock)
        is_cut = not source.is_branch_head and not _is_head_of_main(parts, source)
        if is_cut:
            _refuse_unusable(parts, origin, source)
            parts.branches.reclaim_incomplete(main_lock.check)
        if parts.objects.is_remote:
            # A storage name that was never used has no leftovers, and no sidecar refers to it.
            if any(ref.public == checked for ref in branches_of(around.refs, retired=False)):
                raise BranchExists(checked)
            physical = parts.branches.free_name(
                checked, is_cut=is_cut, refs=around.refs, reserve=parts.locks.reserve
            )
        else:
            avoid = parts.recovery.named_branches()
            physical = parts.branches.free_name(checked, avoid, is_cut=is_cut)
        # On an object store, a branch created in a single step cannot be found before it exists.
        is_hidden = parts.objects.is_remote and not is_cut
        locked = {origin.physical, None if is_hidden else physical} - {None}
        with parts.locks.hold_all(locked, "branch create", beside=main_lock) as lock:
            if origin.physical is not None:
                parts.recovery.recover_locked(origin.physical, lock)
                around = parts.branches.look_around(checked, origin)
            sequence = source.sequence if is_cut else None
            return parts.branches.create(checked, physical, origin, lock.check, sequence, around)


def _recover_and_look(
    parts: GraphParts, name: BranchName, origin: BranchRef, main_lock: HeldLock
) -> BranchSurroundings:
    """Recover main, then read what the new branch depends on.

    An interrupted schema apply has to be recovered first: it ran on a graph with only main, and the
    new branch would keep tables of the old schema.
    """

    def recover() -> RecoveryOutcome:
        return parts.recovery.recover_locked(None, main_lock)

    is_left = origin.physical is None and parts.recovery.is_undisturbed(None, main_lock)

    def look() -> BranchSurroundings:
        return parts.branches.look_around(name, origin, is_source_known=is_left)

    if parts.objects.is_remote:
        recovered, around = both(recover, look)
        return look() if recovered.resolved else around
    recover()
    return look()


def _is_head_of_main(parts: GraphParts, source: ResolvedRef) -> bool:
    return parts.manifest.current(None).head == source.commit_id


def _refuse_unusable(parts: GraphParts, origin: BranchRef, source: ResolvedRef) -> None:
    """Raise the reason why a branch cannot start at a commit."""
    try:
        commit = parts.manifest.find_commit(origin.physical, source.commit_id)
    except BranchNotFound:
        commit = None
    if commit is None:
        raise CommitNotFound(source.commit_id)
    refuse_other_schema(parts, source, "a branch cannot begin there")
    refuse_removed(parts, parts.manifest.at(origin.physical, source.sequence))


def delete_branch(parts: GraphParts, ref: BranchRef, expected_head: CommitId | None = None) -> None:
    """Delete a branch. Raises `BranchInUse` while others depend on it, `HeadMoved` at another head."""
    # While main is locked there are no merges, so the merge bases of later ones are known.
    with parts.locks.hold_all((None, ref.physical), "branch delete") as lock:
        parts.recovery.recover_locked(None, lock)
        # A writer may have died since the branch was found. Its sidecar must not outlive the
        # branch: recovery would apply it to the next branch of that name. The sidecar of a branch
        # created at another address is discarded once the branch is deleted.
        with suppress(GraphMoved):
            parts.recovery.recover_locked(ref.physical, lock)
        if expected_head is not None:
            parts.manifest.require_head(parts.manifest.current(ref.physical), expected_head)
        parts.branches.delete(ref, lock.check)
