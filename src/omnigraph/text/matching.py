"""Which rows of a text column match a query, and how well.

Tests: tests/unit/text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from omnigraph.text.analyse import Word
from omnigraph.text.index import SPOT_SHIFT, Mask, Rows, Segment, TextIndex, totals_of

Scores = npt.NDArray[np.float64]

_FEW: Final = 0.1
"""Share of a column's rows up to which they are looked up one by one."""

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


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """The rows of a column that answer a query, ascending, and how well each does."""

    rows: Rows
    scores: Scores
    size: int
    """How many rows the column has."""

    def at(self, rows: Rows) -> Scores:
        """The scores of the given rows; NaN for those that are no answer."""
        if len(self.rows) and len(rows) <= _FEW * self.size:
            place = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
            return np.where(self.rows[place] == rows, self.scores[place], np.nan)
        scores = np.full(self.size, np.nan)
        scores[self.rows] = self.scores
        return scores[rows]

    def among(self, rows: Rows) -> tuple[npt.NDArray[np.int64], Scores]:
        """Which of the given rows, all different, are answers, by their number; and their scores."""
        numbers = np.full(self.size, -1, np.int32)
        numbers[rows] = np.arange(len(rows), dtype=np.int32)
        found = numbers[self.rows]
        given = found >= 0
        return found[given].astype(np.int64), self.scores[given]


def bm25(index: TextIndex, words: Iterable[str], visible: Mask | None) -> ScoredRows:
    """The visible rows with any of the words, and their scores.

    How common a word is, and how long texts are, is counted over visible rows.
    """
    texts, length = index.totals if visible is None else _totals(index, visible)
    rows, scores = [np.empty(0, np.int32)], [np.empty(0)]
    mean = length / max(texts, 1)
    for word in sorted(set(words)):
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
        rows.append(holders)
        scores.append(rarity * times * (_SATURATION + 1) / (times + norm))
    return _summed(np.concatenate(rows), np.concatenate(scores), index.size)


def _totals(index: TextIndex, visible: Mask) -> tuple[int, int]:
    """How many visible texts there are, and how many words they have. Mostly few are hidden."""
    hidden = totals_of(index.lengths[np.flatnonzero(~visible)])
    return index.totals[0] - hidden[0], index.totals[1] - hidden[1]


def _summed(rows: npt.NDArray[np.int32], scores: Scores, size: int) -> ScoredRows:
    """Rows that may be there several times, with the sum of their scores."""
    # Each word brings its rows in order, and a stable sort merges such runs.
    order = np.argsort(rows, kind="stable")
    rows = rows[order]
    first = np.ones(len(rows), np.bool_)
    np.not_equal(rows[1:], rows[:-1], out=first[1:])
    starts = np.flatnonzero(first)
    sums = np.add.reduceat(scores[order], starts) if len(rows) else scores
    return ScoredRows(rows[starts].astype(np.int64), sums, size)
