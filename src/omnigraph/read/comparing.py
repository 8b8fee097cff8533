"""Comparisons of two columns.

Values compare by value whatever their types: NaN equals itself and is greater than every number, -0.0
equals 0.0, and a null on either side makes a comparison null.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.query.ast import Operator
from omnigraph.read.aggregate import SortKey, sort_keys
from omnigraph.read.functions import is_true, membership
from omnigraph.read.positions import Mask

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


def compare_columns(left: pa.Array, relation: Operator, right: pa.Array) -> pa.Array:
    """The comparison of two columns: true, false, or null."""
    known = pc.and_(left.is_valid(), right.is_valid()).to_numpy(zero_copy_only=False)
    return pa.array(compare(left, relation, right), mask=~np.asarray(known, np.bool_))


def compare(left: pa.Array, relation: Operator, right: pa.Array) -> Mask:
    """For which rows a comparison of two columns is true. Rows with a null have no meaning."""
    match relation:
        case Operator.CONTAINS if pa.types.is_list(left.type):
            return _has_element(left, right)
        case Operator.IN:
            return _has_element(right, left)
        case Operator.CONTAINS:
            return _pairwise(left, right, lambda text, part: part in text)
        case Operator.STARTS_WITH:
            return _pairwise(left, right, lambda text, start: text.startswith(start))
        case Operator.ENDS_WITH:
            return _pairwise(left, right, lambda text, end: text.endswith(end))
        case _:
            pass
    if pa.types.is_fixed_size_list(left.type):
        return _same_vectors(left, right)
    a, b = _same_type(left, right)
    test, kernel = _COMPARISONS[relation]
    if not pa.types.is_floating(a.type):
        return is_true(kernel(a, b))
    met: Mask = test(_float_order(a), _float_order(b))
    met &= is_true(pc.and_(a.is_valid(), b.is_valid()))
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
            rows |= is_true(pc.and_(large, number))
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


def _has_element(lists: pa.Array, needles: pa.Array) -> Mask:
    """Whether each list has the value of its row."""
    ones = pa.array(np.arange(len(needles) + 1, dtype=np.int32))
    return membership(lists, pa.ListArray.from_arrays(ones, needles))[0]


def _pairwise(left: pa.Array, right: pa.Array, test: Callable[[str, str], bool]) -> Mask:
    """A test of texts that has no kernel for two columns: once per pair of distinct values."""
    one, other = (values.dictionary_encode() for values in (left, right))
    codes = [pc.fill_null(side.indices, 0).to_numpy().astype(np.int64) for side in (one, other)]
    width = max(len(other.dictionary), 1)
    pairs, rows = np.unique(codes[0] * width + codes[1], return_inverse=True)
    if not len(one.dictionary) or not len(other.dictionary):
        return np.zeros(len(left), np.bool_)
    texts = one.dictionary.to_pylist(), other.dictionary.to_pylist()
    answers = [test(texts[0][pair // width], texts[1][pair % width]) for pair in pairs.tolist()]
    return np.array(answers, np.bool_)[rows]


def _same_vectors(left: pa.Array, right: pa.Array) -> Mask:
    """Vectors that are equal number by number; a null equals nothing."""
    if not len(left):
        return np.zeros(0, np.bool_)
    from omnigraph.read.vectors import numbers_of

    known = pc.and_(left.is_valid(), right.is_valid())
    mine, given = (numbers_of(values) for values in (left, right))
    same = (mine == given) | (np.isnan(mine) & np.isnan(given))
    return np.asarray(same.all(axis=1) & known.to_numpy(zero_copy_only=False), np.bool_)
