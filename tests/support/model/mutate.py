"""Mutations on an image: statements in order, each on what the ones before it left behind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from omnigraph.catalog.model import EdgeType, EntityType, NodeType
from omnigraph.plan.changes import (
    Action,
    Assign,
    DeleteEdges,
    DeleteMatched,
    DeleteNodes,
    InsertEdge,
    InsertNode,
    MatchChange,
    MutationPlan,
    PlainStatement,
    Returning,
    UpdateEdges,
    UpdateMatched,
    UpdateNodes,
    Upsert,
)
from omnigraph.plan.ir import (
    ID_TYPE,
    ROW,
    Constant,
    EntityId,
    Expr,
    Filter,
    Param,
    Prop,
    variables_of,
    walk,
)
from tests.support.model.image import Image
from tests.support.model.load_input import derived_id
from tests.support.model.read.computing import Overflow
from tests.support.model.read.expressions import Assignment, Evaluator
from tests.support.model.read.match import Matcher
from tests.support.model.read.view import View, visible
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
from tests.support.model.values import BadValue, Row, Value, from_query, text_of
from tests.support.outcome import ReceiptWarning, Refusal


@dataclass(frozen=True, slots=True)
class Mutated:
    """A mutation that can be committed, if it changed anything."""

    image: Image
    touched: Mapping[str, frozenset[str]]
    affected_nodes: int
    affected_edges: int
    warnings: tuple[ReceiptWarning, ...]
    returned: tuple[ReturnedRows, ...] = ()


ReturnedRows = tuple[int, tuple[str, ...], list[tuple[Value, ...]]]
"""The number of a statement, the names of its columns, and its rows."""


def mutate(
    image: Image,
    plan: MutationPlan,
    parameters: Mapping[str, object],
    ids: Iterator[str],
    view: View | None = None,
) -> Mutated:
    """The image after all statements. Raises `Refusal` at the first one that breaks a rule."""
    run = _Run(image, parameters, ids)
    for statement in plan.statements:
        if isinstance(statement, MatchChange):
            run.change_matched(statement, view)
        else:
            run.execute(statement)
            run.give_back(statement.returning, lambda _: {})
    return run.finish()


class _Run:
    def __init__(self, image: Image, parameters: Mapping[str, object], ids: Iterator[str]) -> None:
        self._catalog = image.catalog
        self._tables = image.working_copy()
        self._parameters = dict(parameters)
        self._evaluator = Evaluator(self._parameters, image)
        self._ids = ids
        self._written: list[Row] = []
        self._returned: list[ReturnedRows] = []
        self._touched: defaultdict[str, set[str]] = defaultdict(set)
        self._got_edges: dict[tuple[str, str], None] = {}
        self._nodes = 0
        self._edges = 0
        self._number = 0

    # -- match ------------------------------------------------------------------------------

    def change_matched(self, statement: MatchChange, view: View | None) -> None:
        """All actions for the solutions of a pattern in the image as it is now."""
        image = Image(self._catalog, {key: dict(rows) for key, rows in self._tables.items()})
        seen = image if view is None else visible(image, view)
        evaluator, plain = Evaluator(self._parameters, seen), self._evaluator
        names = [name for name, _ in statement.match.variables]
        solutions: list[dict[str, Any]] = [
            dict(found)
            for found in sorted(
                Matcher(seen, evaluator).solutions(statement.match.pattern, {}),
                key=lambda found: [_identity(found[name]) for name in names],
            )
        ]
        self._evaluator = evaluator
        for action in statement.actions:
            self._written = []
            first: dict[tuple[str, str], Assignment] = {}
            match action:
                case InsertNode() | InsertEdge() | Upsert():
                    self._insert_matched(action, solutions, first)
                case UpdateMatched():
                    self._update_matched(action, solutions, first)
                case DeleteMatched():
                    self._delete_matched(action, solutions, first, view)
            in_order = isinstance(action, InsertNode | InsertEdge | Upsert)
            of_row = {id: found for (_, id), found in first.items()}
            self.give_back(action.returning, _first_of(of_row), in_order=in_order)
        self._evaluator = plain

    def _matched_value(self, expression: Expr, found: Assignment) -> Any:
        """A value for a solution, in which ids of inserted rows are under their names, too."""
        made = {name: value for name, value in found.items() if isinstance(value, str)}
        kept = dict(self._parameters)
        self._parameters.update(made)
        try:
            return self._value(expression, found=found)
        finally:
            self._parameters.clear()
            self._parameters.update(kept)

    def _values_of(self, assignments: Sequence[Assign], found: Assignment) -> dict[str, Value]:
        try:
            return {
                a.property: from_query(self._matched_value(a.value, found), a.property, a.type)
                for a in assignments
            }
        except BadValue as error:
            raise Refusal("bad_request", str(error)) from None

    def _require_equal(
        self, action: Action, before: tuple[Any, Assignment], now: tuple[Any, Assignment]
    ) -> None:
        shown = []
        for values, found in (before, now):
            columns = () if action.returning is None else action.returning.columns
            read = [
                self._matched_value(part, found)
                for column in columns
                for part in walk(column.expression)
                if variables_of(part) and ROW not in variables_of(part)
            ]
            shown.append(repr((values, read)))
        if shown[0] != shown[1]:
            raise Refusal("bad_request", "different values for one entity")

    def _insert_matched(
        self,
        action: InsertNode | InsertEdge | Upsert,
        solutions: list[dict[str, Any]],
        first: dict[tuple[str, str], Assignment],
    ) -> None:
        match action:
            case InsertNode(node_type):
                declared: EntityType = self._catalog.nodes[node_type]
            case InsertEdge(edge_type):
                declared = self._catalog.edges[edge_type]
            case Upsert(table_key):
                declared = self._catalog.entity(table_key)
        rows: dict[str, tuple[dict[str, Value], Assignment]] = {}
        for found in solutions:
            values = self._values_of(action.assignments, found)
            if isinstance(action, InsertEdge):
                values["src"] = self._matched_value(action.source, found)
                values["dst"] = self._matched_value(action.target, found)
            made = None
            if not (isinstance(declared, EdgeType) and None in (values["src"], values["dst"])):
                full = {name: values.get(name) for name in declared.columns if name != "id"}
                _refuse_any([v.message for v in missing_values(declared, full)])
                made = derived_id(declared, full)
                made = next(self._ids) if made is None else made
                if made in rows:
                    self._require_equal(action, rows[made], (values, found))
                rows.setdefault(made, (values, dict(found)))
            if action.variable is not None:
                found[action.variable] = made
        written = []
        table = self._tables[declared.table_key]
        for id, (values, matched) in rows.items():
            kept = table.get(id, {}) if isinstance(action, Upsert) else {}
            written.append({**dict.fromkeys(declared.columns), **kept, **values, "id": id})
            first[declared.table_key, id] = matched
            if isinstance(declared, EdgeType):
                self._got_edges[declared.name, str(values["src"])] = None
        self._write(declared, written)
        if isinstance(declared, EdgeType):
            self._edges += len(written)
        else:
            self._nodes += len(written)

    def _type_of(self, found: Assignment, variable: str, keys: Sequence[str]) -> str:
        if len(keys) == 1:
            return keys[0]
        return f"edge:{found[variable]['@type']}"

    def _update_matched(
        self,
        action: UpdateMatched,
        solutions: list[dict[str, Any]],
        first: dict[tuple[str, str], Assignment],
    ) -> None:
        values: dict[tuple[str, str], tuple[dict[str, Value], Assignment]] = {}
        for found in solutions:
            if found[action.variable] is None:
                continue
            key = self._type_of(found, action.variable, action.table_keys)
            now = (self._values_of(action.assignments, found), found)
            entity = key, text_of(found[action.variable], "id")
            if entity in values:
                self._require_equal(action, values[entity], now)
            values.setdefault(entity, now)
        for assign in action.assignments:
            declared = self._catalog.entity(action.table_keys[0])
            if isinstance(declared, NodeType) and assign.property in (declared.key or ()):
                message = f"cannot update @key property '{assign.property}' of {declared.name}"
                _refuse_any([message] if values else [])
        written: list[Row] = []
        for key in action.table_keys:
            declared = self._catalog.entity(key)
            rows: list[Row] = []
            for (of, id), (given, matched) in values.items():
                if of == key and id in self._tables[key]:
                    rows.append({**self._tables[key][id], **given})
                    first[key, id] = matched
            self._write(declared, rows)
            written += [{**row, "@type": declared.name} for row in rows]
            if isinstance(declared, EdgeType):
                self._edges += len(rows)
            else:
                self._nodes += len(rows)
        self._written = written

    def _delete_matched(
        self,
        action: DeleteMatched,
        solutions: list[dict[str, Any]],
        first: dict[tuple[str, str], Assignment],
        view: View | None,
    ) -> None:
        gone: dict[str, list[Row]] = {}
        for variable, keys in action.targets:
            for found in solutions:
                if found[variable] is None:
                    continue
                key = self._type_of(found, variable, keys)
                id = text_of(found[variable], "id")
                if (key, id) in first:
                    self._require_equal(action, ((), first[key, id]), ((), found))
                elif id in self._tables[key]:
                    first[key, id] = found
                    gone.setdefault(key, []).append(self._tables[key][id])
        before: list[Row] = [
            {**row, "@type": self._catalog.entity(key).name}
            for key, rows in gone.items()
            for row in rows
        ]
        present = Image(self._catalog, {key: dict(rows) for key, rows in self._tables.items()})
        seen = present if view is None else visible(present, view)
        shown = {
            edge.table_key: seen.tables.get(edge.table_key, {})
            for edge in self._catalog.edges.values()
        }
        for key, rows in gone.items():
            if key.startswith("edge:"):
                self._edges += self._remove(self._catalog.entity(key), rows)
        for key, rows in gone.items():
            if not key.startswith("node:"):
                continue
            node = self._catalog.entity(key)
            self._nodes += self._remove(node, rows)
            for edge, dangling in self._dangling(node, rows):
                self._remove(edge, dangling)
                self._edges += sum(text_of(row, "id") in shown[edge.table_key] for row in dangling)
        self._written = before

    # -- results ----------------------------------------------------------------------------

    def give_back(
        self,
        wanted: Returning | None,
        matched_for: Callable[[Row], Assignment],
        *,
        in_order: bool = False,
    ) -> None:
        """What a statement returns of the rows it wrote, and of what was matched for them."""
        self._number += 1
        number = self._number
        if wanted is None:
            return
        written = self._written
        if not in_order:
            written = sorted(written, key=lambda row: text_of(row, "id"))
        rows = [
            tuple(
                self._shown(column.expression, row, matched_for(row)) for column in wanted.columns
            )
            for row in written
        ]
        names = tuple(column.name for column in wanted.columns)
        rows = list(dict.fromkeys(rows)) if wanted.distinct else rows
        self._returned.append((number, names, rows))

    def _shown(self, expression: Expr, row: Row, matched: Assignment) -> Value:
        match expression:
            case EntityId(variable) if variable == ROW:
                return row["id"]
            case Prop(variable, name, kind) if variable == ROW:
                return None if kind.is_blob else row[name]
            case Constant(value):
                return value
            case Param(name, kind) if name not in matched:
                return from_query(self._parameters[name], name, kind)
            case _:
                shown: Value = self._matched_value(expression, {**matched, ROW: row})
                return shown

    def execute(self, statement: PlainStatement) -> None:
        self._written = []
        match statement:
            case Upsert():
                self._upsert(statement)
            case InsertNode():
                self._insert_node(statement)
            case InsertEdge():
                self._insert_edge(statement)
            case UpdateNodes():
                self._nodes += self._update(self._catalog.nodes[statement.node_type], statement)
            case UpdateEdges():
                self._edges += self._update(self._catalog.edges[statement.edge_type], statement)
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
            returned=tuple(self._returned),
        )

    # -- statements -------------------------------------------------------------------------

    def _insert_node(self, statement: InsertNode) -> None:
        node = self._catalog.nodes[statement.node_type]
        row = dict.fromkeys(node.properties) | self._assigned(statement.assignments)
        self._insert(node, row)
        self._bind(statement.variable)
        self._nodes += 1

    def _insert_edge(self, statement: InsertEdge) -> None:
        edge = self._catalog.edges[statement.edge_type]
        ends = {"src": self._value(statement.source), "dst": self._value(statement.target)}
        if None in ends.values():
            raise Refusal("bad_request", f"edge {edge.name}: both ends must be given, got null")
        stored = {end: from_query(given, end, ID_TYPE) for end, given in ends.items()}
        row = stored | dict.fromkeys(edge.properties) | self._assigned(statement.assignments)
        self._insert(edge, row)
        self._bind(statement.variable)
        self._got_edges[edge.name, text_of(row, "src")] = None
        self._edges += 1

    def _bind(self, variable: str | None) -> None:
        if variable is not None:
            self._parameters[variable] = self._written[0]["id"]

    def _upsert(self, statement: Upsert) -> None:
        declared = self._catalog.entity(statement.table_key)
        absent = dict.fromkeys(declared.columns)
        assigned = self._assigned(statement.assignments, absent)
        row = {name: value for name, value in absent.items() if name != "id"} | assigned
        is_edge = isinstance(declared, EdgeType)
        if is_edge and None in (row["src"], row["dst"]):
            raise Refusal("bad_request", f"edge {declared.name}: both ends must be given, got null")
        id = derived_id(declared, row)
        present = self._tables[declared.table_key].get(id or "")
        if present is None:
            self._insert(declared, row)
        else:
            assigned = self._assigned(statement.assignments, present)
            self._write(declared, [{**present, **assigned}])
        self._bind(statement.variable)
        if is_edge:
            self._got_edges[declared.name, text_of(row, "src")] = None
            self._edges += 1
        else:
            self._nodes += 1

    def _insert(self, declared: EntityType, row: Row) -> None:
        _refuse_any([v.message for v in missing_values(declared, row)])
        id = derived_id(declared, row)
        self._write(declared, [{"id": next(self._ids) if id is None else id, **row}])

    def _update(self, declared: EntityType, statement: UpdateNodes | UpdateEdges) -> int:
        for assign in statement.assignments:
            if isinstance(declared, NodeType) and assign.property in (declared.key or ()):
                message = f"cannot update @key property '{assign.property}' of {declared.name}"
                raise Refusal("bad_request", message)
        # A constant that does not fit is refused although there may be no row.
        self._assigned([a for a in statement.assignments if isinstance(a.value, Constant | Param)])
        found = self._found(declared, statement.condition)
        rows = [{**row, **self._assigned(statement.assignments, row)} for row in found]
        self._write(declared, rows)
        return len(rows)

    def _delete_nodes(self, statement: DeleteNodes) -> None:
        node = self._catalog.nodes[statement.node_type]
        gone = self._found(node, statement.condition)
        self._nodes += self._remove(node, gone)
        for edge, dangling in self._dangling(node, gone):
            self._edges += self._remove(edge, dangling)

    # -- parts ------------------------------------------------------------------------------

    def _value(
        self, value: Expr, row: Row | None = None, *, found: Assignment | None = None
    ) -> object:
        if isinstance(value, Constant):
            return value.value
        if isinstance(value, Param):
            return self._parameters[value.name]
        try:
            given = {ROW: row or {}} if found is None else found
            return self._evaluator.value(value, given)
        except Overflow:
            raise Refusal("bad_request", "integer overflow") from None

    def _assigned(self, assignments: Sequence[Assign], row: Row | None = None) -> dict[str, Value]:
        try:
            return {
                a.property: from_query(self._value(a.value, row), a.property, a.type)
                for a in assignments
            }
        except BadValue as error:
            raise Refusal("bad_request", str(error)) from None

    def _found(self, declared: EntityType, condition: Expr) -> list[Row]:
        return [
            row
            for row in self._tables[declared.table_key].values()
            if self._evaluator.satisfies(Filter(condition), {ROW: row})
        ]

    def _dangling(
        self, node: EntityType, gone: Sequence[Row]
    ) -> Iterator[tuple[EdgeType, list[Row]]]:
        """The edges that nodes take with them, by edge type."""
        ids = {row["id"] for row in gone}
        for edge in self._catalog.edges.values():
            yield (
                edge,
                [
                    row
                    for row in self._tables[edge.table_key].values()
                    if (edge.from_type == node.name and row["src"] in ids)
                    or (edge.to_type == node.name and row["dst"] in ids)
                ],
            )

    def _remove(self, declared: EntityType, rows: Sequence[Row]) -> int:
        self._written = self._written or list(rows)
        for row in rows:
            del self._tables[declared.table_key][text_of(row, "id")]
            self._touched[declared.table_key].add(text_of(row, "id"))
        return len(rows)

    def _write(self, declared: EntityType, rows: Sequence[Row]) -> None:
        """Put rows into their table, then see whether it still keeps the rules."""
        table = self._tables[declared.table_key]
        self._written = list(rows)
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


def _first_of(found: Mapping[str, Assignment]) -> Callable[[Row], Assignment]:
    """The solution that a written row came from."""
    return lambda row: found[text_of(row, "id")]


def _identity(found: Any) -> tuple[str, ...]:
    """What solutions are ordered by, for one node or edge; an unbound one comes first."""
    return () if found is None else (found["id"], found.get("@type", ""))


def _refuse_any(problems: Sequence[str]) -> None:
    if problems:
        raise Refusal("bad_request", "; ".join(problems))
