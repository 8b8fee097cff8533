"""Which rows of a text column match a query, and how well.

Tests: tests/unit/text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from omnigraph.text.analyse import Word
from omnigraph.text.index import SPOT_SHIFT, Mask, Segment, TextIndex, totals_of

Scores = npt.NDArray[np.float64]

_SATURATION: Final = 1.2
_LENGTH_SHARE: Final = 0.75


def any_word(index: TextIndex, words: Iterable[str]) -> Mask:
    """Rows that contain at least one of the words."""
    found = np.zeros(index.size, np.bool_)
    for word in set(words):
        found[index.places(word).rows] = True
    return found


def phrase(index: TextIndex, words: Sequence[Word]) -> Mask:
    """Rows that contain all words, in order and as far apart as in the query."""
    found = np.zeros(index.size, np.bool_)
    if words:
        for segment in index.segments:
            found[_phrase_rows(segment, words)] = True
    return found


def _phrase_rows(segment: Segment, words: Sequence[Word]) -> npt.NDArray[np.int64]:
    """The rows of one segment with the phrase: beginnings that all its words agree on."""
    first = words[0].position
    beginnings = [segment.spots(word.text) - (word.position - first) for word in words]
    beginnings.sort(key=len)
    common = beginnings[0]
    for others in beginnings[1:]:
        if not len(others):
            return others
        place = np.searchsorted(others, common)
        common = common[others[np.minimum(place, len(others) - 1)] == common]
    return common >> SPOT_SHIFT


def near_words(index: TextIndex, word: str, edits: int) -> list[str]:
    """Words of the column that become the given one by at most so many edits of a letter."""
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    known = [other for other in index.words if abs(len(other) - len(word)) <= edits]
    if not known:
        return []
    distances = cdist([word], known, scorer=Levenshtein.distance, score_cutoff=edits)[0]
    return [known[number] for number in np.flatnonzero(distances <= edits)]


def allowed_edits(word: str) -> int:
    """How many edits a word of a query may be away when the query does not say."""
    return 0 if len(word) <= 2 else 1 if len(word) <= 5 else 2


def bm25(index: TextIndex, words: Iterable[str], visible: Mask | None) -> Scores:
    """The score of every row, zero for those without any of the words.

    How common a word is, and how long texts are, is counted over visible rows.
    """
    texts, length = index.totals if visible is None else totals_of(index.lengths[visible])
    scores = np.zeros(index.size, np.float64)
    if not texts:
        return scores
    mean = length / texts
    for word in set(words):
        places = index.places(word)
        holders, times = places.rows, places.times
        if visible is not None:
            seen = visible[holders]
            holders, times = holders[seen], times[seen]
        if not len(holders):
            continue
        rarity = np.log1p((texts - len(holders) + 0.5) / (len(holders) + 0.5))
        share = index.lengths[holders] / mean
        norm = _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * share)
        scores[holders] += rarity * times * (_SATURATION + 1) / (times + norm)
    return scores
