"""Mutations on an image: statements in order, each on what the ones before it left behind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from omnigraph.catalog.model import EdgeType, EntityType
from omnigraph.plan.ir import (
    ID_TYPE,
    Assign,
    Condition,
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
from tests.support.model.image import Image
from tests.support.model.load_input import derived_id
from tests.support.model.rules import (
    collisions,
    group_text,
    missing_ends,
    missing_values,
    pending_vectors,
    too_few,
    too_many,
    unkeyable,
    value_violations,
)
from tests.support.model.values import BadValue, Row, Value, from_query, matches, text_of
from tests.support.outcome import ReceiptWarning, Refusal


@dataclass(frozen=True, slots=True)
class Mutated:
    """A mutation that can be committed, if it changed anything."""

    image: Image
    touched: Mapping[str, frozenset[str]]
    affected_nodes: int
    affected_edges: int
    warnings: tuple[ReceiptWarning, ...]


def mutate(
    image: Image, plan: MutationPlan, parameters: Mapping[str, object], ids: Iterator[str]
) -> Mutated:
    """The image after all statements. Raises `Refusal` at the first one that breaks a rule."""
    run = _Run(image, parameters, ids)
    for statement in plan.statements:
        run.execute(statement)
    return run.finish()


class _Run:
    def __init__(self, image: Image, parameters: Mapping[str, object], ids: Iterator[str]) -> None:
        self._catalog = image.catalog
        self._tables = image.working_copy()
        self._parameters = parameters
        self._ids = ids
        self._touched: defaultdict[str, set[str]] = defaultdict(set)
        self._got_edges: dict[tuple[str, str], None] = {}
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
                edge = self._catalog.edges[statement.edge_type]
                self._edges += self._remove(edge, self._found(edge, statement.condition))
            case _:
                assert_never(statement)

    def finish(self) -> Mutated:
        problems = []
        for name, source in self._got_edges:
            edge = self._catalog.edges[name]
            problems.append(too_few(edge, self._tables[edge.table_key], source))
        _refuse_any([problem for problem in problems if problem])
        written = [
            (declared, row)
            for declared in self._catalog
            for id, row in self._tables[declared.table_key].items()
            if id in self._touched[declared.table_key]
        ]
        return Mutated(
            image=Image(self._catalog, self._tables),
            touched={key: frozenset(ids) for key, ids in self._touched.items()},
            affected_nodes=self._nodes,
            affected_edges=self._edges,
            warnings=pending_vectors(written),
        )

    # -- statements -------------------------------------------------------------------------

    def _insert_node(self, statement: InsertNode) -> None:
        node = self._catalog.nodes[statement.node_type]
        row = dict.fromkeys(node.properties) | self._assigned(statement.assignments)
        self._insert(node, row)
        self._nodes += 1

    def _insert_edge(self, statement: InsertEdge) -> None:
        edge = self._catalog.edges[statement.edge_type]
        ends = {"src": self._value(statement.source), "dst": self._value(statement.target)}
        if None in ends.values():
            raise Refusal("bad_request", f"edge {edge.name}: both ends must be given, got null")
        stored = {end: from_query(given, end, ID_TYPE) for end, given in ends.items()}
        row = stored | dict.fromkeys(edge.properties) | self._assigned(statement.assignments)
        self._insert(edge, row)
        self._got_edges[edge.name, text_of(row, "src")] = None
        self._edges += 1

    def _insert(self, declared: EntityType, row: Row) -> None:
        _refuse_any([v.message for v in missing_values(declared, row)])
        id = derived_id(declared, row)
        self._write(declared, [{"id": next(self._ids) if id is None else id, **row}])

    def _update(self, statement: UpdateNodes) -> None:
        node = self._catalog.nodes[statement.node_type]
        for assign in statement.assignments:
            if assign.property in (node.key or ()):
                message = f"cannot update @key property '{assign.property}' of {node.name}"
                raise Refusal("bad_request", message)
        assigned = self._assigned(statement.assignments)
        rows = [{**row, **assigned} for row in self._found(node, statement.condition)]
        self._write(node, rows)
        self._nodes += len(rows)

    def _delete_nodes(self, statement: DeleteNodes) -> None:
        node = self._catalog.nodes[statement.node_type]
        gone = self._found(node, statement.condition)
        self._nodes += self._remove(node, gone)
        ids = {row["id"] for row in gone}
        for edge in self._catalog.edges.values():
            dangling = [
                row
                for row in self._tables[edge.table_key].values()
                if (edge.from_type == node.name and row["src"] in ids)
                or (edge.to_type == node.name and row["dst"] in ids)
            ]
            self._edges += self._remove(edge, dangling)

    # -- parts ------------------------------------------------------------------------------

    def _value(self, value: Constant | Param) -> object:
        return value.value if isinstance(value, Constant) else self._parameters[value.name]

    def _assigned(self, assignments: Sequence[Assign]) -> dict[str, Value]:
        try:
            return {
                a.property: from_query(self._value(a.value), a.property, a.type)
                for a in assignments
            }
        except BadValue as error:
            raise Refusal("bad_request", str(error)) from None

    def _found(self, declared: EntityType, condition: Condition) -> list[Row]:
        given = self._value(condition.value)
        return [
            row
            for row in self._tables[declared.table_key].values()
            if matches(row[condition.property], condition.operator, given, condition.type.scalar)
        ]

    def _remove(self, declared: EntityType, rows: Sequence[Row]) -> int:
        for row in rows:
            del self._tables[declared.table_key][text_of(row, "id")]
            self._touched[declared.table_key].add(text_of(row, "id"))
        return len(rows)

    def _write(self, declared: EntityType, rows: Sequence[Row]) -> None:
        """Put rows into their table, then see whether it still keeps the rules."""
        table = self._tables[declared.table_key]
        for row in rows:
            table[text_of(row, "id")] = row
            self._touched[declared.table_key].add(text_of(row, "id"))
        problems: list[str] = []
        for row in rows:
            problems += [v.message for v in missing_values(declared, row)]
            problems += [v.message for v in value_violations(declared, row)]
            if isinstance(declared, EdgeType):
                problems += [message for _, message in missing_ends(declared, row, self._tables)]
                problem = too_many(declared, table, text_of(row, "src"))
                problems += [problem] if problem else []
        if rows:
            problems += self._broken_uniqueness(declared, rows)
        _refuse_any(problems)

    def _broken_uniqueness(self, declared: EntityType, written: Sequence[Row]) -> Iterator[str]:
        for violation in unkeyable(declared):
            yield violation.message
            return
        ids = {row["id"] for row in written}
        for collision in collisions(declared, self._tables[declared.table_key].values()):
            mine = [row for row in collision.rows if row["id"] in ids]
            others = [row for row in collision.rows if row["id"] not in ids] or mine
            if mine:
                where = group_text(declared, collision.group)
                holder = min(text_of(row, "id") for row in others)
                yield (
                    f"@unique violation on {where}: value '{collision.tuple_text}'"
                    f" already belongs to '{holder}'"
                )


def _refuse_any(problems: Sequence[str]) -> None:
    if problems:
        raise Refusal("bad_request", "; ".join(problems))
