"""Running the statements of a mutation, one after the other, each on what those before left.

The rules on the rows of a statement are those of the catalog, seen on the working image."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.constraints import (
    cardinality_problem,
    group_text,
    key_assigned,
    missing_endpoint,
    other_unique_groups,
    taken_tuple,
    tuple_text,
    uncomputable_vector,
    unkeyable_column,
    unsupported_unique,
)
from omnigraph.catalog.model import Catalog, EdgeType, EntityType, Group
from omnigraph.commit.change import Change, TableWrite
from omnigraph.embedding.vectors import (
    embed_columns,
    embedding_warnings,
    unwritable,
    why_not,
    with_given_bindings,
    with_kept_vectors,
    with_outdated_bindings,
)
from omnigraph.errors import EmbeddingNotConfigured, MutationError
from omnigraph.faults import declare
from omnigraph.limits import MAX_LOAD_ERRORS
from omnigraph.mutation.values import MutationIds, stored_value
from omnigraph.mutation.working import WorkingImage, WorkingTable
from omnigraph.plan.ir import (
    NOW_PARAMETER,
    Assign,
    Constant,
    DeleteEdges,
    DeleteNodes,
    InsertEdge,
    InsertNode,
    MutationPlan,
    Param,
    StatementPlan,
    UpdateNodes,
)
from omnigraph.providers.documents import DocumentVectors
from omnigraph.read.view import condition_filter
from omnigraph.rows.bindings import embedded_properties, vector_columns
from omnigraph.rows.blob_bases import NO_BASES, BlobBases
from omnigraph.rows.columns import build_column
from omnigraph.rows.keys import derived_ids, shared_tuples, tuple_values, tuples_of
from omnigraph.rows.validation import Columns, find_nulls, rows_where, value_violations
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.commits import Warning
from omnigraph.versioning.snapshot import Snapshot
from omnigraph.versioning.snapshot_rows import SnapshotRows


def refuse_any(problems: Iterable[str]) -> None:
    """Raises `MutationError` that lists the problems, if there are any."""
    found = list(problems)
    if found:
        raise MutationError(found[:MAX_LOAD_ERRORS], len(found))


def null_problems(
    declared: EntityType, columns: Columns, unconfigured: EmbeddingNotConfigured | None
) -> list[str]:
    """Nulls where a value is required, property by property.

    A vector that waits for its text to be embedded is a problem only if no provider can do that.
    """
    nulls = find_nulls(declared, columns)
    problems = [(violation.property, violation.message) for violation in nulls.missing]
    for name, waiting in nulls.pending.items():
        prop = declared.properties[name]
        if not prop.type.nullable and unconfigured is not None:
            message = uncomputable_vector(declared, prop, why_not(unconfigured))
            problems += [(name, message) for _ in rows_where(waiting)]
    # Properties are kept by name, so this is their order.
    return [message for _, message in sorted(problems, key=lambda problem: problem[0])]


def value_problems(declared: EntityType, columns: Columns) -> Iterator[str]:
    """Enum, `@range` and `@check`."""
    return (violation.message for violation in value_violations(declared, columns))


def edge_problems(image: WorkingImage, table: WorkingTable, row: pa.Table) -> Iterator[str]:
    """Ends of an inserted edge that no node has, and a source that now has too many edges."""
    edge = table.declared
    if not isinstance(edge, EdgeType):
        return
    ends = {end: row.column(end)[0].as_py() for end in ("src", "dst")}
    for end in _missing_ends(image, edge, ends):
        yield missing_endpoint(edge, end, ends[end])
    if edge.cardinality.high is not None:
        source = ends["src"]
        found = table.count_by_source([source])[source]
        problem = cardinality_problem(edge, source, found)
        if found > edge.cardinality.high and problem is not None:
            yield problem


def _missing_ends(image: WorkingImage, edge: EdgeType, ends: Mapping[str, str]) -> list[str]:
    nodes = image.catalog.nodes
    if edge.is_self_typed:
        missing = image[nodes[edge.from_type]].missing(list(ends.values()))
        return [end for end, id in ends.items() if id in missing]
    types = {"src": edge.from_type, "dst": edge.to_type}
    return [end for end, id in ends.items() if image[nodes[types[end]]].missing([id])]


def too_few(edges: WorkingTable, sources: Sequence[str]) -> Iterator[str]:
    """Sources that have some edges, but fewer than their type asks for."""
    edge = edges.declared
    assert isinstance(edge, EdgeType)
    if edge.cardinality.low <= 1:
        return
    for source, found in edges.count_by_source(sources).items():
        problem = cardinality_problem(edge, source, found)
        if problem is not None:
            yield problem


def unique_problems(
    table: WorkingTable, rows: pa.Table, assigned: Mapping[str, object] | None = None
) -> Iterator[str]:
    """Tuples of unique groups that rows to be written share with each other or with others.

    One problem per tuple. `assigned` are the properties an update changes: other groups are as
    good as they were.
    """
    declared = table.declared
    if unkeyable := unkeyable_column(declared):
        yield unsupported_unique(declared, *unkeyable)
        return
    for group in other_unique_groups(declared):
        if assigned is None or not assigned.keys().isdisjoint(group):
            yield from _shared(table, rows, group)


def _shared(table: WorkingTable, rows: pa.Table, group: Group) -> Iterator[str]:
    mine = rows.select(["id", *group])
    tuples, _ = tuples_of(mine, group)
    if not tuples.num_rows:
        return
    others = table.holders(group, tuples.rename_columns(list(group)))
    others = others.filter(pc.invert(pc.is_in(others.column("id"), value_set=_ids(rows))))
    together = pa.concat_tables([mine, others])
    for same in shared_tuples(*tuples_of(together, group)):
        if same[0] >= mine.num_rows:
            continue
        strangers = same[same >= mine.num_rows]
        holders = together.column("id").take(pa.array(strangers if len(strangers) else same))
        shown = tuple_text(table.declared, group, tuple_values(together, group, int(same[0])))
        yield taken_tuple(group_text(table.declared, group), shown, min(holders.to_pylist()))


def _ids(rows: pa.Table) -> pa.Array:
    return rows.column("id").combine_chunks()


BEFORE_NODE_DELETE = declare(
    "mutation.delete_node_pre_primary_delete", "before a statement that deletes nodes is applied"
)


@dataclass(frozen=True, slots=True)
class PreparedMutation:
    """What a mutation would commit. Affected rows are summed over statements, as they ran."""

    change: Change
    affected_nodes: int
    affected_edges: int
    warnings: tuple[Warning, ...]


def prepare_mutation(
    plan: MutationPlan,
    parameters: Mapping[str, object],
    snapshot: Snapshot,
    tables: TableStore,
    ids: MutationIds,
    vectors: DocumentVectors,
    blobs: BlobBases = NO_BASES,
) -> PreparedMutation:
    """Run a mutation against a snapshot without changing anything.

    Raises `MutationError` or `AssignmentError` at the first statement that cannot be made. Texts
    are embedded after the last statement.
    """
    known = {NOW_PARAMETER: ids.now_ms, **parameters}
    run = _Run(snapshot, tables, known, ids.from_first(), vectors, blobs)
    for statement in plan.statements:
        run.execute(statement)
    return run.finish()


class _Run:
    def __init__(
        self,
        snapshot: Snapshot,
        tables: TableStore,
        parameters: Mapping[str, object],
        ids: Iterator[str],
        vectors: DocumentVectors,
        blobs: BlobBases,
    ) -> None:
        self._catalog: Catalog = snapshot.catalog
        self._image = WorkingImage(snapshot.catalog, SnapshotRows(snapshot, tables))
        self._parameters = parameters
        self._ids = ids
        self._vectors = vectors
        self._blobs = blobs
        self._sources: defaultdict[str, dict[str, None]] = defaultdict(dict)
        """The sources that got an edge, by edge type."""
        self._nodes = 0
        self._edges = 0

    def execute(self, statement: StatementPlan) -> None:
        match statement:
            case InsertNode():
                self._insert_node(statement)
            case InsertEdge():
                self._insert_edge(statement)
            case UpdateNodes():
                self._update(statement)
            case DeleteNodes():
                self._delete_nodes(statement)
            case DeleteEdges():
                edges = self._image[self._catalog.edges[statement.edge_type]]
                found = edges.matching(
                    condition_filter(statement.condition, self._parameters), ["id"]
                )
                edges.remove(found)
                self._edges += found.count
            case _:
                assert_never(statement)

    def finish(self) -> PreparedMutation:
        """Check what only the end can tell, and collect what is to be written."""
        refuse_any(
            problem
            for name, sources in self._sources.items()
            for problem in too_few(self._image[self._catalog.edges[name]], list(sources))
        )
        written = [table for table in self._image if not table.overlay.is_empty]
        committed = self._image.committed
        reads = {
            table.declared.table_key
            for table in self._image
            if table.overlay.is_empty and committed.was_read(table.declared)
        }
        warnings: list[Warning] = []
        writes = []
        for table in written:
            rows, more = self._embedded(table)
            writes.append(_write(table, rows))
            warnings += more
        return PreparedMutation(
            change=Change(
                tuple(writes),
                frozenset(reads),
                looked_up=committed.looked_up({*reads, *(w.table_key for w in writes)}),
            ),
            affected_nodes=self._nodes,
            affected_edges=self._edges,
            warnings=tuple(warnings),
        )

    def _embedded(self, table: WorkingTable) -> tuple[pa.Table, list[Warning]]:
        """The rows of a table as they are written, with their vectors."""
        declared, rows = table.declared, table.overlay.rows()
        properties = embedded_properties(declared)
        if not rows.num_rows or not properties:
            return rows, []
        columns = {name: rows.column(name).combine_chunks() for name in rows.column_names}
        columns, outcome = embed_columns(properties, columns, self._vectors)
        refuse_any(problem for _, _, problem in unwritable(declared, columns, self._vectors))
        warnings = list(embedding_warnings(declared, [outcome], self._vectors))
        return _table(columns, table.schema), warnings

    # -- statements -------------------------------------------------------------------------

    def _insert_node(self, statement: InsertNode) -> None:
        node = self._catalog.nodes[statement.node_type]
        self._insert(self._image[node], self._new_row(node, statement.assignments))
        self._nodes += 1

    def _insert_edge(self, statement: InsertEdge) -> None:
        edge = self._catalog.edges[statement.edge_type]
        src, dst = self._value(statement.source), self._value(statement.target)
        if src is None or dst is None:
            refuse_any([f"edge {edge.name}: both ends must be given, got null"])
        ends = {"src": pa.array([src], pa.utf8()), "dst": pa.array([dst], pa.utf8())}
        columns = ends | self._new_row(edge, statement.assignments)
        self._insert(self._image[edge], columns)
        self._sources[edge.name][src] = None
        self._edges += 1

    def _new_row(self, declared: EntityType, assignments: Sequence[Assign]) -> dict[str, pa.Array]:
        """The columns of a row that has nothing but the assigned properties."""
        assigned = self._assigned(assignments)
        schema = self._image[declared].schema
        return {
            name: assigned[name] if name in assigned else pa.nulls(1, schema.field(name).type)
            for name in declared.properties
        }

    def _insert(self, table: WorkingTable, columns: Mapping[str, pa.Array]) -> None:
        declared = table.declared
        ids = derived_ids(declared, columns)
        made = ids is None or ids.null_count > 0
        if vectors := [prop.name for prop in embedded_properties(declared)]:
            columns = with_given_bindings(declared, columns, vectors)
            if not made:
                columns = self._keep_vectors(table, {"id": ids, **columns}, vectors)
        refuse_any(self._null_problems(declared, columns))
        if made:
            ids = pa.array([next(self._ids)], pa.utf8())
        row = _table({**columns, "id": ids}, table.schema)
        table.put(row, made=made)
        refuse_any(
            [
                *value_problems(declared, columns),
                *edge_problems(self._image, table, row),
                *unique_problems(table, row),
            ]
        )

    def _update(self, statement: UpdateNodes) -> None:
        node = self._catalog.nodes[statement.node_type]
        for assign in statement.assignments:
            if assign.property in (node.key or ()):
                refuse_any([key_assigned(node, assign.property)])
        assigned = self._assigned(statement.assignments)
        table = self._image[node]
        kept = [name for name in table.schema.names if name not in assigned]
        found = table.matching(condition_filter(statement.condition, self._parameters), kept)
        if not found.count:
            return
        old = found.rows()
        columns = {name: old.column(name).combine_chunks() for name in kept}
        columns |= {name: _repeated(value, found.count) for name, value in assigned.items()}
        columns = with_outdated_bindings(node, columns, assigned)
        vectors = [prop.name for prop in embedded_properties(node) if prop.name in assigned]
        if vectors:
            columns = with_given_bindings(node, columns, vectors)
            columns = self._keep_vectors(table, columns, vectors)
        rows = _table(columns, table.schema)
        table.put(rows)
        refuse_any(
            [
                *self._null_problems(node, columns),
                *value_problems(node, columns),
                *unique_problems(table, rows, assigned),
            ]
        )
        self._nodes += found.count

    def _delete_nodes(self, statement: DeleteNodes) -> None:
        node = self._catalog.nodes[statement.node_type]
        BEFORE_NODE_DELETE.hit(type=node.name)
        nodes = self._image[node]
        found = nodes.matching(condition_filter(statement.condition, self._parameters), ["id"])
        if not found.count:
            return
        nodes.remove(found)
        self._nodes += found.count
        gone = found.rows().column("id").combine_chunks()
        for edge in self._catalog.edges.values():
            ends = [
                end
                for end, type_name in (("src", edge.from_type), ("dst", edge.to_type))
                if type_name == node.name
            ]
            if ends:
                edges = self._image[edge]
                dangling = edges.with_ends_in(ends, gone)
                edges.remove(dangling)
                self._edges += dangling.count

    # -- vectors ----------------------------------------------------------------------------

    def _keep_vectors(
        self, table: WorkingTable, columns: dict[str, pa.Array], names: Collection[str]
    ) -> dict[str, pa.Array]:
        """Vectors that are not given stay what they were, if the text does."""
        declared = table.declared
        if not any(columns[name].null_count for name in names):
            return columns
        previous = table.with_ids(columns["id"], vector_columns(declared))
        return with_kept_vectors(declared, columns, previous, self._vectors)

    def _null_problems(self, declared: EntityType, columns: Mapping[str, pa.Array]) -> list[str]:
        required = [p for p in embedded_properties(declared) if not p.type.nullable]
        missing = (self._vectors.under(p.embed_model).unconfigured for p in required)
        unconfigured = next((error for error in missing if error is not None), None)
        return null_problems(declared, columns, unconfigured)

    # -- values -----------------------------------------------------------------------------

    def _value(self, value: Constant | Param) -> Any:
        return value.value if isinstance(value, Constant) else self._parameters[value.name]

    def _assigned(self, assignments: Sequence[Assign]) -> dict[str, pa.Array]:
        """Columns of one row, by property."""
        return {
            a.property: build_column(
                [stored_value(self._value(a.value), a.property, a.type, self._blobs)], a.type
            )
            for a in assignments
        }


def _table(columns: Mapping[str, pa.Array], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def _repeated(value: pa.Array, count: int) -> pa.Array:
    return value if count == 1 else value.take(pa.array(np.zeros(count, np.int64)))


def _write(table: WorkingTable, rows: pa.Table) -> TableWrite:
    overlay = table.overlay
    return TableWrite(
        table_key=table.declared.table_key,
        mode="append" if overlay.only_adds else "delta",
        rows=rows,
        deletes=overlay.deletions(),
        seen=table.seen(),
    )
