"""Commits and receipts as callers see them, and which commits a log shows.

Tests: tests/behaviour/test_history.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from omnigraph.catalog.model import Catalog
from omnigraph.diagnostics import counted, with_hint
from omnigraph.errors import InputError
from omnigraph.language.values import parse_datetime
from omnigraph.versioning.branch_names import MAIN, BranchName, public_name
from omnigraph.versioning.commits import (
    CommitDraft,
    CommitId,
    CommitRecord,
    Counts,
    OperationId,
    OperationKind,
    Warning,
)
from omnigraph.versioning.contract import SchemaContract
from omnigraph.versioning.manifest import ManifestState
from omnigraph.versioning.snapshot import table_keys

if TYPE_CHECKING:
    from omnigraph.read.view import ReadView

SHORT_ID_LENGTH: Final = 8
"""Commit ids begin with the time, so a short id is the end of one."""

CommitOrTime = str | datetime
"""A commit id, or a time as a `datetime` or text; UTC unless it has a zone."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def short_id(commit_id: str) -> str:
    """The end of a commit id, as it is printed."""
    return commit_id[-SHORT_ID_LENGTH:]


def to_micros(time: datetime) -> int:
    """Microseconds since the epoch; a time without a zone is UTC."""
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def from_micros(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def new_draft(
    operation: OperationKind,
    contract: SchemaContract,
    actor: str | None = None,
    message: str | None = None,
) -> CommitDraft:
    """The draft of a new commit, made now under an accepted schema."""
    # Every query loads this module, and only writers make ids.
    from omnigraph.versioning.ids import new_ulid, now_micros

    return CommitDraft(
        graph_commit_id=CommitId(new_ulid()),
        operation=operation,
        operation_id=OperationId(new_ulid()),
        created_at=now_micros(),
        schema_ir_hash=contract.hash,
        schema_ref=contract.reference,
        actor_id=actor,
        message=message,
    )


# -- receipts -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class Receipt:
    """The outcome of a write. `graph_commit_id` is None when there was nothing to commit."""

    graph_commit_id: CommitId | None
    parent_commit_id: CommitId | None
    branch: BranchName
    manifest_version: int
    operation: OperationKind
    operation_id: str
    actor_id: str | None
    created_at: int
    counts: Mapping[str, Counts] = field(default_factory=dict)
    warnings: tuple[Warning, ...] = ()
    replayed: bool = False
    """Whether an earlier call with the same idempotency key or load id made the commit."""

    @property
    def commit_id(self) -> CommitId | None:
        """The commit, or None if there was nothing to commit."""
        return self.graph_commit_id

    @property
    def summary(self) -> str:
        """The outcome in a few words."""
        if self.graph_commit_id is None:
            return f"nothing to commit on {self.branch}"
        again = " by an earlier call" if self.replayed else ""
        return f"commit {short_id(self.graph_commit_id)} on {self.branch}{again}"

    def __repr__(self) -> str:
        warnings = f", {counted(len(self.warnings), 'warning')}" if self.warnings else ""
        return f"<Receipt {self.operation.value}: {self.summary}{warnings}>"

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = {
            "graph_commit_id": self.graph_commit_id,
            "parent_commit_id": self.parent_commit_id,
            "branch": self.branch,
            "manifest_version": self.manifest_version,
            "operation": self.operation.value,
            "operation_id": self.operation_id,
            "actor_id": self.actor_id,
            "created_at": self.created_at,
            "counts": {key: c.to_json() for key, c in self.counts.items()},
            "warnings": [w.to_json() for w in self.warnings],
        }
        return document | {"replayed": True} if self.replayed else document


class WriteResult:
    """The result of a write. It can be passed wherever a ref is taken."""

    __slots__ = ()

    receipt: Receipt

    @property
    def commit_id(self) -> CommitId | None:
        """The commit, or None if there was nothing to commit."""
        return self.receipt.graph_commit_id

    def _repr_with(self, what: str) -> str:
        return f"<{type(self).__name__} {what}: {self.receipt.summary}>"


def receipt_of(commit: CommitRecord, catalog: Catalog, *, replayed: bool = False) -> Receipt:
    """The receipt of a published commit, with the current names of its types."""
    draft = commit.draft
    return Receipt(
        graph_commit_id=commit.graph_commit_id,
        parent_commit_id=commit.parent_commit_id,
        branch=public_name(commit.branch),
        manifest_version=commit.sequence,
        operation=draft.operation,
        operation_id=draft.operation_id,
        actor_id=draft.actor_id,
        created_at=draft.created_at,
        counts=_counts_by_key(commit, catalog),
        warnings=draft.warnings,
        replayed=replayed,
    )


def nothing_done(state: ManifestState, draft: CommitDraft) -> Receipt:
    """The receipt of a write that found nothing to commit in `state`."""
    return Receipt(
        graph_commit_id=None,
        parent_commit_id=state.head,
        branch=public_name(state.branch),
        manifest_version=state.sequence,
        operation=draft.operation,
        operation_id=draft.operation_id,
        actor_id=draft.actor_id,
        created_at=draft.created_at,
    )


def _counts_by_key(commit: CommitRecord, catalog: Catalog) -> dict[str, Counts]:
    """A commit's net counts by table key; a dropped type is listed under its durable name."""
    names = table_keys(catalog)
    named = {names.get(t, t): c for t, c in commit.draft.counts.items()}
    return dict(sorted(named.items()))


def shown_counts(
    counts: Mapping[str, Counts], catalog: Catalog, view: ReadView | None
) -> Mapping[str, Counts]:
    """Counts by table key without those of types that a reader sees in part or not at all."""
    if view is None or view.sees_all:
        return counts
    whole = {found.table_key for found in view.restrict(catalog) if not view.filters(found)}
    return {key: count for key, count in counts.items() if key in whole}


# -- commits --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class Commit:
    """One commit of a graph. It can be passed wherever a ref is taken.

    `number` is its position on its branch, `parents` are the commit before it and, for a merge, the
    merged one; `counts` has the rows it inserted, updated and deleted, by table key such as
    `node:Person`.

    >>> graph.head().message
    'first people'
    """

    id: CommitId
    branch: str
    number: int
    parents: tuple[CommitId, ...]
    operation: str
    actor: str | None
    message: str | None
    created_at: datetime
    counts: Mapping[str, Counts] = field(default_factory=dict)
    warnings: tuple[Warning, ...] = ()
    load_id: str | None = None

    @classmethod
    def of(cls, record: CommitRecord, catalog: Catalog, view: ReadView | None = None) -> Commit:
        """A commit as a reader sees it. Which rows of a commit a predicate hides is not recorded, so a
        view with one for a type has no counts of it; warnings may name rows of any type."""
        draft = record.draft
        return cls(
            id=record.graph_commit_id,
            branch=public_name(record.branch),
            number=record.sequence,
            parents=record.parents,
            operation=draft.operation.value,
            actor=draft.actor_id,
            message=draft.message,
            created_at=from_micros(draft.created_at),
            counts=shown_counts(_counts_by_key(record, catalog), catalog, view),
            warnings=draft.warnings if view is None or view.sees_all else (),
            load_id=draft.load_id,
        )

    @property
    def commit_id(self) -> CommitId:
        """Same as `id`; receipts and results have it too."""
        return self.id

    @property
    def short_id(self) -> str:
        """The end of the id, which is enough to name the commit."""
        return short_id(self.id)

    def change_head(self) -> dict[str, Any]:
        """The fields that a document of this commit's changes begins with."""
        whole = self.to_json()
        return {
            name: whole[name] for name in ("graph_commit_id", "created_at", "actor_id", "operation")
        }

    def to_json(self) -> dict[str, Any]:
        """The document that `omnigraph commit show --json` prints."""
        parent, merged = (*self.parents, None, None)[:2]
        document: dict[str, Any] = {
            "graph_commit_id": self.id,
            "manifest_branch": None if self.branch == MAIN else self.branch,
            "manifest_version": self.number,
            "parent_commit_id": parent,
            "merged_parent_commit_id": merged,
            "actor_id": self.actor,
            "created_at": to_micros(self.created_at),
            "operation": self.operation,
            "message": self.message,
            "counts": {key: count.to_json() for key, count in self.counts.items()},
        }
        return document if self.load_id is None else document | {"load_id": self.load_id}

    def __repr__(self) -> str:
        message = "" if self.message is None else f" {self.message!r}"
        by = "" if self.actor is None else f" by {self.actor}"
        when = self.created_at.isoformat(timespec="seconds").replace("+00:00", "Z")
        made = f"{self.operation}{message}{by}, {when}"
        return f"<Commit {self.short_id} #{self.number} on {self.branch}: {made}>"


@dataclass(frozen=True, slots=True)
class CommitSelection:
    """Conditions on commits, all of which must hold. `since` and `until` are inclusive."""

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
        """Select from all commits of a branch, oldest first.

        Raises `InputError` for a bound that is neither a time nor one of the commits.
        """
        found = list(commits)
        if self.since is not None:
            bound = _Bound.of(self.since, commits)
            found = [c for c in found if bound.measure(c) >= bound.value]
        if self.until is not None:
            bound = _Bound.of(self.until, commits)
            found = [c for c in found if bound.measure(c) <= bound.value]
        if self.actor is not None:
            found = [c for c in found if c.draft.actor_id == self.actor]
        if self.operation is not None:
            found = [c for c in found if c.draft.operation.value == self.operation]
        if self.newest_first:
            found.reverse()
        return found if self.limit is None else found[: self.limit]


@dataclass(frozen=True, slots=True)
class _Bound:
    """A bound of the history: microseconds, or a commit's number on its branch."""

    is_time: bool
    value: int

    @classmethod
    def of(cls, written: CommitOrTime, commits: Sequence[CommitRecord]) -> _Bound:
        if isinstance(written, datetime):
            return cls(True, to_micros(written))
        for commit in commits:
            if commit.graph_commit_id == written:
                return cls(False, commit.sequence)
        try:
            return cls(True, parse_datetime(written) * 1000)
        except ValueError:
            message = f"'{written}' is neither a time nor a commit of this branch"
            known = (commit.graph_commit_id for commit in commits)
            raise InputError(with_hint(message, written.upper(), known)) from None

    def measure(self, commit: CommitRecord) -> int:
        return commit.draft.created_at if self.is_time else commit.sequence
