"""Checks one result of a read: `return`, `having`, `order`, `offset` and `limit`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from omnigraph.language.query import ast
from omnigraph.language.query.ast import Variable
from omnigraph.language.query.print_expression import print_expression
from omnigraph.language.syntax import Span
from omnigraph.language.types import PropType, Scalar
from omnigraph.plan.expressions import ExpressionChecker
from omnigraph.plan.ir import (
    NOW_PARAMETER,
    Aggregated,
    Bm25,
    Column,
    Constant,
    EntityId,
    Expr,
    MakeObject,
    Nearest,
    Null,
    Param,
    Prop,
    Rrf,
    SortKey,
    TextMatch,
    has_aggregate,
    parts_of,
)
from omnigraph.plan.type_errors import TypeErrors

_DESCENDING_BY_DEFAULT = (Bm25, Rrf)
_Shown = tuple[ast.Projection, str, Expr]
"""A written projection, the name of the column, and what it shows."""


class ResultChecker:
    """The checked parts of one result."""

    def __init__(
        self,
        errors: TypeErrors,
        query: ast.Query,
        result: ast.Result,
        expressions: ExpressionChecker,
    ) -> None:
        self._errors = errors
        self._expressions = expressions
        self._aliases: dict[str, Expr] = {}
        shown = [part for p in result.projections for part in self._projection(p)]
        self.distinct = result.distinct
        self.columns = name_columns(shown)
        self.having = tuple(
            self._expressions.condition(written, self._aliases) for written in result.having
        )
        self.order = tuple(self._sort_key(key) for key in result.order)
        self.offset = self._count(result.offset)
        self.limit = self._count(result.limit)
        if result.limit is None:
            self._require_limit(query)
        self._check_objects(shown)
        self._check_groups(result, shown)
        self._check_distinct(result, [expression for _, _, expression in shown])

    # -- return -----------------------------------------------------------------------------

    def _projection(self, projection: ast.Projection) -> Iterator[_Shown]:
        """The columns of a projection: one, or all of an entity's."""
        written = projection.expression
        if isinstance(written, ast.WholeEntity) and projection.alias is None:
            entity = self._expressions.entity(written)
            for name, value in entity.fields:
                yield projection, f"{written.variable.name}.{name}", value
            return
        if isinstance(written, ast.WholeEntity):
            typed: Expr = self._expressions.entity(written)
        else:
            typed = self._expressions.check(written, self._aliases)
        if projection.alias is not None:
            self._aliases[projection.alias.text] = typed
        yield projection, _column_name(projection, typed), typed

    def _check_objects(self, shown: list[_Shown]) -> None:
        for projection, _, typed in shown:
            if not self.distinct:
                return
            if typed.type.is_object:
                self._refuse_object(projection.expression.span)

    def _refuse_object(self, span: Span) -> None:
        message = "an object cannot be compared, ordered or grouped by; use its properties"
        self._errors.fail(span, "T65", f"$p.* is an object: {message}")

    # -- having, order, offset and limit ----------------------------------------------------

    def _sort_key(self, key: ast.OrderKey) -> SortKey:
        typed = self._expressions.check(key.expression, self._aliases)
        if typed.type.is_object:
            self._refuse_object(key.expression.span)
        if typed.type.list or typed.type.is_vector or typed.type.is_blob:
            message = f"cannot order by {typed.type.display}"
            self._errors.fail(key.expression.span, "T7", message)
        descending = key.descending
        if descending is None:
            descending = isinstance(typed, _DESCENDING_BY_DEFAULT)
        return SortKey(typed, descending, key.nulls_first)

    def _count(self, written: int | Variable | None) -> int | Param | None:
        if not isinstance(written, Variable):
            return written
        self._expressions.infer(written, PropType(Scalar.I64))
        typed = self._expressions.check(written)
        if not isinstance(typed, Param) or typed.type.list or not typed.type.scalar.is_integer:
            message = f"`${written.name}` must be an integer parameter to be an offset or limit"
            self._errors.fail(written.span, "T64", message)
        return typed

    def _require_limit(self, query: ast.Query) -> None:
        """Orders that rank everything need to know how much of it is wanted."""
        for code, rank, word in (("T21", Rrf, "rrf"), ("T17", Nearest, "nearest")):
            if any(isinstance(key.expression, rank) for key in self.order):
                message = f"{word} ordering requires a limit"
                self._errors.fail(query.name.span, code, message)

    # -- groups -----------------------------------------------------------------------------

    def _check_groups(self, result: ast.Result, shown: list[_Shown]) -> None:
        written = [
            (key.expression, k.expression) for key, k in zip(result.order, self.order, strict=True)
        ]
        written_having = list(zip(result.having, self.having, strict=True))
        returned = [(p.expression, typed) for p, _, typed in shown]
        if not any(has_aggregate(typed) for _, typed in (*returned, *written_having)):
            for expression, typed in written:
                if has_aggregate(typed):
                    message = "order key is an aggregate, but `return` has none"
                    self._errors.fail(expression.span, "T9", message)
            return
        keys = {typed for _, typed in returned if not has_aggregate(typed)}
        for expression, typed in returned:
            if typed.type.is_object and not has_aggregate(typed):
                message = "a whole entity beside an aggregate must be inside of `collect`"
                self._errors.fail(expression.span, "T9", message)
        for expression, typed in (*returned, *written_having):
            if not _is_decided(typed, keys):
                message = (
                    "a value beside an aggregate must be a group key or inside of an aggregate"
                )
                self._errors.fail(expression.span, "T9", message)
        for expression, typed in written:
            if not _is_decided(typed, keys):
                message = "order key of an aggregate query must be one of its projections"
                self._errors.fail(expression.span, "T9", message)

    def _check_distinct(self, result: ast.Result, projected: list[Expr]) -> None:
        if not self.distinct:
            return
        for projection, typed in zip(result.projections, projected, strict=False):
            if typed.type.is_blob:
                message = f"{typed.type.display} cannot be compared, so it cannot be distinct"
                self._errors.fail(projection.expression.span, "T64", message)
        for key, sort_key in zip(result.order, self.order, strict=True):
            if sort_key.expression not in projected:
                message = "order key of `return distinct` must be one of its columns"
                self._errors.fail(key.expression.span, "T64", message)


def _is_decided(expression: Expr, keys: set[Expr]) -> bool:
    """Whether all rows of a group give an expression the same value."""
    if expression in keys or isinstance(expression, Aggregated | Constant | Param | Null):
        return True
    parts = parts_of(expression)
    return bool(parts) and all(_is_decided(part, keys) for part in parts)


# -- names --------------------------------------------------------------------------------------


def name_columns(shown: Iterable[_Shown]) -> tuple[Column, ...]:
    """Result columns with distinct names: repeated names are numbered in projection order."""
    columns: list[Column] = []
    taken: set[str] = set()
    last: dict[str, int] = {}
    for projection, base, expression in shown:
        name = base
        while name in taken:
            last[base] = last.get(base, 1) + 1
            name = f"{base}_{last[base]}"
        taken.add(name)
        columns.append(Column(name, expression, projection.alias is not None))
    return tuple(columns)


def _column_name(projection: ast.Projection, expression: Expr) -> str:
    if projection.alias is not None:
        return projection.alias.text
    return natural_name(projection.expression, expression)


def natural_name(written: ast.Expression, expression: Expr) -> str:
    """The name of a column without an alias."""
    if isinstance(written, ast.Aggregate) and isinstance(expression, Aggregated):
        if isinstance(written.argument, ast.WholeEntity):
            return written.argument.variable.name
        return natural_name(written.argument, expression.argument)
    if isinstance(written, ast.AliasReference):
        return written.name.text
    if isinstance(written, ast.SystemAccess):
        return f"{written.variable.name}.@{written.field}"
    match expression:
        case Prop(variable, name, _):
            return f"{variable}.{name}"
        case EntityId(variable, _) | MakeObject(variable):
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
            return natural_name(written, expression.argument)
        case _:
            return print_expression(written).replace("$", "")
