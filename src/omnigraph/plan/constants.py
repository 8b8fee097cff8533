"""Literals and parameters as typed constants, and the values given for properties."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import assert_never

from omnigraph.diagnostics import counted, did_you_mean
from omnigraph.language.query import ast
from omnigraph.language.syntax import Name
from omnigraph.language.types import PropType, Scalar, compatible
from omnigraph.language.values import parse_date, parse_datetime
from omnigraph.plan.ir import DATETIME_TYPE, NOW_PARAMETER, Constant, LiteralValue, Param
from omnigraph.plan.type_errors import TypeErrors

NOW = Param(NOW_PARAMETER, DATETIME_TYPE)


class InferredParameters(dict[str, PropType]):
    """The parameters of a text that declares none: each has the type of its first use.

    Any of them may be null.
    """

    def __init__(self, outer: InferredParameters | None = None) -> None:
        super().__init__(outer or {})
        self._outer = outer

    def infer(self, name: str, prop_type: PropType) -> PropType:
        scalar, is_list, dimension = prop_type.scalar, prop_type.list, prop_type.dimension
        if self._outer is not None and name not in self:
            self._outer.infer(name, prop_type)
        return self.setdefault(name, PropType(scalar, True, is_list, dimension))


def undecided(name: str) -> str:
    """What is wrong with an undeclared name that is no variable."""
    return f"variable `${name}` is not bound, and its use does not tell which type it has as a parameter"


def ask_for_declaration(name: str) -> str:
    return f"declare it: `query name(${name}: Type) {{ … }}`"


def with_variable(
    parameters: Mapping[str, PropType], name: str, kind: PropType
) -> Mapping[str, PropType]:
    """Parameters and a name that is none of them: that of something a statement wrote."""
    if not isinstance(parameters, InferredParameters):
        return {**parameters, name: kind}
    found = InferredParameters(parameters)
    found[name] = kind
    return found


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
    if scalar.is_numeric and any(isinstance(item, float) for item in items):
        # A whole number among fractions is one of them.
        scalar, items = Scalar.F64, [float(item) for item in items if isinstance(item, int | float)]
    return Constant(tuple(items), PropType(scalar, list=True))


def is_number_list(literal: object) -> bool:
    """Whether a literal can stand for a vector."""
    return isinstance(literal, ast.ListLiteral) and all(
        isinstance(item, ast.IntegerLiteral | ast.FloatLiteral) for item in literal.items
    )


_PLAIN = (
    ast.StringLiteral
    | ast.IntegerLiteral
    | ast.FloatLiteral
    | ast.BoolLiteral
    | ast.DateLiteral
    | ast.DateTimeLiteral
    | ast.ListLiteral
    | ast.Variable
    | ast.Now
)


def is_plain(value: ast.Expression) -> bool:
    """Whether a value is a literal, a parameter or the time."""
    return isinstance(value, _PLAIN)


def property_value(
    errors: TypeErrors,
    parameters: Mapping[str, PropType],
    prop: Name,
    prop_type: PropType,
    value: ast.Expression,
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
        case (
            ast.StringLiteral()
            | ast.IntegerLiteral()
            | ast.FloatLiteral()
            | ast.BoolLiteral()
            | ast.DateLiteral()
            | ast.DateTimeLiteral()
            | ast.ListLiteral()
        ):
            return _literal_value(errors, prop, prop_type, value, use)
        case _:
            raise AssertionError(f"{type(value).__name__} is no literal or parameter")


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
