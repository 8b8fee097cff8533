"""Sidecars nobody can judge: they stay where they are, are named, and block only what they touch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from omnigraph.versioning.branch_names import public_name
from omnigraph.versioning.commits import TableId, Warning
from omnigraph.versioning.recovery.sidecar import Sidecar, UnreadableSidecar


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A sidecar left to an operator. `tables` is None when the file does not say which."""

    name: str
    reason: str
    branch: str | None = None
    tables: frozenset[tuple[TableId, str | None]] | None = None

    @classmethod
    def unreadable(cls, error: UnreadableSidecar) -> Quarantined:
        return cls(error.name, error.reason)

    @classmethod
    def unclear(cls, sidecar: Sidecar, reason: str) -> Quarantined:
        touched = frozenset((table.table_id, table.branch) for table in sidecar.tables)
        return cls(sidecar.name, reason, sidecar.physical, touched)

    def names(self, table_id: TableId, branch: str | None) -> bool:
        """Whether it is about this line of this table."""
        return self.tables is not None and (table_id, branch) in self.tables

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "reason": self.reason,
            "branch": None if self.tables is None else public_name(self.branch),
        }


def warn_of(quarantined: Iterable[Quarantined]) -> tuple[Warning, ...]:
    """What every caller is told as long as such a sidecar exists."""
    return tuple(
        Warning(
            "recovery_quarantined",
            f"sidecar {found.name} waits for a repair: {found.reason}",
        )
        for found in quarantined
    )
