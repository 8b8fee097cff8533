"""Commits and how they descend from each other."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from tests.support.model.image import Image
from tests.support.outcome import Counts, Receipt, ReceiptWarning


@dataclass(frozen=True, slots=True)
class Commit:
    """One state of a branch. `parents` are the head before and, for a merge, the source's head."""

    id: str
    parents: tuple[str, ...]
    branch: str
    sequence: int
    operation: str
    image: Image
    actor: str | None = None
    message: str | None = None
    counts: Mapping[str, Counts] = field(default_factory=dict)
    warnings: tuple[ReceiptWarning, ...] = ()

    @property
    def receipt(self) -> Receipt:
        """What the write that made this commit returned."""
        return Receipt(
            commit=self.id,
            parent=self.parents[0] if self.parents else None,
            branch=self.branch,
            version=self.sequence,
            operation=self.operation,
            actor=self.actor,
            counts=self.counts,
            warnings=self.warnings,
        )


Commits = Mapping[str, Commit]


def net_counts(
    before: Image, after: Image, touched: Mapping[str, frozenset[str]]
) -> dict[str, Counts]:
    """What became of the touched rows, by table; tables where nothing did are left out.

    A row that is there before and after counts as updated, also when its values are the same.
    """
    counts: dict[str, Counts] = {}
    for key in sorted(touched):
        old, new = before.tables[key].keys() & touched[key], after.tables[key].keys() & touched[key]
        if old or new:
            counts[key] = Counts(len(new - old), len(new & old), len(old - new))
    return counts


def lineage(commits: Commits, head: str) -> list[Commit]:
    """A branch's own history, oldest first: the head and its first parents."""
    found = [commits[head]]
    while found[-1].parents:
        found.append(commits[found[-1].parents[0]])
    return found[::-1]


def ancestors(commits: Commits, *heads: str) -> set[str]:
    """The commits and all they descend from."""
    found = set(heads)
    queue = list(heads)
    for id in queue:
        for parent in commits[id].parents:
            if parent not in found:
                found.add(parent)
                queue.append(parent)
    return found


def merge_bases(commits: Commits, left: Collection[str], right: Collection[str]) -> list[str]:
    """The common ancestors that no other one descends from, oldest first. Genesis is always one.

    Whether the branch of one still exists makes no difference.
    """
    common = ancestors(commits, *left) & ancestors(commits, *right)
    best = [
        id
        for id in common
        if not any(id in ancestors(commits, *commits[other].parents) for other in common)
    ]
    return sorted(best, key=lambda id: (commits[id].sequence, id))
