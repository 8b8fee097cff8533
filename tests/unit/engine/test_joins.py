"""Pairs of equal values are those that comparing each with each finds."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.language.query.ast import Operator
from omnigraph.read.comparing import compare
from omnigraph.read.frame import EqualityJoin

WHOLE = [None, 0, 1, 2, 2**31 - 1]
NUMBERS: dict[pa.DataType, list[Any]] = {
    pa.int32(): [*WHOLE, -1],
    pa.uint32(): [*WHOLE, 2**32 - 1],
    pa.int64(): [*WHOLE, -1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)],
    pa.uint64(): [*WHOLE, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1],
    pa.float32(): [None, 0.0, -0.0, 1.0, 0.5, 0.1, math.nan, math.inf, 2.0**53],
    pa.float64(): [None, 0.0, -0.0, 1.0, 0.5, 0.1, math.nan, -math.inf, 2.0**53, 2.0**63, 2.0**64],
}
OTHERS: dict[pa.DataType, list[Any]] = {
    pa.utf8(): [None, "", "a", "b", "é"],
    pa.bool_(): [None, True, False],
    pa.date32(): [None, 0, 1, -1],
    pa.timestamp("ms"): [None, 0, 1, -1],
}


def pairs_of(left: pa.Array, right: pa.Array) -> set[tuple[int, int]]:
    """By the comparison of the language, each with each."""
    found = set()
    for row in range(len(left)):
        repeated = left.take(pa.array([row] * len(right), pa.int64()))
        met = compare(repeated, Operator.EQ, right)
        found |= {(row, other) for other in met.nonzero()[0].tolist()}
    return found


@st.composite
def columns(draw: st.DrawFn) -> tuple[pa.Array, pa.Array]:
    kinds = list(NUMBERS)
    left, right = draw(st.sampled_from(kinds)), draw(st.sampled_from(kinds))
    if draw(st.integers(0, 3)) == 0:
        left = right = draw(st.sampled_from(list(OTHERS)))
    return draw(values_of(left)), draw(values_of(right))


def values_of(kind: pa.DataType) -> st.SearchStrategy[pa.Array]:
    known = NUMBERS[kind] if kind in NUMBERS else OTHERS[kind]
    return st.lists(st.sampled_from(known), max_size=6).map(lambda found: pa.array(found, kind))


@given(columns())
def test_equal_rows_are_those_a_comparison_finds(drawn):
    left, right = drawn
    equal = EqualityJoin(left, right)
    rows, others = (array.tolist() for array in equal.pairs())
    assert len(rows) == equal.total
    assert set(zip(rows, others, strict=True)) == pairs_of(left, right)
    assert equal.total == len(set(zip(rows, others, strict=True)))
    assert equal.matched.tolist() == [row in rows for row in range(len(left))]


@pytest.mark.parametrize("kind", [pa.utf8(), pa.int64()])
def test_nothing_equals_null(kind):
    nulls = pa.nulls(3, kind)
    assert EqualityJoin(nulls, nulls).total == 0
