"""Commit records: what one publish did, by whom, on top of what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, NewType

import msgspec
from msgspec import UNSET, Struct, UnsetType

from omnigraph.json_structs import Document, described, json_line, struct_from

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


CONTENT_PRESERVING: Final = frozenset([OperationKind.OPTIMIZE, OperationKind.ENSURE_INDICES])
"""Operations that rewrite storage but change no row."""

WITHOUT_KEY: Final = CONTENT_PRESERVING | {OperationKind.REPAIR}
"""Operations whose calls take no idempotency key: made twice, they do the same as once."""


class Counts(Document, frozen=True):
    """Net change of one table in one commit."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    def __bool__(self) -> bool:
        return bool(self.inserted or self.updated or self.deleted)


class Warning(Document, frozen=True, omit_defaults=True):
    """Something worth telling the caller about a write that succeeded."""

    code: str
    message: str
    count: int | None = None


class LoadNote(Struct, frozen=True):
    """What a repeated load needs to know about the first one. Kept beside the commit, by load id."""

    mode: str = ""
    rows_loaded: Mapping[str, int] = {}
    quarantined: int = 0


class WriteKey(Struct, frozen=True):
    """What keeps a repeated call from writing twice. Stored with the commit, as long as it is.

    `digest` identifies what was asked for, `answer` is what the result of a repeat says besides the
    commit itself.
    """

    key: str
    digest: str
    answer: Mapping[str, Any] = {}


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

    def to_metadata(self, *, sequence: int | UnsetType = UNSET) -> str:
        """The JSON text stored in the commit's row. Another branch's row also has the sequence."""
        stored = struct_from(
            _CommitMetadata,
            self.draft,
            parent_commit_id=self.parent_commit_id,
            counts=stored_counts(self.draft),
            write_key=self.draft.write_key or UNSET,
            seq=sequence,
        )
        return json_line(stored)

    @classmethod
    def from_metadata(cls, text: str, sequence: int, branch: str | None) -> CommitRecord:
        """The commit of a row; the sequence in the text wins. Raises `ValueError`."""
        stored = msgspec.json.decode(text, type=described(_CommitMetadata))
        fields = msgspec.structs.asdict(stored)
        parent, number = fields.pop("parent_commit_id"), fields.pop("seq")
        draft = CommitDraft(**{**fields, "write_key": stored.write_key or None})
        return cls(draft, parent, sequence if number is UNSET else number, branch)


def stored_counts(draft: CommitDraft) -> dict[TableId, Counts]:
    """The counts as they are stored: by table id, without tables that did not change."""
    return {table: counts for table, counts in sorted(draft.counts.items()) if counts}


class _CommitMetadata(Struct, frozen=True):
    """The JSON object of a commit."""

    graph_commit_id: CommitId
    parent_commit_id: CommitId | None
    merged_parent_commit_id: CommitId | None
    actor_id: str | None
    created_at: int
    operation: OperationKind
    operation_id: OperationId
    message: str | None
    schema_ir_hash: str
    schema_ref: str
    counts: dict[TableId, Counts]
    load_id: str | None
    warnings: tuple[Warning, ...]
    write_key: WriteKey | UnsetType = UNSET
    seq: int | UnsetType = UNSET
