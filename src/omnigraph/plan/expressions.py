"""Expressions of a query, from syntax to typed plan expressions, and the names they may use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from itertools import count
from typing import NoReturn, assert_never

from omnigraph.catalog.model import NodeType, Property
from omnigraph.diagnostics import counted, did_you_mean
from omnigraph.errors import TypeCheckError
from omnigraph.language.query import ast
from omnigraph.language.query.ast import ANONYMOUS, Query
from omnigraph.language.syntax import Name, Source, Span
from omnigraph.language.types import PropType, Scalar, compatible
from omnigraph.language.values import parse_date, parse_datetime
from omnigraph.limits import MAX_VECTOR_DIMENSION
from omnigraph.plan.ir import (
    DATETIME_TYPE,
    NOW_PARAMETER,
    Aggregated,
    Bm25,
    Constant,
    EntityId,
    Expr,
    LiteralValue,
    Nearest,
    Param,
    ParameterSpec,
    Prop,
    Rrf,
    TextMatch,
)

_PLAIN_CODES = frozenset({"T31", "T32", "T33", "T34", "T35", "T36", "T37"})
"""Codes that their messages do not begin with."""


class TypeErrors:
    """Raises the type errors of one source."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def fail(self, span: Span, code: str, message: str, hint: str | None = None) -> NoReturn:
        shown = message if code in _PLAIN_CODES else f"{code}: {message}"
        category = TypeCheckError.category
        raise TypeCheckError([self.source.diagnose(span, category, code, shown, hint)])


class BoundVariable:
    """A node variable: `name` in the plan, which differs from the text only to avoid a clash."""

    __slots__ = ("name", "node_type")

    def __init__(self, name: str, node_type: NodeType) -> None:
        self.name = name
        self.node_type = node_type


class Scope:
    """Variables bound so far in one clause list, on top of those of the enclosing lists."""

    def __init__(self, parameters: Mapping[str, PropType], *, parent: Scope | None = None) -> None:
        self.parameters = parameters
        self.parent = parent
        self._own: dict[str, BoundVariable] = {}
        self._introduced: frozenset[str] = frozenset()
        self._depth: int = parent._depth + 1 if parent else 0
        self._anonymous: Iterator[int] = parent._anonymous if parent else count(1)

    def find(self, name: str) -> BoundVariable | None:
        """The variable of this name, from here or from an enclosing list."""
        scope: Scope | None = self
        while scope is not None:
            found = scope._own.get(name)
            if found is not None:
                return found
            scope = scope.parent
        return None

    def introduces(self, names: Iterable[str]) -> None:
        """Say which variables the clause list binds, also further down in the text."""
        self._introduced = frozenset(names)

    def _is_taken_by_enclosing(self, name: str) -> bool:
        scope = self.parent
        while scope is not None and name not in scope._introduced:
            scope = scope.parent
        return scope is not None

    def introduce(self, name: str, node_type: NodeType) -> BoundVariable:
        """Bind a new variable. Every `$_` is a variable of its own that nothing can refer to.

        A variable of a `not` block that an enclosing list binds later in the text is another
        variable; the mark `#`, which no source can contain, keeps the two apart in the plan. One
        mark per level of nesting, because the enclosing list may have to mark its own as well.
        """
        if name == ANONYMOUS:
            return BoundVariable(f"_#{next(self._anonymous)}", node_type)
        unique = name + "#" * self._depth if self._is_taken_by_enclosing(name) else name
        variable = BoundVariable(unique, node_type)
        self._own[name] = variable
        return variable

    def names(self) -> list[str]:
        """All variable names in reach, for hints."""
        inherited = self.parent.names() if self.parent else []
        return [*inherited, *self._own]

    @property
    def own(self) -> Mapping[str, BoundVariable]:
        return self._own


def parameter_types(errors: TypeErrors, query: Query) -> dict[str, PropType]:
    """The declared parameters of a query, each with a type that can exist."""
    types: dict[str, PropType] = {}
    for parameter in query.parameters:
        if parameter.name == NOW_PARAMETER:
            message = f"parameter `${parameter.name}` is reserved for runtime timestamp injection"
            errors.fail(parameter.variable.span, "T31", message)
        dimension = parameter.type.type.dimension
        if dimension is not None and not 1 <= dimension <= MAX_VECTOR_DIMENSION:
            written = errors.source.text[parameter.type.span.start : parameter.type.span.end]
            message = f"unknown parameter type `{written[:40]}` for `${parameter.name}`"
            errors.fail(parameter.type.span, "T32", message)
        types[parameter.name] = parameter.type.type
    return types


def parameter_specs(query: Query) -> tuple[ParameterSpec, ...]:
    return tuple(ParameterSpec(p.name, p.type.type) for p in query.parameters)


def find_property(errors: TypeErrors, node_type: NodeType, name: Name, code: str) -> Property:
    """A property of a node type, or the error that names the type and the closest property."""
    prop = node_type.properties.get(name.text)
    if prop is None:
        hint = did_you_mean(name.text, node_type.properties)
        if name.text == "id":
            hint = "return the variable itself to get the id"
        message = f"type `{node_type.name}` has no property `{name}`"
        errors.fail(name.span, code, message, hint)
    return prop


NOW = Param(NOW_PARAMETER, DATETIME_TYPE)


class InferredParameters(dict[str, PropType]):
    """The parameters of a text that declares none: each has the type of its first use.

    Any of them may be null.
    """

    def infer(self, name: str, prop_type: PropType) -> PropType:
        scalar, is_list, dimension = prop_type.scalar, prop_type.list, prop_type.dimension
        return self.setdefault(name, PropType(scalar, True, is_list, dimension))


class Use(Enum):
    """What a value is for; matching a list property means membership, assigning it means a list."""

    MATCH = "match"
    ASSIGN = "mutation"


def constant(errors: TypeErrors, literal: ast.Literal) -> Constant:
    """A literal as a typed constant. Bad dates and mixed or nested lists are refused here."""
    match literal:
        case ast.StringLiteral(value):
            return Constant(value, PropType(Scalar.STRING))
        case ast.IntegerLiteral(value):
            return Constant(value, PropType(Scalar.I64))
        case ast.FloatLiteral():
            return Constant(literal.value, PropType(Scalar.F64))
        case ast.BoolLiteral(value):
            return Constant(value, PropType(Scalar.BOOL))
        case ast.DateLiteral(text) | ast.DateTimeLiteral(text):
            is_date = isinstance(literal, ast.DateLiteral)
            try:
                days_or_millis = parse_date(text) if is_date else parse_datetime(text)
            except ValueError as error:
                errors.fail(literal.span, "T36", str(error))
            return Constant(days_or_millis, PropType(Scalar.DATE) if is_date else DATETIME_TYPE)
        case ast.ListLiteral():
            return _list_constant(errors, literal)
        case _:
            assert_never(literal)


def _list_constant(errors: TypeErrors, literal: ast.ListLiteral) -> Constant:
    items: list[LiteralValue] = []
    first: PropType | None = None
    for item in literal.items:
        if isinstance(item, ast.ListLiteral):
            errors.fail(item.span, "T37", "nested list literals are not supported")
        typed = constant(errors, item)
        if first is None:
            first = typed.type
        elif not compatible(first, typed.type):
            message = "list literal elements must share a compatible scalar type"
            errors.fail(item.span, "T37", message)
        items.append(typed.value)
    scalar = first.scalar if first else Scalar.STRING
    return Constant(tuple(items), PropType(scalar, list=True))


def is_number_list(literal: object) -> bool:
    """Whether a literal can stand for a vector."""
    return isinstance(literal, ast.ListLiteral) and all(
        isinstance(item, ast.IntegerLiteral | ast.FloatLiteral) for item in literal.items
    )


def property_value(
    errors: TypeErrors,
    parameters: Mapping[str, PropType],
    prop: Name,
    prop_type: PropType,
    value: ast.Value,
    use: Use,
) -> Constant | Param:
    """The value given for a property, checked against the property's type."""
    match value:
        case ast.Now():
            if prop_type.scalar is not Scalar.DATETIME or prop_type.list:
                message = f"cannot assign/compare DateTime with {prop_type.display}"
                errors.fail(value.span, "T7", f"{message} for property `{prop}`")
            return NOW
        case ast.Variable():
            return _parameter_value(errors, parameters, prop, prop_type, value, use)
        case _:
            return _literal_value(errors, prop, prop_type, value, use)


def _parameter_value(
    errors: TypeErrors,
    parameters: Mapping[str, PropType],
    prop: Name,
    prop_type: PropType,
    variable: ast.Variable,
    use: Use,
) -> Param:
    if isinstance(parameters, InferredParameters) and variable.name != NOW_PARAMETER:
        parameters.infer(variable.name, prop_type)
    given = parameters.get(variable.name)
    if given is None:
        message = f"{use.value} variable `${variable.name}` is not a declared parameter"
        errors.fail(variable.span, "T14", message, did_you_mean(variable.name, parameters))
    if use is Use.MATCH and prop_type.list:
        if given.list:
            message = f"list equality is not supported (property `{prop}`); match one element"
            errors.fail(variable.span, "T7", message)
        if not compatible(given, prop_type.element()):
            message = f"cannot compare {given.display} membership against {prop_type.display}"
            errors.fail(variable.span, "T7", f"{message} for property `{prop}`")
    elif not _assignable(given, prop_type, use):
        message = f"cannot assign/compare {given.display} with {prop_type.display}"
        errors.fail(variable.span, "T7", f"{message} for property `{prop}`")
    return Param(variable.name, given)


def _assignable(given: PropType, prop_type: PropType, use: Use) -> bool:
    if use is Use.ASSIGN and prop_type.is_blob and given.is_text:
        return True
    return compatible(given, prop_type) and given.dimension == prop_type.dimension


def _literal_value(
    errors: TypeErrors, prop: Name, prop_type: PropType, literal: ast.Literal, use: Use
) -> Constant:
    if prop_type.is_vector and is_number_list(literal):
        assert isinstance(literal, ast.ListLiteral)
        if len(literal.items) != prop_type.dimension:
            message = f"property `{prop}` has type {prop_type.required().display} but got vector"
            found = f"literal with {counted(len(literal.items), 'element')}"
            errors.fail(literal.span, "T3", f"{message} {found}")
        return vector_constant(literal)
    typed = constant(errors, literal)
    if use is Use.MATCH and prop_type.list:
        if typed.type.list:
            message = f"list equality is not supported (property `{prop}`); match one element"
            errors.fail(literal.span, "T3", message)
        if not compatible(typed.type, prop_type.element()):
            message = f"property `{prop}` has type {prop_type.display} but membership match got"
            errors.fail(literal.span, "T3", f"{message} {typed.type.display}")
        return typed
    if not compatible(typed.type, prop_type):
        message = f"property `{prop}` has type {prop_type.display} but got {typed.type.display}"
        errors.fail(literal.span, "T3", message)
    if prop_type.enum_values is not None and typed.value not in prop_type.enum_values:
        expected = ", ".join(prop_type.enum_values)
        message = f"property `{prop}` expects one of [{expected}], got '{typed.value}'"
        hint = did_you_mean(str(typed.value), prop_type.enum_values)
        errors.fail(literal.span, "T3", message, hint)
    return typed


def vector_constant(literal: ast.ListLiteral) -> Constant:
    """A list of numbers as a vector of their count. The caller has checked both."""
    numbers = tuple(
        float(item.value)
        for item in literal.items
        if isinstance(item, ast.IntegerLiteral | ast.FloatLiteral)
    )
    return Constant(numbers, PropType(Scalar.VECTOR, dimension=len(numbers)))


# -- expressions -------------------------------------------------------------------------------


Aliases = Mapping[str, Expr]

_TEXT_CODES = {
    ast.TextFunction.SEARCH: "T19",
    ast.TextFunction.FUZZY: "T19",
    ast.TextFunction.MATCH_TEXT: "T20",
}
_MAX_EDITS = 2


class ExpressionChecker:
    """Types the expressions of one clause list."""

    def __init__(self, errors: TypeErrors, scope: Scope) -> None:
        self._errors = errors
        self._scope = scope

    def check(self, expression: ast.Expression, aliases: Aliases | None = None) -> Expr:
        """Type an expression; `aliases` are those it may refer to."""
        match expression:
            case ast.PropertyAccess():
                return self.property(expression)
            case ast.Variable():
                return self.variable(expression)
            case ast.Now():
                return NOW
            case ast.Aggregate():
                return self._aggregate(expression, aliases)
            case ast.AliasReference():
                return self._alias(expression, aliases or {})
            case ast.TextCall():
                return self._text(expression)
            case ast.NearestCall():
                return self._nearest(expression)
            case ast.Bm25Call():
                return self._bm25(expression)
            case ast.RrfCall():
                return self._rrf(expression)
            case (
                ast.StringLiteral()
                | ast.IntegerLiteral()
                | ast.FloatLiteral()
                | ast.BoolLiteral()
                | ast.DateLiteral()
                | ast.DateTimeLiteral()
                | ast.ListLiteral()
            ):
                return constant(self._errors, expression)
            case _:
                assert_never(expression)

    def property(self, access: ast.PropertyAccess, code: str = "T6") -> Prop:
        variable, prop = self._declared(access, code)
        return Prop(variable, prop.name, prop.type)

    def _declared(self, access: ast.PropertyAccess, code: str) -> tuple[str, Property]:
        """The name of a variable, and what its type declares."""
        variable = self._scope.find(access.variable.name)
        if variable is None:
            hint = did_you_mean(access.variable.name, self._scope.names())
            message = f"variable `${access.variable.name}` is not bound"
            self._errors.fail(access.variable.span, code, message, hint)
        prop = find_property(self._errors, variable.node_type, access.property, code)
        return variable.name, prop

    def variable(self, variable: ast.Variable) -> Param | EntityId:
        """A parameter, or else the id of a bound variable."""
        parameter = self._scope.parameters.get(variable.name)
        if parameter is not None:
            return Param(variable.name, parameter)
        bound = self._scope.find(variable.name)
        if bound is None:
            hint = did_you_mean(variable.name, (*self._scope.parameters, *self._scope.names()))
            message = f"variable `${variable.name}` is not bound"
            self._errors.fail(variable.span, "T33", message, hint)
        return EntityId(bound.name)

    def _alias(self, reference: ast.AliasReference, aliases: Aliases) -> Expr:
        expression = aliases.get(reference.name.text)
        if expression is None:
            hint = did_you_mean(reference.name.text, aliases)
            message = f"unknown alias `{reference.name}`"
            self._errors.fail(reference.span, "T6", message, hint)
        return expression

    # -- aggregates -------------------------------------------------------------------------

    def _aggregate(self, aggregate: ast.Aggregate, aliases: Aliases | None) -> Aggregated:
        function = aggregate.function
        argument = self.check(aggregate.argument, aliases)
        if isinstance(argument, Aggregated):
            message = f"{function.value} cannot be applied to another aggregate"
            self._errors.fail(aggregate.argument.span, "T8", message)
        return Aggregated(function, argument, self._aggregate_type(aggregate, argument))

    def _aggregate_type(self, aggregate: ast.Aggregate, argument: Expr) -> PropType:
        function = aggregate.function
        given = argument.type
        is_node = isinstance(argument, EntityId)
        shown = "a node" if is_node else given.display
        match function:
            case ast.AggregateFunction.COUNT:
                return PropType(Scalar.I64)
            case ast.AggregateFunction.SUM | ast.AggregateFunction.AVG:
                if is_node or given.list or not given.scalar.is_numeric:
                    message = f"{function.value} requires numeric type, got {shown}"
                    self._errors.fail(aggregate.argument.span, "T8", message)
                return PropType(Scalar.F64, nullable=True)
            case ast.AggregateFunction.MIN | ast.AggregateFunction.MAX:
                text_or_number = given.scalar is Scalar.STRING or given.scalar.is_numeric
                if is_node or given.list or not text_or_number:
                    message = f"{function.value} requires numeric or string type, got {shown}"
                    self._errors.fail(aggregate.argument.span, "T8", message)
                return PropType(given.scalar, nullable=True, enum_values=given.enum_values)
            case _:
                assert_never(function)

    # -- text and rank functions ------------------------------------------------------------

    def _text(self, call: ast.TextCall) -> TextMatch:
        word = call.function.value
        code = _TEXT_CODES[call.function]
        field = self._text_field(call.field, word, code)
        query = self._text_query(call.query, word, code)
        edits = None
        if call.edits is not None:
            edits = self._whole_number(call.edits, "T19", "fuzzy edits must be an integer")
            if isinstance(call.edits, ast.IntegerLiteral) and call.edits.value > _MAX_EDITS:
                message = f"fuzzy edits must be between 0 and {_MAX_EDITS}, got {call.edits.value}"
                self._errors.fail(call.edits.span, "T19", message)
        return TextMatch(call.function, field, query, edits)

    def _bm25(self, call: ast.Bm25Call) -> Bm25:
        field = self._text_field(call.field, "bm25", "T20")
        return Bm25(field, self._text_query(call.query, "bm25", "T20"))

    def _text_field(self, expression: ast.Expression, word: str, code: str) -> Prop:
        if not isinstance(expression, ast.PropertyAccess):
            message = f"{word} field must be String property of a variable, as in `$x.title`"
            self._errors.fail(expression.span, code, message)
        field = self.property(expression)
        if not field.type.is_text:
            message = f"{word} field must be String, got {field.type.display}"
            self._errors.fail(expression.span, code, message)
        return field

    def _text_query(self, expression: ast.Expression, word: str, code: str) -> Expr:
        query = self.check(expression)
        no_value = {EntityId: "a node", Aggregated: "an aggregate"}.get(type(query))
        if no_value or not query.type.is_text:
            shown = no_value or query.type.display
            message = f"{word} query must be String, got {shown}"
            self._errors.fail(expression.span, code, message)
        return query

    def _nearest(self, call: ast.NearestCall) -> Nearest:
        field = self.property(call.field, code="T15")
        if not field.type.is_vector:
            message = f"nearest requires a Vector property, got {field.type.display}"
            self._errors.fail(call.field.span, "T15", message)
        _, prop = self._declared(call.field, "T15")
        return Nearest(field, self._nearest_query(call, field.type), prop.embed_model)

    def _nearest_query(self, call: ast.NearestCall, vector: PropType) -> Expr:
        if isinstance(call.query, ast.ListLiteral) and is_number_list(call.query):
            self._check_dimension(call, len(call.query.items), vector)
            return vector_constant(call.query)
        query = self.check(call.query)
        if not isinstance(query, Constant | Param):
            message = "nearest query must be a literal or parameter"
            self._errors.fail(call.query.span, "T15", message)
        if query.type.is_vector:
            self._check_dimension(call, query.type.dimension, vector)
        elif not query.type.is_text:
            message = f"nearest query must be Vector(n) or String, got {query.type.display}"
            self._errors.fail(call.query.span, "T15", message)
        return query

    def _check_dimension(self, call: ast.NearestCall, given: int | None, vector: PropType) -> None:
        if given != vector.dimension:
            message = f"nearest vector dimension mismatch: property has {vector.dimension}"
            self._errors.fail(call.query.span, "T15", f"{message}, query has {given}")

    def _rrf(self, call: ast.RrfCall) -> Rrf:
        first = self._rank(call.first)
        second = self._rank(call.second)
        k = None
        if call.k is not None:
            k = self._whole_number(call.k, "T21", "rrf k must be an integer scalar")
            if isinstance(call.k, ast.IntegerLiteral) and call.k.value == 0:
                self._errors.fail(call.k.span, "T21", "rrf k must be greater than 0")
        return Rrf(first, second, k)

    def _rank(self, call: ast.NearestCall | ast.Bm25Call) -> Nearest | Bm25:
        return self._nearest(call) if isinstance(call, ast.NearestCall) else self._bm25(call)

    def _whole_number(self, expression: ast.Expression, code: str, message: str) -> Expr:
        """A setting of a function: an integer literal or an integer parameter."""
        number = self.check(expression)
        is_setting = isinstance(expression, ast.IntegerLiteral) or isinstance(number, Param)
        if not is_setting or number.type.list or not number.type.scalar.is_integer:
            self._errors.fail(expression.span, code, message)
        return number
