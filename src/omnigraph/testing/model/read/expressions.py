"""The value of an expression for one combination of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from omnigraph.language.types import PropType, Scalar
from omnigraph.plan.ir import (
    Aggregated,
    Bm25,
    Constant,
    EntityId,
    Expr,
    Filter,
    Match,
    Nearest,
    Param,
    Prop,
    Rrf,
    TextMatch,
)
from omnigraph.testing.model.read.compare import Side, at_precision, holds, is_member
from omnigraph.testing.model.values import Row, Value

Assignment = Mapping[str, Row]
"""A node for each variable."""


class Evaluator:
    """Knows the parameters of one execution, the time among them."""

    def __init__(self, parameters: Mapping[str, object]) -> None:
        self._parameters = parameters

    def value(self, expression: Expr, nodes: Assignment) -> Value:
        match expression:
            case Prop(variable, name, _):
                return nodes[variable][name]
            case EntityId(variable, _):
                return nodes[variable]["id"]
            case Constant(value, _):
                return value
            case Param(name, kind):
                return _bound(self._parameters[name], kind)
            case TextMatch() | Nearest() | Bm25() | Rrf():
                raise NotImplementedError("the reference graph does not search or rank yet")
            case Aggregated():
                raise ValueError("an aggregate has no value for a single row")
            case _:
                assert_never(expression)

    def satisfies(self, condition: Filter, nodes: Assignment) -> bool:
        left, right = self._side(condition.left, nodes), self._side(condition.right, nodes)
        return holds(left, condition.operator, right)

    def fits(self, row: Row, match: Match) -> bool:
        """Whether a node has the value a binding asks for, or has it in its list."""
        stored, given = row[match.property], self.value(match.value, {})
        if stored is None or given is None:
            return False
        if match.membership:
            items = Side(stored, match.type, column=True)
            return is_member(items, Side(given, match.value.type))
        return stored == at_precision(given, match.type.scalar)

    def _side(self, expression: Expr, nodes: Assignment) -> Side:
        value = self.value(expression, nodes)
        return Side(value, expression.type, column=isinstance(expression, Prop))


def _bound(given: object, kind: PropType) -> Value:
    """A bound parameter as a stored value."""
    if isinstance(given, list | tuple):
        return tuple(_bound(item, kind) for item in given)
    assert given is None or isinstance(given, bool | int | float | str)
    return at_precision(given, kind.scalar) if kind.scalar is Scalar.F32 else given
