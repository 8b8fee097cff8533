"""Which of so many buckets a key belongs to: the same on every machine, for equal keys.

Keys only have to spread. Of a text, its first and last bytes and its length decide, because ids
differ at their ends.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Buckets = npt.NDArray[np.int64]
_Words = npt.NDArray[np.uint64]

_WORD: Final = 8
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
_HALF: Final = np.uint64(32)


def buckets_of(column: pa.Array, count: int) -> Buckets:
    """The bucket of each value; none of them is null."""
    if not len(column):
        return np.zeros(0, np.int64)
    words = _text_words(column) if pa.types.is_string(column.type) else _value_words(column)
    return (_mixed(words) % np.uint64(count)).astype(np.int64)


def _text_words(column: pa.Array) -> _Words:
    _, offsets, data = column.buffers()
    stored = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    bounds = stored.astype(np.int64)
    low, high = int(bounds[0]), int(bounds[-1])
    # Room at both ends, so that a word can be read before and after any text.
    content = np.zeros(high - low + 2 * _WORD, np.uint8)
    if high > low:
        content[_WORD : _WORD + high - low] = np.frombuffer(data, np.uint8, high - low, low)
    starts, ends = bounds[:-1] - low + _WORD, bounds[1:] - low + _WORD
    lengths = ends - starts
    # What is in a word beside a shorter text belongs to its neighbours and is shifted out.
    spare = (8 * (_WORD - np.clip(lengths, 1, _WORD))).astype(np.uint64)
    first = _words_at(content, starts) << spare
    last = _words_at(content, ends - _WORD) >> spare
    mixed = _mixed(first) ^ last ^ lengths.astype(np.uint64)
    return np.where(lengths == 0, np.uint64(0), mixed)


def _words_at(content: npt.NDArray[np.uint8], places: Buckets) -> _Words:
    windows = np.lib.stride_tricks.sliding_window_view(content, _WORD)
    return np.ascontiguousarray(windows[places]).view(np.uint64).ravel()


def _value_words(column: pa.Array) -> _Words:
    kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif pa.types.is_date(kind):
        column = column.view(pa.int32() if pa.types.is_date32(kind) else pa.int64())
    if pa.types.is_floating(kind):
        column = column.cast(pa.float64()).view(pa.int64())
    words: _Words = column.to_numpy(zero_copy_only=False).astype(np.uint64)
    return words


def _mixed(words: _Words) -> _Words:
    mixed = words * _MIX
    return (mixed ^ (mixed >> _HALF)) * _MIX >> np.uint64(16)
