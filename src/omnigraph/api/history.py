"""The calls about history: commits, diffs, changes of an entity, the change feed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from omnigraph.api.arguments import names_argument, optional_text, text_argument
from omnigraph.api.handle import GraphHandle
from omnigraph.history.commits import Commit

if TYPE_CHECKING:
    from datetime import datetime

    from omnigraph.diff.diff import Diff
    from omnigraph.diff.feed import ChangeFeed, CommitChanges, EntityChange
    from omnigraph.history.refs import Ref
    from omnigraph.progress import Progress
    from omnigraph.read.view import ReadView
    from omnigraph.spark.choice import EngineArgument
    from omnigraph.versioning.branches import BranchRef
    from omnigraph.versioning.commits import CommitRecord


class History(GraphHandle):
    """Calls about what happened to a graph."""

    def head(self, branch: str | None = None) -> Commit:
        """The newest commit of a branch.

        >>> graph.head()
        <Commit ... #2 on main: load 'first people', ...>
        """
        core = self._core
        state = core.manifest.current(self._ref(branch).physical)
        found = core.manifest.find_commit(state.branch, state.head)
        assert found is not None, "the head of a branch is one of its commits"
        return self._commit(found)

    def log(
        self,
        branch: str | None = None,
        *,
        actor: str | None = None,
        operation: str | None = None,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        limit: int | None = None,
        merged: bool = False,
        reverse: bool = False,
    ) -> list[Commit]:
        """The commits of a branch, newest first; with `reverse` oldest first.

        `since` and `until` are commits or times and include what they name. With `merged`, commits
        that merges brought from other branches are listed too, each after its descendants.

        >>> [commit.operation for commit in graph.log()]
        ['load', 'init']
        """
        from omnigraph.history.commits import CommitSelection
        from omnigraph.versioning.ancestry import newest_first

        core, ref = self._core, self._ref(branch)
        wanted = CommitSelection(
            optional_text("actor", actor), operation, since, until, limit, not reverse
        )
        if merged:
            state = core.manifest.current(ref.physical)
            own, brought = core.manifest.recorded_commits(state.branch, state.sequence)
            known = {commit.graph_commit_id: commit for commit in (*brought, *own)}
            found: list[CommitRecord] = newest_first(known, state.head)[::-1]
        else:
            found = list(core.manifest.commits(ref.physical))
        catalog, view = core.contract().catalog, self._view
        return [Commit.of(record, catalog, view) for record in wanted.of(found)]

    def commit(self, ref: Ref) -> Commit:
        """One commit, on whichever branch it is. Raises `CommitNotFound`.

        A commit that a merge brought is found even if its own branch was deleted.

        >>> graph.commit("main~1").operation
        'init'
        """
        from omnigraph.history.refs import find_commit

        return self._commit(find_commit(self._core.parts, self._bound, ref))

    def diff(
        self,
        a: Ref,
        b: Ref,
        *,
        types: Iterable[str] = (),
        kinds: Iterable[str] = (),
        ops: Iterable[str] = (),
        view: ReadView | None = None,
        engine: EngineArgument = "auto",
        progress: Progress | None = None,
    ) -> Diff:
        """The net change from state `a` to state `b`.

        `types`, `kinds` (`node`, `edge`) and `ops` (`insert`, `update`, `delete`) limit what is
        reported. Rows that are equal in both states are no change.

        >>> graph.diff("main~1", "main").stats()["inserts"]
        5
        """
        from omnigraph.diff.comparison import Comparison, compare_snapshots
        from omnigraph.diff.diff import ChangeFilter, Diff
        from omnigraph.progress import SILENT
        from omnigraph.spark.choice import chosen_engine

        choice = chosen_engine(engine)
        wanted = ChangeFilter.parse(names_argument("types", types), kinds, ops)
        core, seen_as = self._core, self._seen_as(view)
        old = core.resolve(a, self._bound, "a")
        new = core.resolve(b, self._bound, "b")
        wanted.check(seen_as.restrict(old.catalog), seen_as.restrict(new.catalog))
        comparison = Comparison(old, new, core.tables, seen_as)
        changes = compare_snapshots(comparison, wanted, choice, progress or SILENT)
        before, after = old.commit_id, new.commit_id
        return Diff(_named(a, before), _named(b, after), before, after, changes)

    def changes(
        self,
        cursor: Ref | None = None,
        *,
        branch: str | None = None,
        types: Iterable[str] = (),
        kinds: Iterable[str] = (),
        ops: Iterable[str] = (),
    ) -> Iterator[CommitChanges]:
        """The commits of a branch after `cursor`, oldest first, each with the rows it changed.

        `cursor` is one that `cursor()` or an earlier change returned, or a commit; without it the
        feed starts at the beginning. It ends at the present head. Raises `ChangeFeedGap` when
        cleanup has deleted what it needs.

        >>> start = graph.cursor()
        >>> _ = graph.upsert("Note", [{"slug": "n2", "text": "Fixed"}])
        >>> [len(commit.changes) for commit in graph.changes(start)]
        [1]
        """
        from omnigraph.diff.diff import ChangeFilter
        from omnigraph.diff.feed import ChangeFeed, is_cursor

        core, ref = self._core, self._ref(branch)
        wanted = ChangeFilter.parse(names_argument("types", types), kinds, ops)
        wanted.check(self._view.restrict(core.contract().catalog))
        since = cursor if isinstance(cursor, str) and is_cursor(cursor) else None
        if cursor is not None and since is None:
            since = core.resolve_ref(cursor, ref, "cursor").commit.graph_commit_id
        return ChangeFeed(core.parts, self._view).follow(ref, since, wanted)

    def cursor(self, branch: str | None = None) -> str:
        """The cursor of the present head, from which `changes` reports what comes next.

        >>> list(graph.changes(graph.cursor()))
        []
        """
        feed, ref = branch_feed(self, branch)
        return str(feed.head(ref))

    def history(self, type: str, id: str, *, branch: str | None = None) -> Iterator[EntityChange]:
        """The commits that changed one node or edge, oldest first, with its values before and after.

        >>> [change.op.value for change in graph.history("Note", "n1")]
        ['insert']
        """
        from omnigraph.diff.feed import entity_history

        core, ref = self._core, self._ref(branch)
        type_name, entity_id = text_argument("type", type), text_argument("id", id)
        return entity_history(core.parts, ref, type_name, entity_id, self._view)

    def _commit(self, record: CommitRecord) -> Commit:
        return Commit.of(record, self._core.contract().catalog, self._view)


def branch_feed(handle: GraphHandle, branch: str | None) -> tuple[ChangeFeed, BranchRef]:
    """The change feed, for layers that page through it, and the branch it is asked about."""
    from omnigraph.diff.feed import ChangeFeed

    return ChangeFeed(handle._core.parts, handle._view), handle._ref(branch)


def _named(ref: Ref, commit_id: str) -> str:
    """How a document names a state: as the caller wrote it, if that was text or a number."""
    return str(ref) if isinstance(ref, str | int) else commit_id
