"""Single values are found among many, also after some have changed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.engine.read import value_places as module
from omnigraph.engine.read.value_places import ValuePlaces

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
    monkeypatch.setattr(module, "_SELECTIVE", 10**6)
    monkeypatch.setattr(module, "_MOST_CHANGED", 1.0)


def candidates(places, value):
    found = places.candidates(value)
    assert found is not None
    return found.tolist()


@given(values=COLUMNS, extra=st.lists(st.integers(0, 3)))
def test_every_place_of_a_value_is_a_candidate(values, extra):
    places = ValuePlaces.of(values)
    assert places is not None
    changed = np.array([place for place in extra if place < len(values)], np.int64)
    later = places.carried_on(changed)
    assert later is not None
    listed = values.to_pylist()
    for value in {value for value in listed if value is not None}:
        there = [place for place, other in enumerate(listed) if other == value]
        found = candidates(places, value)
        assert set(there) <= set(found)
        assert candidates(later, value) == sorted({*found, *changed.tolist()})


def test_a_value_leads_to_few_of_many_rows():
    places = ValuePlaces.of(pa.array([f"{number}@example.org" for number in range(10_000)]))
    assert candidates(places, "77@example.org") == [77]
    assert candidates(places, "nobody@example.org") == []


def test_long_values_that_differ_in_the_middle_are_found(monkeypatch):
    monkeypatch.setattr(module, "_SELECTIVE", 16)
    made = "https://example.org/items/{:06d}/reviews/latest".format
    places = ValuePlaces.of(pa.array([made(number) for number in range(10_000)]))
    assert places is not None
    assert places.is_selective
    assert candidates(places, made(77)) == [77]


def test_only_texts_and_integers_are_found():
    assert ValuePlaces.of(pa.array([0.5, 1.5])) is None
    assert ValuePlaces.of(pa.array([True])) is None
    places = ValuePlaces.of(pa.array([1, 0]))
    assert places is not None
    for value in (1.0, True, None, 2**63, -(2**63) - 1):
        assert places.candidates(value) is None


def test_values_that_many_rows_have_are_not_looked_for(monkeypatch):
    monkeypatch.setattr(module, "_SELECTIVE", 2)
    few, many = ValuePlaces.of(pa.array([1, 1, 2, 2])), ValuePlaces.of(pa.array([1, 1, 1, 2, 2]))
    assert few is not None
    assert many is not None
    assert candidates(few, 2) == [2, 3]
    assert many.candidates(2) is None


def test_many_changes_are_not_carried_on(monkeypatch):
    monkeypatch.setattr(module, "_MOST_CHANGED", 0.25)
    places = ValuePlaces.of(pa.array(range(8)))
    assert places is not None
    later = places.carried_on(np.array([7, 1]))
    assert later is not None
    assert candidates(later, 1) == [1, 7]
    assert later.carried_on(np.array([1])) is not None
    assert later.carried_on(np.array([2])) is None
