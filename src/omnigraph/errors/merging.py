"""Errors of merges, and of those who follow the changes of a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omnigraph.errors.base import Retry
from omnigraph.errors.conflicts import ConflictError
from omnigraph.errors.missing import NotFoundError

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class MergeConflict:
    """One reason why two states cannot be merged.

    For rows that both sides changed, the row as the common ancestor, the target and the source have
    it; None where one has no such row.
    """

    table_key: str
    row_id: str | None
    kind: str
    message: str
    base: Mapping[str, Any] | None = None
    ours: Mapping[str, Any] | None = None
    theirs: Mapping[str, Any] | None = None

    @property
    def is_about_a_row(self) -> bool:
        """Whether a strategy or a resolution can decide it."""
        return self.kind in ("divergent_insert", "divergent_update", "delete_vs_update")

    @property
    def order(self) -> tuple[str, str, str, str]:
        return (self.table_key, self.row_id or "", self.kind, self.message)

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = {
            "table_key": self.table_key,
            "row_id": self.row_id,
            "kind": self.kind,
            "message": self.message,
        }
        if self.is_about_a_row:
            document |= {"base": self.base, "ours": self.ours, "theirs": self.theirs}
        return document


class MergeConflicts(ConflictError):
    """Both sides changed the same rows, or their changes together break a rule. Nothing was written."""

    code = "OG-C-040"
    retry = Retry.NEVER

    def __init__(self, conflicts: Sequence[MergeConflict], total: int | None = None) -> None:
        self.conflicts = tuple(conflicts)
        """The first ones, if there are very many."""
        self.total = len(self.conflicts) if total is None else total
        shown = [
            f"{c.table_key}{'' if c.row_id is None else ':' + c.row_id} ({c.kind})"
            for c in self.conflicts[:_SHOWN]
        ]
        if self.total > _SHOWN:
            shown.append(f"and {self.total - _SHOWN} more")
        super().__init__(f"merge conflicts: {'; '.join(shown)}")


class ChangeFeedGap(NotFoundError):
    """Changes after a cursor can no longer be told: their rows were removed, or its branch was."""

    code = "OG-N-010"

    def __init__(self, branch: str, reason: str) -> None:
        self.branch = branch
        super().__init__(
            f"the changes of branch '{branch}' cannot be followed from there: {reason}; "
            "read the branch as it is and go on from its head"
        )
