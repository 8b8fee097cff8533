"""Commits as callers see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from omnigraph.catalog.model import Catalog
from omnigraph.engine.receipts import SHORT_ID_LENGTH, counts_by_key
from omnigraph.versioning.branch_names import MAIN, public_name
from omnigraph.versioning.commits import CommitId, CommitRecord, Counts, Warning

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


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
    def of(cls, record: CommitRecord, catalog: Catalog) -> Commit:
        draft = record.draft
        return cls(
            id=record.graph_commit_id,
            branch=public_name(record.branch),
            number=record.sequence,
            parents=record.parents,
            operation=draft.operation.value,
            actor=draft.actor_id,
            message=draft.message,
            created_at=_EPOCH + timedelta(microseconds=draft.created_at),
            counts=counts_by_key(record, catalog),
            warnings=draft.warnings,
            load_id=draft.load_id,
        )

    @property
    def commit_id(self) -> CommitId:
        """Same as `id`; receipts and results have it too."""
        return self.id

    @property
    def short_id(self) -> str:
        """The end of the id, which is enough to name the commit."""
        return self.id[-SHORT_ID_LENGTH:]

    def change_head(self) -> dict[str, Any]:
        """The part of the document that the documents of its changes begin with."""
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
            "created_at": (self.created_at - _EPOCH) // timedelta(microseconds=1),
            "operation": self.operation,
            "message": self.message,
            "counts": {key: count.to_json() for key, count in self.counts.items()},
        }
        return document if self.load_id is None else document | {"load_id": self.load_id}

    def __repr__(self) -> str:
        said = [self.operation, *([] if self.message is None else [repr(self.message)])]
        by = "" if self.actor is None else f" by {self.actor}"
        when = self.created_at.isoformat(timespec="seconds").replace("+00:00", "Z")
        return f"<Commit {self.short_id} #{self.number} on {self.branch}: {' '.join(said)}{by}, {when}>"
