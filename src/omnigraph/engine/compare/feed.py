"""The changes of a branch, commit by commit: what a follower applies to stay equal to it.

A commit is told relative to the one before it on its branch, also a merge. One that changed no rows is
told as well, with nothing in it. Tests: tests/behaviour/test_change_feed.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from omnigraph.diagnostics import counted
from omnigraph.engine.commits import Commit
from omnigraph.engine.compare.comparison import Comparison
from omnigraph.engine.compare.cursors import FeedPlace, is_cursor, read_feed_place
from omnigraph.engine.compare.diff import ChangeFilter, Changes
from omnigraph.engine.compare.snapshots import compare_snapshots
from omnigraph.engine.parts import GraphParts
from omnigraph.engine.read.view import ReadView
from omnigraph.engine.refs import meant_commit
from omnigraph.errors import ChangeFeedGap, CommitNotFound, HistoryRemoved
from omnigraph.versioning.branches import BranchRef
from omnigraph.versioning.commits import CONTENT_PRESERVING, CommitId, CommitRecord
from omnigraph.versioning.manifest import ManifestState


@dataclass(frozen=True, repr=False)
class CommitChanges:
    """What one commit changed, and the cursor from which the feed goes on after it."""

    commit: Commit
    changes: Changes
    cursor: str
    at_head: bool
    """Whether it was the newest commit of its branch when the feed was started."""

    def to_json(self, *, rows: bool = False) -> dict[str, Any]:
        return self.commit.change_head() | {"changes": list(self.changes.documents(rows=rows))}

    def __repr__(self) -> str:
        return f"<CommitChanges {self.commit.short_id}: {counted(len(self.changes), 'change')}>"


class ChangeFeed:
    """Follows the branches of one graph."""

    def __init__(self, parts: GraphParts, view: ReadView = ReadView.ALL) -> None:
        self._parts = parts
        self._view = view

    def follow(
        self, branch: BranchRef, since: str | None, wanted: ChangeFilter
    ) -> Iterator[CommitChanges]:
        """Every commit after a place up to the present head, oldest first, each once.

        `since` is a commit of the branch, a cursor, or None for the beginning. Raises
        `ChangeFeedGap` when the changes after it cannot be told any more.
        """
        start = 0 if since is None else self._sequence(branch, since)
        head = self._parts.manifest.current(branch.physical).sequence
        before: ManifestState | None = None
        for commit, state in self._parts.manifest.states_after(branch.physical, start, head):
            try:
                changes = self._changes(commit, before, state, wanted)
            except HistoryRemoved as error:
                raise ChangeFeedGap(branch.public, error.reason) from error
            before = state
            if commit.sequence > start:
                place = FeedPlace(commit.sequence, commit.graph_commit_id)
                told = Commit.of(commit, self._parts.snapshot_of(state).catalog)
                yield CommitChanges(told, changes, str(place), commit.sequence == head)

    def _changes(
        self,
        commit: CommitRecord,
        before: ManifestState | None,
        after: ManifestState,
        wanted: ChangeFilter,
    ) -> Changes:
        """The first state that is looked at comes from nothing that is told."""
        is_upkeep = commit.draft.operation in CONTENT_PRESERVING
        if before is None or is_upkeep or before.tables == after.tables:
            return Changes()
        old, new = self._parts.snapshot_of(before), self._parts.snapshot_of(after)
        return compare_snapshots(Comparison(old, new, self._parts.tables, self._view), wanted)

    def _sequence(self, branch: BranchRef, since: str) -> int:
        """The number of the last commit that is not wanted any more."""
        if not is_cursor(since):
            commit = self._parts.manifest.find_commit(branch.physical, CommitId(since))
            if commit is None:
                meant = meant_commit(self._parts.manifest, [branch.physical], since)
                raise CommitNotFound(since, meant)
            return commit.sequence
        place = read_feed_place(since)
        there = self._parts.manifest.commit_ids(branch.physical, place.sequence, place.sequence)
        if there.get(place.sequence) != place.commit:
            reason = f"commit {place.commit} is not part of its history"
            raise ChangeFeedGap(branch.public, reason)
        return place.sequence
