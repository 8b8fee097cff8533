"""A column of texts, searchable: for every word the rows it stands in, and where.

An index is a list of segments. Texts that change add a small segment and retire the rows they had in
older ones, so a write does not cost the next reader a new index.

Tests: tests/unit/text.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.text.analyse import words_of

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

SPOT_SHIFT: Final = 32
"""A spot is a row, shifted by so many bits, plus a position in its text."""

_MOST_SEGMENTS: Final = 8
"""More than this, and those after the first are made into one."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where one word stands: rows, ascending, and how often in each."""

    rows: npt.NDArray[np.int32]
    times: npt.NDArray[np.int32]


@dataclass(frozen=True)
class Segment:
    """The words of some rows. A posting is a word in a row; they are sorted by word, then by row."""

    numbers: dict[str, int]
    starts: npt.NDArray[np.int64]
    """Where the postings of each word begin, and where the last ones end."""
    rows: npt.NDArray[np.int32]
    position_starts: npt.NDArray[np.int64]
    positions: npt.NDArray[np.int32]
    current: Mask | None = None
    """By row: whether the segment still speaks for it. None when it does for all of its rows."""
    owned: Rows | None = None
    """The rows it was made for; None for all of the column's rows at that time."""

    @property
    def nbytes(self) -> int:
        arrays = (self.starts, self.rows, self.position_starts, self.positions)
        mask = 0 if self.current is None else self.current.nbytes
        letters = sum(map(len, self.numbers)) + 100 * len(self.numbers)
        return int(sum(array.nbytes for array in arrays) + mask + letters)

    def places(self, word: str) -> Places:
        """The rows of a word that the segment still speaks for."""
        part = self._postings(word)
        rows = self.rows[part]
        times = np.diff(self.position_starts[part.start : part.stop + 1]).astype(np.int32)
        if self.current is None:
            return Places(rows, times)
        kept = self.current[rows]
        return Places(rows[kept], times[kept])

    def spots(self, word: str) -> npt.NDArray[np.int64]:
        """Every row of a word and every position in it, as one number each, ascending."""
        part = self._postings(word)
        bounds = self.position_starts[part.start : part.stop + 1]
        rows = np.repeat(self.rows[part].astype(np.int64), np.diff(bounds))
        if not len(rows):
            return rows
        spots = (rows << SPOT_SHIFT) + self.positions[bounds[0] : bounds[-1]]
        return spots if self.current is None else spots[self.current[rows]]

    def without(self, rows: Rows, size: int) -> Segment:
        """The segment when other segments speak for these rows."""
        current = np.ones(size, np.bool_)
        if self.current is not None:
            current[: len(self.current)] = self.current
        current[rows] = False
        return replace(self, current=current)

    def _postings(self, word: str) -> slice:
        number = self.numbers.get(word)
        return (
            slice(0, 0) if number is None else slice(self.starts[number], self.starts[number + 1])
        )


@dataclass(frozen=True)
class TextIndex:
    """A column of texts: one per row, some of them missing."""

    segments: tuple[Segment, ...]
    lengths: npt.NDArray[np.int32]
    """Words per row; -1 where there is no text."""

    @property
    def size(self) -> int:
        return len(self.lengths)

    @cached_property
    def nbytes(self) -> int:
        return int(self.lengths.nbytes + sum(segment.nbytes for segment in self.segments))

    @cached_property
    def totals(self) -> tuple[int, int]:
        """How many texts there are, and how many words they have together."""
        return totals_of(self.lengths)

    @property
    def changed_share(self) -> float:
        """The share of rows that are not where they were when the index was made."""
        later = sum(len(s.owned) for s in self.segments if s.owned is not None)
        return later / max(self.size, 1)

    def places(self, word: str) -> Places:
        """Where a word stands, segment by segment."""
        found = [segment.places(word) for segment in self.segments]
        if len(found) == 1:
            return found[0]
        rows = np.concatenate([places.rows for places in found])
        return Places(rows, np.concatenate([places.times for places in found]))

    @property
    def is_in_many_segments(self) -> bool:
        """Whether it would be better off made anew."""
        return len(self.segments) > _MOST_SEGMENTS

    @cached_property
    def words(self) -> list[str]:
        """All words that stand in some row, or did."""
        return list(dict.fromkeys(word for s in self.segments for word in s.numbers))

    def replaced(self, rows: Rows, texts: pa.Array) -> TextIndex:
        """The index of a later column, in which the given rows, some of them new, are different."""
        kept = self.segments
        if self.is_in_many_segments:
            later = [segment.owned for segment in kept[1:] if segment.owned is not None]
            rows, kept = _distinct(np.concatenate([*later, rows])), kept[:1]
        earlier = TextIndex(kept, self.lengths)
        return earlier.with_rows(rows, texts.take(pa.array(rows)), len(texts))

    def with_rows(self, rows: Rows, texts: pa.Array, size: int) -> TextIndex:
        """The index of a later column of this size, in which the given rows have these texts."""
        segment, counted = _segment(texts, rows)
        lengths = np.full(size, -1, np.int32)
        lengths[: self.size] = self.lengths
        lengths[rows] = counted
        older = tuple(earlier.without(rows, size) for earlier in self.segments)
        return TextIndex((*older, segment), lengths)


def _distinct(rows: Rows) -> Rows:
    """Rows in ascending order, each once. `numpy.unique` hashes, which takes many times longer."""
    ordered = np.sort(rows)
    distinct: Rows = ordered[np.diff(ordered, prepend=-1) != 0]
    return distinct


def totals_of(lengths: npt.NDArray[np.int32]) -> tuple[int, int]:
    """Of the words of each text, or -1: how many texts there are, and how many words."""
    missing = int(np.count_nonzero(lengths < 0))
    return len(lengths) - missing, int(lengths.sum(dtype=np.int64)) + missing


def build_index(texts: pa.Array) -> TextIndex:
    """The index of a column of texts."""
    segment, lengths = _segment(texts, None)
    return TextIndex((segment,), lengths)


def _segment(texts: pa.Array, rows: Rows | None) -> tuple[Segment, npt.NDArray[np.int32]]:
    """The words of texts, which are those of the given rows, and how many words each has."""
    words = words_of(texts)
    lengths = np.bincount(words.rows, minlength=len(texts)).astype(np.int32)
    lengths[~np.asarray(texts.is_valid())] = -1
    owners = words.rows if rows is None else rows.astype(np.int32)[words.rows]
    # Words come in the order of their rows, so one stable sort is enough, unless rows were renamed.
    order = (
        np.argsort(words.codes, kind="stable")
        if rows is None
        else np.lexsort((words.positions, owners, words.codes))
    )
    codes, owners = words.codes[order], owners[order]
    is_first = np.ones(len(codes), np.bool_)
    is_first[1:] = (codes[1:] != codes[:-1]) | (owners[1:] != owners[:-1])
    firsts = np.flatnonzero(is_first)
    segment = Segment(
        {word: number for number, word in enumerate(words.vocabulary)},
        np.searchsorted(codes[firsts], np.arange(len(words.vocabulary) + 1)),
        owners[firsts],
        np.append(firsts, len(codes)),
        words.positions[order],
        owned=rows,
    )
    return segment, lengths
