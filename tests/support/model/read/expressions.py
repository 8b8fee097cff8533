"""The value of an expression for one combination of nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from omnigraph.language.types import PropType, Scalar
from omnigraph.plan.ir import (
    Aggregated,
    BlockValue,
    Bm25,
    Constant,
    EntityId,
    Expr,
    Filter,
    MakeObject,
    Nearest,
    Param,
    ParameterSpec,
    Pattern,
    Prop,
    Rrf,
    SystemField,
    TextMatch,
)
from tests.support.model.image import Image
from tests.support.model.read.aggregates import aggregate
from tests.support.model.read.compare import at_precision
from tests.support.model.read.computing import COMPUTED, Overflow, compute
from tests.support.model.read.searching import Fused, bm25, distance, fused, matches
from tests.support.model.values import Row, Value, text_of

Assignment = Mapping[str, Any]
"""A node, edge or path for each variable; None for one that an optional block leaves unbound."""


class Evaluator:
    """Knows the parameters of one execution, the time among them, and all that may be seen."""

    def __init__(self, parameters: Mapping[str, object], image: Image | None) -> None:
        self._parameters = parameters
        self._image = image
        self._fused: dict[Rrf, dict[str, Fused]] = {}
        self.solutions: Callable[[Pattern, Assignment], Iterable[Assignment]]
        """Finds the solutions of a block; the matcher sets it."""
        self._group: tuple[Mapping[Expr, Value], Sequence[Assignment]] | None = None

    def value(self, expression: Expr, nodes: Assignment) -> Value:
        if self._group is not None:
            keys, members = self._group
            if expression in keys:
                return keys[expression]
            if isinstance(expression, Aggregated):
                return self._aggregate(expression, members)
        match expression:
            case MakeObject(_, fields):
                if nodes[expression.variable] is None:
                    return None
                return {name: self.value(field, nodes) for name, field in fields}
            case Prop(variable, name, _):
                return None if nodes[variable] is None else nodes[variable][name]
            case EntityId(variable, _):
                return None if nodes[variable] is None else nodes[variable]["id"]
            case SystemField(variable, "type") if "@type" not in (nodes[variable] or {"@type": 0}):
                return self._node_type(nodes[variable])
            case SystemField(variable, field):
                return None if nodes[variable] is None else nodes[variable][f"@{field}"]
            case BlockValue():
                return self._block(expression, nodes)
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
                if nodes[_field(expression).variable] is None:
                    return None
                row, name = nodes[_field(expression).variable], _field(expression).property
                column: Any = [other[name] for other in self._table_of(row)]
                return bm25(self._text(field, nodes), self._text(query, nodes), column)
            case Nearest(field, query):
                vector: Any = self.value(field, nodes)
                wanted: Any = self.value(query, nodes)
                return distance(vector, wanted)
            case Rrf():
                primary = nodes[_field(expression.first).variable]
                if primary is None:
                    return None
                return self._fused[expression].get(text_of(primary, "id"))
            case Aggregated():
                raise ValueError("an aggregate has no value for a single row")
            case _ if isinstance(expression, COMPUTED):
                computed: Value = compute(expression, lambda part: self.value(part, nodes))
                return computed
            case _:
                raise ValueError(f"no value for a single row: {expression}")

    def _block(self, block: BlockValue, nodes: Assignment) -> Value:
        """An aggregate of the solutions of a block, or whether there are any."""
        found = list(self.solutions(block.block.inner, nodes))
        if block.function is None:
            return bool(found)
        if block.argument is None:
            return len(found)
        values = [self.value(block.argument, more) for more in found]
        return aggregate(block.function, list(dict.fromkeys(values)) if block.distinct else values)

    def _node_type(self, row: Row) -> str:
        assert self._image is not None
        tables = self._image.tables
        id = text_of(row, "id")
        return next(key[5:] for key, t in tables.items() if key[:5] == "node:" and t.get(id) is row)

    def of_group(
        self, expression: Expr, keys: Mapping[Expr, Value], members: Sequence[Assignment]
    ) -> Value:
        """The value of an expression for a group of solutions, which are in the order of their ids."""
        self._group = (keys, members)
        try:
            return self.value(expression, {})
        finally:
            self._group = None

    def _aggregate(self, wanted: Aggregated, members: Sequence[Assignment]) -> Value:
        group, self._group = self._group, None
        values = [self.value(wanted.argument, nodes) for nodes in members]
        self._group = group
        present = [value for value in values if value is not None]
        if wanted.distinct:
            present = list({repr(_plain(value)): value for value in reversed(present)}.values())[
                ::-1
            ]
        return aggregate(wanted.function, present)

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
        assert self._image is not None
        id = text_of(row, "id")
        assert self._image is not None
        return next(t.values() for t in self._image.tables.values() if t.get(id) is row)

    def _text(self, expression: Expr, nodes: Assignment) -> str | None:
        value = self.value(expression, nodes)
        assert value is None or isinstance(value, str)
        return value

    def satisfies(self, condition: Filter, nodes: Assignment) -> bool:
        try:
            return self.value(condition.condition, nodes) is True
        except Overflow:
            return False


def _field(arm: Nearest | Bm25) -> Prop:
    assert isinstance(arm.field, Prop)
    return arm.field


def _bound(given: object, kind: PropType) -> Value:
    """A bound parameter as a stored value."""
    if isinstance(given, list | tuple):
        return tuple(_bound(item, kind) for item in given)
    assert given is None or isinstance(given, bool | int | float | str)
    return at_precision(given, kind.scalar) if kind.scalar is Scalar.F32 else given


def with_defaults(specs: Iterable[ParameterSpec], bound: Mapping[str, object]) -> dict[str, object]:
    """The bound parameters and the defaults of those that are absent."""
    evaluator = Evaluator(bound, None)
    found = dict(bound)
    for spec in specs:
        if spec.default is not None and spec.name not in found:
            found[spec.name] = evaluator.value(spec.default, {})
    return found


def _plain(value: Value) -> Value:
    """A value whose text is that of all equal ones: there is one zero."""
    return value + 0.0 if isinstance(value, float) else value
