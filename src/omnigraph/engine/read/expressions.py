"""Values of expressions for the rows of a binding table, and conditions on them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.arrow import arrow_type
from omnigraph.engine.read.compare import compare
from omnigraph.engine.read.frame import Frame
from omnigraph.engine.read.grouping import Key, key_of
from omnigraph.engine.read.nodes import Nodes
from omnigraph.engine.read.numbering import Mask, Positions
from omnigraph.engine.read.source import GraphSource
from omnigraph.language.query.ast import Operator
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
    variables_of,
)
from omnigraph.rows.columns import build_column
from omnigraph.storage.filters import And, Comparison, In
from omnigraph.storage.filters import Filter as StoredFilter

if TYPE_CHECKING:
    from omnigraph.engine.read.ranks import Ranks
    from omnigraph.engine.read.search import Scores

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

    @cached_property
    def ranks(self) -> Ranks:
        from omnigraph.engine.read.ranks import Ranks

        return Ranks(self, exact=self._source.exact)

    def values(self, expression: Expr, frame: Frame) -> pa.Array:
        """One value per row."""
        match expression:
            case Prop():
                nodes = self.nodes(frame, expression.variable)
                if expression.type.is_blob:
                    return pa.nulls(frame.length, pa.utf8())
                return nodes.values(expression.property, frame.columns[expression.variable])
            case EntityId():
                nodes = self.nodes(frame, expression.variable)
                return nodes.ids(frame.columns[expression.variable])
            case Constant() | Param():
                return self._repeated(expression, frame.length)
            case TextMatch():
                return pa.array(self.ranks.matches(expression, frame))
            case Bm25() | Nearest():
                return _scored(self.ranks.scores(expression, frame))
            case Rrf():
                return _scored(frame.fused[expression].scores)
            case Aggregated():
                raise AssertionError("an aggregate has no value for a single row")

    def select(
        self, nodes: Nodes, conditions: tuple[Filter, ...], positions: Positions | None = None
    ) -> Positions:
        """The nodes, of all or of some, that meet conditions on one variable."""
        plain, others = self._split(conditions)
        if plain is not None:
            positions = nodes.select(plain, positions)
        elif positions is None:
            positions = nodes.all()
        for condition in others:
            positions = positions[self._met_by(nodes, condition, positions)]
        return positions

    def meets(self, nodes: Nodes, conditions: tuple[Filter, ...], positions: Positions) -> Mask:
        """Which of the nodes, some of them repeated, meet conditions on one variable."""
        if nodes.is_whole and len(positions) > nodes.size:
            mask = np.zeros(nodes.size, np.bool_)
            mask[self.select(nodes, conditions)] = True
            return mask[positions]
        plain, others = self._split(conditions)
        met = np.ones(len(positions), np.bool_) if plain is None else nodes.meets(plain, positions)
        for condition in others:
            met &= self._met_by(nodes, condition, positions)
        return met

    def holds(self, condition: Filter, frame: Frame) -> Mask:
        """For which rows a comparison is true."""
        plain = self.plain(condition)
        if plain is not None:
            variable = next(iter(_variables(condition)))
            return self.nodes(frame, variable).meets(plain, frame.columns[variable])
        left = self.values(condition.left, frame)
        right = self.values(condition.right, frame)
        if pa.types.is_fixed_size_list(left.type):
            return _same_vectors(left, right)
        return compare(left, condition.operator, right)

    def named_node(self, expression: Expr, frame: Frame) -> str | None:
        """The variable whose node an expression tells: equal values always come from one node."""
        if isinstance(expression, EntityId):
            return expression.variable
        if isinstance(expression, Prop):
            nodes = self.nodes(frame, expression.variable)
            return expression.variable if nodes.declared.key == (expression.property,) else None
        return None

    def node_count(self, variable: str, frame: Frame) -> int:
        """The number of positions nodes of a variable's type have."""
        return self.nodes(frame, variable).size

    def group_key(self, expression: Expr, frame: Frame) -> Key:
        """Equal values of an expression as equal numbers."""
        if isinstance(expression, Prop):
            nodes = self.nodes(frame, expression.variable)
            positions = frame.columns[expression.variable]
            codes = nodes.codes(expression.property)
            if codes is not None and codes.texts is not None:
                return Key(codes.numbers[positions].astype(np.int64) + 1, len(codes.texts) + 1)
            if nodes.is_whole and nodes.size < frame.length:
                key = key_of(nodes.dense(expression.property))
                return Key(key.codes[positions], key.size)
        return key_of(self.values(expression, frame))

    def presence(self, expression: Expr, frame: Frame) -> pa.Array:
        """True where a property has a value and null where it has none, whatever its type."""
        assert isinstance(expression, Prop)
        nodes = self.nodes(frame, expression.variable)
        values = nodes.values(expression.property, frame.columns[expression.variable])
        return pc.if_else(values.is_valid(), True, pa.scalar(None, pa.bool_()))

    def value(self, expression: Constant | Param) -> Any:
        if isinstance(expression, Constant):
            return expression.value
        return self._parameters[expression.name]

    def _split(
        self, conditions: tuple[Filter, ...]
    ) -> tuple[StoredFilter | None, tuple[Filter, ...]]:
        """Conditions that are predicates on columns, as one, and the others."""
        found = [(condition, self.plain(condition)) for condition in conditions]
        plain = tuple(predicate for _, predicate in found if predicate is not None)
        others = tuple(condition for condition, predicate in found if predicate is None)
        return (plain[0] if len(plain) == 1 else And(plain) if plain else None), others

    def _met_by(self, nodes: Nodes, condition: Filter, positions: Positions) -> Mask:
        variable = next(iter(_variables(condition)))
        frame = Frame(len(positions), {variable: positions}, {variable: nodes.declared.name})
        return self.holds(condition, frame)

    def plain(self, condition: Filter) -> StoredFilter | None:
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

    def nodes(self, frame: Frame, variable: str) -> Nodes:
        """The nodes of a variable's type."""
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


def _scored(scores: Scores) -> pa.Array:
    return pa.array(scores, mask=np.isnan(scores))


def _same_vectors(left: pa.Array, right: pa.Array) -> Mask:
    """Vectors that are equal number by number; a missing one equals nothing."""
    if not len(left):
        return np.zeros(0, np.bool_)
    from omnigraph.engine.read.vectors import numbers_of

    known = pc.and_(left.is_valid(), right.is_valid())
    mine, given = (numbers_of(values) for values in (left, right))
    same = (mine == given) | (np.isnan(mine) & np.isnan(given))
    return np.asarray(same.all(axis=1) & known.to_numpy(zero_copy_only=False), np.bool_)


def _variables(condition: Filter) -> frozenset[str]:
    return variables_of(condition.left) | variables_of(condition.right)
