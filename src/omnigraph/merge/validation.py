"""Constraints that merged rows can break although each side keeps them: uniqueness, endpoints, cardinality.

Only rows that the merge writes or removes are validated. An edge that dangled before the merge, or a
source with too few edges, is not reported. Tests: tests/behaviour/test_merge_rules.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.constraints import (
    cardinality_problem,
    group_text,
    missing_endpoint,
    other_unique_groups,
    shared_tuple,
    tuple_text,
    value_rules,
)
from omnigraph.catalog.model import Catalog, EdgeType, EntityType, Group, NodeType
from omnigraph.diff.changes import endpoints_of
from omnigraph.errors import MergeConflict
from omnigraph.language.schema.ast import ENDPOINTS
from omnigraph.rows.keys import distinct_tuples, shared_tuples, tuple_values, tuples_of
from omnigraph.rows.validation import value_violations
from omnigraph.versioning.snapshot_rows import SnapshotRows


@dataclass(frozen=True)
class RowChange:
    """A merge's changes to the target's rows of one type; upserts have at least the constraint columns."""

    upserts: pa.Table
    deletes: pa.Array

    @property
    def hidden(self) -> pa.Array:
        """Ids whose rows in the target are replaced or deleted."""
        return pa.concat_arrays([_ids(self.upserts), self.deletes])


def constraint_columns(declared: EntityType) -> list[str]:
    """The columns of a type that validation reads."""
    names = {"id"} | {rule.property for rule in value_rules(declared)}
    names |= {name for group in other_unique_groups(declared) for name in group}
    if isinstance(declared, EdgeType):
        names |= set(ENDPOINTS)
    return [name for name in declared.columns if name in names]


@dataclass
class MergeValidator:
    """Validates the changes of a merge against its target."""

    catalog: Catalog
    changes: Mapping[str, RowChange]
    source: SnapshotRows
    target: SnapshotRows
    reads: set[str] = field(default_factory=set)
    """Keys of the target's tables that were read."""

    def conflicts(self) -> list[MergeConflict]:
        found: list[MergeConflict] = []
        for declared in self.catalog:
            change = self.changes.get(declared.table_key)
            if change is not None and change.upserts.num_rows:
                found += self._values(declared, change)
                for group in other_unique_groups(declared):
                    found += self._unique(declared, group, change)
                if isinstance(declared, EdgeType):
                    found += self._edges_to_missing_nodes(declared, change)
            if isinstance(declared, EdgeType):
                found += self._edges_of_deleted_nodes(declared, change)
                if change is not None:
                    found += self._cardinality(declared, change)
        return found

    def _values(self, declared: EntityType, change: RowChange) -> Iterator[MergeConflict]:
        columns = {r.property: _column(change.upserts, r.property) for r in value_rules(declared)}
        for violation in value_violations(declared, columns):
            yield _conflict(declared, None, "value_constraint_violation", violation.message)

    def _unique(
        self, declared: EntityType, group: Group, change: RowChange
    ) -> Iterator[MergeConflict]:
        names = ["id", *group]
        mine = change.upserts.select(names)
        self.reads.add(declared.table_key)
        others = self.target.owners(
            declared, group, distinct_tuples(mine, group), change.hidden
        ).select(names)
        together = pa.concat_tables([mine, others.cast(mine.schema)])
        where = group_text(declared, group)
        for same in shared_tuples(*tuples_of(together, group)):
            shown = tuple_text(declared, group, tuple_values(together, group, int(same[0])))
            first, *rest = sorted(together.column("id").take(pa.array(same)).to_pylist())
            for other in rest:
                message = shared_tuple(where, shown, first, other)
                yield _conflict(declared, other, "unique_violation", message)

    def _edges_to_missing_nodes(self, edge: EdgeType, change: RowChange) -> Iterator[MergeConflict]:
        """Edges of the source whose endpoints the target does not have."""
        for end, type_name in endpoints_of(edge):
            node = self.catalog.nodes[type_name]
            absent = self._absent(node, pc.unique(_column(change.upserts, end)))
            # A node that the source lacks too was missing before the merge.
            absent = self.source.existing(node, absent) if len(absent) else absent
            yield from _orphan_edges(edge, end, change.upserts, absent)

    def _edges_of_deleted_nodes(
        self, edge: EdgeType, change: RowChange | None
    ) -> Iterator[MergeConflict]:
        """Edges of the target whose endpoints the source deleted."""
        deleted = {
            end: self.changes[key].deletes
            for end, type_name in endpoints_of(edge)
            if (key := self.catalog.nodes[type_name].table_key) in self.changes
            and len(self.changes[key].deletes)
        }
        if not deleted or not self.target.has_rows(edge):
            return
        self.reads.add(edge.table_key)
        edges = self.target.edges_at(edge, deleted)
        if change is not None:
            edges = edges.filter(_outside(edges.column("id"), change.hidden))
        if not edges.num_rows:
            return
        # An edge that the source has too dangles there already, so this merge does not break it.
        edges = edges.filter(
            _outside(edges.column("id"), self.source.existing(edge, _column(edges, "id")))
        )
        for end, nodes in deleted.items():
            yield from _orphan_edges(edge, end, edges, nodes)

    def _absent(self, node: NodeType, ids: pa.Array) -> pa.Array:
        """The ids that no node will have after the merge."""
        self.reads.add(node.table_key)
        change = self.changes.get(node.table_key)
        if change is None:
            return ids.filter(_outside(ids, self.target.existing(node, ids)))
        ids = ids.filter(_outside(ids, _ids(change.upserts)))
        there = self.target.existing(node, ids.filter(_outside(ids, change.deletes)))
        return ids.filter(_outside(ids, there))

    def _cardinality(self, edge: EdgeType, change: RowChange) -> Iterator[MergeConflict]:
        low, high = edge.cardinality.low, edge.cardinality.high
        if low <= 1 and high is None:
            return
        self.reads.add(edge.table_key)
        added = _column(change.upserts, "src")
        sources = pc.unique(pa.concat_arrays([added, self._old_sources(edge, change)]))
        counts = _summed(
            _per_source(pc.value_counts(added)),
            self.target.outgoing(edge, sources, change.hidden),
        )
        wrong = counts.filter(_outside_bounds(counts.column("count"), low, high)).sort_by("src")
        if not wrong.num_rows:
            return
        asked, nothing = _column(wrong, "src"), pa.array([], pa.utf8())
        before = [
            _by_source(side.outgoing(edge, asked, nothing)) for side in (self.source, self.target)
        ]
        for source, count in _by_source(wrong).items():
            problem = cardinality_problem(edge, source, count)
            # If one side already had this count, deletions there caused it, not the merge.
            if problem is not None and all(side.get(source, 0) != count for side in before):
                yield _conflict(edge, None, "cardinality_violation", problem)

    def _old_sources(self, edge: EdgeType, change: RowChange) -> pa.Array:
        """Sources of the target's edges that are deleted or replaced."""
        if not len(change.hidden) or not self.target.has_rows(edge):
            return pa.array([], pa.utf8())
        return _column(self.target.open(edge).lookup(change.hidden, ["id", "src"]), "src")


def _orphan_edges(
    edge: EdgeType, end: str, edges: pa.Table, absent: pa.Array
) -> Iterator[MergeConflict]:
    if not len(absent):
        return
    found = edges.filter(pc.is_in(edges.column(end), value_set=absent))
    for id, node in zip(*(found.column(n).to_pylist() for n in ("id", end)), strict=True):
        yield _conflict(edge, id, "orphan_edge", missing_endpoint(edge, end, node))


def _conflict(declared: EntityType, id: str | None, kind: str, message: str) -> MergeConflict:
    return MergeConflict(declared.table_key, id, kind, message)


def _per_source(counted: pa.StructArray) -> pa.Table:
    return pa.table(counted.flatten(), names=["src", "count"])


def _summed(one: pa.Table, other: pa.Table) -> pa.Table:
    """Counts per source, summed."""
    both = pa.concat_tables([one, other.cast(one.schema)])
    summed = both.group_by("src").aggregate([("count", "sum")])
    return summed.select(["src", "count_sum"]).rename_columns(["src", "count"])


def _by_source(counts: pa.Table) -> dict[str, int]:
    return dict(zip(*(column.to_pylist() for column in counts.columns), strict=True))


def _outside_bounds(counts: pa.ChunkedArray, low: int, high: int | None) -> pa.ChunkedArray:
    too_few = pc.less(counts, low)
    return too_few if high is None else pc.or_(too_few, pc.greater(counts, high))


def _outside(column: pa.Array | pa.ChunkedArray, values: pa.Array) -> pa.Array:
    return pc.invert(pc.is_in(column, value_set=values))


def _column(rows: pa.Table, name: str) -> pa.Array:
    return rows.column(name).combine_chunks()


def _ids(rows: pa.Table) -> pa.Array:
    return _column(rows, "id")
