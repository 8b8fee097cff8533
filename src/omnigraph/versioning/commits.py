"""Commit records: what one publish did, by whom, on top of what."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, NewType

CommitId = NewType("CommitId", str)
OperationId = NewType("OperationId", str)
TableId = NewType("TableId", str)
"""`node#<type id>` or `edge#<type id>`: the durable name of a table."""


class OperationKind(Enum):
    INIT = "init"
    LOAD = "load"
    MUTATE = "mutate"
    MERGE = "merge"
    SCHEMA_APPLY = "schema_apply"
    EMBED = "embed"
    REVERT = "revert"
    CHERRY_PICK = "cherry_pick"
    ENSURE_INDICES = "ensure_indices"
    OPTIMIZE = "optimize"
    REPAIR = "repair"
    RECOVERY = "recovery"


KEEPING_ROWS: Final = frozenset([OperationKind.OPTIMIZE, OperationKind.ENSURE_INDICES])
"""Operations that store rows anew and change none."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Net change of one table in one commit."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    def __bool__(self) -> bool:
        return bool(self.inserted or self.updated or self.deleted)

    def to_json(self) -> dict[str, int]:
        return {"inserted": self.inserted, "updated": self.updated, "deleted": self.deleted}


@dataclass(frozen=True, slots=True)
class Warning:
    """Something worth telling the caller about a write that succeeded."""

    code: str
    message: str
    count: int | None = None

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.count is not None:
            document["count"] = self.count
        return document


@dataclass(frozen=True, slots=True)
class LoadNote:
    """What a repeated load needs to know about the first one. Kept beside the commit, by load id."""

    mode: str
    rows_loaded: Mapping[str, int]
    quarantined: int

    def to_json(self) -> dict[str, Any]:
        return {
            "mode": self.mode,
            "rows_loaded": dict(self.rows_loaded),
            "quarantined": self.quarantined,
        }


@dataclass(frozen=True, slots=True)
class WriteKey:
    """What keeps a repeated call from writing twice. Stored with the commit, as long as it is.

    `digest` identifies what was asked for, `answer` is what the result of a repeat says besides the
    commit itself.
    """

    key: str
    digest: str
    answer: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"key": self.key, "digest": self.digest, "answer": dict(self.answer)}


@dataclass(frozen=True, slots=True)
class CommitDraft:
    """A commit before the publish has given it a parent and a sequence number."""

    graph_commit_id: CommitId
    operation: OperationKind
    operation_id: OperationId
    created_at: int
    schema_ir_hash: str
    schema_ref: str
    merged_parent_commit_id: CommitId | None = None
    actor_id: str | None = None
    message: str | None = None
    counts: Mapping[TableId, Counts] = field(default_factory=dict)
    load_id: str | None = None
    load_note: LoadNote | None = None
    warnings: tuple[Warning, ...] = ()
    write_key: WriteKey | None = None

    @property
    def idempotency_key(self) -> str:
        """What the caller repeats the call with: its own key, or the operation's id."""
        if self.load_id is not None:
            return self.load_id
        return self.operation_id if self.write_key is None else self.write_key.key


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """A published commit. `branch` is the storage name of the branch it was made on."""

    draft: CommitDraft
    parent_commit_id: CommitId | None
    sequence: int
    branch: str | None

    @property
    def graph_commit_id(self) -> CommitId:
        return self.draft.graph_commit_id

    @property
    def parents(self) -> tuple[CommitId, ...]:
        """The commit before it on its branch, then the one it merged."""
        both = (self.parent_commit_id, self.draft.merged_parent_commit_id)
        return tuple(parent for parent in both if parent is not None)

    def to_metadata(self) -> str:
        """The JSON text stored in the commit's row."""
        draft = self.draft
        counts = {table: c.to_json() for table, c in sorted(draft.counts.items()) if c}
        return json.dumps(
            {
                "graph_commit_id": draft.graph_commit_id,
                "parent_commit_id": self.parent_commit_id,
                "merged_parent_commit_id": draft.merged_parent_commit_id,
                "actor_id": draft.actor_id,
                "created_at": draft.created_at,
                "operation": draft.operation.value,
                "operation_id": draft.operation_id,
                "message": draft.message,
                "schema_ir_hash": draft.schema_ir_hash,
                "schema_ref": draft.schema_ref,
                "counts": counts,
                "load_id": draft.load_id,
                "warnings": [w.to_json() for w in draft.warnings],
                **({"write_key": draft.write_key.to_json()} if draft.write_key else {}),
            },
            ensure_ascii=False,
        )

    @classmethod
    def from_metadata(cls, text: str, sequence: int, branch: str | None) -> CommitRecord:
        document = json.loads(text)
        draft = CommitDraft(
            graph_commit_id=document["graph_commit_id"],
            operation=OperationKind(document["operation"]),
            operation_id=document["operation_id"],
            created_at=document["created_at"],
            schema_ir_hash=document["schema_ir_hash"],
            schema_ref=document["schema_ref"],
            merged_parent_commit_id=document["merged_parent_commit_id"],
            actor_id=document["actor_id"],
            message=document["message"],
            counts={TableId(t): Counts(**c) for t, c in document["counts"].items()},
            load_id=document["load_id"],
            warnings=tuple(Warning(**w) for w in document["warnings"]),
            write_key=WriteKey(**document["write_key"]) if "write_key" in document else None,
        )
        return cls(draft, document["parent_commit_id"], sequence, branch)
