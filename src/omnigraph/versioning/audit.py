"""Audit records: what a recovery did, kept in the manifest beside its commit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from omnigraph.errors import ManifestDamaged
from omnigraph.versioning.commits import CommitId, OperationId, TableId

RECOVERY_ACTOR: Final = "omnigraph:recovery"


class RecoveryKind(Enum):
    ROLLED_FORWARD = "RolledForward"
    ROLLED_BACK = "RolledBack"
    ORPHANED_BRANCH_DISCARDED = "OrphanedBranchDiscarded"
    LATE_COMMIT_DISCARDED = "LateCommitDiscarded"


@dataclass(frozen=True, slots=True)
class TableOutcome:
    """Where recovery found a table and where its content stands now."""

    table_key: str
    table_id: TableId
    from_version: int
    to_version: int

    def to_json(self) -> dict[str, Any]:
        return {
            "table_key": self.table_key,
            "table_id": self.table_id,
            "from_version": self.from_version,
            "to_version": self.to_version,
        }


@dataclass(frozen=True, slots=True)
class RecoveryAudit:
    """One completed recovery. `late_version` is set for a commit that came after the verdict."""

    kind: RecoveryKind
    operation_id: OperationId
    for_actor: str | None
    writer_kind: str
    outcomes: tuple[TableOutcome, ...]
    created_at: int
    late_version: int | None = None

    @property
    def key(self) -> str:
        """Unique per operation, so that none is recovered twice."""
        late = "" if self.late_version is None else f"$late${self.late_version:020d}"
        return f"recovery${self.operation_id}{late}"

    def to_metadata(self, commit_id: CommitId) -> str:
        return json.dumps({"graph_commit_id": commit_id, **self.to_json()}, ensure_ascii=False)

    def to_json(self) -> dict[str, Any]:
        return {
            "recovery_kind": self.kind.value,
            "recovery_for_actor": self.for_actor,
            "operation_id": self.operation_id,
            "sidecar_writer_kind": self.writer_kind,
            "per_table_outcomes": [outcome.to_json() for outcome in self.outcomes],
            "created_at": self.created_at,
        }


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
        document = json.loads(text)
        audit = RecoveryAudit(
            kind=RecoveryKind(document["recovery_kind"]),
            operation_id=OperationId(document["operation_id"]),
            for_actor=document["recovery_for_actor"],
            writer_kind=document["sidecar_writer_kind"],
            outcomes=tuple(TableOutcome(**o) for o in document["per_table_outcomes"]),
            created_at=document["created_at"],
        )
        return cls(audit, CommitId(document["graph_commit_id"]), sequence)


def read_audits(rows: Iterable[Mapping[str, Any]]) -> list[RecordedAudit]:
    """What rows of the manifest record, oldest first."""
    try:
        found = [RecordedAudit.from_metadata(r["metadata"], r["commit_seq"]) for r in rows]
    except (KeyError, TypeError, ValueError) as error:
        raise ManifestDamaged(f"a recovery is recorded wrongly: {error!r}") from error
    return sorted(found, key=lambda audit: audit.sequence)
