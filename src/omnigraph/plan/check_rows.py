"""Checks expressions about the rows of one type: conditions and values of changes, scans, defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from omnigraph.catalog.model import EdgeType, EntityType
from omnigraph.diagnostics import did_you_mean
from omnigraph.language.query import ast
from omnigraph.language.syntax import Name, Span
from omnigraph.language.types import PropType, Scalar, compatible
from omnigraph.plan.constants import (
    InferredParameters,
    Use,
    is_plain,
    property_value,
    undecided,
)
from omnigraph.plan.expressions import ExpressionChecker
from omnigraph.plan.functions import shown_type
from omnigraph.plan.ir import (
    ID_TYPE,
    ROW,
    Comparison,
    Constant,
    EntityId,
    Expr,
    Null,
    Param,
    Prop,
)
from omnigraph.plan.operators import Aliases
from omnigraph.plan.scope import Scope
from omnigraph.plan.type_errors import TypeErrors

ENDPOINT_COLUMNS = {"from": "src", "to": "dst"}
"""What changes call the ends of an edge, and the columns that hold them."""


class RowChecker(ExpressionChecker):
    """Bare words are properties of the row; without a `target` only constants are allowed.

    `place` is how messages call where the expression stands.
    """

    def __init__(
        self,
        errors: TypeErrors,
        parameters: Mapping[str, PropType],
        target: EntityType | None,
        place: str,
    ) -> None:
        super().__init__(errors, Scope(parameters))
        self._parameters = parameters
        self._target = target
        self._place = place

    def check(self, expression: ast.Expression, aliases: Aliases | None = None) -> Expr:
        match expression:
            case ast.AliasReference(name):
                return self.column(name)
            case ast.SystemReference(name):
                return self._system_field(name)
            case ast.Variable():
                return self._parameter(expression)
            case ast.PropertyAccess(variable) | ast.SystemAccess(variable):
                self._refuse_variable(expression.span, variable)
            case ast.WholeEntity(variable):
                self._refuse_variable(expression.span, variable)
            case ast.AggregateBlock(function):
                self._refuse(expression.span, function.value)
            case ast.Exists():
                self._refuse(expression.span, "exists")
            case ast.Comparison():
                return self._compared(expression)
            case _:
                self.refuse_ranks(expression)
                # Every operand is a value: there are no patterns here to refuse words for.
                return super().check(expression, {})

    def refuse_ranks(self, expression: ast.Expression) -> None:
        """Refuse aggregates, text functions and ranks: they are about all rows of a result."""
        match expression:
            case ast.Aggregate(function) | ast.TextCall(function):
                self._refuse(expression.span, function.value)
            case ast.NearestCall():
                self._refuse(expression.span, "nearest")
            case ast.Bm25Call():
                self._refuse(expression.span, "bm25")
            case ast.RrfCall():
                self._refuse(expression.span, "rrf")

    def _refuse(self, span: Span, word: str) -> NoReturn:
        hint = None if self._target is None else "select rows with `match { … }` before the change"
        message = f"`{word}` cannot appear in {self._place}"
        self._errors.fail(span, "T44", message, hint)

    def _refuse_variable(self, span: Span, variable: ast.Variable) -> NoReturn:
        if self._target is None:
            shown = self._errors.source.text[span.start : span.end]
            self._errors.fail(span, "T45", f"`{shown}` cannot appear in {self._place}")
        message = f"mutation variable `${variable.name}` is not a declared parameter"
        hint = "write properties of the changed type without a variable"
        self._errors.fail(span, "T14", message, hint)

    def _parameter(self, variable: ast.Variable) -> Param:
        given = self._parameters.get(variable.name)
        if given is None:
            message = f"mutation variable `${variable.name}` is not a declared parameter"
            hint = did_you_mean(variable.name, self._parameters)
            if isinstance(self._parameters, InferredParameters):
                message = undecided(variable.name)
                hint = hint or "compare it with a property, or declare it in a query"
            code = "T14" if self._place != "a parameter default" else "T45"
            if code == "T45":
                message = f"`${variable.name}` cannot appear in {self._place}"
            self._errors.fail(variable.span, code, message, hint)
        return Param(variable.name, given)

    # -- the row ----------------------------------------------------------------------------

    def column(self, name: Name) -> Prop:
        """A property of the row, or an end of an edge."""
        if self._target is None:
            message = f"`{name}` cannot appear in {self._place}: it needs a constant"
            self._errors.fail(name.span, "T45", message)
        if isinstance(self._target, EdgeType) and name.text in ENDPOINT_COLUMNS:
            return Prop(ROW, ENDPOINT_COLUMNS[name.text], ID_TYPE)
        return Prop(ROW, name.text, self.property_type(self._target, name))

    def property_type(self, target: EntityType, name: Name) -> PropType:
        """The type of what a bare word stands for."""
        if isinstance(target, EdgeType) and name.text in ENDPOINT_COLUMNS:
            return ID_TYPE
        prop = target.properties.get(name.text)
        if prop is None:
            known = list(target.properties)
            hint = None
            if isinstance(target, EdgeType):
                known += ENDPOINT_COLUMNS
                if name.text in ENDPOINT_COLUMNS.values():
                    hint = (
                        "the ends of an edge are called `from` and `to` here, or `@src` and `@dst`"
                    )
            message = f"type `{target.name}` has no property `{name}`"
            hint = hint or did_you_mean(name.text, known)
            self._errors.fail(name.span, "T11", message, hint)
        return prop.type

    def _system_field(self, name: Name) -> Expr:
        target = self._target
        if target is None:
            message = f"`@{name}` cannot appear in {self._place}: it needs a constant"
            self._errors.fail(name.span, "T45", message)
        known = ["id", "type", *(("src", "dst") if isinstance(target, EdgeType) else ())]
        if name.text not in known:
            message = f"type `{target.name}` has no property `@{name}`"
            self._errors.fail(name.span, "T6", message, did_you_mean(name.text, known))
        if name.text == "id":
            return EntityId(ROW)
        if name.text == "type":
            return Constant(target.name, ID_TYPE)
        return Prop(ROW, name.text, ID_TYPE)

    # -- comparisons ------------------------------------------------------------------------

    def _compared(self, written: ast.Comparison) -> Expr:
        left = self._named(written.left)
        symbolic = not written.operator.value.isidentifier()
        if not isinstance(left, ast.AliasReference) or not symbolic:
            return super()._comparison(written, {})
        column = self.column(left.name)
        if column.type.is_blob:
            message = f"blob property `{left.name}` cannot be used in WHERE predicates"
            self._errors.fail(left.span, "T11", message)
        if column.type.list or column.type.is_vector:
            shape = "list" if column.type.list else "vector"
            message = f"{shape} comparisons in WHERE predicates are not supported"
            self._errors.fail(left.span, "T7", message)
        if not is_plain(written.right):
            return super()._comparison(written, {})
        value = property_value(
            self._errors, self._parameters, left.name, column.type, written.right, Use.ASSIGN
        )
        return Comparison(column, written.operator, value)

    def _named(self, left: ast.Expression) -> ast.Expression:
        """`true`, `false` and `null` before a comparison are properties if the type has such."""
        word = None
        if isinstance(left, ast.BoolLiteral):
            word = "true" if left.value else "false"
        elif isinstance(left, ast.NullLiteral):
            word = "null"
        if word is None or self._target is None or word not in self._target.properties:
            return left
        return ast.AliasReference(Name(word, left.span))

    # -- values -----------------------------------------------------------------------------

    def is_plain(self, value: ast.Expression) -> bool:
        """Whether a value is a literal, a parameter or the time."""
        return is_plain(value)

    def assigned(self, name: Name, wanted: PropType, value: ast.Expression) -> Expr:
        """The value given for a property."""
        if self.is_plain(value):
            return property_value(self._errors, self._parameters, name, wanted, value, Use.ASSIGN)
        if isinstance(value, ast.NullLiteral):
            if not wanted.nullable:
                message = f"property `{name}` has type {wanted.display} but got null"
                self._errors.fail(value.span, "T3", message)
            return Null(wanted)
        if self.is_undeclared(value):
            self.infer(value, wanted)
        typed = self.check(value)
        if isinstance(typed, Null):
            return Null(wanted)
        same = compatible(typed.type, wanted) and typed.type.dimension == wanted.dimension
        if isinstance(typed, Constant) and typed.value == ():
            same = wanted.list
        if not same or wanted.is_blob:
            message = f"cannot assign/compare {shown_type(typed)} with {wanted.display}"
            self._errors.fail(value.span, "T7", f"{message} for property `{name}`")
        return typed


def check_default(errors: TypeErrors, parameter: ast.Parameter) -> Expr:
    """The default of a parameter: a constant of its type."""
    written, wanted = parameter.default, parameter.type.type
    assert written is not None
    typed = RowChecker(errors, {}, None, "a parameter default").check(written)
    name = parameter.name
    if isinstance(typed, Null):
        if not wanted.nullable:
            message = f"default of `${name}` is null, but {wanted.display} is not nullable"
            errors.fail(written.span, "T66", message)
        return Null(wanted)
    is_empty = isinstance(typed, Constant) and typed.value == () and wanted.list
    is_vector = wanted.is_vector and typed.type.list and typed.type.scalar.is_numeric
    if not (is_empty or is_vector or _fits(typed.type, wanted)):
        message = f"default of `${name}` has type {typed.type.display}, not {wanted.display}"
        errors.fail(written.span, "T66", message)
    return typed


def _fits(given: PropType, wanted: PropType) -> bool:
    if wanted.scalar.is_integer and given.scalar is Scalar.F64:
        return False
    return compatible(given, wanted)
