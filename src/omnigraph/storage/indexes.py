"""Scalar indexes of a table: making them, and which rows they cover."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lance import LanceOperation

from omnigraph.storage.conflicts import naming_failures
from omnigraph.storage.stage import RowCounts, Staged
from omnigraph.storage.table import Table

BTREE: Final = "BTREE"


@dataclass(frozen=True, slots=True)
class Index:
    """An index and the fragments whose rows it knows."""

    name: str
    kind: str
    columns: tuple[str, ...]
    fragment_ids: frozenset[int]
    is_borrowed: bool
    """Whether part of it is stored in the line of versions this one was branched from."""


def list_indexes(table: Table) -> list[Index]:
    """All indexes of a table, by name. Metadata only."""
    with naming_failures("list the indexes", table.lineage.uri):
        described = table.dataset.describe_indices()
    return [
        Index(
            found.name,
            found.index_type.upper(),
            tuple(found.field_names),
            frozenset(number for segment in found.segments for number in segment.fragment_ids),
            any(segment.base_id is not None for segment in found.segments),
        )
        for found in described
    ]


def uncovered_fragments(table: Table, column: str) -> frozenset[int] | None:
    """The fragments a lookup by this column has to scan; None when no scalar index is on it alone."""
    current = frozenset(fragment.id for fragment in table.fragments())
    for index in list_indexes(table):
        if index.kind == BTREE and index.columns == (column,):
            return current - index.fragment_ids
    return None


def stage_btree_index(table: Table, column: str) -> Staged | None:
    """An index over all present rows, named after its column; None for a table without rows."""
    fragments = [fragment.id for fragment in table.fragments()]
    if not fragments:
        return None
    with naming_failures("build an index", table.lineage.uri):
        built = table.dataset.create_index_uncommitted(
            column, BTREE, name=f"{column}_idx", fragment_ids=fragments
        )
    return Staged(
        "index",
        table.lineage,
        table.version,
        RowCounts(),
        table.row_count(),
        LanceOperation.CreateIndex(new_indices=[built], removed_indices=[]),
    )
