"""Checks a read query and builds its plan: pattern, `return`, `order` and `limit`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from omnigraph.catalog.model import Catalog, NodeType
from omnigraph.diagnostics import did_you_mean
from omnigraph.language.query import ast
from omnigraph.language.query.ast import Operator
from omnigraph.language.syntax import Name, Source, Span
from omnigraph.language.types import PropType
from omnigraph.plan.check_result import ResultChecker
from omnigraph.plan.check_traversal import TraversalChecker
from omnigraph.plan.constants import Use, is_plain, property_value
from omnigraph.plan.declared_parameters import parameter_specs, parameter_types
from omnigraph.plan.expressions import ExpressionChecker
from omnigraph.plan.ir import (
    Block,
    BlockValue,
    Comparison,
    EdgePattern,
    EntityId,
    Filter,
    NullTest,
    Pattern,
    Prop,
    ReadPlan,
    SystemField,
    conjuncts,
    walk,
)
from omnigraph.plan.mentions import introduced_variables, mentions_outer
from omnigraph.plan.scope import BoundEdge, BoundNode, Scope
from omnigraph.plan.type_errors import TypeErrors, find_property


def check_read(source: Source, catalog: Catalog, query: ast.Query) -> ReadPlan:
    """Type-check a read query. Raises `TypeCheckError`; the first error ends the check."""
    errors = TypeErrors(source)
    if not isinstance(query.body, ast.ReadBody):
        message = "mutation query cannot be typechecked with read-query API"
        errors.fail(query.name.span, "T35", message)
    body = query.body
    scope, pattern = check_pattern(errors, catalog, parameter_types(errors, query), body.clauses)
    expressions = ExpressionChecker(errors, scope)
    variables = named_variables(scope)

    def plan_of(written: ast.Result, name: str) -> ReadPlan:
        result = ResultChecker(errors, query, written, expressions)
        return ReadPlan(
            name=name,
            parameters=parameter_specs(errors, query, scope.parameters),
            pattern=pattern,
            columns=result.columns,
            order=result.order,
            limit=result.limit,
            variables=variables,
            having=result.having,
            distinct=result.distinct,
            offset=result.offset,
        )

    further: list[ReadPlan] = []
    for written in body.further:
        assert written.name is not None, "only the first result has no name"
        name = written.name.text
        if name in _ENVELOPE or any(name == other.name for other in further):
            message = f"a result cannot be called `{name}`: the name is taken"
            errors.fail(written.name.span, "Q011", message)
        further.append(plan_of(written, name))
    return replace(plan_of(body.result, query.name.text), results=tuple(further))


_ENVELOPE = frozenset({"rows", "columns"})


def check_pattern(
    errors: TypeErrors,
    catalog: Catalog,
    parameters: Mapping[str, PropType],
    clauses: Iterable[ast.Clause],
) -> tuple[Scope, Pattern]:
    """A pattern that stands alone, and the scope with its variables."""
    scope = Scope(parameters)
    scope.check_pattern = lambda inner, within: _PatternChecker(errors, catalog, inner).check(
        within
    )
    return scope, _PatternChecker(errors, catalog, scope).check(clauses)


def named_variables(scope: Scope) -> tuple[tuple[str, str | tuple[str, ...]], ...]:
    """The node and edge variables of a query, with their node type or edge types, by name."""
    found: dict[str, str | tuple[str, ...]] = {}
    for bound in scope.own.values():
        if isinstance(bound, BoundNode):
            found[bound.name] = bound.node_type.name
        elif isinstance(bound, BoundEdge):
            found[bound.name] = tuple(member.name for member in bound.members)
    return tuple(sorted(found.items()))


# -- the pattern --------------------------------------------------------------------------------


class _PatternChecker:
    """Checks one clause list top to bottom, binds its variables in `scope` and collects its pattern."""

    def __init__(self, errors: TypeErrors, catalog: Catalog, scope: Scope) -> None:
        self._errors = errors
        self._catalog = catalog
        self._scope = scope
        self._expressions = ExpressionChecker(errors, scope)
        self._traversals = TraversalChecker(errors, catalog, scope)
        self._types = self._traversals.types
        self._conditions: dict[str, list[Filter]] = {}
        self._edges: list[EdgePattern] = []
        self._filters: list[Filter] = []
        self._negations: list[Block] = []
        self._requirements: list[Block] = []
        self._optionals: list[Block] = []

    def check(self, clauses: Iterable[ast.Clause]) -> Pattern:
        clauses = tuple(clauses)
        self._scope.introduces(introduced_variables(clauses))
        bindings = [clause for clause in clauses if isinstance(clause, ast.Binding)]
        nodes = self._catalog.nodes
        self._scope.declared = {
            binding.variable.name: nodes[binding.type.text]
            for binding in reversed(bindings)
            if binding.type.text in nodes
        }
        for clause in clauses:
            self._clause(clause)
        return Pattern(
            types=self._types,
            conditions={name: tuple(found) for name, found in self._conditions.items()},
            edges=tuple(self._edges),
            filters=tuple(self._filters),
            negations=tuple(self._negations),
            requirements=tuple(self._requirements),
            optionals=tuple(self._optionals),
            edge_types=self._traversals.edge_types,
        )

    def _clause(self, clause: ast.Clause) -> None:
        match clause:
            case ast.Binding():
                self._binding(clause)
            case ast.Traversal():
                self._traversal(clause)
            case ast.Filter(ast.Exists(inner, span)):
                self._requirements.append(self._existence("exists", inner, span))
            case ast.Filter(ast.Not(ast.Exists(inner, span))):
                self._negations.append(self._existence("exists", inner, span))
            case ast.Filter():
                for condition in self._conditions_in(clause):
                    self._add_filter(condition)
            case ast.Negation():
                block = self._existence("negation", clause.clauses, clause.span)
                self._negations.append(block)
            case ast.Optional():
                self._optionals.append(self._optional(clause))

    def _traversal(self, traversal: ast.Traversal) -> None:
        """A traversal, unless its words are operators because there is no edge of that name."""
        meant, edge = ast.junction_or_membership(traversal), traversal.edges.only
        if meant is None or edge is None or self._catalog.edge_for_traversal(edge.text):
            self._edges.append(self._traversals.check(traversal))
        else:
            self._clause(meant)

    def _introduce(self, name: str, node_type: NodeType) -> BoundNode:
        bound = self._scope.introduce(name, node_type)
        self._types[bound.name] = node_type.name
        return bound

    def _add_filter(self, condition: Filter) -> None:
        variables = condition.variables
        is_plain = len(variables) == 1 and not any(
            isinstance(part, BlockValue | SystemField) for part in walk(condition.condition)
        )
        if is_plain:
            self._conditions.setdefault(next(iter(variables)), []).append(condition)
        else:
            self._filters.append(condition)

    # -- bindings ---------------------------------------------------------------------------

    def _binding(self, binding: ast.Binding) -> None:
        name = binding.variable.name
        node_type = self._node_type(binding.type)
        bound = self._scope.find(name)
        if bound is None:
            bound = self._introduce(name, node_type)
        elif not isinstance(bound, BoundNode):
            kind = "edge" if isinstance(bound, BoundEdge) else "path"
            message = f"{kind} variable `${name}` cannot be bound to a node type"
            self._errors.fail(binding.variable.span, "T23", message)
        elif bound.node_type is not node_type:
            message = f"variable `${name}` is already bound to type `{bound.node_type.name}`"
            self._errors.fail(binding.variable.span, "T34", message)
        elif bound.optional:
            self._add_filter(Filter(NullTest(EntityId(bound.name), negated=True)))
        for match in binding.matches:
            self._add_filter(self._property_match(binding.variable, bound, match))

    def _node_type(self, name: Name) -> NodeType:
        node_type = self._catalog.nodes.get(name.text)
        if node_type is None:
            hint = did_you_mean(name.text, self._catalog.nodes)
            if hint is None and name.text in self._catalog.edges:
                hint = f"`{name}` is an edge type; bind its ends and traverse it"
            self._errors.fail(name.span, "T1", f"unknown node type `{name}`", hint)
        return node_type

    def _property_match(
        self, variable: ast.Variable, bound: BoundNode, match: ast.PropertyMatch
    ) -> Filter:
        prop = find_property(self._errors, bound.node_type, match.property, "T2")
        if prop.type.is_blob:
            message = f"blob property `{prop.name}` cannot be used in match patterns"
            self._errors.fail(match.property.span, "T3", message)
        operator = Operator.CONTAINS if prop.type.list else Operator.EQ
        if not is_plain(match.value):
            held = ast.PropertyAccess(variable, match.property, match.property.span)
            written = ast.Comparison(held, operator, match.value, match.span)
            return Filter(self._expressions.condition(written))
        parameters = self._scope.parameters
        value = property_value(
            self._errors, parameters, match.property, prop.type, match.value, Use.MATCH
        )
        return Filter(Comparison(Prop(bound.name, prop.name, prop.type), operator, value))

    # -- filters ----------------------------------------------------------------------------

    def _conditions_in(self, clause: ast.Filter) -> Iterator[Filter]:
        """The conditions that a filter requires, each alone."""
        for condition in conjuncts(self._expressions.condition(clause.condition)):
            yield Filter(condition)

    # -- blocks -----------------------------------------------------------------------------

    def _existence(self, word: str, clauses: tuple[ast.Clause, ...], span: Span) -> Block:
        """A block that must have a solution, or must have none."""
        self._require_outer(word, "T9" if word == "negation" else "T39", clauses, span)
        inner = Scope(self._scope.parameters, parent=self._scope)
        pattern = _PatternChecker(self._errors, self._catalog, inner).check(clauses)
        return Block(tuple(sorted(pattern.outer_variables())), pattern)

    def _optional(self, optional: ast.Optional) -> Block:
        self._require_outer("optional", "T39", optional.clauses, optional.span)
        inner = Scope(self._scope.parameters, parent=self._scope, is_optional=True)
        pattern = _PatternChecker(self._errors, self._catalog, inner).check(optional.clauses)
        self._scope.adopt(inner)
        return Block(tuple(sorted(pattern.outer_variables())), pattern)

    def _require_outer(
        self, word: str, code: str, clauses: tuple[ast.Clause, ...], span: Span
    ) -> None:
        if not mentions_outer(clauses, self._scope):
            message = f"{word} block must reference at least one variable bound outside of it"
            self._errors.fail(span, code, message)
