"""What there is of the indexes a schema asks for."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.catalog.arrow import IndexKind
from omnigraph.diagnostics import counted
from omnigraph.engine.receipts import Receipt
from omnigraph.json_structs import Document


class IndexState(Document, frozen=True):
    """An index that exists, and how many rows it does not know yet."""

    column: str
    kind: IndexKind
    unindexed_rows: int = 0


class PendingIndex(Document, frozen=True):
    """An index that could not be made, and why."""

    column: str
    reason: str


class IndexedTable(Document, frozen=True):
    """The indexes of one type."""

    table_key: str
    created: tuple[IndexState, ...]
    existing: tuple[IndexState, ...]
    pending: tuple[PendingIndex, ...]


@dataclass(frozen=True, slots=True, repr=False)
class IndexReport:
    """Every index of the types that have rows on a branch of their own, and the receipt."""

    tables: tuple[IndexedTable, ...]
    receipt: Receipt

    def __repr__(self) -> str:
        return f"<IndexReport {counted(len(self.tables), 'table')}: {self.receipt.summary}>"
