"""Checks a read query: parameters, clauses, `return`, `order` and `limit`."""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.catalog.model import Catalog
from omnigraph.language.query.ast import (
    Aggregate,
    AliasReference,
    Expression,
    OrderKey,
    Projection,
    Query,
    ReadBody,
)
from omnigraph.language.span import Source
from omnigraph.plan.checked import CheckedRead
from omnigraph.plan.clauses import ClauseChecker
from omnigraph.plan.expressions import ExpressionChecker
from omnigraph.plan.ir import (
    NOW_PARAMETER,
    Aggregated,
    Bm25,
    Column,
    Constant,
    EntityId,
    Expr,
    Nearest,
    Param,
    Prop,
    Rrf,
    SortKey,
    TextMatch,
)
from omnigraph.plan.scope import Complaints, Scope, parameter_types

_DESCENDING_BY_DEFAULT = (Bm25, Rrf)


def check_read(source: Source, catalog: Catalog, query: Query) -> CheckedRead:
    """Type-check a read query. Raises `TypeCheckError`; the first error ends the check."""
    complaints = Complaints(source)
    if not isinstance(query.body, ReadBody):
        message = "mutation query cannot be typechecked with read-query API"
        complaints.refuse_plainly(query.name.span, "T35", message)
    body = query.body
    scope = Scope(parameter_types(complaints, query))
    clauses = ClauseChecker(complaints, catalog, scope).check(body.clauses)
    tail = _Tail(complaints, query, body, ExpressionChecker(complaints, scope))
    return CheckedRead(
        clauses=clauses,
        columns=tail.columns,
        order=tail.order,
        limit=body.limit,
        variables=tuple(sorted((v.name, v.node_type.name) for v in scope.own.values())),
    )


class _Tail:
    """`return`, `order` and `limit` of one query."""

    def __init__(
        self,
        complaints: Complaints,
        query: Query,
        body: ReadBody,
        expressions: ExpressionChecker,
    ) -> None:
        self._complaints = complaints
        self._expressions = expressions
        self._aliases: dict[str, Expr] = {}
        projected = [self._projection(p) for p in body.projections]
        self.columns = name_columns(body.projections, projected)
        self.order = tuple(self._sort_key(key) for key in body.order)
        if body.limit is None:
            self._require_limit(query)
        self._check_aggregation(body, projected)

    def _projection(self, projection: Projection) -> Expr:
        typed = self._expressions.check(projection.expression, self._aliases)
        if projection.alias is not None:
            self._aliases[projection.alias.text] = typed
        return typed

    def _sort_key(self, key: OrderKey) -> SortKey:
        typed = self._expressions.check(key.expression, self._aliases)
        if typed.type.list or typed.type.is_vector or typed.type.is_blob:
            message = f"cannot order by {typed.type.display}"
            self._complaints.refuse(key.expression.span, "T7", message)
        descending = key.descending
        if descending is None:
            descending = isinstance(typed, _DESCENDING_BY_DEFAULT)
        return SortKey(typed, descending)

    def _require_limit(self, query: Query) -> None:
        """Orders that rank everything need to know how much of it is wanted."""
        for code, rank, word in (("T21", Rrf, "rrf"), ("T17", Nearest, "nearest")):
            if any(isinstance(key.expression, rank) for key in self.order):
                message = f"{word} ordering requires a limit"
                self._complaints.refuse(query.name.span, code, message)

    def _check_aggregation(self, body: ReadBody, projected: list[Expr]) -> None:
        if any(isinstance(e, Aggregated) for e in projected):
            for projection, typed in zip(body.projections, projected, strict=True):
                if not _may_group(typed):
                    message = (
                        "non-aggregate expressions beside an aggregate must be properties, "
                        "variables, rank or text functions"
                    )
                    self._complaints.refuse(projection.expression.span, "T9", message)
            for key, sort_key in zip(body.order, self.order, strict=True):
                if sort_key.expression not in projected:
                    message = "order key of an aggregate query must be one of its projections"
                    self._complaints.refuse(key.expression.span, "T9", message)
            return
        for key, sort_key in zip(body.order, self.order, strict=True):
            if isinstance(sort_key.expression, Aggregated):
                message = "order key is an aggregate, but `return` has none"
                self._complaints.refuse(key.expression.span, "T9", message)


def _may_group(expression: Expr) -> bool:
    if isinstance(expression, Param):
        return expression.name != NOW_PARAMETER
    return not isinstance(expression, Constant)


def name_columns(
    projections: Iterable[Projection], projected: Iterable[Expr]
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
        columns.append(Column(name, expression))
    return tuple(columns)


def _column_name(projection: Projection, expression: Expr) -> str:
    if projection.alias is not None:
        return projection.alias.text
    return _natural_name(projection.expression, expression)


def _natural_name(written: Expression, expression: Expr) -> str:
    if isinstance(written, Aggregate) and isinstance(expression, Aggregated):
        return _natural_name(written.argument, expression.argument)
    if isinstance(written, AliasReference):
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
