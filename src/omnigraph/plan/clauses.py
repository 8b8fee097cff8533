"""Checks the clauses of `match` and `not` blocks, top to bottom."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from omnigraph.catalog.model import Catalog, EdgeType
from omnigraph.diagnostics import did_you_mean
from omnigraph.language.query.ast import (
    Aggregate,
    AliasReference,
    Binding,
    Bm25Call,
    Clause,
    Expression,
    Filter,
    NearestCall,
    Negation,
    Operator,
    PropertyAccess,
    PropertyMatch,
    RrfCall,
    TextCall,
    TextClause,
    Traversal,
    Variable,
)
from omnigraph.language.types import PropType, Scalar, compatible
from omnigraph.plan import ir
from omnigraph.plan.checked import (
    CheckedBinding,
    CheckedClause,
    CheckedNegation,
    CheckedTraversal,
)
from omnigraph.plan.expressions import ExpressionChecker
from omnigraph.plan.scope import BoundVariable, Complaints, Scope, find_node_type, find_property
from omnigraph.plan.values import Use, property_value

_TRUE = ir.Constant(True, PropType(Scalar.BOOL))


class ClauseChecker:
    """Checks one clause list and binds its variables in `scope`."""

    def __init__(self, complaints: Complaints, catalog: Catalog, scope: Scope) -> None:
        self._complaints = complaints
        self._catalog = catalog
        self._scope = scope
        self._expressions = ExpressionChecker(complaints, scope)

    def check(self, clauses: Iterable[Clause]) -> tuple[CheckedClause, ...]:
        clauses = tuple(clauses)
        self._scope.introduces(name for clause in clauses for name in _introduced_variables(clause))
        return tuple(map(self._clause, clauses))

    def _clause(self, clause: Clause) -> CheckedClause:
        match clause:
            case Binding():
                return self._binding(clause)
            case Traversal():
                return self._traversal(clause)
            case Filter():
                return self._filter(clause)
            case TextClause(call):
                return ir.Filter(self._expressions.check(call), Operator.EQ, _TRUE)
            case Negation():
                return self._negation(clause)

    # -- bindings ---------------------------------------------------------------------------

    def _binding(self, binding: Binding) -> CheckedBinding:
        name = binding.variable.name
        node_type = find_node_type(self._complaints, self._catalog, binding.type, "T1", "node type")
        bound = self._scope.find(name)
        outer = self._scope.is_outer(name)
        if bound is None:
            bound = self._scope.introduce(name, node_type)
        elif bound.node_type is not node_type:
            message = f"variable `${name}` is already bound to type `{bound.node_type.name}`"
            self._complaints.refuse_plainly(binding.variable.span, "T34", message)
        matches = tuple(self._match(bound, m) for m in binding.matches)
        return CheckedBinding(bound.name, node_type.name, matches, outer)

    def _match(self, bound: BoundVariable, match: PropertyMatch) -> ir.Match:
        prop = find_property(self._complaints, bound.node_type, match.property, "T2")
        if prop.type.is_blob:
            message = f"blob property `{prop.name}` cannot be used in match patterns"
            self._complaints.refuse(match.property.span, "T3", message)
        parameters = self._scope.parameters
        value = property_value(
            self._complaints, parameters, match.property, prop.type, match.value, Use.MATCH
        )
        return ir.Match(prop.name, value, prop.type.list, prop.type)

    # -- traversals -------------------------------------------------------------------------

    def _traversal(self, traversal: Traversal) -> CheckedTraversal:
        edge = self._catalog.edge_for_traversal(traversal.edge.text)
        if edge is None:
            words = [name[0].lower() + name[1:] for name in self._catalog.edges]
            hint = did_you_mean(traversal.edge.text, words)
            message = f"unknown edge type `{traversal.edge}`"
            self._complaints.refuse(traversal.edge.span, "T4", message, hint)
        low, high = self._hops(traversal)
        direction = self._direction(traversal, edge)
        ends = (edge.from_type, edge.to_type)
        left_type, right_type = ends if direction is ir.Direction.OUT else ends[::-1]
        left = self._endpoint(traversal.left, left_type, edge)
        right = self._endpoint(traversal.right, right_type, edge)
        return CheckedTraversal(
            left.name, left_type, right.name, right_type, edge.name, direction, low, high
        )

    def _hops(self, traversal: Traversal) -> tuple[int, int]:
        hops = traversal.hops
        if hops is None:
            return 1, 1
        if hops.low < 1:
            message = f"min hop bound must be >= 1, got {hops.low}"
            self._complaints.refuse(hops.span, "T15", message)
        if hops.high is None:
            message = f"unbounded traversal is disabled; write an upper bound: {{{hops.low},4}}"
            self._complaints.refuse(hops.span, "T15", message)
        if hops.high < hops.low:
            message = f"invalid traversal bounds {{{hops.low},{hops.high}}}"
            self._complaints.refuse(hops.span, "T15", message)
        return hops.low, hops.high

    def _direction(self, traversal: Traversal, edge: EdgeType) -> ir.Direction:
        """Types decide: a known left end first, then a known right end, else as declared."""
        for variable, forward_type in (
            (traversal.left, edge.from_type),
            (traversal.right, edge.to_type),
        ):
            bound = self._scope.find(variable.name)
            if bound is None:
                continue
            known = bound.node_type.name
            if known == forward_type:
                return ir.Direction.OUT
            if known in (edge.from_type, edge.to_type):
                return ir.Direction.IN
            message = f"variable `${variable.name}` has type `{known}`, which is not an endpoint"
            ends = f"({edge.from_type} -> {edge.to_type})"
            self._complaints.refuse(variable.span, "T5", f"{message} of edge `{edge.name}` {ends}")
        return ir.Direction.OUT

    def _endpoint(self, variable: Variable, expected: str, edge: EdgeType) -> BoundVariable:
        bound = self._scope.find(variable.name)
        if bound is None:
            return self._scope.introduce(variable.name, self._catalog.nodes[expected])
        if bound.node_type.name != expected:
            message = f"variable `${variable.name}` has type `{bound.node_type.name}` but edge"
            self._complaints.refuse(
                variable.span, "T5", f"{message} `{edge.name}` expects `{expected}`"
            )
        return bound

    # -- filters ----------------------------------------------------------------------------

    def _filter(self, clause: Filter) -> ir.Filter:
        left = self._operand(clause.left)
        right = self._operand(clause.right)
        match clause.operator:
            case Operator.CONTAINS:
                self._check_contains(clause, left.type, right.type)
            case Operator.STARTS_WITH:
                for side, operand in ((left, clause.left), (right, clause.right)):
                    if not side.type.is_text:
                        message = f"starts_with requires a String, got {side.type.display}"
                        self._complaints.refuse(operand.span, "T7", message)
            case _:
                self._check_comparison(clause, left.type, right.type)
        return ir.Filter(left, clause.operator, right)

    def _operand(self, expression: Expression) -> ir.Expr:
        """One side of a filter. Nodes, aggregates and aliases have no scalar to compare."""
        typed = None
        if not isinstance(expression, Aggregate | AliasReference):
            typed = self._expressions.check(expression)
        if typed is None or isinstance(typed, ir.EntityId):
            hint = None
            if isinstance(typed, ir.EntityId):
                hint = "compare one of its properties instead"
            message = "filter comparisons require scalar operands"
            self._complaints.refuse(expression.span, "T7", message, hint)
        return typed

    def _check_contains(self, clause: Filter, left: PropType, right: PropType) -> None:
        if left.is_vector:
            message = "vector membership filters are not supported"
            self._complaints.refuse(clause.left.span, "T7", message)
        if not left.list and left.scalar is not Scalar.STRING:
            message = f"contains requires a list or String on the left, got {left.display}"
            self._complaints.refuse(clause.left.span, "T7", message)
        if right.list:
            message = f"contains requires a scalar right operand, got {right.display}"
            self._complaints.refuse(clause.right.span, "T7", message)
        if left.list and not compatible(left.element(), right):
            message = f"cannot test membership of {right.display} in {left.display}"
            self._complaints.refuse(clause.span, "T7", message)
        if not left.list and not right.is_text:
            message = f"cannot test substring: {right.display} is not a String"
            self._complaints.refuse(clause.right.span, "T7", message)

    def _check_comparison(self, clause: Filter, left: PropType, right: PropType) -> None:
        for side, operand in ((left, clause.left), (right, clause.right)):
            problem = None
            if side.list:
                problem = "list comparisons in filters are not supported; use `contains`"
            elif side.is_vector:
                problem = "vector comparisons in filters are not supported; use `nearest`"
            elif side.is_blob:
                problem = "blob comparisons in filters are not supported"
            if problem:
                self._complaints.refuse(operand.span, "T7", problem)
        if not compatible(left, right):
            message = f"cannot compare {left.display} with {right.display}"
            self._complaints.refuse(clause.span, "T7", message)

    # -- negation ---------------------------------------------------------------------------

    def _negation(self, negation: Negation) -> CheckedNegation:
        mentioned = {name for clause in negation.clauses for name in _direct_variables(clause)}
        if not any(self._scope.find(name) for name in mentioned):
            message = "negation block must reference at least one variable bound outside of it"
            self._complaints.refuse(negation.span, "T9", message)
        inner = Scope(self._scope.parameters, parent=self._scope)
        checker = ClauseChecker(self._complaints, self._catalog, inner)
        return CheckedNegation(checker.check(negation.clauses))


def _direct_variables(clause: Clause) -> Iterator[str]:
    """Variables a clause mentions itself; those of a nested negation do not count."""
    match clause:
        case Binding() | Traversal():
            yield from _introduced_variables(clause)
        case Filter():
            yield from _expression_variables(clause.left)
            yield from _expression_variables(clause.right)
        case TextClause():
            yield from _expression_variables(clause.call)
        case Negation():
            return


def _introduced_variables(clause: Clause) -> Iterator[str]:
    if isinstance(clause, Binding):
        yield clause.variable.name
    elif isinstance(clause, Traversal):
        yield clause.left.name
        yield clause.right.name


def _expression_variables(expression: Expression) -> Iterator[str]:
    match expression:
        case Variable():
            yield expression.name
        case PropertyAccess():
            yield expression.variable.name
        case TextCall() | NearestCall() | Bm25Call():
            yield from _expression_variables(expression.field)
            yield from _expression_variables(expression.query)
        case RrfCall():
            yield from _expression_variables(expression.first)
            yield from _expression_variables(expression.second)
        case _:
            return
