"""Which commits of a branch a caller wants to see, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from omnigraph.diagnostics import with_hint
from omnigraph.errors import InputError
from omnigraph.language.values import parse_datetime
from omnigraph.versioning.commits import CommitRecord

CommitOrTime = str | datetime
"""A commit id, or a moment: a `datetime` or its text. Without a zone it is UTC."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class CommitSelection:
    """Conditions that must all hold. Both bounds belong to what they bound."""

    actor: str | None = None
    operation: str | None = None
    since: CommitOrTime | None = None
    until: CommitOrTime | None = None
    limit: int | None = None
    newest_first: bool = False

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 0:
            raise InputError(f"limit {self.limit} is negative; use 0 or more, or leave it out")

    def of(self, commits: Sequence[CommitRecord]) -> list[CommitRecord]:
        """The wanted ones of all commits of a branch, which come oldest first.

        Raises `InputError` for a bound that is neither a time nor one of the commits.
        """
        found = list(commits)
        if self.since is not None:
            bound = _bound(self.since, commits)
            found = [c for c in found if _measure(c, bound) >= bound.value]
        if self.until is not None:
            bound = _bound(self.until, commits)
            found = [c for c in found if _measure(c, bound) <= bound.value]
        if self.actor is not None:
            found = [c for c in found if c.draft.actor_id == self.actor]
        if self.operation is not None:
            found = [c for c in found if c.draft.operation.value == self.operation]
        if self.newest_first:
            found.reverse()
        return found if self.limit is None else found[: self.limit]


@dataclass(frozen=True, slots=True)
class _Bound:
    """A place in the history: microseconds, or the number of a commit."""

    is_time: bool
    value: int


def _bound(written: CommitOrTime, commits: Sequence[CommitRecord]) -> _Bound:
    if isinstance(written, datetime):
        moment = written if written.tzinfo else written.replace(tzinfo=UTC)
        return _Bound(True, (moment - _EPOCH) // timedelta(microseconds=1))
    for commit in commits:
        if commit.graph_commit_id == written:
            return _Bound(False, commit.sequence)
    try:
        return _Bound(True, parse_datetime(written) * 1000)
    except ValueError:
        message = f"'{written}' is neither a time nor a commit of this branch"
        known = (commit.graph_commit_id for commit in commits)
        raise InputError(with_hint(message, written.upper(), known)) from None


def _measure(commit: CommitRecord, bound: _Bound) -> int:
    return commit.draft.created_at if bound.is_time else commit.sequence
