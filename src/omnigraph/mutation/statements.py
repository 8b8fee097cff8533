"""Running the statements of a mutation, one after the other, each on what those before left.

The rules on the rows of a statement are those of the catalog, seen on the working image."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard, assert_never

import pyarrow as pa

from omnigraph.catalog.constraints import key_assigned
from omnigraph.catalog.model import EdgeType, EntityType, NodeType
from omnigraph.commit.change import Change, TableWrite
from omnigraph.embedding.vectors import embed_columns, embedding_warnings, unwritable
from omnigraph.language.schema.ast import ENDPOINTS
from omnigraph.mutation.checks import refuse_any, too_few
from omnigraph.mutation.match_reader import MatchReader
from omnigraph.mutation.matched import MatchedRows, MatchWriter
from omnigraph.mutation.returned import Returned, returned_rows
from omnigraph.mutation.seen import visible_only
from omnigraph.mutation.values import MutationIds
from omnigraph.mutation.working import Found, WorkingTable
from omnigraph.mutation.writes import BEFORE_NODE_DELETE, rows_table
from omnigraph.plan.changes import (
    Assign,
    DeleteEdges,
    DeleteNodes,
    InsertEdge,
    InsertNode,
    MatchChange,
    MutationPlan,
    PlainStatement,
    Returning,
    StatementPlan,
    UpdateEdges,
    UpdateNodes,
    Upsert,
)
from omnigraph.plan.ir import (
    NOW_PARAMETER,
    ROW,
    Expr,
    Prop,
    walk,
)
from omnigraph.providers.documents import DocumentVectors
from omnigraph.read.defaults import with_defaults
from omnigraph.read.row_values import RowCondition, RowValues
from omnigraph.rows.bindings import embedded_properties
from omnigraph.rows.blob_bases import NO_BASES, BlobBases
from omnigraph.rows.keys import derived_ids
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.commits import Warning
from omnigraph.versioning.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class PreparedMutation:
    """What a mutation would commit. Affected rows are summed over statements, as they ran."""

    change: Change
    affected_nodes: int
    affected_edges: int
    warnings: tuple[Warning, ...]
    returned: tuple[Returned, ...] = ()


def prepare_mutation(
    plan: MutationPlan,
    parameters: Mapping[str, object],
    snapshot: Snapshot,
    tables: TableStore,
    ids: MutationIds,
    vectors: DocumentVectors,
    blobs: BlobBases = NO_BASES,
    matches: MatchReader | None = None,
) -> PreparedMutation:
    """Run a mutation against a snapshot without changing anything.

    Raises `MutationError` or `AssignmentError` at the first statement that cannot be made. Texts
    are embedded after the last statement. `matches` reads the patterns of match statements.
    """
    matches = matches or MatchReader(tables)
    known = with_defaults(plan.parameters, {NOW_PARAMETER: ids.now_ms, **parameters})
    run = _Run(snapshot, tables, known, ids.from_first(), vectors, blobs, matches)
    for statement in plan.statements:
        run.execute(statement)
    return run.finish()


class _Run(MatchWriter):
    def __init__(
        self,
        snapshot: Snapshot,
        tables: TableStore,
        parameters: Mapping[str, object],
        ids: Iterator[str],
        vectors: DocumentVectors,
        blobs: BlobBases,
        matches: MatchReader,
    ) -> None:
        super().__init__(snapshot, tables, parameters, ids, vectors, blobs)
        self._matches = matches
        self._snapshot = snapshot
        self._returned: list[Returned] = []
        self._number = 0
        """How many statements and actions have run."""

    def execute(self, statement: StatementPlan) -> None:
        """Run a statement, or all actions of one with a match."""
        if isinstance(statement, MatchChange):
            rows = self._matches.rows(
                statement.match, self._snapshot, self._image, self._parameters
            )
            matched = MatchedRows(statement, rows, self._parameters)
            for action in statement.actions:
                self._written = None
                in_order = isinstance(action, InsertNode | InsertEdge | Upsert)
                if matched.count:
                    self._act(action, matched, self._matches.view)
                if action.returning is not None:
                    self._give_back(matched.lowered_returning(action.returning), in_order=in_order)
                else:
                    self._number += 1
            return
        self._written = None
        self._execute(statement)
        if statement.returning is not None:
            self._give_back(statement.returning)
        else:
            self._number += 1

    def _give_back(self, wanted: Returning, *, in_order: bool = False) -> None:
        """Show the written rows as `return` wants them."""
        self._number += 1
        self._returned.append(
            returned_rows(self._number, wanted, self._written, self._parameters, in_order=in_order)
        )

    def _execute(self, statement: PlainStatement) -> None:
        match statement:
            case Upsert():
                self._upsert(statement)
            case InsertNode():
                self._insert_node(statement)
            case InsertEdge():
                self._insert_edge(statement)
            case UpdateNodes():
                node = self._catalog.nodes[statement.node_type]
                self._nodes += self._update(node, statement)
            case UpdateEdges():
                edge = self._catalog.edges[statement.edge_type]
                self._edges += self._update(edge, statement)
            case DeleteNodes():
                self._delete_nodes(statement)
            case DeleteEdges():
                edges = self._image[self._catalog.edges[statement.edge_type]]
                found = self._to_delete(edges, statement)
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
            returned=tuple(self._returned),
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
        return rows_table(columns, table.schema), warnings

    # -- statements -------------------------------------------------------------------------

    def _insert_node(self, statement: InsertNode) -> None:
        node = self._catalog.nodes[statement.node_type]
        self._insert(self._image[node], self._new_row(node, statement.assignments))
        self._bind(statement.variable)
        self._nodes += 1

    def _insert_edge(self, statement: InsertEdge) -> None:
        edge = self._catalog.edges[statement.edge_type]
        src, dst = self._single(statement.source), self._single(statement.target)
        if src is None or dst is None:
            refuse_any([f"edge {edge.name}: both ends must be given, got null"])
        ends = {"src": pa.array([src], pa.utf8()), "dst": pa.array([dst], pa.utf8())}
        columns = ends | self._new_row(edge, statement.assignments)
        self._insert(self._image[edge], columns)
        self._bind(statement.variable)
        self._sources[edge.name][src] = None
        self._edges += 1

    def _bind(self, variable: str | None) -> None:
        """Make the id of the row that was just written known to later statements."""
        if variable is not None:
            assert self._written is not None, "a row was written"
            self._parameters[variable] = self._written.column("id")[0].as_py()

    def _upsert(self, statement: Upsert) -> None:
        declared = self._catalog.entity(statement.table_key)
        table = self._image[declared]
        is_edge = isinstance(declared, EdgeType)
        own = RowValues(self._absent(table), 1, self._parameters)
        assigned = self._assigned(statement.assignments, own)
        for end in ENDPOINTS if is_edge else ():
            if assigned[end].null_count:
                refuse_any([f"edge {declared.name}: both ends must be given, got null"])
        absent = self._absent(table)
        full = {name: assigned.get(name, absent[name]) for name in declared.columns if name != "id"}
        ids = derived_ids(declared, full)
        assert ids is not None, "a type without key or identity is not upserted"
        others = [name for name in table.schema.names if name != "id"]
        previous = None if ids.null_count else table.with_ids(ids, others)
        if previous is None or not previous.num_rows:
            self._insert(table, full)
        else:
            columns = {name: previous.column(name).combine_chunks() for name in others}
            own = RowValues({"id": ids, **columns}, 1, self._parameters)
            assigned = self._assigned(statement.assignments, own)
            self._change(table, {"id": ids, **columns, **assigned}, assigned)
        self._bind(statement.variable)
        if is_edge:
            self._sources[declared.name][assigned["src"][0].as_py()] = None
            self._edges += 1
        else:
            self._nodes += 1

    def _to_delete(self, table: WorkingTable, statement: DeleteNodes | DeleteEdges) -> Found:
        """The rows that a statement deletes, with all columns if it returns some."""
        columns = ["id"] if statement.returning is None else table.schema.names
        found = self._matching(table, statement.condition, columns)
        self._written = found.rows()
        return found

    def _matching(self, table: WorkingTable, condition: Expr, columns: Sequence[str]) -> Found:
        """The visible rows that meet a condition."""
        wanted = RowCondition(table.declared, condition, self._parameters)
        view = self._matches.view
        if not view.filters(table.declared):
            return table.matching(wanted, columns)
        found = table.matching(wanted, [*columns, *({"id"} - {*columns})])
        return visible_only(self._image, table, found, view).select(columns)

    def _new_row(self, declared: EntityType, assignments: Sequence[Assign]) -> dict[str, pa.Array]:
        """The columns of a row that has nothing but the assigned properties."""
        assigned = self._assigned(assignments, RowValues({}, 1, self._parameters))
        schema = self._image[declared].schema
        return {
            name: assigned[name] if name in assigned else pa.nulls(1, schema.field(name).type)
            for name in declared.properties
        }

    def _update(self, declared: EntityType, statement: UpdateNodes | UpdateEdges) -> int:
        """Assign to the rows that meet a condition; returns how many there are."""
        if isinstance(declared, NodeType):
            for assign in statement.assignments:
                if assign.property in (declared.key or ()):
                    refuse_any([key_assigned(declared, assign.property)])
        table = self._image[declared]
        assigned = {assign.property for assign in statement.assignments}
        # The row's own values are read, unless nothing asks for those that are replaced.
        read = {p.property for a in statement.assignments for p in walk(a.value) if is_own(p)}
        kept = [name for name in table.schema.names if name not in assigned or name in read]
        found = self._matching(table, statement.condition, kept)
        if not found.count:
            self._assigned(statement.assignments, None)
            return 0
        old = found.rows()
        columns = {name: old.column(name).combine_chunks() for name in kept}
        own = RowValues(columns, found.count, self._parameters)
        given = self._assigned(statement.assignments, own, found.count)
        self._change(table, columns | given, given)
        return found.count

    def _delete_nodes(self, statement: DeleteNodes) -> None:
        node = self._catalog.nodes[statement.node_type]
        BEFORE_NODE_DELETE.hit(type=node.name)
        nodes = self._image[node]
        found = self._to_delete(nodes, statement)
        if not found.count:
            return
        self._remove_nodes(node, found, self._matches.view)


def is_own(part: Expr) -> TypeGuard[Prop]:
    """Whether a part of an expression is a property of the row that is changed."""
    return isinstance(part, Prop) and part.variable == ROW


def _write(table: WorkingTable, rows: pa.Table) -> TableWrite:
    overlay = table.overlay
    return TableWrite(
        table_key=table.declared.table_key,
        mode="append" if overlay.only_adds else "delta",
        rows=rows,
        deletes=overlay.deletions(),
        seen=table.seen(),
    )
