"""Equality of stored values: by content, with nulls and NaN equal to themselves."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.rows.equality import equal_rows, equal_values

NAN = math.nan
TEXTS = st.none() | st.text(max_size=2)
FLOATS = st.none() | st.sampled_from([0.0, 1.5, NAN])
KINDS = {
    "text": (pa.utf8(), TEXTS),
    "float": (pa.float64(), FLOATS),
    "list": (pa.list_(pa.utf8()), st.none() | st.lists(TEXTS, max_size=3)),
    "vector": (pa.list_(pa.float32(), 2), st.none() | st.lists(FLOATS, min_size=2, max_size=2)),
    "struct": (
        pa.struct([("data", pa.large_binary()), ("uri", pa.utf8())]),
        st.none()
        | st.fixed_dictionaries({"data": st.none() | st.binary(max_size=1), "uri": TEXTS}),
    ),
}


def same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_values_are_equal_when_they_hold_the_same(kind, data):
    arrow, values = KINDS[kind]
    pairs = data.draw(st.lists(st.tuples(values, values), max_size=6))
    left, right = ([pair[side] for pair in pairs] for side in (0, 1))
    found = equal_values(pa.array(left, arrow), pa.array(right, arrow))
    assert found.tolist() == [same(one, other) for one, other in pairs]


def test_a_missing_text_is_not_an_empty_one():
    left, right = pa.chunked_array([[None, "", "a"]]), pa.chunked_array([["", ""], ["a"]])
    assert equal_values(left, right).tolist() == [False, True, True]


def test_rows_are_equal_when_all_their_columns_are():
    left = pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"], "c": [1, 1, 1]})
    right = pa.table({"a": [1, 2, 4], "b": ["x", "n", "z"], "c": [2, 2, 2]})
    assert equal_rows(left, right, ["a", "b"]).tolist() == [True, False, False]
    assert equal_rows(left, right, []).tolist() == [True, True, True]
