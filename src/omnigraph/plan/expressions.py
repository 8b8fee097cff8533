"""Expressions of a read query: from syntax to typed plan expressions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from omnigraph.catalog.model import Property
from omnigraph.diagnostics import did_you_mean
from omnigraph.language.query.ast import (
    Aggregate,
    AggregateFunction,
    AliasReference,
    Bm25Call,
    BoolLiteral,
    DateLiteral,
    DateTimeLiteral,
    Expression,
    FloatLiteral,
    IntegerLiteral,
    ListLiteral,
    NearestCall,
    Now,
    PropertyAccess,
    RrfCall,
    StringLiteral,
    TextCall,
    TextFunction,
    Variable,
)
from omnigraph.language.types import PropType, Scalar
from omnigraph.plan.ir import (
    Aggregated,
    Bm25,
    Constant,
    EntityId,
    Expr,
    Nearest,
    Param,
    Prop,
    Rrf,
    TextMatch,
)
from omnigraph.plan.scope import Complaints, Scope, find_property, refuse_unbound
from omnigraph.plan.values import NOW, constant, is_number_list, vector_constant

Aliases = Mapping[str, Expr]

_TEXT_CODES = {
    TextFunction.SEARCH: "T19",
    TextFunction.FUZZY: "T19",
    TextFunction.MATCH_TEXT: "T20",
}
_MAX_EDITS = 2


class ExpressionChecker:
    """Types the expressions of one clause list."""

    def __init__(self, complaints: Complaints, scope: Scope) -> None:
        self._complaints = complaints
        self._scope = scope

    def check(self, expression: Expression, aliases: Aliases | None = None) -> Expr:
        """Type an expression; `aliases` are those it may refer to."""
        match expression:
            case PropertyAccess():
                return self.property(expression)
            case Variable():
                return self.variable(expression)
            case Now():
                return NOW
            case Aggregate():
                return self._aggregate(expression, aliases)
            case AliasReference():
                return self._alias(expression, aliases or {})
            case TextCall():
                return self._text(expression)
            case NearestCall():
                return self._nearest(expression)
            case Bm25Call():
                return self._bm25(expression)
            case RrfCall():
                return self._rrf(expression)
            case (
                StringLiteral()
                | IntegerLiteral()
                | FloatLiteral()
                | BoolLiteral()
                | DateLiteral()
                | DateTimeLiteral()
                | ListLiteral()
            ):
                return constant(self._complaints, expression)
            case _:
                assert_never(expression)

    def property(self, access: PropertyAccess, code: str = "T6") -> Prop:
        variable, prop = self._declared(access, code)
        return Prop(variable, prop.name, prop.type)

    def _declared(self, access: PropertyAccess, code: str) -> tuple[str, Property]:
        """The name of a variable, and what its type declares."""
        variable = self._scope.find(access.variable.name)
        if variable is None:
            hint = did_you_mean(access.variable.name, self._scope.names())
            message = f"variable `${access.variable.name}` is not bound"
            self._complaints.refuse(access.variable.span, code, message, hint)
        prop = find_property(self._complaints, variable.node_type, access.property, code)
        return variable.name, prop

    def variable(self, variable: Variable) -> Param | EntityId:
        """A parameter, or else the id of a bound variable."""
        parameter = self._scope.parameters.get(variable.name)
        if parameter is not None:
            return Param(variable.name, parameter)
        bound = self._scope.find(variable.name)
        if bound is None:
            refuse_unbound(self._complaints, self._scope, variable)
        return EntityId(bound.name)

    def _alias(self, reference: AliasReference, aliases: Aliases) -> Expr:
        expression = aliases.get(reference.name.text)
        if expression is None:
            hint = did_you_mean(reference.name.text, aliases)
            message = f"unknown alias `{reference.name}`"
            self._complaints.refuse(reference.span, "T6", message, hint)
        return expression

    # -- aggregates -------------------------------------------------------------------------

    def _aggregate(self, aggregate: Aggregate, aliases: Aliases | None) -> Aggregated:
        function = aggregate.function
        argument = self.check(aggregate.argument, aliases)
        if isinstance(argument, Aggregated):
            message = f"{function.value} cannot be applied to another aggregate"
            self._complaints.refuse(aggregate.argument.span, "T8", message)
        return Aggregated(function, argument, self._aggregate_type(aggregate, argument))

    def _aggregate_type(self, aggregate: Aggregate, argument: Expr) -> PropType:
        function = aggregate.function
        given = argument.type
        is_node = isinstance(argument, EntityId)
        shown = "a node" if is_node else given.display
        match function:
            case AggregateFunction.COUNT:
                return PropType(Scalar.I64)
            case AggregateFunction.SUM | AggregateFunction.AVG:
                if is_node or given.list or not given.scalar.is_numeric:
                    message = f"{function.value} requires numeric type, got {shown}"
                    self._complaints.refuse(aggregate.argument.span, "T8", message)
                return PropType(Scalar.F64, nullable=True)
            case AggregateFunction.MIN | AggregateFunction.MAX:
                text_or_number = given.scalar is Scalar.STRING or given.scalar.is_numeric
                if is_node or given.list or not text_or_number:
                    message = f"{function.value} requires numeric or string type, got {shown}"
                    self._complaints.refuse(aggregate.argument.span, "T8", message)
                return PropType(given.scalar, nullable=True, enum_values=given.enum_values)
            case _:
                assert_never(function)

    # -- text and rank functions ------------------------------------------------------------

    def _text(self, call: TextCall) -> TextMatch:
        word = call.function.value
        code = _TEXT_CODES[call.function]
        field = self._text_field(call.field, word, code)
        query = self._text_query(call.query, word, code)
        edits = None
        if call.edits is not None:
            edits = self._whole_number(call.edits, "T19", "fuzzy edits must be an integer")
            if isinstance(call.edits, IntegerLiteral) and call.edits.value > _MAX_EDITS:
                message = f"fuzzy edits must be between 0 and {_MAX_EDITS}, got {call.edits.value}"
                self._complaints.refuse(call.edits.span, "T19", message)
        return TextMatch(call.function, field, query, edits)

    def _bm25(self, call: Bm25Call) -> Bm25:
        field = self._text_field(call.field, "bm25", "T20")
        return Bm25(field, self._text_query(call.query, "bm25", "T20"))

    def _text_field(self, expression: Expression, word: str, code: str) -> Prop:
        if not isinstance(expression, PropertyAccess):
            message = f"{word} field must be String property of a variable, as in `$x.title`"
            self._complaints.refuse(expression.span, code, message)
        field = self.property(expression)
        if not field.type.is_text:
            message = f"{word} field must be String, got {field.type.display}"
            self._complaints.refuse(expression.span, code, message)
        return field

    def _text_query(self, expression: Expression, word: str, code: str) -> Expr:
        query = self.check(expression)
        no_value = {EntityId: "a node", Aggregated: "an aggregate"}.get(type(query))
        if no_value or not query.type.is_text:
            shown = no_value or query.type.display
            message = f"{word} query must be String, got {shown}"
            self._complaints.refuse(expression.span, code, message)
        return query

    def _nearest(self, call: NearestCall) -> Nearest:
        field = self.property(call.field, code="T15")
        if not field.type.is_vector:
            message = f"nearest requires a Vector property, got {field.type.display}"
            self._complaints.refuse(call.field.span, "T15", message)
        _, prop = self._declared(call.field, "T15")
        return Nearest(field, self._nearest_query(call, field.type), prop.embed_model)

    def _nearest_query(self, call: NearestCall, vector: PropType) -> Expr:
        if isinstance(call.query, ListLiteral) and is_number_list(call.query):
            self._check_dimension(call, len(call.query.items), vector)
            return vector_constant(call.query)
        query = self.check(call.query)
        if not isinstance(query, Constant | Param):
            message = "nearest query must be a literal or parameter"
            self._complaints.refuse(call.query.span, "T15", message)
        if query.type.is_vector:
            self._check_dimension(call, query.type.dimension, vector)
        elif not query.type.is_text:
            message = f"nearest query must be Vector(n) or String, got {query.type.display}"
            self._complaints.refuse(call.query.span, "T15", message)
        return query

    def _check_dimension(self, call: NearestCall, given: int | None, vector: PropType) -> None:
        if given != vector.dimension:
            message = f"nearest vector dimension mismatch: property has {vector.dimension}"
            self._complaints.refuse(call.query.span, "T15", f"{message}, query has {given}")

    def _rrf(self, call: RrfCall) -> Rrf:
        first = self._rank(call.first)
        second = self._rank(call.second)
        k = None
        if call.k is not None:
            k = self._whole_number(call.k, "T21", "rrf k must be an integer scalar")
            if isinstance(call.k, IntegerLiteral) and call.k.value == 0:
                self._complaints.refuse(call.k.span, "T21", "rrf k must be greater than 0")
        return Rrf(first, second, k)

    def _rank(self, call: NearestCall | Bm25Call) -> Nearest | Bm25:
        return self._nearest(call) if isinstance(call, NearestCall) else self._bm25(call)

    def _whole_number(self, expression: Expression, code: str, message: str) -> Expr:
        """A setting of a function: an integer literal or an integer parameter."""
        number = self.check(expression)
        is_setting = isinstance(expression, IntegerLiteral) or isinstance(number, Param)
        if not is_setting or number.type.list or not number.type.scalar.is_integer:
            self._complaints.refuse(expression.span, code, message)
        return number
