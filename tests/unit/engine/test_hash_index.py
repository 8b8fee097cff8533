"""Single values are found among many, also after some have changed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.read import columns as module
from omnigraph.read.columns import HashIndex

TEXTS = st.sampled_from(["", "a", "ab", "ba", "the same ends and the same length", "ü"])
MIDDLES = [f"the same {letter}nds and the same length" for letter in "aei"]
COLUMNS = st.one_of(
    st.lists(st.none() | TEXTS | st.sampled_from(MIDDLES)).map(lambda v: pa.array(v, pa.utf8())),
    st.lists(st.none() | st.sampled_from([0, 1, -1, 2**31 - 1])).map(
        lambda v: pa.array(v, pa.int32())
    ),
    st.lists(st.none() | st.sampled_from([0, 1, 2**63 - 1])).map(
        lambda v: pa.array(v, pa.uint64())
    ),
)


@pytest.fixture(autouse=True)
def always(monkeypatch):
    monkeypatch.setattr(module, "MAX_ROWS_PER_VALUE", 10**6)
    monkeypatch.setattr(module, "MAX_CHANGED_SHARE", 1.0)


def candidates(index, value):
    found = index.candidates(value)
    assert found is not None
    return found.tolist()


@given(values=COLUMNS, extra=st.lists(st.integers(0, 3)))
def test_every_place_of_a_value_is_a_candidate(values, extra):
    index = HashIndex.build(values)
    assert index is not None
    changed = np.array([place for place in extra if place < len(values)], np.int64)
    later = index.patched(changed)
    assert later is not None
    listed = values.to_pylist()
    for value in {value for value in listed if value is not None}:
        there = [place for place, other in enumerate(listed) if other == value]
        found = candidates(index, value)
        assert set(there) <= set(found)
        assert candidates(later, value) == sorted({*found, *changed.tolist()})


def test_a_value_leads_to_few_of_many_rows():
    index = HashIndex.build(pa.array([f"{number}@example.org" for number in range(10_000)]))
    assert candidates(index, "77@example.org") == [77]
    assert candidates(index, "nobody@example.org") == []


def test_long_values_that_differ_in_the_middle_are_found(monkeypatch):
    monkeypatch.setattr(module, "MAX_ROWS_PER_VALUE", 16)
    made = "https://example.org/items/{:06d}/reviews/latest".format
    index = HashIndex.build(pa.array([made(number) for number in range(10_000)]))
    assert index is not None
    assert index.is_selective
    assert candidates(index, made(77)) == [77]


def test_only_texts_and_integers_are_found():
    assert HashIndex.build(pa.array([0.5, 1.5])) is None
    assert HashIndex.build(pa.array([True])) is None
    index = HashIndex.build(pa.array([1, 0]))
    assert index is not None
    for value in (1.0, True, None, 2**63, -(2**63) - 1):
        assert index.candidates(value) is None


def test_values_that_many_rows_have_are_not_looked_for(monkeypatch):
    monkeypatch.setattr(module, "MAX_ROWS_PER_VALUE", 2)
    few, many = HashIndex.build(pa.array([1, 1, 2, 2])), HashIndex.build(pa.array([1, 1, 1, 2, 2]))
    assert few is not None
    assert many is not None
    assert candidates(few, 2) == [2, 3]
    assert many.candidates(2) is None


def test_an_index_with_many_changes_is_not_patched(monkeypatch):
    monkeypatch.setattr(module, "MAX_CHANGED_SHARE", 0.25)
    index = HashIndex.build(pa.array(range(8)))
    assert index is not None
    later = index.patched(np.array([7, 1]))
    assert later is not None
    assert candidates(later, 1) == [1, 7]
    assert later.patched(np.array([1])) is not None
    assert later.patched(np.array([2])) is None
