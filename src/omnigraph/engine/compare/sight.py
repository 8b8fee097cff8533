"""What a reader may see of the rows that differ. A row that comes into sight was inserted for them.

Tests: tests/behaviour/test_diffs.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import EdgeType, EntityType
from omnigraph.engine.compare.changes import TableChanges, different
from omnigraph.engine.compare.sides import ABSENT, Side, StoredSide
from omnigraph.engine.read.view import ReadView
from omnigraph.rows.bindings import bound_schema
from omnigraph.rows.equality import Mask
from omnigraph.storage.changed_rows import Numbers, places_of
from omnigraph.storage.filters import bind, matches
from omnigraph.storage.filters.bound import bound_columns
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot


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
            for end, type_name in (("src", declared.from_type), ("dst", declared.to_type)):
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


def in_sight(changes: TableChanges, shown: EntityType, before: Sight, after: Sight) -> TableChanges:
    """The changes that a reader sees, of a type as it is shown to them."""
    declared = changes.declared
    old = before.of(declared, changes.before, changes.before_numbers)
    new = after.of(declared, changes.after, changes.after_numbers)
    seen = replace(changes, declared=shown, before_numbers=old, after_numbers=new)
    return seen.where(different(shown, changes.before, old, changes.after, new))
