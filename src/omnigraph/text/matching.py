"""Text matches and BM25 scores of the rows of a column.

Tests: tests/unit/text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from omnigraph.text.analyse import Word
from omnigraph.text.index import OCCURRENCE_SHIFT, Mask, Rows, Segment, TextIndex, totals_of

Scores = npt.NDArray[np.float64]

MAX_SEARCHED_SHARE: Final = 0.1
"""Share of a column's rows up to which binary search beats a dense array."""

_K1: Final = 1.2
_B: Final = 0.75


def any_word(index: TextIndex, words: Iterable[str]) -> Mask:
    """Rows that contain at least one of the words."""
    found = np.zeros(index.size, np.bool_)
    for word in set(words):
        found[index.postings(word).rows] = True
    return found


def phrase(index: TextIndex, words: Sequence[Word]) -> Mask:
    """Rows that contain all words in order, as far apart as in the query."""
    found = np.zeros(index.size, np.bool_)
    if words:
        for segment in index.segments:
            found[_phrase_rows(segment, words)] = True
    return found


def _phrase_rows(segment: Segment, words: Sequence[Word]) -> npt.NDArray[np.int64]:
    """The rows of one segment with the phrase: starts that all its words share."""
    first = words[0].position
    beginnings = [segment.occurrences(word.text) - (word.position - first) for word in words]
    beginnings.sort(key=len)
    common = beginnings[0]
    for others in beginnings[1:]:
        if not len(others):
            return others
        at = np.searchsorted(others, common)
        common = common[others[np.minimum(at, len(others) - 1)] == common]
    return common >> OCCURRENCE_SHIFT


def near_words(index: TextIndex, word: str, edits: int) -> list[str]:
    """Words of the column within an edit distance of a word."""
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    known = [other for other in index.words if abs(len(other) - len(word)) <= edits]
    if not known:
        return []
    distances = cdist([word], known, scorer=Levenshtein.distance, score_cutoff=edits)[0]
    return [known[number] for number in np.flatnonzero(distances <= edits)]


def allowed_edits(word: str) -> int:
    """The default edit distance for a query word."""
    return 0 if len(word) <= 2 else 1 if len(word) <= 5 else 2


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """The ascending rows of a column that match a query, and their scores.

    `size` is the number of rows of the column.
    """

    rows: Rows
    scores: Scores
    size: int

    def at(self, rows: Rows) -> Scores:
        """The scores of some rows; NaN for rows that do not match."""
        if len(self.rows) and len(rows) <= MAX_SEARCHED_SHARE * self.size:
            at = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
            return np.where(self.rows[at] == rows, self.scores[at], np.nan)
        scores = np.full(self.size, np.nan)
        scores[self.rows] = self.scores
        return scores[rows]

    def among(self, rows: Rows) -> tuple[npt.NDArray[np.int64], Scores]:
        """Indices of those of some distinct rows that match, and their scores."""
        numbers = np.full(self.size, -1, np.int32)
        numbers[rows] = np.arange(len(rows), dtype=np.int32)
        found = numbers[self.rows]
        given = found >= 0
        return found[given].astype(np.int64), self.scores[given]


def bm25(index: TextIndex, words: Iterable[str], visible: Mask | None) -> ScoredRows:
    """The visible rows with any of the words, and their scores.

    Document frequencies and text lengths are counted over visible rows.
    """
    texts, length = index.totals if visible is None else _totals(index, visible)
    rows, scores = [np.empty(0, np.int32)], [np.empty(0)]
    mean = length / max(texts, 1)
    for word in sorted(set(words)):
        postings = index.postings(word)
        found, frequencies = postings.rows, postings.frequencies
        if visible is not None:
            seen = visible[found]
            found, frequencies = found[seen], frequencies[seen]
        if not len(found):
            continue
        idf = np.log1p((texts - len(found) + 0.5) / (len(found) + 0.5))
        norm = _K1 * (1 - _B + _B * (index.lengths[found] / mean))
        rows.append(found)
        scores.append(idf * frequencies * (_K1 + 1) / (frequencies + norm))
    return _summed(np.concatenate(rows), np.concatenate(scores), index.size)


def _totals(index: TextIndex, visible: Mask) -> tuple[int, int]:
    """The number of visible texts and of their words; usually few are hidden."""
    hidden = totals_of(index.lengths[np.flatnonzero(~visible)])
    return index.totals[0] - hidden[0], index.totals[1] - hidden[1]


def _summed(rows: npt.NDArray[np.int32], scores: Scores, size: int) -> ScoredRows:
    """Distinct rows with the sum of their scores."""
    # The rows of each word are ascending, and a stable sort merges such runs.
    order = np.argsort(rows, kind="stable")
    rows = rows[order]
    first = np.ones(len(rows), np.bool_)
    np.not_equal(rows[1:], rows[:-1], out=first[1:])
    starts = np.flatnonzero(first)
    sums = np.add.reduceat(scores[order], starts) if len(rows) else scores
    return ScoredRows(rows[starts].astype(np.int64), sums, size)
