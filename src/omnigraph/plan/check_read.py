"""Checks a read query and builds its plan: pattern, `return`, `order` and `limit`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.diagnostics import did_you_mean
from omnigraph.language.query import ast
from omnigraph.language.query.ast import Operator, Variable
from omnigraph.language.syntax import Name, Source
from omnigraph.language.types import PropType, Scalar, compatible
from omnigraph.plan.expressions import (
    BoundVariable,
    ExpressionChecker,
    Scope,
    TypeErrors,
    Use,
    find_property,
    parameter_specs,
    parameter_types,
    property_value,
)
from omnigraph.plan.ir import (
    NOW_PARAMETER,
    Aggregated,
    Bm25,
    Column,
    Constant,
    Direction,
    EdgePattern,
    EntityId,
    Expr,
    Filter,
    Nearest,
    Negation,
    Param,
    Pattern,
    Prop,
    ReadPlan,
    Rrf,
    SortKey,
    TextMatch,
)

_DESCENDING_BY_DEFAULT = (Bm25, Rrf)
_TRUE = Constant(True, PropType(Scalar.BOOL))


def check_read(source: Source, catalog: Catalog, query: ast.Query) -> ReadPlan:
    """Type-check a read query. Raises `TypeCheckError`; the first error ends the check."""
    errors = TypeErrors(source)
    if not isinstance(query.body, ast.ReadBody):
        message = "mutation query cannot be typechecked with read-query API"
        errors.fail(query.name.span, "T35", message)
    body = query.body
    scope = Scope(parameter_types(errors, query))
    pattern = _PatternChecker(errors, catalog, scope).check(body.clauses)
    result = _ResultChecker(errors, query, body, ExpressionChecker(errors, scope))
    return ReadPlan(
        name=query.name.text,
        parameters=parameter_specs(query),
        pattern=pattern,
        columns=result.columns,
        order=result.order,
        limit=body.limit,
        variables=tuple(sorted((v.name, v.node_type.name) for v in scope.own.values())),
    )


# -- the pattern --------------------------------------------------------------------------------


class _PatternChecker:
    """Checks one clause list top to bottom, binds its variables in `scope` and collects its pattern."""

    def __init__(self, errors: TypeErrors, catalog: Catalog, scope: Scope) -> None:
        self._errors = errors
        self._catalog = catalog
        self._scope = scope
        self._expressions = ExpressionChecker(errors, scope)
        self._types: dict[str, str] = {}
        self._conditions: dict[str, list[Filter]] = {}
        self._edges: list[EdgePattern] = []
        self._filters: list[Filter] = []
        self._negations: list[Negation] = []

    def check(self, clauses: Iterable[ast.Clause]) -> Pattern:
        clauses = tuple(clauses)
        self._scope.introduces(name for clause in clauses for name in _introduced_variables(clause))
        for clause in clauses:
            self._clause(clause)
        return Pattern(
            types=self._types,
            conditions={name: tuple(found) for name, found in self._conditions.items()},
            edges=tuple(self._edges),
            filters=tuple(self._filters),
            negations=tuple(self._negations),
        )

    def _clause(self, clause: ast.Clause) -> None:
        match clause:
            case ast.Binding():
                self._binding(clause)
            case ast.Traversal():
                self._edges.append(self._traversal(clause))
            case ast.Filter():
                self._add_filter(self._filter(clause))
            case ast.TextClause(call):
                self._add_filter(Filter(self._expressions.check(call), Operator.EQ, _TRUE))
            case ast.Negation():
                self._negations.append(self._negation(clause))

    def _introduce(self, name: str, node_type: NodeType) -> BoundVariable:
        bound = self._scope.introduce(name, node_type)
        self._types[bound.name] = node_type.name
        return bound

    def _add_filter(self, condition: Filter) -> None:
        variables = condition.variables
        if len(variables) == 1:
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
        elif bound.node_type is not node_type:
            message = f"variable `${name}` is already bound to type `{bound.node_type.name}`"
            self._errors.fail(binding.variable.span, "T34", message)
        for match in binding.matches:
            self._add_filter(self._property_match(bound, match))

    def _node_type(self, name: Name) -> NodeType:
        node_type = self._catalog.nodes.get(name.text)
        if node_type is None:
            hint = did_you_mean(name.text, self._catalog.nodes)
            if hint is None and name.text in self._catalog.edges:
                hint = f"`{name}` is an edge type; bind its ends and traverse it"
            self._errors.fail(name.span, "T1", f"unknown node type `{name}`", hint)
        return node_type

    def _property_match(self, bound: BoundVariable, match: ast.PropertyMatch) -> Filter:
        prop = find_property(self._errors, bound.node_type, match.property, "T2")
        if prop.type.is_blob:
            message = f"blob property `{prop.name}` cannot be used in match patterns"
            self._errors.fail(match.property.span, "T3", message)
        parameters = self._scope.parameters
        value = property_value(
            self._errors, parameters, match.property, prop.type, match.value, Use.MATCH
        )
        operator = Operator.CONTAINS if prop.type.list else Operator.EQ
        return Filter(Prop(bound.name, prop.name, prop.type), operator, value)

    # -- traversals -------------------------------------------------------------------------

    def _traversal(self, traversal: ast.Traversal) -> EdgePattern:
        edge = self._catalog.edge_for_traversal(traversal.edge.text)
        if edge is None:
            words = [name[0].lower() + name[1:] for name in self._catalog.edges]
            hint = did_you_mean(traversal.edge.text, words)
            message = f"unknown edge type `{traversal.edge}`"
            self._errors.fail(traversal.edge.span, "T4", message, hint)
        low, high = self._hops(traversal)
        direction = self._direction(traversal, edge)
        left_type, right_type = edge.from_type, edge.to_type
        if direction is Direction.IN:
            left_type, right_type = right_type, left_type
        left = self._endpoint(traversal.left, left_type, edge)
        right = self._endpoint(traversal.right, right_type, edge)
        return EdgePattern(left.name, right.name, edge.name, direction, low, high)

    def _hops(self, traversal: ast.Traversal) -> tuple[int, int]:
        hops = traversal.hops
        if hops is None:
            return 1, 1
        if hops.low < 1:
            message = f"min hop bound must be >= 1, got {hops.low}"
            self._errors.fail(hops.span, "T15", message)
        if hops.high is None:
            message = f"unbounded traversal is disabled; write an upper bound: {{{hops.low},4}}"
            self._errors.fail(hops.span, "T15", message)
        if hops.high < hops.low:
            message = f"invalid traversal bounds {{{hops.low},{hops.high}}}"
            self._errors.fail(hops.span, "T15", message)
        return hops.low, hops.high

    def _direction(self, traversal: ast.Traversal, edge: EdgeType) -> Direction:
        """Types decide: a known left endpoint first, then a known right one, else as declared."""
        for variable, forward_type in (
            (traversal.left, edge.from_type),
            (traversal.right, edge.to_type),
        ):
            bound = self._scope.find(variable.name)
            if bound is None:
                continue
            known = bound.node_type.name
            if known == forward_type:
                return Direction.OUT
            if known in (edge.from_type, edge.to_type):
                return Direction.IN
            message = f"variable `${variable.name}` has type `{known}`, which is not an endpoint"
            ends = f"({edge.from_type} -> {edge.to_type})"
            self._errors.fail(variable.span, "T5", f"{message} of edge `{edge.name}` {ends}")
        return Direction.OUT

    def _endpoint(self, variable: Variable, expected: str, edge: EdgeType) -> BoundVariable:
        bound = self._scope.find(variable.name)
        if bound is None:
            return self._introduce(variable.name, self._catalog.nodes[expected])
        if bound.node_type.name != expected:
            message = f"variable `${variable.name}` has type `{bound.node_type.name}` but edge"
            self._errors.fail(variable.span, "T5", f"{message} `{edge.name}` expects `{expected}`")
        return bound

    # -- filters ----------------------------------------------------------------------------

    def _filter(self, clause: ast.Filter) -> Filter:
        left = self._operand(clause.left)
        right = self._operand(clause.right)
        match clause.operator:
            case Operator.CONTAINS:
                self._check_contains(clause, left.type, right.type)
            case Operator.STARTS_WITH:
                for side, operand in ((left, clause.left), (right, clause.right)):
                    if not side.type.is_text:
                        message = f"starts_with requires a String, got {side.type.display}"
                        self._errors.fail(operand.span, "T7", message)
            case _:
                self._check_comparison(clause, left.type, right.type)
        return Filter(left, clause.operator, right)

    def _operand(self, expression: ast.Expression) -> Expr:
        """One side of a filter. Nodes, aggregates and aliases have no scalar to compare."""
        typed = None
        if not isinstance(expression, ast.Aggregate | ast.AliasReference):
            typed = self._expressions.check(expression)
        if typed is None or isinstance(typed, EntityId):
            hint = None
            if isinstance(typed, EntityId):
                hint = "compare one of its properties instead"
            message = "filter comparisons require scalar operands"
            self._errors.fail(expression.span, "T7", message, hint)
        return typed

    def _check_contains(self, clause: ast.Filter, left: PropType, right: PropType) -> None:
        if left.is_vector:
            message = "vector membership filters are not supported"
            self._errors.fail(clause.left.span, "T7", message)
        if not left.list and left.scalar is not Scalar.STRING:
            message = f"contains requires a list or String on the left, got {left.display}"
            self._errors.fail(clause.left.span, "T7", message)
        if right.list:
            message = f"contains requires a scalar right operand, got {right.display}"
            self._errors.fail(clause.right.span, "T7", message)
        if left.list and not compatible(left.element(), right):
            message = f"cannot test membership of {right.display} in {left.display}"
            self._errors.fail(clause.span, "T7", message)
        if not left.list and not right.is_text:
            message = f"cannot test substring: {right.display} is not a String"
            self._errors.fail(clause.right.span, "T7", message)

    def _check_comparison(self, clause: ast.Filter, left: PropType, right: PropType) -> None:
        for side, operand in ((left, clause.left), (right, clause.right)):
            problem = None
            if side.list:
                problem = "list comparisons in filters are not supported; use `contains`"
            elif side.is_vector:
                problem = "vector comparisons in filters are not supported; use `nearest`"
            elif side.is_blob:
                problem = "blob comparisons in filters are not supported"
            if problem:
                self._errors.fail(operand.span, "T7", problem)
        if not compatible(left, right):
            message = f"cannot compare {left.display} with {right.display}"
            self._errors.fail(clause.span, "T7", message)

    # -- negation ---------------------------------------------------------------------------

    def _negation(self, negation: ast.Negation) -> Negation:
        mentioned = {name for clause in negation.clauses for name in _direct_variables(clause)}
        if not any(self._scope.find(name) for name in mentioned):
            message = "negation block must reference at least one variable bound outside of it"
            self._errors.fail(negation.span, "T9", message)
        inner = Scope(self._scope.parameters, parent=self._scope)
        pattern = _PatternChecker(self._errors, self._catalog, inner).check(negation.clauses)
        return Negation(tuple(sorted(pattern.outer_variables())), pattern)


def _direct_variables(clause: ast.Clause) -> Iterator[str]:
    """Variables a clause mentions itself; those of a nested negation do not count."""
    match clause:
        case ast.Binding() | ast.Traversal():
            yield from _introduced_variables(clause)
        case ast.Filter():
            yield from _expression_variables(clause.left)
            yield from _expression_variables(clause.right)
        case ast.TextClause():
            yield from _expression_variables(clause.call)
        case ast.Negation():
            return


def _introduced_variables(clause: ast.Clause) -> Iterator[str]:
    if isinstance(clause, ast.Binding):
        yield clause.variable.name
    elif isinstance(clause, ast.Traversal):
        yield clause.left.name
        yield clause.right.name


def _expression_variables(expression: ast.Expression) -> Iterator[str]:
    match expression:
        case Variable():
            yield expression.name
        case ast.PropertyAccess():
            yield expression.variable.name
        case ast.TextCall() | ast.NearestCall() | ast.Bm25Call():
            yield from _expression_variables(expression.field)
            yield from _expression_variables(expression.query)
        case ast.RrfCall():
            yield from _expression_variables(expression.first)
            yield from _expression_variables(expression.second)
        case _:
            return


# -- the result ---------------------------------------------------------------------------------


class _ResultChecker:
    """`return`, `order` and `limit` of one query."""

    def __init__(
        self,
        errors: TypeErrors,
        query: ast.Query,
        body: ast.ReadBody,
        expressions: ExpressionChecker,
    ) -> None:
        self._errors = errors
        self._expressions = expressions
        self._aliases: dict[str, Expr] = {}
        projected = [self._projection(p) for p in body.projections]
        self.columns = name_columns(body.projections, projected)
        self.order = tuple(self._sort_key(key) for key in body.order)
        if body.limit is None:
            self._require_limit(query)
        self._check_aggregation(body, projected)

    def _projection(self, projection: ast.Projection) -> Expr:
        typed = self._expressions.check(projection.expression, self._aliases)
        if projection.alias is not None:
            self._aliases[projection.alias.text] = typed
        return typed

    def _sort_key(self, key: ast.OrderKey) -> SortKey:
        typed = self._expressions.check(key.expression, self._aliases)
        if typed.type.list or typed.type.is_vector or typed.type.is_blob:
            message = f"cannot order by {typed.type.display}"
            self._errors.fail(key.expression.span, "T7", message)
        descending = key.descending
        if descending is None:
            descending = isinstance(typed, _DESCENDING_BY_DEFAULT)
        return SortKey(typed, descending)

    def _require_limit(self, query: ast.Query) -> None:
        """Orders that rank everything need to know how much of it is wanted."""
        for code, rank, word in (("T21", Rrf, "rrf"), ("T17", Nearest, "nearest")):
            if any(isinstance(key.expression, rank) for key in self.order):
                message = f"{word} ordering requires a limit"
                self._errors.fail(query.name.span, code, message)

    def _check_aggregation(self, body: ast.ReadBody, projected: list[Expr]) -> None:
        if any(isinstance(e, Aggregated) for e in projected):
            for projection, typed in zip(body.projections, projected, strict=True):
                if not _may_group(typed):
                    message = (
                        "non-aggregate expressions beside an aggregate must be properties, "
                        "variables, rank or text functions"
                    )
                    self._errors.fail(projection.expression.span, "T9", message)
            for key, sort_key in zip(body.order, self.order, strict=True):
                if sort_key.expression not in projected:
                    message = "order key of an aggregate query must be one of its projections"
                    self._errors.fail(key.expression.span, "T9", message)
            return
        for key, sort_key in zip(body.order, self.order, strict=True):
            if isinstance(sort_key.expression, Aggregated):
                message = "order key is an aggregate, but `return` has none"
                self._errors.fail(key.expression.span, "T9", message)


def _may_group(expression: Expr) -> bool:
    if isinstance(expression, Param):
        return expression.name != NOW_PARAMETER
    return not isinstance(expression, Constant)


def name_columns(
    projections: Iterable[ast.Projection], projected: Iterable[Expr]
) -> tuple[Column, ...]:
    """Result columns with distinct names: repeated names are numbered in projection order."""
    columns: list[Column] = []
    taken: set[str] = set()
    last: dict[str, int] = {}
    for projection, expression in zip(projections, projected, strict=True):
        base = name = _column_name(projection, expression)
        while name in taken:
            last[base] = last.get(base, 1) + 1
            name = f"{base}_{last[base]}"
        taken.add(name)
        columns.append(Column(name, expression, projection.alias is not None))
    return tuple(columns)


def _column_name(projection: ast.Projection, expression: Expr) -> str:
    if projection.alias is not None:
        return projection.alias.text
    return _natural_name(projection.expression, expression)


def _natural_name(written: ast.Expression, expression: Expr) -> str:
    if isinstance(written, ast.Aggregate) and isinstance(expression, Aggregated):
        return _natural_name(written.argument, expression.argument)
    if isinstance(written, ast.AliasReference):
        return written.name.text
    match expression:
        case Prop(variable, name, _):
            return f"{variable}.{name}"
        case EntityId(variable, _):
            return variable
        case Param(name, _):
            return "now" if name == NOW_PARAMETER else name
        case Constant():
            return "literal"
        case TextMatch():
            return expression.function.value
        case Nearest():
            return "nearest"
        case Bm25():
            return "bm25"
        case Rrf():
            return "rrf"
        case Aggregated():
            return _natural_name(written, expression.argument)
