"""Checks a mutation query and builds its plan: statements are checked one by one, in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from omnigraph.catalog.model import Catalog, EdgeType, EntityType, NodeType
from omnigraph.diagnostics import did_you_mean
from omnigraph.language.query.ast import (
    Assignment,
    Delete,
    Insert,
    MutationBody,
    Predicate,
    Query,
    Statement,
    Update,
)
from omnigraph.language.syntax import Name, Source
from omnigraph.language.types import PropType
from omnigraph.plan.expressions import (
    InferredParameters,
    TypeErrors,
    Use,
    parameter_specs,
    parameter_types,
    property_value,
)
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
    ParameterSpec,
    StatementPlan,
    UpdateNodes,
)

ENDPOINT_COLUMNS = {"from": "src", "to": "dst"}
"""What mutations call the endpoints of an edge, and the columns that hold them."""


def check_mutation(source: Source, catalog: Catalog, query: Query) -> MutationPlan:
    """Type-check a mutation. Raises `TypeCheckError`; the first error ends the check."""
    errors = TypeErrors(source)
    if not isinstance(query.body, MutationBody):
        message = "read query cannot be typechecked with mutation-query API"
        errors.fail(query.name.span, "T35", message)
    checker = _MutationChecker(errors, catalog, query, parameter_types(errors, query))
    statements = tuple(checker.statement(s) for s in query.body.statements)
    return MutationPlan(query.name.text, parameter_specs(query), statements)


def check_condition(
    source: Source, target: EntityType, predicate: Predicate
) -> tuple[Condition, tuple[ParameterSpec, ...]]:
    """Type-check a condition that stands alone, and find out its parameters.

    It means what it means behind `where` in a mutation of the type. Raises `TypeCheckError`.
    """
    parameters = InferredParameters()
    condition = _ConditionChecker(TypeErrors(source), parameters).condition(predicate, target)
    return condition, tuple(ParameterSpec(*inferred) for inferred in parameters.items())


class _ConditionChecker:
    """Checks what conditions and assignments say about properties of a type."""

    def __init__(self, errors: TypeErrors, parameters: Mapping[str, PropType]) -> None:
        self._errors = errors
        self._parameters = parameters

    def condition(self, predicate: Predicate, target: EntityType) -> Condition:
        name = predicate.property
        prop_type = self._property_type(target, name)
        if prop_type.is_blob:
            message = f"blob property `{name}` cannot be used in WHERE predicates"
            self._errors.fail(name.span, "T11", message)
        if prop_type.list or prop_type.is_vector:
            shape = "list" if prop_type.list else "vector"
            message = f"{shape} comparisons in WHERE predicates are not supported"
            self._errors.fail(name.span, "T7", message)
        value = property_value(
            self._errors, self._parameters, name, prop_type, predicate.value, Use.ASSIGN
        )
        column = name.text
        if isinstance(target, EdgeType):
            column = ENDPOINT_COLUMNS.get(column, column)
        return Condition(column, predicate.operator, value, prop_type)

    def _property_type(self, target: EntityType, name: Name) -> PropType:
        is_edge = isinstance(target, EdgeType)
        if is_edge and name.text in ENDPOINT_COLUMNS:
            return ID_TYPE
        prop = target.properties.get(name.text)
        if prop is None:
            self._refuse_property(target, name)
        return prop.type

    def _refuse_property(self, target: EntityType, name: Name) -> NoReturn:
        known = list(target.properties)
        hint = None
        if isinstance(target, EdgeType):
            known += ENDPOINT_COLUMNS
            if name.text in ENDPOINT_COLUMNS.values():
                hint = "the ends of an edge are called `from` and `to` here"
        message = f"type `{target.name}` has no property `{name}`"
        hint = hint or did_you_mean(name.text, known)
        self._errors.fail(name.span, "T11", message, hint)


class _MutationChecker(_ConditionChecker):
    def __init__(
        self,
        errors: TypeErrors,
        catalog: Catalog,
        query: Query,
        parameters: Mapping[str, PropType],
    ) -> None:
        super().__init__(errors, parameters)
        self._catalog = catalog
        self._query = query

    def statement(self, statement: Statement) -> StatementPlan:
        target = self._target(statement.type)
        match statement:
            case Insert():
                return self._insert(statement, target)
            case Update():
                if isinstance(target, EdgeType):
                    message = f"update mutation for edge type `{target.name}` is not supported"
                    hint = "delete the edge and insert it again"
                    self._errors.fail(statement.type.span, "T16", message, hint)
                assignments = self._assignments(statement.assignments, target)
                condition = self.condition(statement.predicate, target)
                return UpdateNodes(target.name, tuple(assignments.values()), condition)
            case Delete():
                condition = self.condition(statement.predicate, target)
                if isinstance(target, NodeType):
                    return DeleteNodes(target.name, condition)
                return DeleteEdges(target.name, condition)

    def _target(self, name: Name) -> EntityType:
        target = self._catalog.nodes.get(name.text) or self._catalog.edges.get(name.text)
        if target is None:
            known = (*self._catalog.nodes, *self._catalog.edges)
            message = f"unknown node/edge type `{name}`"
            self._errors.fail(name.span, "T10", message, did_you_mean(name.text, known))
        return target

    # -- insert -----------------------------------------------------------------------------

    def _insert(self, statement: Insert, target: EntityType) -> InsertNode | InsertEdge:
        assigned = self._assignments(statement.assignments, target)
        if isinstance(target, NodeType):
            self._require_properties(target, assigned)
            return InsertNode(target.name, tuple(assigned.values()))
        ends: list[Constant | Param] = []
        for word in ENDPOINT_COLUMNS:
            end = assigned.pop(word, None)
            if end is None:
                message = f"insert for `{target.name}` must provide required endpoint `{word}`"
                self._errors.fail(self._query.name.span, "T12", message)
            ends.append(end.value)
        self._require_properties(target, assigned)
        source, destination = ends
        return InsertEdge(target.name, source, destination, tuple(assigned.values()))

    def _require_properties(self, target: EntityType, assigned: Mapping[str, Assign]) -> None:
        for name, prop in target.properties.items():
            if prop.type.nullable or name in assigned:
                continue
            message = f"insert for `{target.name}` must provide non-nullable property `{name}`"
            if prop.embed_source is not None:
                if prop.embed_source in assigned:
                    continue
                message += f" or @embed source `{prop.embed_source}`"
            self._errors.fail(self._query.name.span, "T12", message)

    # -- parts ------------------------------------------------------------------------------

    def _assignments(
        self, assignments: tuple[Assignment, ...], target: EntityType
    ) -> dict[str, Assign]:
        if not assignments:
            message = f"mutation of `{target.name}` requires at least one assignment"
            self._errors.fail(self._query.name.span, "T10", message)
        assigned: dict[str, Assign] = {}
        for assignment in assignments:
            name = assignment.property
            prop_type = self._property_type(target, name)
            if name.text in assigned:
                message = f"duplicate assignment to property `{name}`"
                self._errors.fail(assignment.span, "T13", message)
            value = property_value(
                self._errors, self._parameters, name, prop_type, assignment.value, Use.ASSIGN
            )
            assigned[name.text] = Assign(name.text, value, prop_type)
        return assigned
