"""Inverted full-text index of a column, in memory and as bytes, with its matches and BM25 scores.

An index is a list of segments. Changed texts add a small segment and retire their rows in older ones, so a
write does not cost the next reader a new index. In bytes, rows are in row-id order, each with the number of
the fragment it was read from; the reader decides which rows still hold, and at which position.
Tests: tests/unit/text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.text.analyse import Word, words_of

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

OCCURRENCE_SHIFT: Final = 32
"""An occurrence is a row, shifted by this many bits, plus a position in its text."""

MAX_SEGMENTS: Final = 8
"""Segments above which those after the first are merged."""


@dataclass(frozen=True, slots=True)
class Postings:
    """The ascending rows of one word, and its frequency in each."""

    rows: npt.NDArray[np.int32]
    frequencies: npt.NDArray[np.int32]


@dataclass(frozen=True)
class Segment:
    """The words of some rows. A posting is a word in a row; they are sorted by word, then by row.

    `starts` is where the postings of each word begin, and where the last ones end. `current` tells which
    rows are not superseded by a later segment, None for all. `owned` are the rows it was built for, None for
    all rows of the column at that time.
    """

    numbers: dict[str, int]
    starts: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int32]
    position_starts: npt.NDArray[np.int64]
    positions: npt.NDArray[np.int32]
    current: Mask | None = None
    owned: Rows | None = None

    @property
    def nbytes(self) -> int:
        arrays = (self.starts, self.rows, self.position_starts, self.positions)
        mask = 0 if self.current is None else self.current.nbytes
        letters = sum(map(len, self.numbers)) + 100 * len(self.numbers)
        return int(sum(array.nbytes for array in arrays) + mask + letters)

    def postings(self, word: str) -> Postings:
        """The current rows of a word."""
        part = self._range(word)
        rows = self.rows[part]
        frequencies = np.diff(self.position_starts[part.start : part.stop + 1]).astype(np.int32)
        if self.current is None:
            return Postings(rows, frequencies)
        kept = self.current[rows]
        return Postings(rows[kept], frequencies[kept])

    def occurrences(self, word: str) -> npt.NDArray[np.int64]:
        """Every row and position of a word as one number each, ascending."""
        part = self._range(word)
        bounds = self.position_starts[part.start : part.stop + 1]
        rows = np.repeat(self.rows[part].astype(np.int64), np.diff(bounds))
        if not len(rows):
            return rows
        found = (rows << OCCURRENCE_SHIFT) + self.positions[bounds[0] : bounds[-1]]
        return found if self.current is None else found[self.current[rows]]

    def without(self, rows: Rows, size: int) -> Segment:
        """The segment after later segments superseded some rows."""
        current = np.ones(size, np.bool_)
        if self.current is not None:
            current[: len(self.current)] = self.current
        current[rows] = False
        return replace(self, current=current)

    def _range(self, word: str) -> slice:
        number = self.numbers.get(word)
        return (
            slice(0, 0) if number is None else slice(self.starts[number], self.starts[number + 1])
        )


@dataclass(frozen=True)
class TextIndex:
    """The index of a text column. `lengths` are words per row, -1 for null."""

    segments: tuple[Segment, ...]
    lengths: npt.NDArray[np.int32]

    @property
    def size(self) -> int:
        return len(self.lengths)

    @cached_property
    def nbytes(self) -> int:
        return int(self.lengths.nbytes + sum(segment.nbytes for segment in self.segments))

    @cached_property
    def totals(self) -> tuple[int, int]:
        """The number of texts and of their words."""
        return totals_of(self.lengths)

    @property
    def changed_share(self) -> float:
        """The share of rows changed since the index was built."""
        later = sum(len(s.owned) for s in self.segments if s.owned is not None)
        return later / max(self.size, 1)

    def postings(self, word: str) -> Postings:
        """The rows of a word, segment by segment."""
        found = [segment.postings(word) for segment in self.segments]
        if len(found) == 1:
            return found[0]
        rows = np.concatenate([postings.rows for postings in found])
        return Postings(rows, np.concatenate([postings.frequencies for postings in found]))

    @property
    def has_many_segments(self) -> bool:
        """Whether the index should be rebuilt."""
        return len(self.segments) > MAX_SEGMENTS

    @cached_property
    def words(self) -> list[str]:
        """All words that occur in some row, or did."""
        return list(dict.fromkeys(word for s in self.segments for word in s.numbers))

    def replaced(self, rows: Rows, texts: pa.Array) -> TextIndex:
        """The index of a later column, in which the given rows are changed or new."""
        kept = self.segments
        if self.has_many_segments:
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
    """Distinct rows, ascending. `numpy.unique` hashes, which takes many times longer."""
    ordered = np.sort(rows)
    distinct: Rows = ordered[np.diff(ordered, prepend=-1) != 0]
    return distinct


def totals_of(lengths: npt.NDArray[np.int32]) -> tuple[int, int]:
    """The number of texts and of their words, from words per text, -1 for null."""
    missing = int(np.count_nonzero(lengths < 0))
    return len(lengths) - missing, int(lengths.sum(dtype=np.int64)) + missing


def build_index(texts: pa.Array) -> TextIndex:
    """Index a text column."""
    segment, lengths = _segment(texts, None)
    return TextIndex((segment,), lengths)


def _segment(texts: pa.Array, rows: Rows | None) -> tuple[Segment, npt.NDArray[np.int32]]:
    """The segment of texts, which belong to the given rows, and the words per text."""
    words = words_of(texts)
    lengths = np.bincount(words.rows, minlength=len(texts)).astype(np.int32)
    lengths[~np.asarray(texts.is_valid())] = -1
    owners = words.rows if rows is None else rows.astype(np.int32)[words.rows]
    # Words come in row order, so one stable sort is enough unless rows are renumbered.
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


# -- serialization ------------------------------------------------------------------------------

_ROW_SCHEMA = pa.schema(
    [
        ("row_ids", pa.large_list(pa.uint64())),
        ("pieces", pa.large_list(pa.int32())),
        ("lengths", pa.large_list(pa.int32())),
    ]
)
_SEGMENT_SCHEMA = pa.schema(
    [
        ("words", pa.large_list(pa.utf8())),
        ("starts", pa.large_list(pa.int64())),
        ("rows", pa.large_list(pa.int32())),
        ("position_starts", pa.large_list(pa.int64())),
        ("positions", pa.large_list(pa.int32())),
        ("owned", pa.large_list(pa.int64())),
    ]
)


@dataclass(frozen=True, slots=True)
class StoredIndex:
    """An index over rows of some table version, with their row ids and fragment numbers."""

    index: TextIndex
    row_ids: npt.NDArray[np.uint64]
    fragments: npt.NDArray[np.int32]

    def remapped(self, positions: npt.NDArray[np.int64], size: int) -> TextIndex:
        """The index with rows moved to other positions, ascending; -1 drops a row."""
        kept = positions >= 0
        if len(positions) == size and kept.all():
            return self.index
        lengths = np.full(size, -1, np.int32)
        lengths[positions[kept]] = self.index.lengths[kept]
        segments = tuple(_remap(segment, positions) for segment in self.index.segments)
        return TextIndex(segments, lengths)


def _remap(segment: Segment, positions: npt.NDArray[np.int64]) -> Segment:
    counts = np.diff(segment.position_starts)
    rows = positions[segment.rows]
    kept = rows >= 0
    before = np.concatenate([[0], np.cumsum(kept)])
    owned = segment.owned
    if owned is not None:
        owned = positions[owned]
        owned = owned[owned >= 0]
    return replace(
        segment,
        starts=before[segment.starts],
        rows=rows[kept].astype(np.int32),
        position_starts=np.concatenate([[0], np.cumsum(counts[kept])]),
        positions=segment.positions[np.repeat(kept, counts)],
        owned=owned,
    )


def _without_superseded(segment: Segment, size: int) -> Segment:
    """A segment without its superseded rows."""
    if segment.current is None:
        return segment
    rows = np.arange(size, dtype=np.int64)
    rows[: len(segment.current)][~segment.current] = -1
    return replace(_remap(segment, rows), current=None)


def to_bytes(stored: StoredIndex) -> memoryview:
    """Serialize an index."""
    rows = [stored.row_ids, stored.fragments, stored.index.lengths]
    segments = [
        _without_superseded(segment, stored.index.size) for segment in stored.index.segments
    ]
    out = pa.BufferOutputStream()
    for schema, columns in (
        (_ROW_SCHEMA, [[array] for array in rows]),
        (_SEGMENT_SCHEMA, list(zip(*(_arrays(segment) for segment in segments), strict=True))),
    ):
        arrays = [_lists(values, field.type) for values, field in zip(columns, schema, strict=True)]
        with pa.ipc.new_stream(out, schema) as writer:
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return memoryview(out.getvalue()).cast("B")


def from_bytes(content: bytes) -> StoredIndex:
    """Read what `to_bytes` wrote. Raises `ValueError` for other bytes."""
    source = pa.BufferReader(content)
    tables = [pa.ipc.open_stream(source).read_all() for _ in (_ROW_SCHEMA, _SEGMENT_SCHEMA)]
    if [table.schema for table in tables] != [_ROW_SCHEMA, _SEGMENT_SCHEMA]:
        raise ValueError("these are not the columns of a stored index")
    rows = {name: _numbers(tables[0].column(name), 0) for name in _ROW_SCHEMA.names}
    segments = tuple(_read_segment(tables[1], number) for number in range(tables[1].num_rows))
    return StoredIndex(TextIndex(segments, rows["lengths"]), rows["row_ids"], rows["pieces"])


def _arrays(segment: Segment) -> tuple[object, ...]:
    return (
        list(segment.numbers),
        segment.starts,
        segment.rows,
        segment.position_starts,
        segment.positions,
        segment.owned,
    )


def _read_segment(table: pa.Table, number: int) -> Segment:
    words = table.column("words")[number].values.to_pylist()
    names = ("starts", "rows", "position_starts", "positions")
    starts, rows, position_starts, positions = (
        _numbers(table.column(name), number) for name in names
    )
    owned = table.column("owned")
    return Segment(
        {word: code for code, word in enumerate(words)},
        starts,
        rows,
        position_starts,
        positions,
        owned=_numbers(owned, number) if owned[number].is_valid else None,
    )


def _lists(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    """One list per value, without Python numbers."""
    items = [pa.array(() if value is None else value, kind.value_type) for value in values]
    offsets = np.concatenate([[0], np.cumsum([len(item) for item in items])]).astype(np.int64)
    missing = np.array([value is None for value in values], np.bool_)
    return pa.LargeListArray.from_arrays(
        pa.array(offsets, mask=np.append(missing, False)), pa.concat_arrays(items), type=kind
    )


def _numbers(column: pa.ChunkedArray, row: int) -> npt.NDArray[Any]:
    return np.asarray(column[row].values.to_numpy(zero_copy_only=False))


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
