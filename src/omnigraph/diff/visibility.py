"""Apply a read view to the rows of a comparison. A row that becomes visible counts as inserted.

Tests: tests/behaviour/test_diff_views.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import EdgeType, EntityType
from omnigraph.diff.changes import (
    ABSENT,
    Side,
    Stored,
    StoredSide,
    TableChanges,
    endpoints_of,
)
from omnigraph.read.view import ReadView
from omnigraph.rows.bindings import bound_schema
from omnigraph.rows.equality import Mask
from omnigraph.storage.changed_rows import Numbers, Wanted, locations_of
from omnigraph.storage.filters import bind, matches
from omnigraph.storage.filters.model import bound_columns
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot
from omnigraph.versioning.snapshot_rows import SnapshotRows

VisibilityChanges = Mapping[str, pa.Array]
"""By node type, the ids of nodes that are visible in only one of two snapshots."""


@dataclass(frozen=True)
class Visibility:
    """A view on one snapshot."""

    view: ReadView
    snapshot: Snapshot
    tables: TableStore

    def visible(self, declared: EntityType, side: Side, numbers: Numbers) -> Numbers:
        """Row numbers, with `ABSENT` for invisible rows."""
        seen: Mask = np.not_equal(numbers, ABSENT)
        seen[seen] = self._matches(declared, side, numbers[seen])
        if isinstance(declared, EdgeType):
            for end, type_name in endpoints_of(declared):
                seen[seen] = self._has_endpoint(type_name, end, side, numbers[seen])
        return np.where(seen, numbers, ABSENT)

    def _matches(self, declared: EntityType, side: Side, numbers: Numbers) -> Mask:
        predicate = self.view.rows.get(declared.name)
        if predicate is None or not len(numbers):
            return np.ones(len(numbers), np.bool_)
        bound = bind(predicate, bound_schema(declared))
        rows = side.read(numbers, sorted(bound_columns(bound)))
        found: Mask = matches(bound, rows).to_numpy(zero_copy_only=False)
        return found

    def _has_endpoint(self, type_name: str, end: str, side: Side, numbers: Numbers) -> Mask:
        if type_name not in self.view.rows or not len(numbers):
            return np.ones(len(numbers), np.bool_)
        endpoints = side.read(numbers, [end]).column(end)
        node = self.snapshot.catalog.nodes[type_name]
        table = self.snapshot.open(self.tables, node.table_key)
        nodes = StoredSide(node, locations_of(table, pc.unique(endpoints)))
        seen = self._matches(node, nodes, np.arange(len(nodes.ids)))
        visible = nodes.ids.filter(pa.array(seen))
        found: Mask = pc.is_in(endpoints, value_set=visible).to_numpy()
        return found


def visible_changes(
    found: TableChanges, shown: EntityType, before: Visibility, after: Visibility
) -> TableChanges:
    """The rows as a reader sees them; `shown` is the type in the reader's view."""
    return replace(
        found,
        declared=shown,
        before_numbers=before.visible(found.declared, found.before, found.before_numbers),
        after_numbers=after.visible(found.declared, found.after, found.after_numbers),
    )


def with_affected_edges(
    edge: EdgeType,
    tables: TableStore,
    stored: tuple[Stored | None, Stored | None],
    sides: tuple[Side, Side],
    changed: VisibilityChanges,
    wanted: Wanted | None,
) -> tuple[Side, Side]:
    """Add unchanged edges whose endpoints became visible or invisible."""
    nodes = {end: changed[name] for end, name in endpoints_of(edge) if len(changed.get(name, ()))}
    known = [state for state in stored if state is not None and state[1].row_count]
    if not nodes or not known:
        return sides
    found = pa.concat_arrays(
        [
            SnapshotRows(state[0], tables).edges_at(edge, nodes).column("id").combine_chunks()
            for state in known
        ]
    )
    compared = pa.concat_arrays([side.ids for side in sides])
    ids = pc.unique(found.filter(pc.invert(pc.is_in(found, value_set=compared))))
    if wanted is not None:
        ids = ids.filter(pa.array(wanted(ids)))
    left, right = (
        _with_rows(edge, tables, side, state, ids)
        for side, state in zip(sides, stored, strict=True)
    )
    return left, right


def _with_rows(
    edge: EdgeType, tables: TableStore, side: Side, state: Stored | None, ids: pa.Array
) -> Side:
    if state is None or not len(ids):
        return side
    more = locations_of(state[0].open(tables, state[1].table_key), ids)
    return StoredSide(edge, side.places.joined(more) if isinstance(side, StoredSide) else more)
