"""Audit records: what a recovery did, kept in the manifest beside its commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from omnigraph.errors import ManifestDamaged
from omnigraph.json_structs import Document, described, json_line
from omnigraph.versioning.commits import CommitId, OperationId, TableId

RECOVERY_ACTOR: Final = "omnigraph:recovery"


class RecoveryKind(Enum):
    ROLLED_FORWARD = "RolledForward"
    ROLLED_BACK = "RolledBack"
    ORPHANED_BRANCH_DISCARDED = "OrphanedBranchDiscarded"
    LATE_COMMIT_DISCARDED = "LateCommitDiscarded"


class TableOutcome(Struct, frozen=True):
    """Where recovery found a table and where its content stands now."""

    table_key: str
    table_id: TableId
    from_version: int
    to_version: int


_KEYS: Final = {
    "kind": "recovery_kind",
    "for_actor": "recovery_for_actor",
    "writer_kind": "sidecar_writer_kind",
    "outcomes": "per_table_outcomes",
}


class RecoveryAudit(Document, frozen=True, rename=_KEYS):
    """One completed recovery. `late_version` is set for a commit that came after the verdict."""

    kind: RecoveryKind
    for_actor: str | None
    operation_id: OperationId
    writer_kind: str
    outcomes: tuple[TableOutcome, ...]
    created_at: int
    late_version: int | UnsetType = UNSET

    @property
    def key(self) -> str:
        """Unique per operation, so that none is recovered twice."""
        late = "" if self.late_version is UNSET else f"$late${self.late_version:020d}"
        return f"recovery${self.operation_id}{late}"

    def to_metadata(self, commit_id: CommitId) -> str:
        """The JSON text stored in the row; the key of the row says what came late."""
        stored = replace(self, late_version=UNSET).to_json()
        return json_line({"graph_commit_id": commit_id, **stored})


@dataclass(frozen=True, slots=True)
class RecordedAudit:
    """An audit as stored: with the commit it belongs to and its place in the history."""

    audit: RecoveryAudit
    graph_commit_id: CommitId
    sequence: int

    def to_json(self) -> dict[str, Any]:
        return {
            "graph_commit_id": self.graph_commit_id,
            "manifest_version": self.sequence,
            **self.audit.to_json(),
        }

    @classmethod
    def from_metadata(cls, text: str, sequence: int) -> RecordedAudit:
        """Raises `ValueError` for a kind this version does not know."""
        audit = msgspec.json.decode(text, type=described(RecoveryAudit))
        return cls(
            audit,
            msgspec.json.decode(text, type=described(_AuditedCommit)).graph_commit_id,
            sequence,
        )


class _AuditedCommit(Struct, frozen=True):
    graph_commit_id: CommitId


def read_audits(rows: Iterable[Mapping[str, Any]]) -> list[RecordedAudit]:
    """What rows of the manifest record, oldest first."""
    try:
        found = [RecordedAudit.from_metadata(r["metadata"], r["commit_seq"]) for r in rows]
    except (KeyError, TypeError, ValueError) as error:
        raise ManifestDamaged(f"a recovery is recorded wrongly: {error!r}") from error
    return sorted(found, key=lambda audit: audit.sequence)
