"""The value of an expression for one combination of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, assert_never

from omnigraph.language.types import PropType, Scalar
from omnigraph.plan.ir import (
    Aggregated,
    Bm25,
    Constant,
    EntityId,
    Expr,
    Filter,
    Nearest,
    Param,
    Prop,
    Rrf,
    TextMatch,
)
from tests.support.model.image import Image
from tests.support.model.read.compare import Side, at_precision, holds
from tests.support.model.read.searching import Fused, bm25, distance, fused, matches
from tests.support.model.values import Row, Value, text_of

Assignment = Mapping[str, Row]
"""A node for each variable."""


class Evaluator:
    """Knows the parameters of one execution, the time among them, and all that may be seen."""

    def __init__(self, parameters: Mapping[str, object], image: Image) -> None:
        self._parameters = parameters
        self._image = image
        self._fused: dict[Rrf, dict[str, Fused]] = {}

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
            case TextMatch(function, field, query, edits):
                allowed: Any = None if edits is None else self.value(edits, nodes)
                return matches(
                    function, self._text(field, nodes), self._text(query, nodes), allowed
                )
            case Bm25(field, query):
                row, name = nodes[_field(expression).variable], _field(expression).property
                column: Any = [other[name] for other in self._table_of(row)]
                return bm25(self._text(field, nodes), self._text(query, nodes), column)
            case Nearest(field, query):
                vector: Any = self.value(field, nodes)
                wanted: Any = self.value(query, nodes)
                return distance(vector, wanted)
            case Rrf():
                primary = nodes[_field(expression.first).variable]
                return self._fused[expression].get(text_of(primary, "id"))
            case Aggregated():
                raise ValueError("an aggregate has no value for a single row")
            case _:
                assert_never(expression)

    def fuse(self, rrf: Rrf, solutions: Sequence[Assignment], limit: int | None) -> None:
        """Rank the nodes of the solutions; before this the rank has no value."""
        k: Any = 60 if rrf.k is None else self.value(rrf.k, {})
        arms = [self._ranking(rrf, arm, solutions, limit) for arm in (rrf.first, rrf.second)]
        self._fused[rrf] = fused(arms, k)

    def _ranking(
        self, rrf: Rrf, arm: Nearest | Bm25, solutions: Sequence[Assignment], limit: int | None
    ) -> list[str]:
        """The ids of the ranked variable by their best score in one arm, best first."""
        best: dict[str, float] = {}
        for nodes in solutions:
            score: Any = self.value(arm, nodes)
            if score is not None:
                id = text_of(nodes[_field(rrf.first).variable], "id")
                value = score if isinstance(arm, Nearest) else -score
                best[id] = min(value, best.get(id, value))
        ranked = sorted(best, key=lambda id: (best[id], id))
        return ranked[:limit] if isinstance(arm, Nearest) else ranked

    def _table_of(self, row: Row) -> Iterable[Row]:
        """All nodes of the type a node is of."""
        id = text_of(row, "id")
        return next(t.values() for t in self._image.tables.values() if t.get(id) is row)

    def _text(self, expression: Expr, nodes: Assignment) -> str | None:
        value = self.value(expression, nodes)
        assert value is None or isinstance(value, str)
        return value

    def satisfies(self, condition: Filter, nodes: Assignment) -> bool:
        left, right = self._side(condition.left, nodes), self._side(condition.right, nodes)
        return holds(left, condition.operator, right)

    def _side(self, expression: Expr, nodes: Assignment) -> Side:
        value = self.value(expression, nodes)
        return Side(value, expression.type, column=isinstance(expression, Prop))


def _field(arm: Nearest | Bm25) -> Prop:
    assert isinstance(arm.field, Prop)
    return arm.field


def _bound(given: object, kind: PropType) -> Value:
    """A bound parameter as a stored value."""
    if isinstance(given, list | tuple):
        return tuple(_bound(item, kind) for item in given)
    assert given is None or isinstance(given, bool | int | float | str)
    return at_precision(given, kind.scalar) if kind.scalar is Scalar.F32 else given
