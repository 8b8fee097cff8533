"""Receipts: what a write did, in the words of the schema. Every write returns one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from omnigraph.catalog.model import Catalog
from omnigraph.diagnostics import counted
from omnigraph.versioning.branch_names import BranchName, public_name
from omnigraph.versioning.commits import (
    CommitDraft,
    CommitId,
    CommitRecord,
    Counts,
    OperationKind,
    Warning,
)
from omnigraph.versioning.manifest import ManifestState
from omnigraph.versioning.snapshot import table_keys

SHORT_ID_LENGTH: Final = 8
"""Commit ids begin with the time, so a short one is the end of an id."""


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
        """What became of the write, in a few words."""
        if self.graph_commit_id is None:
            return f"nothing to commit on {self.branch}"
        again = " by an earlier call" if self.replayed else ""
        return f"commit {self.graph_commit_id[-SHORT_ID_LENGTH:]} on {self.branch}{again}"

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
    """The receipt of a published commit, under the present names of its types."""
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
        counts=counts_by_key(commit, catalog),
        warnings=draft.warnings,
        replayed=replayed,
    )


def nothing_done(state: ManifestState, draft: CommitDraft) -> Receipt:
    """The receipt of a write that had nothing to commit; `state` is what it found."""
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


def counts_by_key(commit: CommitRecord, catalog: Catalog) -> dict[str, Counts]:
    """A commit's net counts by table key; a type that has gone since keeps its durable name."""
    names = table_keys(catalog)
    named = {names.get(t, t): c for t, c in commit.draft.counts.items()}
    return {key: named[key] for key in sorted(named)}
