"""Literals, parameters and `now()` against the property they are matched with or assigned to."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import assert_never

from omnigraph.diagnostics import counted, did_you_mean
from omnigraph.language.nodes import Name
from omnigraph.language.query.ast import (
    BoolLiteral,
    DateLiteral,
    DateTimeLiteral,
    FloatLiteral,
    IntegerLiteral,
    ListLiteral,
    Literal,
    Now,
    StringLiteral,
    Value,
    Variable,
)
from omnigraph.language.temporal import parse_date, parse_datetime
from omnigraph.language.types import PropType, Scalar, compatible
from omnigraph.plan.ir import DATETIME_TYPE, NOW_PARAMETER, Constant, LiteralValue, Param
from omnigraph.plan.scope import Complaints

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


def constant(complaints: Complaints, literal: Literal) -> Constant:
    """A literal as a typed constant. Bad dates and mixed or nested lists are refused here."""
    match literal:
        case StringLiteral(value):
            return Constant(value, PropType(Scalar.STRING))
        case IntegerLiteral(value):
            return Constant(value, PropType(Scalar.I64))
        case FloatLiteral():
            return Constant(literal.value, PropType(Scalar.F64))
        case BoolLiteral(value):
            return Constant(value, PropType(Scalar.BOOL))
        case DateLiteral(text) | DateTimeLiteral(text):
            is_date = isinstance(literal, DateLiteral)
            try:
                days_or_millis = parse_date(text) if is_date else parse_datetime(text)
            except ValueError as error:
                complaints.refuse_plainly(literal.span, "T36", str(error))
            return Constant(days_or_millis, PropType(Scalar.DATE) if is_date else DATETIME_TYPE)
        case ListLiteral():
            return _list_constant(complaints, literal)
        case _:
            assert_never(literal)


def _list_constant(complaints: Complaints, literal: ListLiteral) -> Constant:
    items: list[LiteralValue] = []
    first: PropType | None = None
    for item in literal.items:
        if isinstance(item, ListLiteral):
            complaints.refuse_plainly(item.span, "T37", "nested list literals are not supported")
        typed = constant(complaints, item)
        if first is None:
            first = typed.type
        elif not compatible(first, typed.type):
            message = "list literal elements must share a compatible scalar type"
            complaints.refuse_plainly(item.span, "T37", message)
        items.append(typed.value)
    scalar = first.scalar if first else Scalar.STRING
    return Constant(tuple(items), PropType(scalar, list=True))


def is_number_list(literal: object) -> bool:
    """Whether a literal can stand for a vector."""
    return isinstance(literal, ListLiteral) and all(
        isinstance(item, IntegerLiteral | FloatLiteral) for item in literal.items
    )


def property_value(
    complaints: Complaints,
    parameters: Mapping[str, PropType],
    prop: Name,
    prop_type: PropType,
    value: Value,
    use: Use,
) -> Constant | Param:
    """The value given for a property, checked against the property's type."""
    match value:
        case Now():
            if prop_type.scalar is not Scalar.DATETIME or prop_type.list:
                message = f"cannot assign/compare DateTime with {prop_type.display}"
                complaints.refuse(value.span, "T7", f"{message} for property `{prop}`")
            return NOW
        case Variable():
            return _parameter_value(complaints, parameters, prop, prop_type, value, use)
        case _:
            return _literal_value(complaints, prop, prop_type, value, use)


def _parameter_value(
    complaints: Complaints,
    parameters: Mapping[str, PropType],
    prop: Name,
    prop_type: PropType,
    variable: Variable,
    use: Use,
) -> Param:
    if isinstance(parameters, InferredParameters) and variable.name != NOW_PARAMETER:
        parameters.infer(variable.name, prop_type)
    given = parameters.get(variable.name)
    if given is None:
        message = f"{use.value} variable `${variable.name}` is not a declared parameter"
        complaints.refuse(variable.span, "T14", message, did_you_mean(variable.name, parameters))
    if use is Use.MATCH and prop_type.list:
        if given.list:
            message = f"list equality is not supported (property `{prop}`); match one element"
            complaints.refuse(variable.span, "T7", message)
        if not compatible(given, prop_type.element()):
            message = f"cannot compare {given.display} membership against {prop_type.display}"
            complaints.refuse(variable.span, "T7", f"{message} for property `{prop}`")
    elif not _assignable(given, prop_type, use):
        message = f"cannot assign/compare {given.display} with {prop_type.display}"
        complaints.refuse(variable.span, "T7", f"{message} for property `{prop}`")
    return Param(variable.name, given)


def _assignable(given: PropType, prop_type: PropType, use: Use) -> bool:
    if use is Use.ASSIGN and prop_type.is_blob and given.is_text:
        return True
    return compatible(given, prop_type) and given.dimension == prop_type.dimension


def _literal_value(
    complaints: Complaints, prop: Name, prop_type: PropType, literal: Literal, use: Use
) -> Constant:
    if prop_type.is_vector and is_number_list(literal):
        assert isinstance(literal, ListLiteral)
        if len(literal.items) != prop_type.dimension:
            message = f"property `{prop}` has type {prop_type.required().display} but got vector"
            found = f"literal with {counted(len(literal.items), 'element')}"
            complaints.refuse(literal.span, "T3", f"{message} {found}")
        return vector_constant(literal)
    typed = constant(complaints, literal)
    if use is Use.MATCH and prop_type.list:
        if typed.type.list:
            message = f"list equality is not supported (property `{prop}`); match one element"
            complaints.refuse(literal.span, "T3", message)
        if not compatible(typed.type, prop_type.element()):
            message = f"property `{prop}` has type {prop_type.display} but membership match got"
            complaints.refuse(literal.span, "T3", f"{message} {typed.type.display}")
        return typed
    if not compatible(typed.type, prop_type):
        message = f"property `{prop}` has type {prop_type.display} but got {typed.type.display}"
        complaints.refuse(literal.span, "T3", message)
    if prop_type.enum_values is not None and typed.value not in prop_type.enum_values:
        expected = ", ".join(prop_type.enum_values)
        message = f"property `{prop}` expects one of [{expected}], got '{typed.value}'"
        hint = did_you_mean(str(typed.value), prop_type.enum_values)
        complaints.refuse(literal.span, "T3", message, hint)
    return typed


def vector_constant(literal: ListLiteral) -> Constant:
    """A list of numbers as a vector of their count. The caller has checked both."""
    numbers = tuple(
        float(item.value)
        for item in literal.items
        if isinstance(item, IntegerLiteral | FloatLiteral)
    )
    return Constant(numbers, PropType(Scalar.VECTOR, dimension=len(numbers)))
