"""How commits descend from each other: pure questions about a graph of parents.

Nothing here reads anything. A parent that is not among the known commits is one that nobody has to
look behind. Tests: tests/unit/versioning/test_ancestry.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush

from omnigraph.versioning.commits import CommitId, CommitRecord

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
