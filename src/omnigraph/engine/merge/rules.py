"""The rules that merged rows have to keep together: what neither side broke, both may break.

Looked at is what the merge writes and removes, not the whole graph: an edge that dangled and a source
that had too few edges before are none of its business. Tests: tests/behaviour/test_merge_rules.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.constraints import (
    cardinality_problem,
    group_text,
    missing_end,
    other_unique_groups,
    shared_tuple,
    tuple_text,
    value_rules,
)
from omnigraph.catalog.model import Catalog, EdgeType, EntityType, Group, NodeType
from omnigraph.errors import MergeConflict
from omnigraph.rows.checks import value_violations
from omnigraph.rows.uniqueness import distinct_tuples, shared_tuples, tuple_values, tuples_of
from omnigraph.versioning.snapshot_rows import SnapshotRows

_ENDS = ("src", "dst")


@dataclass(frozen=True)
class RowChange:
    """What a merge does to the target's rows of one type; upserts may lack columns no rule needs."""

    upserts: pa.Table
    deletes: pa.Array

    @property
    def hidden(self) -> pa.Array:
        """The ids whose rows in the target no longer count."""
        return pa.concat_arrays([_ids(self.upserts), self.deletes])


def columns_of_rules(declared: EntityType) -> list[str]:
    """The columns that rules on rows of a type look at."""
    names = {"id"} | {rule.property for rule in value_rules(declared)}
    names |= {name for group in other_unique_groups(declared) for name in group}
    if isinstance(declared, EdgeType):
        names |= set(_ENDS)
    return [name for name in declared.columns if name in names]


@dataclass
class MergeRules:
    """Judges what a merge would do to a target."""

    catalog: Catalog
    changes: Mapping[str, RowChange]
    source: SnapshotRows
    target: SnapshotRows
    reads: set[str] = field(default_factory=set)
    """Tables of the target that were looked at."""

    def conflicts(self) -> list[MergeConflict]:
        found: list[MergeConflict] = []
        for declared in self.catalog:
            change = self.changes.get(declared.table_key)
            if change is not None and change.upserts.num_rows:
                found += self._values(declared, change)
                found += self._unique(declared, change)
            if isinstance(declared, EdgeType):
                found += self._brought_ends(declared, change)
                found += self._bereft_ends(declared, change)
                if change is not None:
                    found += self._cardinality(declared, change)
        return found

    # -- rows by themselves and tuples ------------------------------------------------------

    def _values(self, declared: EntityType, change: RowChange) -> Iterator[MergeConflict]:
        columns = {r.property: _column(change.upserts, r.property) for r in value_rules(declared)}
        for violation in value_violations(declared, columns):
            yield _conflict(declared, None, "value_constraint_violation", violation.message)

    def _unique(self, declared: EntityType, change: RowChange) -> Iterator[MergeConflict]:
        for group in other_unique_groups(declared):
            yield from self._unique_group(declared, group, change)

    def _unique_group(
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

    # -- ends -------------------------------------------------------------------------------

    def _brought_ends(self, edge: EdgeType, change: RowChange | None) -> Iterator[MergeConflict]:
        """Edges of the source that lead to nodes which the target has not."""
        if change is None or not change.upserts.num_rows:
            return
        for end, type_name in self._types(edge):
            node = self.catalog.nodes[type_name]
            absent = self._absent(node, pc.unique(_column(change.upserts, end)))
            # What is missing in the source as well was missing before.
            absent = self.source.existing(node, absent) if len(absent) else absent
            yield from _orphans(edge, end, change.upserts, absent)

    def _bereft_ends(self, edge: EdgeType, change: RowChange | None) -> Iterator[MergeConflict]:
        """Edges of the target that lead to nodes which the source has removed."""
        gone = {
            end: self.changes[key].deletes
            for end, type_name in self._types(edge)
            if (key := self.catalog.nodes[type_name].table_key) in self.changes
            and len(self.changes[key].deletes)
        }
        if not gone or not self.target.has_rows(edge):
            return
        self.reads.add(edge.table_key)
        edges = self.target.edges_at(edge, gone)
        if change is not None:
            edges = edges.filter(_outside(edges.column("id"), change.hidden))
        if not edges.num_rows:
            return
        # An edge that the source has as well dangles there, and was left so on purpose.
        edges = edges.filter(
            _outside(edges.column("id"), self.source.existing(edge, _column(edges, "id")))
        )
        for end, nodes in gone.items():
            yield from _orphans(edge, end, edges, nodes)

    def _absent(self, node: NodeType, ids: pa.Array) -> pa.Array:
        """Those of the ids that no node will have after the merge."""
        self.reads.add(node.table_key)
        change = self.changes.get(node.table_key)
        if change is None:
            return ids.filter(_outside(ids, self.target.existing(node, ids)))
        ids = ids.filter(_outside(ids, _ids(change.upserts)))
        there = self.target.existing(node, ids.filter(_outside(ids, change.deletes)))
        return ids.filter(_outside(ids, there))

    def _types(self, edge: EdgeType) -> tuple[tuple[str, str], tuple[str, str]]:
        return ("src", edge.from_type), ("dst", edge.to_type)

    # -- cardinality ------------------------------------------------------------------------

    def _cardinality(self, edge: EdgeType, change: RowChange) -> Iterator[MergeConflict]:
        low, high = edge.cardinality.low, edge.cardinality.high
        if low <= 1 and high is None:
            return
        self.reads.add(edge.table_key)
        brought = _column(change.upserts, "src")
        sources = pc.unique(pa.concat_arrays([brought, self._old_sources(edge, change)]))
        counts = _added(
            _per_source(pc.value_counts(brought)),
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
            # A side that had just as many edges had left it at that, by deleting some.
            if problem is not None and all(side.get(source, 0) != count for side in before):
                yield _conflict(edge, None, "cardinality_violation", problem)

    def _old_sources(self, edge: EdgeType, change: RowChange) -> pa.Array:
        """The sources of edges of the target that are removed or replaced."""
        if not len(change.hidden) or not self.target.has_rows(edge):
            return pa.array([], pa.utf8())
        return _column(self.target.open(edge).lookup(change.hidden, ["id", "src"]), "src")


def _orphans(
    edge: EdgeType, end: str, edges: pa.Table, absent: pa.Array
) -> Iterator[MergeConflict]:
    if not len(absent):
        return
    found = edges.filter(pc.is_in(edges.column(end), value_set=absent))
    for id, node in zip(*(found.column(n).to_pylist() for n in ("id", end)), strict=True):
        yield _conflict(edge, id, "orphan_edge", missing_end(edge, end, node))


def _conflict(declared: EntityType, id: str | None, kind: str, message: str) -> MergeConflict:
    return MergeConflict(declared.table_key, id, kind, message)


def _per_source(counted: pa.StructArray) -> pa.Table:
    return pa.table(counted.flatten(), names=["src", "count"])


def _added(one: pa.Table, other: pa.Table) -> pa.Table:
    """Counts per source together."""
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
