"""Searching a column of texts, against reading every text from its beginning."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.text.analyse import words_of_query
from omnigraph.text.index import (
    ScoredRows,
    TextIndex,
    allowed_edits,
    any_word,
    bm25,
    build_index,
    near_words,
    phrase,
)

WORDS = ["kettle", "kettles", "copper", "the", "repair", "of", "hose", "garden"]
TEXT = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
COLUMN = st.lists(TEXT | st.none(), min_size=1, max_size=8)


def _column(texts: list[str | None]) -> pa.Array:
    return pa.array(texts, pa.utf8())


def _build_by_writes(texts: list[str | None], steps: list[list[int]]) -> TextIndex:
    """An index that has seen every text of the given rows change to what it is now."""
    changed = sorted({row for rows in steps for row in rows if row < len(texts)})
    before = ["copper hose" if row in changed else text for row, text in enumerate(texts)]
    index = build_index(_column(before))
    for rows in steps:
        now = np.array(sorted({row for row in rows if row < len(texts)}), np.int64)
        before = [texts[row] if row in now else text for row, text in enumerate(before)]
        index = index.replaced(now, _column(before))
    return index


STEPS = st.lists(st.lists(st.integers(0, 7), max_size=3), max_size=12)


def _stems(text: str | None) -> list[str]:
    return [] if text is None else [word.text for word in words_of_query(text)]


@given(COLUMN, STEPS, TEXT)
def test_any_word_of_a_query(texts, steps, query):
    index = _build_by_writes(texts, steps)
    wanted = set(_stems(query))
    found = any_word(index, wanted)
    assert found.tolist() == [bool(wanted & set(_stems(text))) for text in texts]


def _has_phrase(text: str | None, query: str) -> bool:
    if text is None or not (wanted := words_of_query(query)):
        return False
    there = {(word.text, word.position) for word in words_of_query(text)}
    return any(
        all((w.text, start + w.position - wanted[0].position) in there for w in wanted)
        for start in range(-10, 20)
    )


@given(COLUMN, STEPS, TEXT)
def test_a_phrase_in_its_order_and_distances(texts, steps, query):
    index = _build_by_writes(texts, steps)
    found = phrase(index, words_of_query(query))
    assert found.tolist() == [_has_phrase(text, query) for text in texts]


def _score(texts: list[str | None], seen: list[bool], row: int, query: str) -> float:
    counted = [_stems(t) for t, s in zip(texts, seen, strict=True) if t is not None and s]
    if texts[row] is None or not counted:
        return 0.0
    mean = sum(map(len, counted)) / len(counted)
    words = Counter(_stems(texts[row]))
    total = 0.0
    for word in set(_stems(query)):
        holders = sum(word in other for other in counted)
        if not words[word]:
            continue
        rarity = math.log(1 + (len(counted) - holders + 0.5) / (holders + 0.5))
        norm = 1.2 * (0.25 + 0.75 * sum(words.values()) / mean)
        total += rarity * words[word] * 2.2 / (words[word] + norm)
    return total


@given(COLUMN, STEPS, TEXT, st.lists(st.booleans(), min_size=8, max_size=8))
def test_scores_count_what_a_reader_may_see(texts, steps, query, seen):
    index = _build_by_writes(texts, steps)
    seen = seen[: len(texts)]
    found = bm25(index, _stems(query), np.array(seen))
    expected = [_score(texts, seen, row, query) if s else 0.0 for row, s in enumerate(seen)]
    assert found.rows.tolist() == [row for row, score in enumerate(expected) if score]
    assert found.scores.tolist() == pytest.approx(list(filter(None, expected)), rel=1e-9)


@given(st.sets(st.integers(0, 99)), st.permutations(range(100)), st.integers(0, 100))
def test_scores_of_some_rows(holders, order, count):
    rows = np.array(sorted(holders), np.int64)
    scored = ScoredRows(rows, 1.0 + rows.astype(np.float64), 100)
    asked = np.array(order[:count], np.int64)
    found = scored.at(asked)
    assert [row for row, score in zip(asked, found, strict=True) if score == 1.0 + row] == [
        row for row in asked if row in holders
    ]
    assert np.isnan(found).sum() == sum(row not in holders for row in asked)
    numbers, scores = scored.among(asked)
    assert sorted(asked[numbers]) == sorted(holders.intersection(order[:count]))
    assert scores.tolist() == (1.0 + asked[numbers]).tolist()


def test_scores_of_a_small_column_by_hand():
    index = build_index(_column(["copper kettle repair", "copper hose", None]))
    scores = bm25(index, ["copper"], None)
    # ln(1 + 0.5 / 2.5) = 0.182322; lengths 3 and 2 about a mean of 2.5.
    assert scores.rows.tolist() == [0, 1]
    assert scores.scores.tolist() == pytest.approx([0.16853, 0.19857], abs=1e-5)


def test_new_rows_are_found_and_old_texts_are_not():
    index = build_index(_column(["copper kettle", "iron pan"]))
    later = index.replaced(np.array([0, 2]), _column(["steel pot", "iron pan", "copper wire"]))
    assert any_word(later, ["copper"]).tolist() == [False, False, True]
    assert any_word(later, ["pot", "iron"]).tolist() == [True, True, False]
    assert index.size == 2
    assert any_word(index, ["copper"]).tolist() == [True, False]


@pytest.mark.parametrize(
    ("word", "edits", "near"),
    [("kettl", 0, ["kettl"]), ("ketl", 1, ["kettl"]), ("coper", 1, ["copper"]), ("xyz", 2, [])],
)
def test_words_within_an_edit_distance(word, edits, near):
    index = build_index(_column(["copper kettles", "garden hose"]))
    assert near_words(index, word, edits) == near


@pytest.mark.parametrize(("word", "edits"), [("ab", 0), ("abc", 1), ("abcde", 1), ("abcdef", 2)])
def test_longer_words_may_be_further_away(word, edits):
    assert allowed_edits(word) == edits
