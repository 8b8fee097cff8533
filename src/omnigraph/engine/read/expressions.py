"""Values of expressions for the rows of a binding table, and conditions on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.arrow import arrow_type
from omnigraph.engine.read.compare import compare
from omnigraph.engine.read.frame import Frame
from omnigraph.engine.read.nodes import Nodes
from omnigraph.engine.read.numbering import Mask, Positions
from omnigraph.engine.read.source import GraphSource
from omnigraph.errors import InputError
from omnigraph.language.query.ast import Operator
from omnigraph.plan.ir import Constant, EntityId, Expr, Filter, Param, Prop, variables_of
from omnigraph.rows.build import build_column
from omnigraph.storage.filters import Comparison, In
from omnigraph.storage.filters import Filter as StoredFilter

_FLIPPED = {
    Operator.EQ: Operator.EQ,
    Operator.NE: Operator.NE,
    Operator.LT: Operator.GT,
    Operator.LE: Operator.GE,
    Operator.GT: Operator.LT,
    Operator.GE: Operator.LE,
}


class Expressions:
    """Evaluates expressions of one query run."""

    def __init__(self, source: GraphSource, parameters: Mapping[str, Any]) -> None:
        self._source = source
        self._parameters = parameters

    def values(self, expression: Expr, frame: Frame) -> pa.Array:
        """One value per row."""
        match expression:
            case Prop():
                nodes = self._nodes(frame, expression.variable)
                if expression.type.is_blob:
                    return pa.nulls(frame.length, pa.utf8())
                return nodes.values(expression.property, frame.columns[expression.variable])
            case EntityId():
                nodes = self._nodes(frame, expression.variable)
                return nodes.ids(frame.columns[expression.variable])
            case Constant() | Param():
                return self._repeated(expression, frame.length)
            case _:
                raise InputError("search and ranking in queries are not supported yet")

    def select(
        self, nodes: Nodes, conditions: tuple[Filter, ...], positions: Positions | None = None
    ) -> Positions:
        """The nodes, of all or of some, that meet conditions on one variable."""
        for condition in conditions:
            plain = self._plain(condition)
            if plain is not None:
                positions = nodes.select(plain, positions)
                continue
            chosen = nodes.all() if positions is None else positions
            variable = next(iter(_variables(condition)))
            frame = Frame(len(chosen), {variable: chosen}, {variable: nodes.declared.name})
            positions = chosen[self.holds(condition, frame)]
        return nodes.all() if positions is None else positions

    def holds(self, condition: Filter, frame: Frame) -> Mask:
        """For which rows a comparison is true."""
        plain = self._plain(condition)
        if plain is not None:
            variable = next(iter(_variables(condition)))
            nodes, column = self._nodes(frame, variable), frame.columns[variable]
            distinct, place = np.unique(column, return_inverse=True)
            met = np.isin(distinct, nodes.select(plain, distinct), assume_unique=True)
            return np.asarray(met[place], np.bool_)
        left = self.values(condition.left, frame)
        right = self.values(condition.right, frame)
        if pa.types.is_fixed_size_list(left.type):
            return _same_vectors(left, right)
        return compare(left, condition.operator, right)

    def presence(self, expression: Expr, frame: Frame) -> pa.Array:
        """True where a property has a value and null where it has none, whatever its type."""
        assert isinstance(expression, Prop)
        nodes = self._nodes(frame, expression.variable)
        values = nodes.values(expression.property, frame.columns[expression.variable])
        return pc.if_else(values.is_valid(), True, pa.scalar(None, pa.bool_()))

    def value(self, expression: Constant | Param) -> Any:
        if isinstance(expression, Constant):
            return expression.value
        return self._parameters[expression.name]

    def _plain(self, condition: Filter) -> StoredFilter | None:
        """A comparison of a property with a constant, as the columns' own predicates say it."""
        left, right, operator = condition.left, condition.right, condition.operator
        if left.type.is_vector or right.type.is_vector:
            return None
        if operator is Operator.CONTAINS and isinstance(left, Constant | Param) and left.type.list:
            return self._one_of(left, right)
        if isinstance(right, Prop | EntityId) and isinstance(left, Constant | Param):
            if operator not in _FLIPPED:
                return None
            left, right, operator = right, left, _FLIPPED[operator]
        if not isinstance(left, Prop | EntityId) or not isinstance(right, Constant | Param):
            return None
        name = left.property if isinstance(left, Prop) else "id"
        return Comparison(name, operator.value, self.value(right))

    def _one_of(self, items: Constant | Param, needle: Expr) -> StoredFilter | None:
        """A list of constants that contains a property: the property is one of them."""
        if not isinstance(needle, Prop | EntityId):
            return None
        name = needle.property if isinstance(needle, Prop) else "id"
        found = self.value(items)
        if found is None:
            return Comparison(name, "=", None)
        return In(name, tuple(item for item in found if item is not None))

    def _nodes(self, frame: Frame, variable: str) -> Nodes:
        return self._source.nodes(frame.types[variable])

    def _repeated(self, expression: Constant | Param, length: int) -> pa.Array:
        value = self.value(expression)
        if value is None:
            return pa.nulls(length, arrow_type(expression.type))
        if isinstance(value, tuple):
            is_float = expression.type.scalar.is_float
            value = [float(v) if is_float and v is not None else v for v in value]
        one = build_column([value], expression.type)
        return one.take(pa.array(np.zeros(length, np.int64)))


def _same_vectors(left: pa.Array, right: pa.Array) -> Mask:
    """Vectors that are equal number by number; a missing one equals nothing."""
    if not len(left):
        return np.zeros(0, np.bool_)
    known = pc.and_(left.is_valid(), right.is_valid())
    mine, given = (_numbers(values) for values in (left, right))
    same = (mine == given) | (np.isnan(mine) & np.isnan(given))
    return np.asarray(same.all(axis=1) & known.to_numpy(zero_copy_only=False), np.bool_)


def _numbers(vectors: pa.Array) -> npt.NDArray[np.float32]:
    """The numbers of vectors, a row each; those of a missing vector do not matter."""
    size = vectors.type.list_size
    found = pc.fill_null(vectors.values, 0.0).to_numpy(zero_copy_only=False)
    start = vectors.offset * size
    return np.asarray(found[start : start + len(vectors) * size], np.float32).reshape(-1, size)


def _variables(condition: Filter) -> frozenset[str]:
    return variables_of(condition.left) | variables_of(condition.right)
