"""Commit ancestry: merge bases, and the commits of two branches since their fork point.

The functions over `Parents` read nothing. A parent that is not among the known commits is not followed.
Two branches share every commit up to their fork point, so only later commits are read. Commits merged
before the fork point descend from it too and need not be read.
Tests: tests/unit/versioning/test_ancestry.py, tests/behaviour/test_merge_bases.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

from omnigraph.errors import GraphMoved, ManifestDamaged
from omnigraph.versioning.commits import CommitId, CommitRecord
from omnigraph.versioning.manifest import Manifest, ManifestState

Parents = Mapping[CommitId, tuple[CommitId, ...]]


def parents_of(commits: Iterable[CommitRecord]) -> dict[CommitId, tuple[CommitId, ...]]:
    """The parents of each commit."""
    return {commit.graph_commit_id: commit.parents for commit in commits}


def ancestors(parents: Parents, heads: Iterable[CommitId]) -> set[CommitId]:
    """The heads and everything they descend from, as far as it is known."""
    found = set(heads)
    waiting = list(found)
    while waiting:
        for parent in parents.get(waiting.pop(), ()):
            if parent not in found:
                found.add(parent)
                waiting.append(parent)
    return found


def merge_bases(
    parents: Parents, left: Iterable[CommitId], right: Iterable[CommitId]
) -> set[CommitId]:
    """The best common ancestors: those that no other common ancestor descends from.

    There is one, unless the two sides have merged each other crosswise.
    """
    common = ancestors(parents, left) & ancestors(parents, right)
    beaten: set[CommitId] = set()
    for commit in common:
        if commit not in beaten:
            beaten |= ancestors(parents, parents.get(commit, ()))
    return common - beaten


def nearest(
    parents: Parents, commits: Iterable[CommitId], is_usable: Callable[[CommitId], bool]
) -> set[CommitId]:
    """The usable ones among the commits; in the place of the others, their nearest usable ancestors."""
    found: set[CommitId] = set()
    seen = set(commits)
    waiting = list(seen)
    while waiting:
        commit = waiting.pop()
        if is_usable(commit):
            found.add(commit)
            continue
        new = set(parents.get(commit, ())) - seen
        seen |= new
        waiting += new
    covered = ancestors(parents, (p for commit in found for p in parents.get(commit, ())))
    return found - covered


def newest_first(commits: Mapping[CommitId, CommitRecord], head: CommitId) -> list[CommitRecord]:
    """A commit and its known ancestors, each after all that descend from it, later ones first."""
    parents = parents_of(commits.values())
    reached = ancestors(parents, [head]) & commits.keys()
    children = Counter(p for commit in reached for p in parents[commit] if p in reached)
    ready = [(-commits[head].draft.created_at, head)]
    found: list[CommitRecord] = []
    while ready:
        _, commit = heappop(ready)
        found.append(commits[commit])
        for parent in parents[commit]:
            if parent in reached:
                children[parent] -= 1
                if not children[parent]:
                    heappush(ready, (-commits[parent].draft.created_at, parent))
    return found


_FIRST_COMPARED_COMMITS: Final = 64
"""Commits looked at first to find the last one two branches share; four times as many after that."""


@dataclass(frozen=True, slots=True)
class Tip:
    """The newest commit of a branch that counts."""

    branch: str | None
    sequence: int
    head: CommitId

    @classmethod
    def of(cls, state: ManifestState) -> Tip:
        return cls(state.branch, state.sequence, state.head)


@dataclass(frozen=True, slots=True)
class CommitLocation:
    """Where the content of a commit can be read: a branch and a sequence on it."""

    branch: str | None
    sequence: int


@dataclass(frozen=True, slots=True)
class KnownCommits:
    """Some commits of a graph with their descent, and where those are that can be read."""

    records: dict[CommitId, CommitRecord]
    homes: dict[CommitId, CommitLocation]

    def bases(self, left: Iterable[CommitId], right: Iterable[CommitId]) -> set[CommitId]:
        """The best common ancestors of two sides."""
        return merge_bases(parents_of(self.records.values()), left, right)

    def readable_bases(self, left: Iterable[CommitId], right: Iterable[CommitId]) -> list[CommitId]:
        """The best common ancestors, oldest first.

        One that cannot be read any more gives way to its nearest ancestors that can.
        """
        parents = parents_of(self.records.values())
        found = nearest(parents, merge_bases(parents, left, right), self.homes.__contains__)
        return sorted(found, key=lambda commit: (self.homes[commit].sequence, commit))

    def read_by_merge(
        self, left: Iterable[CommitId], right: Iterable[CommitId]
    ) -> dict[CommitId, CommitLocation]:
        """Every commit that a merge of two sides reads: their bases, and the bases of those."""
        bases = self.readable_bases(left, right)
        found = {base: self.homes[base] for base in bases}
        for number in range(1, len(bases)):
            found |= self.read_by_merge(bases[:number], [bases[number]])
        return found


@dataclass(frozen=True, slots=True)
class Divergence:
    """Two branches since their fork point. `source_only` are commits the target does not record."""

    known: KnownCommits
    source_only: tuple[CommitRecord, ...]


def commits_since_fork(manifest: Manifest, source: Tip, target: Tip) -> Divergence:
    """The commits of two states since the fork point of their branches."""
    shared = _last_shared(manifest, source, target)
    records: dict[CommitId, CommitRecord] = {}
    homes: dict[CommitId, CommitLocation] = {}
    recorded: list[dict[CommitId, CommitRecord]] = []
    for tip in (source, target):
        own, brought = manifest.recorded_commits(tip.branch, tip.sequence, after=shared - 1)
        homes |= {c.graph_commit_id: CommitLocation(tip.branch, c.sequence) for c in own}
        recorded.append({c.graph_commit_id: c for c in (*own, *brought)})
        records |= recorded[-1]
    theirs, ours = recorded
    only = [commit for id, commit in theirs.items() if id not in ours]
    ordered = sorted(only, key=lambda commit: (commit.sequence, commit.graph_commit_id))
    return Divergence(KnownCommits(records, homes), tuple(ordered))


def read_by_merge(
    manifest: Manifest, left: Tip, right: Tip, whole: Callable[[], KnownCommits]
) -> dict[CommitId, CommitLocation]:
    """Every commit that a merge of two branches reads, and where it is; `whole` is all of history."""
    known = commits_since_fork(manifest, left, right).known
    bases = known.bases([left.head], [right.head])
    if len(bases) > 1 or not bases <= known.homes.keys():
        return whole().read_by_merge([left.head], [right.head])
    return {base: known.homes[base] for base in bases}


def whole_history(manifest: Manifest, tips: Sequence[Tip]) -> KnownCommits:
    """Every commit that the branches record. One that several have is read from the last of them."""
    records: dict[CommitId, CommitRecord] = {}
    homes: dict[CommitId, CommitLocation] = {}
    for tip in tips:
        own, brought = manifest.recorded_commits(tip.branch, tip.sequence)
        records |= {c.graph_commit_id: c for c in (*brought, *own)}
        homes |= {c.graph_commit_id: CommitLocation(tip.branch, c.sequence) for c in own}
    return KnownCommits(records, homes)


def merged_commits(
    manifest: Manifest, branch: str | None, merged: CommitId
) -> tuple[CommitRecord, ...]:
    """The commits that a merge of `merged` adds to a branch, as far as they are still known."""
    for physical in (None, *sorted(manifest.refs())):
        commit = None
        with suppress(GraphMoved):
            commit = manifest.find_commit(physical, merged)
        if commit is not None:
            source = Tip(physical, commit.sequence, merged)
            target = Tip.of(manifest.current(branch))
            return commits_since_fork(manifest, source, target).source_only
    return ()


def _last_shared(manifest: Manifest, source: Tip, target: Tip) -> int:
    """The sequence of the newest commit that both states have in their own history."""
    last = min(source.sequence, target.sequence)
    step = _FIRST_COMPARED_COMMITS
    while last >= 1:
        first = max(1, last - step + 1)
        theirs = manifest.commit_ids(source.branch, first, last)
        ours = manifest.commit_ids(target.branch, first, last)
        common = [s for s, commit in theirs.items() if ours.get(s) == commit]
        if common:
            return max(common)
        last, step = first - 1, step * 4
    raise ManifestDamaged("two branches have no common ancestor")
