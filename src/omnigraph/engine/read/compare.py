"""Comparing two columns of values: by value, whatever their types, with one meaning of NaN and null.

NaN equals itself and is greater than every number, -0.0 equals 0.0, and a null on either side makes
the answer false. The same rules hold where a column is compared with a constant.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.read.numbering import Mask
from omnigraph.language.query.ast import Operator

_EXACTLY: Final[Mapping[Operator, Callable[[Any, Any], bool]]] = {
    Operator.EQ: operator.eq,
    Operator.NE: operator.ne,
    Operator.LT: operator.lt,
    Operator.LE: operator.le,
    Operator.GT: operator.gt,
    Operator.GE: operator.ge,
}
"""Python compares integers with floats by value, however large they are."""

_EXACT = pa.decimal128(38, 0)


def compare(left: pa.Array, relation: Operator, right: pa.Array) -> Mask:
    """Row by row whether a comparison of two columns is true."""
    match relation:
        case Operator.CONTAINS:
            return _true(_contains(left, right))
        case Operator.STARTS_WITH:
            return _true(_pairwise(left, right, lambda text, start: text.startswith(start)))
        case _:
            pass
    exact = _inexact_rows(left, right)
    left_same, right_same = _same_type(left, right)
    if pa.types.is_floating(left_same.type):
        met = _compare_floats(left_same, relation, right_same)
        for row in np.flatnonzero(exact):
            met[row] = _EXACTLY[relation](left[row].as_py(), right[row].as_py())
        return met
    left, right = left_same, right_same
    compute = {
        Operator.EQ: pc.equal,
        Operator.NE: pc.not_equal,
        Operator.LT: pc.less,
        Operator.LE: pc.less_equal,
        Operator.GT: pc.greater,
        Operator.GE: pc.greater_equal,
    }[relation]
    return _true(compute(left, right))


def _inexact_rows(left: pa.Array, right: pa.Array) -> Mask:
    """Rows in which a large integer meets a float: only there turning both into floats is wrong."""
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


def _compare_floats(left: pa.Array, relation: Operator, right: pa.Array) -> Mask:
    known = _true(pc.and_(left.is_valid(), right.is_valid()))
    a = np.asarray(pc.fill_null(left, 0.0).to_numpy(zero_copy_only=False), np.float64)
    b = np.asarray(pc.fill_null(right, 0.0).to_numpy(zero_copy_only=False), np.float64)
    a_nan, b_nan = np.isnan(a), np.isnan(b)
    equal = (a == b) | (a_nan & b_nan)
    less = (a < b) | (~a_nan & b_nan)
    met = {
        Operator.EQ: equal,
        Operator.NE: ~equal,
        Operator.LT: less,
        Operator.LE: less | equal,
        Operator.GT: ~(less | equal),
        Operator.GE: ~less,
    }[relation]
    return np.asarray(met & known, np.bool_)


def _contains(left: pa.Array, right: pa.Array) -> pa.Array:
    if pa.types.is_list(left.type):
        element = left.type.value_type
        return _pairwise(left, right, lambda items, needle: _has_item(items, needle, element))
    return _pairwise(left, right, lambda text, part: part in text)


def _has_item(items: list[Any], needle: Any, element: pa.DataType) -> bool:
    """Whether a list has an item, which is rounded to the precision of the list's items."""
    if pa.types.is_float32(element) and isinstance(needle, float | int):
        needle = float(np.float32(needle))
    if isinstance(needle, float) and math.isnan(needle):
        return any(isinstance(item, float) and math.isnan(item) for item in items)
    return needle in items


def _pairwise(left: pa.Array, right: pa.Array, test: Callable[[Any, Any], bool]) -> pa.Array:
    """A test for which there is no kernel over two columns. Comparisons of two columns by it are rare."""
    pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
    return pa.array(
        [a is not None and b is not None and bool(test(a, b)) for a, b in pairs], pa.bool_()
    )


def _true(answers: pa.Array) -> Mask:
    return np.asarray(pc.fill_null(answers, False).to_numpy(zero_copy_only=False), np.bool_)
