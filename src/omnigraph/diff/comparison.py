"""Compare two snapshots as a reader sees them: in this process, or on Spark when many rows can differ.

A read view is applied to the rows of a comparison: a row that becomes visible counts as inserted. A Spark
task compares one partition of the ids of one table and returns row addresses, not rows.
Tests: tests/behaviour/test_diffs.py, test_diff_views.py, tests/spark/test_comparing.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import Catalog, EdgeType, EntityType, NodeType
from omnigraph.diff.changes import (
    ABSENT,
    IdPartition,
    Op,
    Side,
    Stored,
    StoredSide,
    TableChanges,
    candidates,
    differing_sides,
    endpoints_of,
    no_rows,
    only_different,
    partitions_for,
)
from omnigraph.diff.diff import ChangeFilter, Changes
from omnigraph.progress import SILENT, Progress
from omnigraph.read.view import ReadView
from omnigraph.rows.bindings import bound_schema
from omnigraph.rows.equality import Mask
from omnigraph.spark.choice import INLINE, EngineChoice, compares_on_spark, session_of
from omnigraph.spark.tasks import Failed, returning, run_tasks, value_of
from omnigraph.storage.changed_rows import Numbers, RowAddresses, Wanted, locations_of
from omnigraph.storage.filters import bind, matches
from omnigraph.storage.filters.model import bound_columns
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot, SnapshotEntry
from omnigraph.versioning.snapshot_rows import SnapshotRows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
        predicate = self.view.predicate(declared)
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


@dataclass(frozen=True, slots=True)
class ComparedTable:
    """One table in two snapshots, with its type and the type in the reader's view."""

    declared: EntityType
    shown: EntityType
    before: SnapshotEntry | None
    after: SnapshotEntry | None

    @property
    def is_same(self) -> bool:
        """Whether both snapshots have the same version of it."""
        if self.before is None or self.after is None:
            return False
        return self.before.version_ref == self.after.version_ref

    @property
    def is_one_line(self) -> bool:
        """Whether both snapshots have versions on the same branch of it."""
        if self.before is None or self.after is None:
            return False
        return self.before.branch == self.after.branch


@dataclass(frozen=True)
class Comparison:
    """Two snapshots and the reader's view. Picklable, so that tasks can run it.

    Tables are matched by their durable ids.
    """

    before: Snapshot
    after: Snapshot
    tables: TableStore
    view: ReadView = ReadView.ALL
    visibility_changes: VisibilityChanges = field(default_factory=dict)

    def all_tables(self) -> Iterator[ComparedTable]:
        """The tables in the reader's view, by table key."""
        old, new = ({e.table_id: e for e in s.entries.values()} for s in (self.before, self.after))
        catalogs = [self.after.catalog, self.before.catalog]
        shown = [self.view.restrict(catalog) for catalog in catalogs]
        found = []
        for table_id in old.keys() | new.keys():
            entries = new.get(table_id), old.get(table_id)
            declared, visible = _declared(entries, catalogs), _declared(entries, shown)
            if declared is not None and visible is not None:
                found.append(ComparedTable(declared, visible, entries[1], entries[0]))
        return iter(sorted(found, key=lambda table: table.declared.table_key))

    def may_differ(self, table: ComparedTable) -> bool:
        if not table.is_same:
            return True
        edge = table.declared
        return isinstance(edge, EdgeType) and any(
            len(self.visibility_changes.get(name, ())) for _, name in endpoints_of(edge)
        )

    def sides(self, table: ComparedTable, wanted: Wanted | None = None) -> tuple[Side, Side]:
        """The rows that can differ, on both sides."""
        stored = _stored(self.before, table.before), _stored(self.after, table.after)
        sides = differing_sides(table.declared, self.tables, *stored, wanted)
        if not isinstance(table.declared, EdgeType):
            return sides
        return with_affected_edges(
            table.declared, self.tables, stored, sides, self.visibility_changes, wanted
        )

    def changes(
        self, table: ComparedTable, sides: tuple[Side, Side], progress: Progress = SILENT
    ) -> TableChanges:
        """The rows that differ for the reader, by id."""
        found = candidates(table.declared, *sides, is_one_line=table.is_one_line)
        if not self.view.sees_all:
            both = (Visibility(self.view, s, self.tables) for s in (self.before, self.after))
            found = visible_changes(found, table.shown, *both)
        return only_different(found, progress)


def _stored(snapshot: Snapshot, entry: SnapshotEntry | None) -> Stored | None:
    return None if entry is None else (snapshot, entry)


def _declared(
    entries: tuple[SnapshotEntry | None, ...], catalogs: Sequence[Catalog]
) -> EntityType | None:
    """A table's type in the later of the two schemas that has it."""
    for entry, catalog in zip(entries, catalogs, strict=True):
        if entry is not None:
            return {found.table_key: found for found in catalog}.get(entry.table_key)
    return None


def compare_snapshots(
    comparison: Comparison,
    wanted: ChangeFilter,
    engine: EngineChoice = INLINE,
    progress: Progress = SILENT,
) -> Changes:
    """The wanted changes from one snapshot to the other."""
    first, then = _in_order(comparison, wanted)
    found = _compare(comparison, first, engine, progress)
    if comparison.view.rows:
        comparison = replace(comparison, visibility_changes=_visibility_changes(found))
    found += _compare(comparison, then, engine, progress)
    chosen = [wanted.select(table) for table in found if wanted.wants(table.declared)]
    ordered = sorted(chosen, key=lambda table: table.declared.table_key)
    return Changes(tuple(table for table in ordered if len(table)), comparison.after.version)


def _in_order(
    comparison: Comparison, wanted: ChangeFilter
) -> tuple[list[ComparedTable], list[ComparedTable]]:
    """The tables to compare. Nodes come first if their visibility decides that of edges."""
    predicates = comparison.view.rows
    first, then = [], []
    for table in comparison.all_tables():
        is_wanted = wanted.wants(table.shown)
        is_node = isinstance(table.shown, NodeType)
        if predicates and is_node and (is_wanted or table.shown.name in predicates):
            first.append(table)
        elif is_wanted:
            then.append(table)
    return first, then


def _visibility_changes(found: Sequence[TableChanges]) -> VisibilityChanges:
    return {
        table.declared.name: table.ids.filter(
            pa.array(table.mask(Op.INSERT) | table.mask(Op.DELETE))
        )
        for table in found
    }


def _compare(
    comparison: Comparison,
    tables: Sequence[ComparedTable],
    engine: EngineChoice,
    progress: Progress,
) -> list[TableChanges]:
    tables = [table for table in tables if comparison.may_differ(table)]
    if not tables:
        return []
    progress.stage("find rows")
    sides = [comparison.sides(table) for table in tables]
    sizes = [len(before.ids) + len(after.ids) for before, after in sides]
    progress.stage("compare rows", sum(sizes))
    if not compares_on_spark(engine, sum(sizes), shared=comparison.tables.is_shared):
        both = zip(tables, sides, strict=True)
        return [comparison.changes(table, pair, progress) for table, pair in both]
    sized = list(zip(tables, sizes, strict=True))
    found = compare_on_spark(session_of(engine), comparison, sized)
    progress.advance(sum(sizes))
    return found


# -- Spark tasks ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PartitionChanges:
    """The changes of one partition: ids, and per side the fragments and positions of their rows."""

    ids: pa.Array
    before: Numbers
    after: Numbers


@dataclass(frozen=True, slots=True)
class ComparisonTasks:
    """The work of all tasks: one partition of one table each."""

    comparison: Comparison
    partitions: tuple[tuple[ComparedTable, IdPartition], ...]

    def compare(self, number: int) -> PartitionChanges | Failed:
        return returning(lambda: self._compare(*self.partitions[number]))

    def _compare(self, table: ComparedTable, partition: IdPartition) -> PartitionChanges:
        found = self.comparison.changes(table, self.comparison.sides(table, partition))
        return PartitionChanges(
            found.ids,
            _addresses(found.before, found.before_numbers),
            _addresses(found.after, found.after_numbers),
        )


def _addresses(side: Side, numbers: Numbers) -> Numbers:
    """Fragments and positions of rows, in two arrays; `ABSENT` where there is no row."""
    found = np.full((2, len(numbers)), ABSENT, np.int64)
    if isinstance(side, StoredSide):
        there = numbers != ABSENT
        found[0, there] = side.places.fragments[numbers[there]]
        found[1, there] = side.places.positions[numbers[there]]
    return found


def compare_on_spark(
    spark: SparkSession, comparison: Comparison, sizes: Sequence[tuple[ComparedTable, int]]
) -> list[TableChanges]:
    """The changes of tables, each given with the number of rows to compare. Raises `SparkError`."""
    partitions = tuple((table, part) for table, rows in sizes for part in partitions_for(rows))
    if not partitions:
        return []
    tasks = ComparisonTasks(comparison, partitions)
    answers = run_tasks(spark, "compare rows", len(partitions), tasks.compare)
    found = [(of, value_of(a)) for (of, _), a in zip(partitions, answers, strict=True)]
    return [
        _joined(comparison, table, [answer for of, answer in found if of is table])
        for table, _ in sizes
    ]


def _joined(
    comparison: Comparison, table: ComparedTable, answers: Sequence[PartitionChanges]
) -> TableChanges:
    ids = pa.concat_arrays([answer.ids for answer in answers])
    order = pc.sort_indices(ids).to_numpy().astype(np.int64)
    ids = ids.take(pa.array(order))

    def side(
        snapshot: Snapshot, entry: SnapshotEntry | None, parts: list[Numbers]
    ) -> tuple[Side, Numbers]:
        addresses = np.concatenate(parts, axis=1)[:, order]
        there = addresses[0] != ABSENT
        numbers = np.where(there, np.cumsum(there) - 1, ABSENT)
        if entry is None or not there.any():
            return no_rows(table.declared), numbers
        stored = snapshot.open(comparison.tables, entry.table_key)
        places = RowAddresses(stored, ids.filter(pa.array(there)), *addresses[:, there])
        return StoredSide(table.declared, places), numbers

    before, old = side(comparison.before, table.before, [a.before for a in answers])
    after, new = side(comparison.after, table.after, [a.after for a in answers])
    return TableChanges(table.shown, ids, before, after, old, new, table.is_one_line)
