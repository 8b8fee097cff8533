"""Expression values for the rows of a binding table, and comparisons of them.

Values compare by value whatever their types: NaN equals itself and is greater than every number, -0.0
equals 0.0, and a null on either side makes a comparison false. Predicates pushed down to columns follow the
same rules.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.arrow import arrow_type
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
from omnigraph.read.aggregate import GroupKey, SortKey, key_of, sort_keys
from omnigraph.read.frame import Frame
from omnigraph.read.nodes import Nodes
from omnigraph.read.positions import Mask, Positions
from omnigraph.read.source import GraphSource
from omnigraph.rows.columns import build_column
from omnigraph.storage.filters import And, Comparison, In
from omnigraph.storage.filters import Filter as StoredFilter

if TYPE_CHECKING:
    from omnigraph.read.ranks import Ranks, Scores

_FLIPPED: Final = {
    Operator.EQ: Operator.EQ,
    Operator.NE: Operator.NE,
    Operator.LT: Operator.GT,
    Operator.LE: Operator.GE,
    Operator.GT: Operator.LT,
    Operator.GE: Operator.LE,
}


class Expressions:
    """Evaluates the expressions of one query run."""

    def __init__(self, source: GraphSource, parameters: Mapping[str, Any]) -> None:
        self._source = source
        self._parameters = parameters

    @cached_property
    def ranks(self) -> Ranks:
        from omnigraph.read.ranks import Ranks

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
                return _nan_to_null(self.ranks.scores(expression, frame))
            case Rrf():
                return _nan_to_null(frame.fused[expression].scores)
            case Aggregated():
                raise AssertionError("an aggregate has no value for a single row")

    def select(
        self, nodes: Nodes, conditions: tuple[Filter, ...], positions: Positions | None = None
    ) -> Positions:
        """The nodes, of all or of some, that match conditions on one variable."""
        pushed, others = self._split(conditions)
        if pushed is not None:
            positions = nodes.select(pushed, positions)
        elif positions is None:
            positions = nodes.all()
        for condition in others:
            positions = positions[self._matches_one(nodes, condition, positions)]
        return positions

    def matches(self, nodes: Nodes, conditions: tuple[Filter, ...], positions: Positions) -> Mask:
        """Which of the nodes, which may repeat, match conditions on one variable."""
        if nodes.is_whole and len(positions) > nodes.size:
            mask = np.zeros(nodes.size, np.bool_)
            mask[self.select(nodes, conditions)] = True
            return mask[positions]
        pushed, others = self._split(conditions)
        if pushed is None:
            met = np.ones(len(positions), np.bool_)
        else:
            met = nodes.matches(pushed, positions)
        for condition in others:
            met &= self._matches_one(nodes, condition, positions)
        return met

    def holds(self, condition: Filter, frame: Frame) -> Mask:
        """For which rows a comparison is true."""
        pushed = self.pushdown(condition)
        if pushed is not None:
            variable = next(iter(_variables(condition)))
            return self.nodes(frame, variable).matches(pushed, frame.columns[variable])
        left = self.values(condition.left, frame)
        right = self.values(condition.right, frame)
        if pa.types.is_fixed_size_list(left.type):
            return _same_vectors(left, right)
        return compare(left, condition.operator, right)

    def named_node(self, expression: Expr, frame: Frame) -> str | None:
        """The variable that an expression identifies: equal values always come from one node."""
        if isinstance(expression, EntityId):
            return expression.variable
        if isinstance(expression, Prop):
            nodes = self.nodes(frame, expression.variable)
            return expression.variable if nodes.declared.key == (expression.property,) else None
        return None

    def node_count(self, variable: str, frame: Frame) -> int:
        """The number of positions of a variable's type."""
        return self.nodes(frame, variable).size

    def group_key(self, expression: Expr, frame: Frame) -> GroupKey:
        """Equal values of an expression as equal codes."""
        if isinstance(expression, Prop):
            nodes = self.nodes(frame, expression.variable)
            positions = frame.columns[expression.variable]
            codes = nodes.codes(expression.property)
            if codes is not None and codes.dictionary is not None:
                numbers = codes.codes[positions].astype(np.int64) + 1
                return GroupKey(numbers, len(codes.dictionary) + 1)
            if nodes.is_whole and nodes.size < frame.length:
                key = key_of(nodes.dense(expression.property))
                return GroupKey(key.codes[positions], key.size)
        return key_of(self.values(expression, frame))

    def presence(self, expression: Expr, frame: Frame) -> pa.Array:
        """True where a property has a value and null elsewhere, for any type."""
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
        """Conditions that can be pushed down, as one predicate, and the others."""
        found = [(condition, self.pushdown(condition)) for condition in conditions]
        pushed = tuple(predicate for _, predicate in found if predicate is not None)
        others = tuple(condition for condition, predicate in found if predicate is None)
        return (pushed[0] if len(pushed) == 1 else And(pushed) if pushed else None), others

    def _matches_one(self, nodes: Nodes, condition: Filter, positions: Positions) -> Mask:
        variable = next(iter(_variables(condition)))
        frame = Frame(len(positions), {variable: positions}, {variable: nodes.declared.name})
        return self.holds(condition, frame)

    def pushdown(self, condition: Filter) -> StoredFilter | None:
        """A comparison of a property with a constant as a predicate on the property."""
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
        """A list of constants that contains a property, as `property in list`."""
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


def _nan_to_null(scores: Scores) -> pa.Array:
    return pa.array(scores, mask=np.isnan(scores))


def _same_vectors(left: pa.Array, right: pa.Array) -> Mask:
    """Vectors that are equal number by number; a null equals nothing."""
    if not len(left):
        return np.zeros(0, np.bool_)
    from omnigraph.read.vectors import numbers_of

    known = pc.and_(left.is_valid(), right.is_valid())
    mine, given = (numbers_of(values) for values in (left, right))
    same = (mine == given) | (np.isnan(mine) & np.isnan(given))
    return np.asarray(same.all(axis=1) & known.to_numpy(zero_copy_only=False), np.bool_)


def _variables(condition: Filter) -> frozenset[str]:
    return variables_of(condition.left) | variables_of(condition.right)


# -- comparing columns --------------------------------------------------------------------------

_COMPARISONS: Final[Mapping[Operator, tuple[Callable[[Any, Any], Any], Callable[..., Any]]]] = {
    Operator.EQ: (operator.eq, pc.equal),
    Operator.NE: (operator.ne, pc.not_equal),
    Operator.LT: (operator.lt, pc.less),
    Operator.LE: (operator.le, pc.less_equal),
    Operator.GT: (operator.gt, pc.greater),
    Operator.GE: (operator.ge, pc.greater_equal),
}
"""Each comparison in Python, which is exact for large integers and floats, and as an Arrow kernel."""

_EXACT: Final = pa.decimal128(38, 0)


def compare(left: pa.Array, relation: Operator, right: pa.Array) -> Mask:
    """For which rows a comparison of two columns is true."""
    match relation:
        case Operator.CONTAINS:
            return _true(_contains(left, right))
        case Operator.STARTS_WITH:
            return _true(_pairwise(left, right, lambda text, start: text.startswith(start)))
        case _:
            pass
    a, b = _same_type(left, right)
    test, kernel = _COMPARISONS[relation]
    if not pa.types.is_floating(a.type):
        return _true(kernel(a, b))
    met: Mask = test(_float_order(a), _float_order(b))
    met &= _true(pc.and_(a.is_valid(), b.is_valid()))
    for row in np.flatnonzero(_inexact_rows(left, right)):
        met[row] = test(left[row].as_py(), right[row].as_py())
    return met


def _inexact_rows(left: pa.Array, right: pa.Array) -> Mask:
    """Rows that compare a large integer with a float: only there a cast to float loses digits."""
    rows = np.zeros(len(left), np.bool_)
    for whole, other in ((left, right), (right, left)):
        if pa.types.is_integer(whole.type) and pa.types.is_floating(other.type):
            large = pc.greater(pc.abs(_as_float(whole)), float(2**52))
            number = pc.invert(pc.is_nan(_as_float(other)))
            rows |= _true(pc.and_(large, number))
    return rows


def _same_type(left: pa.Array, right: pa.Array) -> tuple[pa.Array, pa.Array]:
    if left.type == right.type:
        return left, right
    if pa.types.is_floating(left.type) or pa.types.is_floating(right.type):
        return _as_float(left), _as_float(right)
    if pa.types.is_integer(left.type) and pa.types.is_integer(right.type):
        return left.cast(_EXACT), right.cast(_EXACT)
    return left.cast(pa.utf8()), right.cast(pa.utf8())


def _as_float(values: pa.Array) -> pa.Array:
    return values.cast(pa.float64(), safe=False)


def _float_order(values: pa.Array) -> SortKey:
    """Floats as integers in the same order; NaN is greatest, zeros are equal."""
    return sort_keys(pc.fill_null(values, 0.0), descending=False)[0]


def _contains(left: pa.Array, right: pa.Array) -> pa.Array:
    if pa.types.is_list(left.type):
        element = left.type.value_type
        return _pairwise(left, right, lambda items, needle: _has_item(items, needle, element))
    return _pairwise(left, right, lambda text, part: part in text)


def _has_item(items: list[Any], needle: Any, element: pa.DataType) -> bool:
    """Whether a list has an item, after rounding it to the precision of the list's items."""
    if pa.types.is_float32(element) and isinstance(needle, float | int):
        needle = float(np.float32(needle))
    if isinstance(needle, float) and math.isnan(needle):
        return any(isinstance(item, float) and math.isnan(item) for item in items)
    return needle in items


def _pairwise(left: pa.Array, right: pa.Array, test: Callable[[Any, Any], bool]) -> pa.Array:
    """A test without an Arrow kernel over two columns; comparing two columns by it is rare."""
    pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
    return pa.array(
        [a is not None and b is not None and bool(test(a, b)) for a, b in pairs], pa.bool_()
    )


def _true(answers: pa.Array) -> Mask:
    return np.asarray(pc.fill_null(answers, False).to_numpy(zero_copy_only=False), np.bool_)
