"""Hashes of values: every byte counts, equal values agree however they are stored, and keys spread."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.rows import equality
from omnigraph.rows.equality import buckets_of, hashes_of, hashes_of_tuples

LENGTHS = [*range(40), *range(250, 270), 511, 512, 513, 8191, 8192, 8193, 70_000]
"""Around words, around blocks, and around blocks of blocks."""
TEXTS = st.text(max_size=20) | st.text(min_size=250, max_size=270)


def found(values, kind=None):
    return hashes_of(pa.array(values, kind)).tolist()


@settings(max_examples=100)
@given(values=st.lists(TEXTS, max_size=30), skipped=st.integers(0, 3))
def test_equal_texts_have_one_hash_in_any_company(values, skipped):
    before = ["x" * 11, "", "yz"][:skipped]
    column = pa.array([*before, *values, "äöü"], pa.utf8()).slice(skipped, len(values))
    assert hashes_of(column).tolist() == [found([value])[0] for value in values]


@settings(max_examples=100)
@given(values=st.lists(st.none() | st.binary(max_size=20), max_size=20))
def test_the_kind_of_a_column_of_bytes_does_not_matter(values):
    alone = [0 if value is None else found([value], pa.binary())[0] for value in values]
    assert found(values, pa.binary()) == alone
    assert found(values, pa.large_binary()) == alone
    texts = [None if value is None else value.hex() for value in values]
    assert found(texts, pa.utf8()) == found(texts, pa.large_utf8())
    assert found(texts, pa.utf8()) == found([t and t.encode() for t in texts], pa.binary())


@given(values=st.lists(st.none() | st.binary(min_size=9, max_size=9), min_size=2, max_size=9))
def test_bytes_of_one_size_are_bytes(values):
    column = pa.array(values, pa.binary(9)).slice(1)
    assert hashes_of(column).tolist() == found(values[1:], pa.binary())


def test_every_byte_of_a_text_counts():
    for length in LENGTHS:
        text = bytearray(b"ab" * length)[:length]
        changed = [bytes(text), bytes(text) + b"\0", b"\0" + bytes(text)]
        for place in {*range(min(length, 600)), *range(max(length - 600, 0), length)}:
            text[place] ^= 1
            changed.append(bytes(text))
            text[place] ^= 1
        assert len(set(found(changed, pa.binary()))) == len(set(changed))


@pytest.mark.parametrize("places", [(3, 7, 11), (7, 15, 23), (0, 8, 16), (6, 7, 8)])
def test_digits_at_a_few_places_do_not_cancel_each_other(places):
    texts = np.full((1000, 24), ord("0"), np.uint8)
    for power, place in enumerate(places):
        texts[:, place] += (np.arange(1000) // 10**power % 10).astype(np.uint8)
    assert len(set(found([bytes(row) for row in texts]))) == 1000


def test_hashes_are_the_same_everywhere():
    """Tasks on different machines send equal keys to the same bucket."""
    texts = ["", "a", "12345678", "https://example.org/a", "ü" * 300, "x" * 100_000]
    assert [f"{h:016x}" for h in found(texts)] == [
        "5c76a454c81bdd84",
        "e099f6370f1522c8",
        "877644063474827c",
        "31c5b6dcd8f32bc5",
        "4aba029beb012a6e",
        "029337f67df41eda",
    ]
    assert [f"{h:016x}" for h in found([0, 1, -1])] == [
        "5c76a454c81bdd84",
        "7ce1a76c74dbc890",
        "39b1d3a9ffa1624d",
    ]


def test_numbers_hash_by_value():
    for kind in (pa.int8(), pa.int32(), pa.int64()):
        assert found([0, 1, -1, None], kind) == found([0, 1, -1, None])
    for kind in (pa.uint8(), pa.uint32(), pa.uint64()):
        assert found([0, 1, 200], kind) == found([0, 1, 200])
    assert len(set(found([2**63, 2**64 - 1, 0], pa.uint64()))) == 3
    assert found([True, False, None], pa.bool_()) == found([1, 0, None])
    assert found([0.0, float("nan")]) == found([-0.0, -float("nan")])
    assert found([0.5, 2.0], pa.float32()) == found([0.5, 2.0])
    days = [0, 18_321, -1]
    assert found(days, pa.date32()) == found(days)
    assert found([86_400_000], pa.date64()) == found([86_400_000], pa.timestamp("ms"))


def test_values_of_several_columns_hash_together():
    left, right = pa.array(["a", "b", "a", "a"]), pa.array([1, 1, 2, 1])
    hashes = hashes_of_tuples([left, right]).tolist()
    assert hashes[0] == hashes[3]
    assert len(set(hashes)) == 3
    assert hashes_of_tuples([left]).tolist() == hashes_of(left).tolist()
    swapped = hashes_of_tuples([pa.array(["a", "b"]), pa.array(["b", "a"])])
    assert swapped[0] != swapped[1]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([f"person-{n:07d}" for n in range(10_000)]),
        pa.array([f"https://example.org/{n}/about" for n in range(10_000)]),
        pa.array([f"https://example.org/items/{n:06d}/reviews/latest" for n in range(10_000)]),
        pa.array(["x" * 300 + f"{n:06d}" + "y" * 300 for n in range(10_000)]),
        pa.array(np.arange(10_000)),
        pa.array(np.arange(10_000) << 40),
        pa.array(np.arange(10_000) * 1000.0),
    ],
    ids=["numbered", "short", "middles", "long", "integers", "high bits", "floats"],
)
@pytest.mark.parametrize("count", [8, 16, 10])
def test_keys_spread(column, count):
    sizes = np.bincount(buckets_of(hashes_of(column), count), minlength=count)
    assert len(sizes) == count
    assert sizes.min() > 0.8 * 10_000 / count
    assert len(set(hashes_of(column).tolist())) == 10_000


def test_one_long_text_among_many_costs_its_own_bytes(monkeypatch):
    texts = [f"p{n}" for n in range(50_000)]
    texts[7] = "x" * 3_000_000
    fetched = []
    real = equality._hashes_of_words

    def counting(words, starts, *rest):
        fetched.append(words * len(starts))
        return real(words, starts, *rest)

    monkeypatch.setattr(equality, "_hashes_of_words", counting)
    hashes = found(texts)
    assert sum(fetched) < 50_000 + 1.1 * 3_000_000 / 8
    assert len(fetched) < 50
    monkeypatch.undo()
    assert [hashes[7], hashes[8]] == found(texts[7:9])
    assert len(set(hashes)) == 50_000


def test_a_column_of_nothing_has_no_hashes():
    for kind in (pa.utf8(), pa.int64(), pa.binary(4)):
        assert found([], kind) == []
        assert found([None, None], kind) == [0, 0]
    assert len(set(found(["", "", ""]))) == 1
