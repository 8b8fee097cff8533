"""Equality and hashes of Arrow values by content.

Null equals null and NaN equals NaN, and an empty text differs from a missing one. Hashes are 64 bits,
cover every byte, and are the same on every machine and in every process, so that tasks agree on the
bucket of a key. Integers hash by value, regardless of width. Hashes are not stored anywhere.
Tests: tests/unit/rows. Speed: benchmarks/hashing.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

# -- equality ----------------------------------------------------------------------------------


Mask = npt.NDArray[np.bool_]


def equal_rows(left: pa.Table, right: pa.Table, columns: Iterable[str]) -> Mask:
    """For every row, whether both tables hold the same in all the columns.

    Vectors, lists and blobs are compared last, and only where everything else is equal.
    """
    same = np.ones(left.num_rows, np.bool_)
    for name in sorted(columns, key=lambda name: pa.types.is_nested(left.schema.field(name).type)):
        if not same.any():
            break
        one, other = left.column(name), right.column(name)
        if pa.types.is_nested(one.type) and not same.all():
            mask = pa.array(same)
            same[same] = equal_values(one.filter(mask), other.filter(mask))
        else:
            same &= equal_values(one, other)
    return same


def equal_values(left: pa.Array | pa.ChunkedArray, right: pa.Array | pa.ChunkedArray) -> Mask:
    """For every row, whether both columns hold the same value. They have one type and length."""
    left, right = _array(left), _array(right)
    present, other = _valid(left), _valid(right)
    same: Mask = np.equal(present, other)
    both = present & other
    if not both.all():
        mask = pa.array(both)
        left, right = left.filter(mask), right.filter(mask)
    same[both] = _equal_present(left, right)
    return same


def _equal_present(left: pa.Array, right: pa.Array) -> Mask:
    kind = left.type
    if pa.types.is_struct(kind):
        same = np.ones(len(left), np.bool_)
        for one, other in zip(left.flatten(), right.flatten(), strict=True):
            same &= equal_values(one, other)
        return same
    if pa.types.is_fixed_size_list(kind):
        items = equal_values(left.flatten(), right.flatten())
        whole: Mask = np.logical_and.reduce(items.reshape(len(left), kind.list_size), axis=1)
        return whole
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _equal_lists(left, right)
    same = _mask(pc.equal(left, right))
    if pa.types.is_floating(kind):
        same |= _mask(pc.and_(pc.is_nan(left), pc.is_nan(right)))
    return same


def _equal_lists(left: pa.Array, right: pa.Array) -> Mask:
    """Lists of one length are compared item by item; the others differ anyway."""
    same = _mask(pc.equal(pc.list_value_length(left), pc.list_value_length(right)))
    left, right = left.filter(pa.array(same)), right.filter(pa.array(same))
    differing = np.flatnonzero(~equal_values(left.flatten(), right.flatten()))
    ends = np.cumsum(pc.list_value_length(left).to_numpy())
    wrong = np.unique(np.searchsorted(ends, differing, side="right"))
    same[np.flatnonzero(same)[wrong]] = False
    return same


def _array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _valid(column: pa.Array) -> Mask:
    return _mask(column.is_valid())


def _mask(column: pa.Array) -> Mask:
    mask: Mask = column.to_numpy(zero_copy_only=False).astype(np.bool_)
    return mask


# -- hashes ------------------------------------------------------------------------------------


Hashes = npt.NDArray[np.uint64]
Buckets = npt.NDArray[np.int64]
_Integers = npt.NDArray[np.int64]
_Bytes = npt.NDArray[np.uint8]

_WORD: Final = 8
_BLOCK_WORDS: Final = 32
_BLOCK: Final = _WORD * _BLOCK_WORDS
"""Bytes of a text that are hashed one word after the other; a longer one is hashed in blocks."""

_CHUNK_WORDS: Final = 1 << 16
"""Words that are fetched at a time, so that they are still in the processor's cache when hashed."""

_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX_1: Final = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2: Final = np.uint64(0x94D049BB133111EB)
_HALF: Final = np.uint64(32)
_MAX_BUCKETS: Final = 2**32


def hashes_of(column: pa.Array) -> Hashes:
    """The hash of each value. All nulls have one hash."""
    if not len(column):
        return np.zeros(0, np.uint64)
    kind = column.type
    if _has_offsets(kind):
        hashes = _hashes_of_texts(*_texts(column))
    elif pa.types.is_fixed_size_binary(kind):
        bounds = np.arange(column.offset, column.offset + len(column) + 1) * kind.byte_width
        hashes = _hashes_of_texts(bounds, _bytes(column.buffers()[1]))
    else:
        hashes = _words_of(column)
        _mix(hashes)
    if column.null_count:
        hashes[column.is_null().to_numpy(zero_copy_only=False)] = 0
    return hashes


def hashes_of_tuples(columns: Sequence[pa.Array]) -> Hashes:
    """One hash for the values that several columns have in a row."""
    found = hashes_of(columns[0])
    for column in columns[1:]:
        found *= _STEP
        found += hashes_of(column)
        _mix(found)
    return found


def buckets_of(hashes: Hashes, count: int) -> Buckets:
    """The bucket of each hash."""
    assert 0 < count <= _MAX_BUCKETS
    return ((hashes >> _HALF) * np.uint64(count) >> _HALF).astype(np.int64)


# -- values of one word -------------------------------------------------------------------------


def _words_of(column: pa.Array) -> Hashes:
    """Values of up to 64 bits as they are; what is at nulls does not matter."""
    kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif pa.types.is_floating(kind):
        # One zero and one NaN, however they are stored.
        numbers = pc.add(column.cast(pa.float64()), 0.0)
        numbers = pc.if_else(pc.is_nan(numbers), float("nan"), numbers)
        column = numbers.view(pa.int64())
    elif not pa.types.is_integer(kind):
        column = column.view({32: pa.int32(), 64: pa.int64()}[kind.bit_width])
    filled = pc.fill_null(column, 0) if column.null_count else column
    words: Hashes = filled.to_numpy().astype(np.uint64)
    return words


def _mix(words: Hashes) -> None:
    """Let every bit of a word change half of the others."""
    words += _STEP
    for factor in (_MIX_1, _MIX_2):
        words ^= words >> _HALF
        words *= factor
    words ^= words >> _HALF


# -- texts --------------------------------------------------------------------------------------


def _has_offsets(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_large_binary(kind)
    )


def _texts(column: pa.Array) -> tuple[_Integers, _Bytes]:
    """Where each text begins and the last one ends, and the bytes of all."""
    kind = column.type
    is_large = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    _, offsets, data = column.buffers()
    stored = np.frombuffer(offsets, np.int64 if is_large else np.int32)
    return stored[column.offset : column.offset + len(column) + 1].astype(np.int64), _bytes(data)


def _bytes(data: pa.Buffer | None) -> _Bytes:
    return np.frombuffer(b"" if data is None else data, np.uint8)


def _hashes_of_texts(bounds: _Integers, content: _Bytes) -> Hashes:
    starts, lengths = bounds[:-1], np.diff(bounds)
    # A word is read up to the end of a text, so the first texts need room before them.
    head = int(np.searchsorted(starts, _WORD))
    if not head:
        return _hashes_at(starts, lengths, content)
    room = np.zeros(_WORD, np.uint8)
    moved = np.concatenate([room, content[: bounds[head]]])
    first = _hashes_at(starts[:head] + _WORD, lengths[:head], moved)
    if head == len(starts):
        return first
    return np.concatenate([first, _hashes_at(starts[head:], lengths[head:], content)])


def _hashes_at(starts: _Integers, lengths: _Integers, content: _Bytes) -> Hashes:
    """The hashes of texts in a content that has at least one word before each of them."""
    hashes = lengths.astype(np.uint64)
    counts = np.minimum((lengths + (_WORD - 1)) >> 3, _BLOCK_WORDS + 1)
    order = np.argsort(counts.astype(np.uint8), kind="stable")
    bounds = np.cumsum(np.bincount(counts, minlength=_BLOCK_WORDS + 2)).tolist()
    for words, (begin, end) in enumerate(pairwise(bounds), start=1):
        if words > _BLOCK_WORDS:
            rows = order[begin:end]
            hashes[rows] ^= _hashes_of_blocks(starts[rows], lengths[rows], content)
            break
        step = _CHUNK_WORDS // words
        for low in range(begin, end, step):
            rows = order[low : min(low + step, end)]
            hashes[rows] = _hashes_of_words(words, starts[rows], lengths[rows], content)
    _mix(hashes)
    return hashes


def _hashes_of_words(words: int, starts: _Integers, lengths: _Integers, content: _Bytes) -> Hashes:
    """The hashes of texts of `words` words; the first word of each is padded with zeros."""
    size = _WORD * words
    windows = np.ndarray((len(content) - size + 1,), f"V{size}", content, 0, (1,))
    found = windows[starts + lengths - size].view("<u8").reshape(-1, words)
    found[:, 0] >>= ((size - lengths) << 3).astype(np.uint64)
    # Far from what a short text has in its first word.
    hashes = lengths.astype(np.uint64) * _STEP
    scratch = np.empty_like(hashes)
    for word in range(words):
        hashes ^= found[:, word]
        for factor in (_MIX_1, _MIX_2):
            np.right_shift(hashes, _HALF, out=scratch)
            hashes ^= scratch
            hashes *= factor
    return hashes


def _hashes_of_blocks(starts: _Integers, lengths: _Integers, content: _Bytes) -> Hashes:
    """The hashes of long texts: those of their blocks one after the other are a text again."""
    if not len(starts):
        return np.zeros(0, np.uint64)
    counts = -(-lengths // _BLOCK)
    after = np.cumsum(counts)
    number = np.arange(after[-1]) - np.repeat(after - counts, counts)
    begin = np.repeat(starts, counts) + _BLOCK * number
    size = np.minimum(np.repeat(starts + lengths, counts) - begin, _BLOCK)
    blocks = np.concatenate([np.zeros(1, np.uint64), _hashes_at(begin, size, content)])
    there = _WORD * (after - counts + 1)
    return _hashes_at(there, _WORD * counts, blocks.astype("<u8").view(np.uint8))
