"""What there is of the indexes a schema asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omnigraph.catalog.arrow import IndexKind
from omnigraph.diagnostics import counted
from omnigraph.engine.receipts import Receipt


@dataclass(frozen=True, slots=True)
class IndexState:
    """An index that exists, and how many rows it does not know yet."""

    column: str
    kind: IndexKind
    unindexed_rows: int = 0

    def to_json(self) -> dict[str, Any]:
        return {
            "column": self.column,
            "kind": self.kind.value,
            "unindexed_rows": self.unindexed_rows,
        }


@dataclass(frozen=True, slots=True)
class PendingIndex:
    """An index that could not be made, and why."""

    column: str
    reason: str

    def to_json(self) -> dict[str, Any]:
        return {"column": self.column, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class IndexedTable:
    """The indexes of one type."""

    table_key: str
    created: tuple[IndexState, ...]
    existing: tuple[IndexState, ...]
    pending: tuple[PendingIndex, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "table_key": self.table_key,
            "created": [state.to_json() for state in self.created],
            "existing": [state.to_json() for state in self.existing],
            "pending": [missing.to_json() for missing in self.pending],
        }


@dataclass(frozen=True, slots=True, repr=False)
class IndexReport:
    """Every index of the types that have rows on a branch of their own, and the receipt."""

    tables: tuple[IndexedTable, ...]
    receipt: Receipt

    def __repr__(self) -> str:
        return f"<IndexReport {counted(len(self.tables), 'table')}: {self.receipt.summary}>"
