"""Branches of a graph: list, make, delete."""

from __future__ import annotations

from contextlib import suppress
from typing import Self

from omnigraph.engine.branch_creation import create_branch, resolve_source
from omnigraph.engine.gate import Action, Request
from omnigraph.engine.graph.handle import GraphHandle
from omnigraph.engine.refs import Ref
from omnigraph.errors import (
    BranchInUse,
    GraphMoved,
)
from omnigraph.versioning.branch_names import BranchName
from omnigraph.versioning.branches import BranchRef


class Branching(GraphHandle):
    """Branches of a graph."""

    def branches(self) -> list[BranchName]:
        """`main` first, then the others by name."""
        self._schemas.contract()
        return [ref.public for ref in self._branches.list()]

    def create_branch(
        self, name: str, *, source: Ref | None = None, actor: str | None = None
    ) -> Self:
        """Fork a branch from a ref and return a handle bound to it. Copies nothing."""
        self._writable("create a branch")
        wanted = self.branch if source is None else source
        origin = resolve_source(self._parts, self._bound, wanted)
        self._gate.check(Request(actor, Action.BRANCH_CREATE, origin.branch.public, name))
        self._schemas.contract()
        return self._bound_to(create_branch(self._parts, name, origin))

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
