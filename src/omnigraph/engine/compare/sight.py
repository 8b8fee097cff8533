"""What a reader may see of the rows that differ. A row that comes into sight was inserted for them.

Tests: tests/behaviour/test_diff_views.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import EdgeType, EntityType
from omnigraph.engine.compare.changes import TableChanges
from omnigraph.engine.compare.sides import ABSENT, Side, Stored, StoredSide
from omnigraph.engine.read.view import ReadView
from omnigraph.engine.write.committed import SnapshotRows
from omnigraph.rows.bindings import bound_schema
from omnigraph.rows.equality import Mask
from omnigraph.storage.changed_rows import Numbers, Wanted, places_of
from omnigraph.storage.filters import bind, matches
from omnigraph.storage.filters.model import bound_columns
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot

Turned = Mapping[str, pa.Array]
"""By node type, the nodes that came into sight or went out of it."""


@dataclass(frozen=True)
class Sight:
    """A view on one snapshot."""

    view: ReadView
    snapshot: Snapshot
    tables: TableStore

    def of(self, declared: EntityType, side: Side, numbers: Numbers) -> Numbers:
        """Numbers of rows, `ABSENT` in the place of those that are out of sight."""
        seen: Mask = np.not_equal(numbers, ABSENT)
        seen[seen] = self._matches(declared, side, numbers[seen])
        if isinstance(declared, EdgeType):
            for end, type_name in ends_of(declared):
                seen[seen] = self._has_end(type_name, end, side, numbers[seen])
        return np.where(seen, numbers, ABSENT)

    def _matches(self, declared: EntityType, side: Side, numbers: Numbers) -> Mask:
        predicate = self.view.rows.get(declared.name)
        if predicate is None or not len(numbers):
            return np.ones(len(numbers), np.bool_)
        bound = bind(predicate, bound_schema(declared))
        rows = side.read(numbers, sorted(bound_columns(bound)))
        found: Mask = matches(bound, rows).to_numpy(zero_copy_only=False)
        return found

    def _has_end(self, type_name: str, end: str, side: Side, numbers: Numbers) -> Mask:
        if type_name not in self.view.rows or not len(numbers):
            return np.ones(len(numbers), np.bool_)
        ends = side.read(numbers, [end]).column(end)
        node = self.snapshot.catalog.nodes[type_name]
        table = self.snapshot.open(self.tables, node.table_key)
        nodes = StoredSide(node, places_of(table, pc.unique(ends)))
        seen = self._matches(node, nodes, np.arange(len(nodes.ids)))
        visible = nodes.ids.filter(pa.array(seen))
        found: Mask = pc.is_in(ends, value_set=visible).to_numpy()
        return found


def in_sight(found: TableChanges, shown: EntityType, before: Sight, after: Sight) -> TableChanges:
    """Rows as a reader sees them, of a type as it is shown to them."""
    return replace(
        found,
        declared=shown,
        before_numbers=before.of(found.declared, found.before, found.before_numbers),
        after_numbers=after.of(found.declared, found.after, found.after_numbers),
    )


def ends_of(edge: EdgeType) -> tuple[tuple[str, str], tuple[str, str]]:
    return ("src", edge.from_type), ("dst", edge.to_type)


def with_turned_ends(
    edge: EdgeType,
    tables: TableStore,
    stored: tuple[Stored | None, Stored | None],
    sides: tuple[Side, Side],
    turned: Turned,
    wanted: Wanted | None,
) -> tuple[Side, Side]:
    """The sides with edges that nothing has changed but the sight of their ends."""
    nodes = {end: turned[name] for end, name in ends_of(edge) if len(turned.get(name, ()))}
    known = [state for state in stored if state is not None and state[1].row_count]
    if not nodes or not known:
        return sides
    found = pa.concat_arrays(
        [
            SnapshotRows(state[0], tables).edges_at(edge, nodes).column("id").combine_chunks()
            for state in known
        ]
    )
    told = pa.concat_arrays([side.ids for side in sides])
    ids = pc.unique(found.filter(pc.invert(pc.is_in(found, value_set=told))))
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
    more = places_of(state[0].open(tables, state[1].table_key), ids)
    return StoredSide(edge, side.places.joined(more) if isinstance(side, StoredSide) else more)
