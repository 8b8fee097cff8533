"""The tables of a schema change: what happens to each, staged before the first effect.

Types and properties are matched by their durable numbers, so renames, interfaces, extended enums and
descriptions change no table. Look-up indexes that the schema newly asks for are built here; text and
vector indexes, which take longer, are left to `ensure_indices`.
Tests: tests/unit/engine/test_schema_work.py, tests/behaviour/test_schema_additions.py,
tests/spark/test_schema_changes.py.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from omnigraph.catalog.arrow import IndexKind, IndexSpec, arrow_type, index_specs
from omnigraph.catalog.identity import embed_column, table_directory
from omnigraph.catalog.model import Catalog, EntityType, NodeType, Property
from omnigraph.errors import ConstraintError, OmnigraphError
from omnigraph.faults import declare
from omnigraph.language.values import backfill_value
from omnigraph.limits import LOAD_RANGE_ROWS
from omnigraph.progress import SILENT, Progress
from omnigraph.providers.documents import DocumentVectors
from omnigraph.rows.bindings import bindings
from omnigraph.spark.choice import INLINE, EngineChoice, rewrites_on_spark, session_of
from omnigraph.spark.tasks import Failed, returning, run_tasks, value_of
from omnigraph.storage.columns import (
    NewValues,
    fill_fragment,
    stage_columns,
    stage_nullability,
)
from omnigraph.storage.indexes import (
    build_btree,
    indexed_columns,
    stage_indexes,
    uncovered_fragments,
)
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.stage import CommitMark, StagedChange, commit_staged
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.commit_sequence import sidecar_table
from omnigraph.versioning.manifest import ManifestState
from omnigraph.versioning.recovery.classify import refuse_drift
from omnigraph.versioning.recovery.recover import Recovery
from omnigraph.versioning.recovery.sidecar import SidecarTable, WriterKind
from omnigraph.versioning.rows import TableRegistration
from omnigraph.versioning.snapshot import Snapshot, SnapshotEntry, table_id

BEFORE_FRAGMENT = declare("schema_apply.pre_fragment", "before files of a fragment are written")
AFTER_FRAGMENT = declare("schema_apply.post_fragment", "after files of a fragment were written")

_log = logging.getLogger(__name__)


# -- what to do -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """Columns that one table loses, properties it gains, and indexes it newly needs.

    `widened` properties get another column type; `nullable` says of columns that stay whether they may
    now hold nulls.
    """

    declared: EntityType
    dropped: tuple[str, ...] = ()
    added: tuple[Property, ...] = ()
    widened: tuple[Property, ...] = ()
    nullable: Mapping[str, bool] = field(default_factory=dict)
    indexes: tuple[IndexSpec, ...] = ()
    unindexed: tuple[str, ...] = ()
    """Columns whose index in the table goes."""

    @property
    def changes_columns(self) -> bool:
        return bool(self.dropped or self.added or self.widened)

    @property
    def is_work(self) -> bool:
        return bool(self.changes_columns or self.nullable or self.indexes or self.unindexed)


@dataclass(frozen=True, slots=True)
class SchemaWork:
    """The tables to create, change and drop between two schemas."""

    added: tuple[EntityType, ...]
    changed: tuple[ColumnChange, ...]
    dropped: tuple[EntityType, ...]


def schema_work(before: Catalog, after: Catalog) -> SchemaWork:
    """The work between two schemas of one graph, in the order of types."""
    old = {declared.type_id: declared for declared in before}
    new = {declared.type_id: declared for declared in after}
    changes = [_column_change(old[t], declared) for t, declared in new.items() if t in old]
    return SchemaWork(
        added=tuple(declared for t, declared in new.items() if t not in old),
        changed=tuple(change for change in changes if change.is_work),
        dropped=tuple(declared for t, declared in old.items() if t not in new),
    )


def _column_change(before: EntityType, after: EntityType) -> ColumnChange:
    old = {p.prop_id: p for p in before.properties.values()}
    new = {p.prop_id: p for p in after.properties.values()}
    kept = [(old[number], prop) for number, prop in new.items() if number in old]
    widened = tuple(prop for was, prop in kept if arrow_type(was.type) != arrow_type(prop.type))
    rebuilt = {prop.column for prop in widened}
    had, wanted = index_specs(before), index_specs(after)
    stored = {prop.column for _, prop in kept}
    return ColumnChange(
        declared=after,
        dropped=tuple(c for i, p in old.items() if i not in new for c in _columns(p)),
        added=tuple(p for i, p in new.items() if i not in old),
        widened=widened,
        nullable={
            prop.column: prop.type.nullable
            for was, prop in kept
            if prop.type.nullable != was.type.nullable and prop not in widened
        },
        indexes=tuple(spec for spec in wanted if spec not in had or spec.column in rebuilt),
        unindexed=tuple(
            spec.column
            for spec in had
            if spec not in wanted and spec.column in stored and spec.kind is not IndexKind.TEXT
        ),
    )


def _columns(prop: Property) -> Sequence[str]:
    if prop.embed_source is None:
        return (prop.column,)
    return (prop.column, embed_column(prop.prop_id))


def _wider_column(prop: Property) -> str:
    """The name under which the wider values of a column are written beside the present ones."""
    return f"__wider_{prop.prop_id}"


# -- work on fragments ----------------------------------------------------------------------

Answer = TypeVar("Answer")
FragmentFunction = Callable[[Table, int], Answer]
"""Writes files for the fragment with a number and commits nothing. Picklable, like its answer."""


@dataclass(frozen=True, slots=True)
class FragmentTasks(Generic[Answer]):
    """The work of Spark tasks on one table version."""

    tables: TableStore
    path: str
    version: int
    function: FragmentFunction[Answer]
    shares: tuple[tuple[int, ...], ...]
    """The fragment numbers of each task."""

    def __call__(self, task: int) -> list[Answer] | Failed:
        return returning(lambda: self._answers(task))

    def _answers(self, task: int) -> list[Answer]:
        table = self.tables.open(self.path, version=self.version)
        return [_run(self.function, table, number) for number in self.shares[task]]


@dataclass(frozen=True, slots=True)
class FragmentRunner:
    """Calls a function per fragment, in this process or on Spark, and reports progress."""

    tables: TableStore
    engine: EngineChoice = INLINE
    progress: Progress = SILENT

    def run(
        self, job: str, table: Table, numbers: Sequence[int], function: FragmentFunction[Answer]
    ) -> list[Answer]:
        """The answers in the order of the numbers. Raises the function's error, or `SparkError`."""
        if not numbers:
            return []
        rows = {fragment.id: fragment.stored_rows for fragment in table.fragments()}
        total = sum(rows[number] for number in numbers)
        self.progress.stage(job, total)
        if not rewrites_on_spark(self.engine, total, shared=self.tables.is_shared):
            answers = []
            for number in numbers:
                answers.append(_run(function, table, number))
                self.progress.advance(rows[number])
            return answers
        shares = tuple(_shares(numbers, rows))
        tasks = FragmentTasks(self.tables, table.path, table.version, function, shares)
        found = run_tasks(session_of(self.engine), job, len(shares), tasks)
        self.progress.advance(total)
        return [answer for share in found for answer in value_of(share)]


def _run(function: FragmentFunction[Answer], table: Table, number: int) -> Answer:
    BEFORE_FRAGMENT.hit(table=table.path, fragment=number)
    answer = function(table, number)
    AFTER_FRAGMENT.hit(table=table.path, fragment=number)
    return answer


def _shares(numbers: Sequence[int], rows: dict[int, int]) -> Iterator[tuple[int, ...]]:
    """Consecutive fragments, up to `LOAD_RANGE_ROWS` rows per task."""
    held: list[int] = []
    for number in numbers:
        if held and sum(rows[n] for n in (*held, number)) > LOAD_RANGE_ROWS:
            yield tuple(held)
            held = []
        held.append(number)
    yield tuple(held)


# -- new tables -----------------------------------------------------------------------------


def register_tables(
    tables: TableStore, objects: ObjectStore, state: ManifestState, added: Sequence[EntityType]
) -> tuple[TableRegistration, ...]:
    """Choose locations that no table has or had. Removes leftovers of an undone schema apply."""
    taken = {registered.location for registered in state.registered.values()}
    found = []
    for declared in added:
        kind = "node" if isinstance(declared, NodeType) else "edge"
        location = table_directory(kind, declared.name, declared.type_id)
        if location in taken or tables.exists(location):
            location = table_directory(kind, declared.name, declared.type_id, {location})
            if tables.exists(location):
                tables.remove(location, objects)
        found.append(
            TableRegistration(
                table_id=table_id(declared),
                location=location,
                kind=kind,
                type_id=declared.type_id,
                name=declared.name,
            )
        )
    return tuple(found)


# -- changed tables -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MovedTable:
    """A published table version with its next version staged.

    Indexes on new columns are built after the columns are committed.
    """

    entry: SnapshotEntry
    base: Table
    staged: StagedChange
    later_nullable: Mapping[str, bool] = field(default_factory=dict)
    later_indexes: tuple[str, ...] = ()
    unindexed: tuple[str, ...] = ()

    def sidecar_entry(self) -> SidecarTable:
        commits = int(self.staged.kind == "columns") + bool(self.later_nullable)
        return sidecar_table(self.entry, None, data_commits=commits)

    def commit(self, operation_id: str) -> Table:
        kind = WriterKind.SCHEMA_APPLY.value
        operation: CommitMark = {"operation_id": operation_id, "writer_kind": kind}
        table = commit_staged(self.base, self.staged, **operation)
        if self.later_nullable:
            flags = stage_nullability(table, self.later_nullable)
            table = commit_staged(table, flags, **operation)
        staged = _stage_indexes(table, self.later_indexes, self.unindexed)
        return table if staged is None else commit_staged(table, staged, **operation)


def stage_tables(
    recovery: Recovery, snapshot: Snapshot, changes: Sequence[ColumnChange], each: FragmentRunner
) -> list[MovedTable]:
    """Stage the changes; skips tables that need none. Raises `TableDrift` for an unpublished head."""
    entries = {entry.table_id: entry for entry in snapshot.entries.values()}
    moved = []
    for change in changes:
        entry = entries[table_id(change.declared)]
        table = recovery.head_of(entry.location, entry.branch)
        if table.version != entry.version:
            raise refuse_drift(recovery.sidecars, entry, table, ())
        indexed = tuple(i.column for i in change.indexes if i.kind is IndexKind.BTREE)
        if change.changes_columns:
            columns = _stage_columns(table, change, each)
            rest = (change.nullable, indexed, change.unindexed)
            moved.append(MovedTable(entry, table, columns, *rest))
        elif change.nullable:
            flags = stage_nullability(table, change.nullable)
            moved.append(MovedTable(entry, table, flags, {}, indexed, change.unindexed))
        else:
            staged = _stage_indexes(table, indexed, change.unindexed)
            if staged is not None:
                moved.append(MovedTable(entry, table, staged))
    return moved


def _stage_indexes(
    table: Table, columns: Sequence[str], removed: Sequence[str]
) -> StagedChange | None:
    """Stage indexes that a table with rows lacks, and those to remove; None if nothing changes."""
    removed = indexed_columns(table, removed)
    built = []
    for column in columns if table.row_count() else ():
        try:
            if uncovered_fragments(table, column) is None:
                built.append(build_btree(table, column))
        except OmnigraphError as error:
            _log.warning("could not index column %s of %s: %s", column, table, error)
    return stage_indexes(table, built, removed) if built or removed else None


def _stage_columns(table: Table, change: ColumnChange, each: FragmentRunner) -> StagedChange:
    """Stage dropped, new and changed columns. Raises the error of a required embedding."""
    empty: list[pa.Field] = []
    constants: list[tuple[pa.Field, pa.Array]] = []
    computed: list[Property] = []
    for prop in change.added:
        column = pa.field(prop.column, arrow_type(prop.type), nullable=prop.type.nullable)
        if prop.backfill is not None:
            value = backfill_value(prop.backfill, prop.type)
            constants.append((column, pa.array([value], column.type)))
        elif prop.type.nullable:
            empty.append(column)
        else:
            computed.append(prop)
        if prop.embed_source is not None and prop not in computed:
            empty.append(pa.field(embed_column(prop.prop_id), pa.utf8()))
    values = _ColumnValues(change.declared, tuple(constants), tuple(computed), change.widened)

    def fill(table: Table, values: NewValues) -> Sequence[Any]:
        numbers = [fragment.id for fragment in table.fragments()]
        job = f"fill {change.declared.table_key}"
        return each.run(job, table, numbers, partial(fill_fragment, values))

    return stage_columns(
        table,
        drop=[name for name in change.dropped if name in table.schema.names],
        empty=empty,
        filled=values.columns() if constants or computed or change.widened else None,
        fill=fill,
    )


@dataclass(frozen=True, slots=True)
class _ColumnValues:
    """The values of new columns in existing rows: a constant, embeddings of stored texts, or stored
    numbers in a wider type.

    Picklable, so that tasks can fill fragments.
    """

    declared: EntityType
    constants: tuple[tuple[pa.Field, pa.Array], ...]
    computed: tuple[Property, ...]
    widened: tuple[Property, ...] = ()
    vectors: DocumentVectors = field(default_factory=DocumentVectors)

    def columns(self) -> NewValues:
        sources = [self._source(prop).column for prop in self.computed]
        sources += (prop.column for prop in self.widened)
        replaces = {_wider_column(prop): prop.column for prop in self.widened}
        return NewValues(self.schema, tuple(dict.fromkeys(sources)) or ("id",), self, replaces)

    @property
    def schema(self) -> pa.Schema:
        fields = [column for column, _ in self.constants]
        for prop in self.computed:
            fields.append(pa.field(prop.column, arrow_type(prop.type), nullable=False))
            fields.append(pa.field(embed_column(prop.prop_id), pa.utf8()))
        for prop in self.widened:
            kind = arrow_type(prop.type)
            fields.append(pa.field(_wider_column(prop), kind, nullable=prop.type.nullable))
        return pa.schema(fields)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        repeated = pa.array(np.zeros(batch.num_rows, np.int64))
        columns = [value.take(repeated) for _, value in self.constants]
        for prop in self.computed:
            columns += self._embedded(prop, batch)
        columns += (batch.column(p.column).cast(arrow_type(p.type)) for p in self.widened)
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _source(self, prop: Property) -> Property:
        assert prop.embed_source is not None, "other required properties have a backfill"
        return self.declared.properties[prop.embed_source]

    def _embedded(self, prop: Property, batch: pa.RecordBatch) -> Sequence[pa.Array]:
        """The vectors of a batch, and what binds them to their texts."""
        texts = batch.column(self._source(prop).column)
        name = f"{self.declared.name}.{prop.name}"
        if texts.null_count:
            message = f"'{name}' is required, but there are rows without '{prop.embed_source}'"
            raise ConstraintError(f"{message}, the text it is computed from")
        assert prop.type.dimension is not None, "only vectors are computed"
        mine = self.vectors.under(prop.embed_model)
        found = mine.of(texts, prop.type.dimension)
        if mine.failure is not None:
            raise mine.failure
        assert mine.model is not None, "vectors were computed"
        return found, bindings(texts, mine.model)
