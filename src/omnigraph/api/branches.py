"""The branches of a graph (list, create, delete, reset) and its tags, which are names for commits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar, cast

from omnigraph.api.arguments import commit_argument, optional_text, text_argument
from omnigraph.api.handle import GraphHandle
from omnigraph.diagnostics import with_hint
from omnigraph.errors import BranchInUse, MergeConflicts, NotFoundError
from omnigraph.graph.gate import Action
from omnigraph.versioning.branch_names import MAIN

if TYPE_CHECKING:
    from omnigraph.api.core import GraphCore
    from omnigraph.api.graph import Graph
    from omnigraph.history.refs import Ref
    from omnigraph.history.tags import Tag
    from omnigraph.merge.merger import AppliedCommit, MergeOptions, MergeResult
    from omnigraph.progress import Progress
    from omnigraph.spark.choice import EngineArgument
    from omnigraph.versioning.branches import BranchRef
    from omnigraph.versioning.manifest import ManifestState

M = TypeVar("M", "MergeResult", "AppliedCommit")


class HasBranches(GraphHandle):
    """A handle with the group `branches`."""

    @property
    def branches(self) -> Branches:
        """The branches of the graph.

        >>> list(graph.branches)
        ['main']
        """
        return Branches(self)


class Branches:
    """The branches of a graph; iterating gives their names, `main` first.

    >>> "main" in graph.branches, len(graph.branches)
    (True, 1)
    """

    def __init__(self, graph: HasBranches) -> None:
        self._graph = graph

    def _names(self) -> list[str]:
        core = self._graph._core
        core.contract()
        return [ref.public for ref in core.branches.list()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def __contains__(self, name: object) -> bool:
        return name in self._names()

    def __repr__(self) -> str:
        names = self._names()
        shown = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
        return f"<{len(names)} branches: {shown}>"

    def create(self, name: str, source: Ref | None = None) -> Graph:
        """Create a branch and return a handle on it. Copies no data.

        It starts at `source`, any ref whose state is still stored, or at the bound branch. Raises
        `BranchExists`, `InvalidBranchName`, or `HistoryRemoved` when cleanup deleted that state.

        >>> graph.branches.create("review/june", source="main")
        Graph('...', branch='review/june')
        """
        from omnigraph.history.branches import create_branch, resolve_source
        from omnigraph.history.refs import ResolvedRef
        from omnigraph.versioning.branch_names import MAIN

        handle = self._graph
        core, new_name = handle._writable("create a branch"), text_argument("name", name)
        named = handle.branch if source is None else source
        known = core.known_schema(handle._bound) if named == MAIN == handle.branch else None
        if known is None:
            origin = resolve_source(core.parts, handle._bound, named)
        else:
            # What it begins with is read under the lock.
            origin = ResolvedRef.head_of(handle._bound, known.state, core.manifest)
        handle._allow(Action.BRANCH_CREATE, origin.branch.public, new_name)
        if origin.is_branch_head:
            core.schemas.contract_of(origin.state.schema_ref)
        else:
            core.contract()
        return cast("Graph", handle._with(bound=create_branch(core.parts, new_name, origin)))

    def delete(self, name: str) -> None:
        """Delete a branch. Raises `BranchInUse` if other branches or a tag depend on it.

        >>> _ = graph.branches.create("scratch")
        >>> graph.branches.delete("scratch")
        """
        from omnigraph.history.branches import delete_branch

        handle = self._graph
        core, old_name = handle._writable("delete a branch"), text_argument("name", name)
        handle._allow(Action.BRANCH_DELETE, target_branch=old_name)
        core.recovery.recover_everywhere()
        core.contract()
        ref = core.find_branch(old_name)
        self._refuse_bound(ref)
        delete_branch(core.parts, ref)

    def _refuse_bound(self, ref: BranchRef) -> None:
        if ref.physical is not None and ref.physical == self._graph._bound.physical:
            raise BranchInUse(ref.public, "cannot delete currently active branch")

    def reset(
        self,
        name: str,
        ref: Ref,
        *,
        dry_run: bool = False,
        message: str | None = None,
        expected_head: Ref | None = None,
        idempotency_key: str | None = None,
        engine: EngineArgument = "auto",
        progress: Progress | None = None,
    ) -> AppliedCommit:
        """Give a branch the rows of another state, as a new commit. Its history stays.

        A branch that has these rows already gets no commit. Raises `RefUnderOtherSchema` for a
        state with another schema.

        >>> _ = graph.upsert("Note", [{"slug": "n2", "text": "Wrong"}])
        >>> _ = graph.branches.reset("main", "main~1")
        >>> graph.get("Note", "n2") is None
        True
        """
        from omnigraph.merge.merger import Merger

        handle = self._graph
        core = handle._writable("reset a branch")
        branch = handle._ref(text_argument("name", name))
        handle._allow(Action.CHANGE, branch.public)
        quarantined = handle._recover(branch)
        contract = core.contract()
        options = apply_options(
            handle, "reset", ref, dry_run, message, expected_head, idempotency_key, engine, progress
        )
        merger = Merger(core.parts, core.writer, branch, contract, options, quarantined)
        earlier = merger.reset_before()
        if earlier is not None:
            return handle._shown(earlier)
        target = core.resolve_ref(ref, handle._bound, "ref")
        return only_shown(handle, branch, lambda: [target.state], lambda: merger.reset(target))


def only_shown(
    handle: GraphHandle,
    target: BranchRef,
    merged: Callable[[], Sequence[ManifestState]],
    run: Callable[[], M],
) -> M:
    """The result of a merge, or its error, without what the handle does not see.

    `merged` are the states whose changes come to the target.
    """
    if handle._view.sees_all:
        return run()
    from omnigraph.merge.shown import ShownConflicts

    core: GraphCore = handle._core
    states = [core.snapshot(target), *map(core.snapshot_of, merged())]
    shown = ShownConflicts(handle._view, core.tables, states)
    try:
        done = run()
    except MergeConflicts as error:
        visible = shown.of(error.conflicts)
        are_hidden = len(visible) < error.total
        raise MergeConflicts(visible, are_partly_hidden=are_hidden) from None
    visible = shown.of(done.conflicts)
    return handle._shown(replace(done, conflicts=visible, conflicts_total=len(visible)))


def apply_options(
    handle: GraphHandle,
    operation: str,
    ref: Ref,
    dry_run: bool,
    message: str | None,
    expected_head: Ref | None,
    idempotency_key: str | None,
    engine: EngineArgument,
    progress: Progress | None,
) -> MergeOptions:
    """The options of a call that applies one state or commit to a branch."""
    from omnigraph.commit.keys import keyed_request
    from omnigraph.history.refs import written_form
    from omnigraph.merge.merger import MergeOptions
    from omnigraph.merge.resolution import ConflictResolution
    from omnigraph.progress import SILENT
    from omnigraph.spark.choice import chosen_engine

    return MergeOptions(
        resolution=ConflictResolution(),
        request=keyed_request(idempotency_key, operation, written_form(ref)),
        actor=handle.actor,
        message=optional_text("message", message),
        expected_head=commit_argument("expected_head", expected_head),
        dry_run=dry_run,
        engine=chosen_engine(engine),
        progress=progress or SILENT,
    )


class HasTags(GraphHandle):
    """A handle with the group `tags`."""

    @property
    def tags(self) -> Tags:
        """The tags of the graph.

        >>> list(graph.tags)
        []
        """
        return Tags(self)


class Tags:
    """Names for commits. A tag is a ref, and cleanup keeps its commit readable.

    Iterating gives the names; `tags["name"]` is the tag.

    >>> _ = graph.tags.create("before-import")
    >>> "before-import" in graph.tags, graph.tags["before-import"].number
    (True, 2)
    """

    def __init__(self, graph: HasTags) -> None:
        self._graph = graph

    def _all(self) -> dict[str, Tag]:
        from omnigraph.history.tags import list_tags

        return {tag.name: tag for tag in list_tags(self._graph._core.parts)}

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __contains__(self, name: object) -> bool:
        return name in self._all()

    def __getitem__(self, name: str) -> Tag:
        found = self._all()
        if name not in found:
            raise NotFoundError(with_hint(f"tag '{name}' not found", name, found))
        return found[name]

    def __repr__(self) -> str:
        names = list(self._all())
        shown = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
        return f"<{len(names)} tags: {shown}>" if names else "<0 tags>"

    def all(self) -> list[Tag]:
        """All tags by name.

        >>> graph.tags.all()
        []
        """
        return list(self._all().values())

    def create(self, name: str, ref: Ref | None = None) -> Tag:
        """Name a commit: that of `ref`, or the head of the bound branch.

        Raises `ConflictError` if the name is taken, `HistoryRemoved` if cleanup deleted the state.

        >>> graph.tags.create("v1", "main~1")
        <Tag v1: commit ... #1 on main>
        """
        from omnigraph.history.tags import create_tag

        handle = self._graph
        core, new_name = handle._writable("create a tag"), text_argument("name", name)
        wanted = handle.branch if ref is None else ref
        handle._allow(Action.CHANGE, MAIN)
        return create_tag(
            core.parts, new_name, core.resolve_ref(wanted, handle._bound, "ref"), handle.actor
        )

    def delete(self, name: str) -> None:
        """Delete a tag. Its commit stays until a cleanup that does not keep it.

        >>> _ = graph.tags.create("v1")
        >>> graph.tags.delete("v1")
        """
        from omnigraph.history.tags import delete_tag

        handle = self._graph
        core, old_name = handle._writable("delete a tag"), text_argument("name", name)
        handle._allow(Action.CHANGE, MAIN)
        delete_tag(core.parts, old_name)
