"""Random values that fit a property: literals, parameters and `now()`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import strategies as st

from omnigraph.language.query.ast import (
    BoolLiteral,
    DateLiteral,
    DateTimeLiteral,
    Expression,
    FloatLiteral,
    IntegerLiteral,
    ListLiteral,
    Literal,
    Now,
    StringLiteral,
    Variable,
)
from omnigraph.language.types import PropType, Scalar
from tests.support.generate.names import decimal_floats, texts

integers = st.one_of(st.integers(0, 9), st.integers(0, 2**63 - 1)).map(IntegerLiteral)
floats = decimal_floats(signed=False).map(FloatLiteral)
numbers = st.one_of(integers, floats)


Literals = Callable[[PropType], st.SearchStrategy[Literal]]
"""Literals to choose from for a type: any, or those that have a chance to be found in a graph."""


@dataclass(slots=True)
class Parameters:
    """The parameters a generated query has used so far."""

    types: dict[str, PropType] = field(default_factory=dict)

    def use(self, draw: st.DrawFn, kind: PropType) -> Variable:
        """A parameter of this type; one that exists is sometimes used again."""
        fitting = [name for name, known in self.types.items() if known == kind]
        if draw(st.booleans()) and fitting:
            return Variable(draw(st.sampled_from(fitting)))
        name = f"p{len(self.types)}"
        self.types[name] = kind
        return Variable(name)


def literals(kind: PropType) -> st.SearchStrategy[Literal]:
    """Literals of a scalar type; a list type gives lists, a vector type number lists."""
    if kind.is_vector:
        size = kind.dimension or 1
        items = st.lists(numbers, min_size=size, max_size=size)
        return items.map(lambda found: ListLiteral(tuple(found)))
    if kind.list:
        elements = st.lists(literals(kind.element()), min_size=1, max_size=3)
        return elements.map(lambda found: ListLiteral(tuple(found)))
    if kind.enum_values is not None:
        return st.sampled_from(kind.enum_values).map(StringLiteral)
    return _scalar_literals(kind.scalar)


def _scalar_literals(scalar: Scalar) -> st.SearchStrategy[Literal]:
    if scalar.is_numeric:
        return numbers
    if scalar is Scalar.BOOL:
        return st.booleans().map(BoolLiteral)
    if scalar is Scalar.DATE:
        return st.dates().map(lambda day: DateLiteral(day.isoformat()))
    if scalar is Scalar.DATETIME:
        return st.datetimes().map(_datetime_literal)
    return texts.map(StringLiteral)


def _datetime_literal(moment: dt.datetime) -> DateTimeLiteral:
    return DateTimeLiteral(moment.isoformat(timespec="milliseconds"))


def values(
    draw: st.DrawFn,
    parameters: Parameters,
    kind: PropType,
    *,
    allow_now: bool = True,
    literals: Literals = literals,
) -> Expression:
    """A literal, a parameter or (for a DateTime) `now()` that may be given for a property."""
    if kind.is_blob:
        return parameters.use(draw, PropType(Scalar.STRING, nullable=draw(st.booleans())))
    choices = ["literal", "parameter"]
    if allow_now and kind.scalar is Scalar.DATETIME and not kind.list:
        choices.append("now")
    match draw(st.sampled_from(choices)):
        case "now":
            return Now()
        case "parameter":
            scalar, is_list, dimension = kind.scalar, kind.list, kind.dimension
            nullable = draw(st.booleans())
            return parameters.use(draw, PropType(scalar, nullable, is_list, dimension))
        case _:
            return draw(literals(kind))
