"""Branches of a graph: list, make, delete."""

from __future__ import annotations

from contextlib import suppress
from typing import Self

from omnigraph.engine.gate import Action, Request
from omnigraph.engine.graph.handle import GraphHandle
from omnigraph.errors import (
    BranchInUse,
    BranchNotFound,
    CommitNotFound,
    GraphMoved,
    InputError,
)
from omnigraph.versioning.branch_names import BranchName
from omnigraph.versioning.branches import BranchRef, new_branch_name
from omnigraph.versioning.commits import CommitId


class Branching(GraphHandle):
    """Branches of a graph."""

    def branches(self) -> list[BranchName]:
        """`main` first, then the others by name."""
        self._schemas.contract()
        return [ref.public for ref in self._branches.list()]

    def create_branch(
        self, name: str, *, source: str | None = None, actor: str | None = None
    ) -> Self:
        """Fork a branch and return a handle bound to it. Copies nothing."""
        self._writable("create a branch")
        origin = self._origin(source)
        self._gate.check(Request(actor, Action.BRANCH_CREATE, origin.public, name))
        self._schemas.contract()
        checked = new_branch_name(name)
        # Whatever the source is, main is locked: branches are made one at a time, and none while
        # another process cleans up.
        with self._locks.hold(None, "branch create") as main_lock:
            # A change of the schema that died is settled first: it was made for a graph that has
            # only main, and the new branch would keep the tables of the old schema.
            self._recovery.heal_locked(None, main_lock)
            physical = self._branches.free_name(checked, self._recovery.named_branches())
            locked = {origin.physical, physical} - {None}
            with self._locks.hold_all(locked, "branch create", beside=main_lock) as lock:
                if origin.physical is not None:
                    self._recovery.heal_locked(origin.physical, lock)
                created = self._branches.create(checked, physical, origin, lock.check)
        return self._bound_to(created)

    def delete_branch(self, name: str, *, actor: str | None = None) -> None:
        """Delete a branch that nothing depends on."""
        self._writable("delete a branch")
        self._gate.check(Request(actor, Action.BRANCH_DELETE, target_branch=name))
        self.refresh()
        ref = self._branches.find(name)
        if ref.physical is not None and ref.physical == self._bound.physical:
            raise BranchInUse(name, "cannot delete currently active branch")
        # With main locked nothing is merged, so it is known what later merges compare with.
        with self._locks.hold_all((None, ref.physical), "branch delete") as lock:
            self._recovery.heal_locked(None, lock)
            # A writer may have died since the refresh. Its sidecar must not outlive the branch: the
            # next branch of that name would be given what it wrote.
            # That of a branch made at another address is discarded once the branch is gone.
            with suppress(GraphMoved):
                self._recovery.heal_locked(ref.physical, lock)
            self._branches.delete(ref, lock.check)

    def _bound_to(self, ref: BranchRef) -> Self:
        other = type(self)(
            self._root,
            self._objects,
            self._tables,
            manifest=self._manifest,
            schemas=self._schemas,
            read_only=self._read_only,
            gate=self._gate,
            reader=self._reader,
        )
        other._bound = ref
        return other

    def _origin(self, source: str | None) -> BranchRef:
        """The branch a new one is made from."""
        try:
            return self._ref(source)
        except BranchNotFound as error:
            with suppress(CommitNotFound):
                self._locate(CommitId(error.branch))
                raise InputError("a branch is made from a branch, not from a commit") from None
            raise
