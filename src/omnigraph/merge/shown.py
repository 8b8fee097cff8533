"""Conflicts as a reader sees them who does not see everything.

Tests: tests/behaviour/test_restricted_handles.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from omnigraph.catalog.model import Catalog, EntityType
from omnigraph.errors import MergeConflict
from omnigraph.read.entities import VisibleRows
from omnigraph.read.view import ReadView
from omnigraph.storage.filters import In
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot

_ROW_MESSAGES: Final[Mapping[str, str]] = {
    "divergent_insert": "both sides inserted it",
    "divergent_update": "both sides changed it",
    "delete_vs_update": "one side deleted it, the other changed it",
}


@dataclass(frozen=True, slots=True)
class ShownConflicts:
    """The conflicts of a merge that a view shows, given the states that were merged."""

    view: ReadView
    tables: TableStore
    states: Sequence[Snapshot]

    def of(self, conflicts: Sequence[MergeConflict]) -> tuple[MergeConflict, ...]:
        """The visible conflicts, without what the view hides of their rows."""
        catalog = self.view.restrict(self.states[0].catalog)
        shown = {declared.table_key: declared for declared in catalog}
        visible = {
            key: self._visible(shown[key], ids) for key, ids in self._filtered(conflicts, shown)
        }
        found = []
        for conflict in conflicts:
            declared = shown.get(conflict.table_key)
            if declared is None:
                continue
            ids = visible.get(conflict.table_key)
            if ids is None or conflict.row_id in ids:
                found.append(self._excerpt(conflict, declared))
        return tuple(found)

    def _filtered(
        self, conflicts: Sequence[MergeConflict], shown: Mapping[str, EntityType]
    ) -> Iterator[tuple[str, list[str]]]:
        """Types of which rows may be hidden, with the ids of their conflicts."""
        for key, declared in shown.items():
            if self.view.filters(declared):
                ids = {c.row_id for c in conflicts if c.table_key == key and c.row_id is not None}
                yield key, sorted(ids)

    def _visible(self, declared: EntityType, ids: Collection[str]) -> set[str]:
        """Those of the ids that are visible in every state that has them, and in one at least."""
        seen: set[str] = set()
        hidden: set[str] = set()
        for state in self.states:
            there = self._ids(state, declared, ids, ReadView.ALL)
            visible = self._ids(state, declared, ids, self.view)
            seen |= visible
            hidden |= there - visible
        return seen - hidden

    def _ids(
        self, state: Snapshot, declared: EntityType, ids: Collection[str], view: ReadView
    ) -> set[str]:
        if not ids:
            return set()
        rows = VisibleRows(state, self.tables, declared, view)
        return {
            one
            for batch in rows.read(["id"], In("id", tuple(ids)))
            for one in batch.column("id").to_pylist()
        }

    def _excerpt(self, conflict: MergeConflict, declared: EntityType) -> MergeConflict:
        whole = self._whole(declared)
        if whole:
            return conflict
        message = _ROW_MESSAGES.get(conflict.kind, "the merge would break a rule of the schema")
        filtered = self.view.filters(declared)
        return replace(
            conflict,
            message=message,
            # How a row was at the merge base says nothing about who sees it now.
            base=None if filtered else _shown_values(conflict.base, declared),
            ours=_shown_values(conflict.ours, declared),
            theirs=_shown_values(conflict.theirs, declared),
        )

    def _whole(self, declared: EntityType) -> bool:
        full: Catalog = self.states[0].catalog
        stored = full.entity(declared.table_key)
        return declared.properties.keys() == stored.properties.keys() and not self.view.filters(
            declared
        )


def _shown_values(
    document: Mapping[str, Any] | None, declared: EntityType
) -> Mapping[str, Any] | None:
    if document is None:
        return None
    return {name: value for name, value in document.items() if name in declared.columns}
