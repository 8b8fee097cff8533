"""What all calls of a graph handle share: the open graph, the bound branch, the actor, the view."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, TypeVar

from omnigraph.api.arguments import (
    kind_of,
    only_one,
    optional_text,
    staleness_argument,
    text_argument,
)
from omnigraph.api.core import GraphCore
from omnigraph.api.graph_at import GraphAt
from omnigraph.errors import HandleClosed, InputError, ReadOnlyHandle, ReadsRestricted
from omnigraph.graph.gate import Action, OpenGate, Request, check_actor
from omnigraph.read.view import ReadView
from omnigraph.side_by_side import end_threads
from omnigraph.versioning.branches import BranchRef
from omnigraph.versioning.commits import CommitId
from omnigraph.versioning.snapshot import Snapshot

if TYPE_CHECKING:
    from omnigraph.history.commits import WriteResult
    from omnigraph.history.refs import Ref
    from omnigraph.versioning.recovery.sidecar import Quarantined

W = TypeVar("W", bound="WriteResult")


class GraphHandle:
    """A graph bound to one branch and one actor. Internal; `Graph` adds the calls."""

    def __init__(
        self,
        core: GraphCore,
        bound: BranchRef,
        *,
        actor: str | None = None,
        view: ReadView | None = None,
        read_only: bool = False,
        max_staleness: float | None = None,
    ) -> None:
        check_actor(optional_text("actor", actor))
        if view is not None and not isinstance(view, ReadView):
            raise InputError(f"view must be a ReadView, not {kind_of(view)}")
        self._shared = core
        self._bound = bound
        self._actor = actor
        self._given_view = view or ReadView.ALL
        self._read_only = read_only
        self._max_staleness = staleness_argument(max_staleness)
        self._is_closed = False

    # -- what it is -------------------------------------------------------------------------

    @property
    def uri(self) -> str:
        """Where the graph is stored.

        >>> graph.uri
        '...team.omni'
        """
        return self._shared.root.uri

    @property
    def branch(self) -> str:
        """The branch this handle reads and writes unless a call names another.

        >>> graph.branch
        'main'
        """
        return self._bound.public

    @property
    def actor(self) -> str | None:
        """Who is recorded as the author of this handle's commits.

        >>> graph.as_actor("bob").actor
        'bob'
        """
        return self._actor

    @property
    def read_only(self) -> bool:
        """Whether calls that change the graph are refused.

        >>> graph.read_only
        False
        """
        return self._read_only

    @property
    def closed(self) -> bool:
        """Whether `close` was called.

        >>> graph.closed
        False
        """
        return self._is_closed

    def __repr__(self) -> str:
        said = [repr(self.uri), f"branch={self.branch!r}"]
        said += [f"actor={self._actor!r}"] if self._actor is not None else []
        said += ["read_only=True"] if self._read_only else []
        said += ["closed"] if self._is_closed else []
        return f"{type(self).__name__}({', '.join(said)})"

    # -- its life ---------------------------------------------------------------------------

    def close(self) -> None:
        """End this handle and wait for background compaction; later calls raise `HandleClosed`.

        Other handles on the graph stay open. Closing twice is fine.

        >>> graph.close()
        >>> graph.closed
        True
        """
        self._shared.wait_for_compaction()
        end_threads()
        self._is_closed = True

    def __enter__(self) -> Self:
        self._core  # noqa: B018 - a closed handle is refused at once
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def checkout(self, branch: str, *, max_staleness: float | None = None) -> Self:
        """A handle on another branch; this one stays as it is. Raises `BranchNotFound`.

        `max_staleness` is explained at `open`; without it that of this handle is kept.

        >>> _ = graph.branches.create("review")
        >>> graph.checkout("review").branch
        'review'
        """
        core, name = self._core, text_argument("branch", branch)
        core.contract()
        bound = core.find_branch(name)
        core.branches.refuse_moved(bound)
        if max_staleness is None:
            return self._with(bound=bound)
        return self._with(bound=bound, max_staleness=max_staleness)

    def as_actor(self, actor: str | None) -> Self:
        """A handle whose commits are recorded under another actor.

        >>> graph.as_actor("bob").upsert("Note", [{"slug": "n2", "text": "Fixed"}]).receipt.actor_id
        'bob'
        """
        self._core  # noqa: B018 - a closed handle is refused at once
        return self._with(actor=actor)

    def _with(self, **changed: Any) -> Self:
        settings = {
            "bound": self._bound,
            "actor": self._actor,
            "view": self._given_view,
            "read_only": self._read_only,
            "max_staleness": self._max_staleness,
        }
        return type(self)(self._shared, **settings | changed)

    def __reduce__(self) -> tuple[Any, ...]:
        """A handle that travels to another process is opened again there."""
        from omnigraph.api.graph import reopen

        gate = self._shared.gate
        policy = None if isinstance(gate, OpenGate) else gate
        settings = (self._actor, self._given_view, self._read_only, self._max_staleness, policy)
        return reopen, (self.uri, self.branch, *settings)

    # -- for the calls ----------------------------------------------------------------------

    @property
    def _core(self) -> GraphCore:
        if self._is_closed:
            raise HandleClosed(self.uri)
        return self._shared

    def _ref(self, branch: str | None) -> BranchRef:
        """A branch as it is now. The bound one may have been deleted by another process."""
        core = self._core
        if branch is None and self._bound.physical is None:
            return self._bound
        name = self._bound.public if branch is None else text_argument("branch", branch)
        return core.find_branch(name)

    def _snapshot(self, branch: str | None = None, max_staleness: float | None = None) -> Snapshot:
        """The newest state of a branch, or a recent one."""
        core, oldest = self._core, self._max_staleness
        if max_staleness is not None:
            oldest = staleness_argument(max_staleness)
        if branch is None:
            return core.newest_snapshot(self._bound, oldest)
        return core.snapshot(core.find_branch(text_argument("branch", branch), oldest), oldest)

    def _state(
        self, branch: str | None, at: Ref | None, max_staleness: float | None = None
    ) -> GraphAt:
        """What a read is about: the newest state of a branch, or the state of a ref."""
        only_one(branch=branch, at=at)
        only_one(max_staleness=max_staleness, at=at)
        if at is not None:
            return self._at("at", at)
        snapshot = self._snapshot(branch, max_staleness)
        limit = self._limit(snapshot)
        view = limit.within(self._given_view)
        return GraphAt(snapshot, self._core, view, limit=limit, is_newest=True)

    def _at(self, argument: str, ref: Ref) -> GraphAt:
        """The state a ref names; a wrong ref is reported under the argument's name."""
        core = self._core
        found = core.resolve(ref, self._bound, argument)
        limit = self._limit()
        return GraphAt(found, core, limit.within(self._given_view), limit=limit)

    def _limit(self, newest: Snapshot | None = None) -> ReadView:
        """What the policy shows the actor. Raises `PolicyUndecided`."""
        return self._core.limit(self._actor, newest) or ReadView.ALL

    @property
    def _view(self) -> ReadView:
        """What this handle sees: within the policy and the view that it was given."""
        return self._seen_as(None)

    def _seen_as(self, view: ReadView | None) -> ReadView:
        """What a call sees that may have a view of its own."""
        return self._limit().within(self._given_view if view is None else view)

    def _writable(self, operation: str) -> GraphCore:
        core = self._core
        if self._read_only:
            raise ReadOnlyHandle(operation)
        return core

    def _allow(
        self, action: Action, branch: str | None = None, target_branch: str | None = None
    ) -> None:
        """Ask the policy. Raises `PolicyError`."""
        self._shared.gate.check(Request(self._actor, action, branch, target_branch))

    def _recover(self, ref: BranchRef) -> tuple[Quarantined, ...]:
        """Before every write: complete or undo what was interrupted on the branch."""
        return self._shared.recovery.recover_unless_busy(ref.physical).quarantined

    def _require_whole(self, operation: str) -> None:
        """Raises `ReadsRestricted` if this handle sees only a part of the graph."""
        if not self._view.sees_all:
            raise ReadsRestricted(operation)

    def _shown(self, done: W) -> W:
        """The result of a write without counts of what this handle does not see."""
        if self._view.sees_all:
            return done
        from omnigraph.history.commits import shown_counts

        catalog = self._core.contract().catalog
        counts = shown_counts(done.receipt.counts, catalog, self._view)
        receipt = replace(done.receipt, counts=counts)
        return replace(done, receipt=receipt)  # type: ignore[type-var]  # all results are dataclasses

    def _require_head(self, ref: BranchRef, expected: CommitId | None) -> None:
        """Raises `HeadMoved` unless the branch is at the commit that the caller expects."""
        if expected is not None:
            manifest = self._shared.manifest
            manifest.require_head(manifest.current(ref.physical), expected)


def newest_state(handle: GraphHandle, branch: str) -> GraphAt:
    """The newest state of a branch, which must be the name of one and no other ref."""
    return handle._state(branch, None)
