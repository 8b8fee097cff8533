"""Sorting: any columns as numbers whose order is the wanted one, nulls and NaN included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.read.numbering import Positions

SortKey = npt.NDArray[np.int64]

_SIGN = np.int64(-(2**63))

_SHORT: Final = 1024
"""Texts up to which ranking them at once is quicker than ranking the distinct ones."""


def sort_keys(values: pa.Array, *, descending: bool) -> list[SortKey]:
    """Numbers that sort like the values: nulls first ascending, last descending.

    One array, or two where nulls need one of their own; the first counts most.
    """
    ranks = _ranks(values)
    if descending:
        ranks = ~ranks
    if not values.null_count:
        return [ranks]
    present = np.asarray(values.is_valid().to_numpy(zero_copy_only=False), np.int64)
    return [1 - present if descending else present, np.where(present == 1, ranks, 0)]


def sorted_rows(keys: Sequence[SortKey]) -> Positions:
    """The order of rows by keys, the first counting most; equal rows stay as they are."""
    return np.lexsort(tuple(reversed(keys)))


def has_ties(keys: Sequence[SortKey], order: Positions) -> bool:
    """Whether neighbours in an order are equal in every key."""
    if len(order) < 2:
        return False
    same = np.ones(len(order) - 1, np.bool_)
    for key in keys:
        placed = key[order]
        same &= placed[1:] == placed[:-1]
    return bool(same.any())


def leading_rows(key: SortKey | npt.NDArray[np.float64], count: int) -> Positions:
    """The rows that can be among the first `count` by this key, all its ties included."""
    if count >= len(key):
        return np.arange(len(key), dtype=np.int64)
    if count == 0:
        return np.empty(0, np.int64)
    bound = np.partition(key, count - 1)[count - 1]
    return np.flatnonzero(key <= bound)


def _ranks(values: pa.Array) -> SortKey:
    kind = values.type
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return _list_ranks(values)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _text_ranks(values)
    if pa.types.is_date32(kind):
        values = values.view(pa.int32())
    elif pa.types.is_date64(kind):
        values = values.view(pa.int64())
    elif pa.types.is_boolean(kind):
        values = values.cast(pa.int8())
    numbers = without_nulls(values).to_numpy(zero_copy_only=False)
    if pa.types.is_floating(values.type):
        return _float_ranks(numbers.astype(np.float64))
    if values.type == pa.uint64():
        return np.asarray(numbers.view(np.int64) ^ _SIGN, np.int64)
    return np.asarray(numbers, np.int64)


def _float_ranks(numbers: npt.NDArray[np.float64]) -> SortKey:
    """The bits of floats as integers in the same order; NaN is greatest, zeros are equal."""
    numbers = np.where(np.isnan(numbers), np.nan, numbers + 0.0)
    bits = numbers.view(np.int64)
    return np.where(bits < 0, ~bits ^ _SIGN, bits)


def _list_ranks(values: pa.Array) -> SortKey:
    """Item by item, a missing item before any other and a shorter list before a longer one.

    Lists are ordered one by one: only groups are ever sorted by them, and those are few.
    """
    items = pa.concat_arrays([values.flatten()]) if len(values) else values.flatten()
    order = sort_keys(items, descending=False) if len(items) else []
    places = list(zip(*(key.tolist() for key in order), strict=True))
    texts: list[tuple[tuple[int, ...], ...]] = []
    at = 0
    for length in _lengths(values):
        texts.append(tuple(places[at : at + length]))
        at += length
    rank = {text: number for number, text in enumerate(sorted(set(texts)))}
    return np.array([rank[text] for text in texts], np.int64)


def _lengths(values: pa.Array) -> list[int]:
    if pa.types.is_fixed_size_list(values.type):
        size = values.type.list_size
        return [size if there else 0 for there in values.is_valid().to_pylist()]
    return [length or 0 for length in pc.list_value_length(values).to_pylist()]


def without_nulls(values: pa.Array) -> pa.Array:
    """Numbers with zero in the place of null."""
    return pc.fill_null(values, pa.scalar(0, values.type)) if values.null_count else values


def _text_ranks(values: pa.Array) -> SortKey:
    if len(values) <= _SHORT:
        return np.asarray(pc.rank(values, tiebreaker="dense").to_numpy(), np.int64)
    encoded = values.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    codes = pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False)
    return ranks[codes] if len(ranks) else np.zeros(len(values), np.int64)
