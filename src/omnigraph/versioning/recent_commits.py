"""Which rows the latest commits touched, so that a writer who was overtaken can tell whether it matters.

Known for commits of this process, and for those of others that a lock was handed over with.
Tests: tests/unit/versioning/test_recent_commits.py, tests/behaviour/test_contended_writes.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import TypeAlias

from omnigraph.limits import REMEMBERED_COMMITS
from omnigraph.versioning.commits import CommitId

TouchedIds: TypeAlias = "Mapping[str, frozenset[str] | None]"
"""The ids that a commit wrote or removed, by table key; None if they are not known."""

KnownCommit: TypeAlias = "tuple[CommitId, CommitId, TouchedIds]"
"""A commit, its parent, and what it touched."""


class RecentCommits:
    """What the latest commits touched. Thread-safe."""

    def __init__(
        self, commits: Mapping[CommitId, tuple[CommitId, TouchedIds]] | None = None
    ) -> None:
        self._commits = dict(commits or {})
        self._guard = Lock()

    def copy(self) -> RecentCommits:
        with self._guard:
            return RecentCommits(self._commits)

    def add(self, commit: CommitId, parent: CommitId, touched: TouchedIds) -> None:
        with self._guard:
            self._commits[commit] = (parent, touched)
            while len(self._commits) > REMEMBERED_COMMITS:
                del self._commits[next(iter(self._commits))]

    def touched_since(self, earlier: CommitId, later: CommitId) -> dict[str, set[str]] | None:
        """The ids touched after one commit up to another, by table; None if that is not known."""
        found: dict[str, set[str]] = {}
        with self._guard:
            while later != earlier:
                if later not in self._commits:
                    return None
                later, touched = self._commits[later]
                for key, ids in touched.items():
                    if ids is None:
                        return None
                    found.setdefault(key, set()).update(ids)
        return found

    def up_to(self, head: CommitId, most: int) -> list[KnownCommit]:
        """The commits that lead to one, the newest first."""
        found: list[KnownCommit] = []
        with self._guard:
            while head in self._commits and len(found) < most:
                parent, touched = self._commits[head]
                found.append((head, parent, touched))
                head = parent
        return found
