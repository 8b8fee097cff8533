"""Sort keys, groups and aggregates over weighted rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.query.ast import AggregateFunction
from omnigraph.read.adjacency import sum_by
from omnigraph.read.frame import Weights
from omnigraph.read.positions import Mask, Positions

SortKey = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int64]

MAX_DIRECT_RANK_ROWS: Final = 1024
"""Texts up to which ranking all of them is faster than ranking the distinct ones."""

MAX_CODE_SPREAD: Final = 8
"""Codes spread over more than this many times their number are sorted instead of counted."""

_MAX_CODE: Final = 2**62
_SIGN: Final = np.int64(-(2**63))


def sort_keys(values: pa.Array, *, descending: bool) -> list[SortKey]:
    """Numbers that sort like the values: nulls first ascending, last descending.

    One array, or two if there are nulls; the first is the most significant.
    """
    ranks = _ranks(values)
    if descending:
        ranks = ~ranks
    if not values.null_count:
        return [ranks]
    present = np.asarray(values.is_valid().to_numpy(zero_copy_only=False), np.int64)
    return [1 - present if descending else present, np.where(present == 1, ranks, 0)]


def sorted_rows(keys: Sequence[SortKey]) -> Positions:
    """The row order by keys, most significant first; the sort is stable."""
    return np.lexsort(tuple(reversed(keys)))


def has_ties(keys: Sequence[SortKey], order: Positions) -> bool:
    """Whether two adjacent rows of an order are equal in every key."""
    if len(order) < 2:
        return False
    same = np.ones(len(order) - 1, np.bool_)
    for key in keys:
        placed = key[order]
        same &= placed[1:] == placed[:-1]
    return bool(same.any())


def leading_rows(key: SortKey | npt.NDArray[np.float64], count: int) -> Positions:
    """The rows that can be among the first `count` by this key, including ties."""
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
    """Float bits as integers in the same order; NaN is greatest, zeros are equal."""
    numbers = np.where(np.isnan(numbers), np.nan, numbers + 0.0)
    bits = numbers.view(np.int64)
    return np.where(bits < 0, ~bits ^ _SIGN, bits)


def _list_ranks(values: pa.Array) -> SortKey:
    """Ranks of lists, item by item: nulls first, a shorter list before a longer one.

    This is a Python loop: only groups are sorted by lists, and those are few.
    """
    items = pa.concat_arrays([values.flatten()]) if len(values) else values.flatten()
    order = sort_keys(items, descending=False) if len(items) else []
    item_ranks = iter(zip(*(key.tolist() for key in order), strict=True))
    lists = [tuple(islice(item_ranks, length)) for length in _lengths(values)]
    rank = {items: number for number, items in enumerate(sorted(set(lists)))}
    return np.array([rank[items] for items in lists], np.int64)


def _lengths(values: pa.Array) -> list[int]:
    if pa.types.is_fixed_size_list(values.type):
        size = values.type.list_size
        return [size if there else 0 for there in values.is_valid().to_pylist()]
    return [length or 0 for length in pc.list_value_length(values).to_pylist()]


def without_nulls(values: pa.Array) -> pa.Array:
    """Numbers with null replaced by zero."""
    return pc.fill_null(values, pa.scalar(0, values.type)) if values.null_count else values


def _text_ranks(values: pa.Array) -> SortKey:
    if len(values) <= MAX_DIRECT_RANK_ROWS:
        return np.asarray(pc.rank(values, tiebreaker="dense").to_numpy(), np.int64)
    encoded = values.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    codes = pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False)
    return ranks[codes] if len(ranks) else np.zeros(len(values), np.int64)


# -- groups -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GroupKey:
    """A column of codes from zero up to `size`; equal codes are equal values."""

    codes: Codes
    size: int


@dataclass(frozen=True, slots=True)
class Groups:
    """The group of each row, the number of groups, and the first row of each.

    `codes` and `example` are None if every row is a group of its own.
    """

    codes: Codes | None
    count: int
    example: Codes | None

    def only(self, chosen: Positions) -> tuple[Positions, Groups]:
        """The rows of some groups, and their grouping."""
        if self.codes is None or self.example is None:
            return chosen, Groups(None, len(chosen), None)
        new_code = np.full(self.count, -1, np.int64)
        new_code[chosen] = np.arange(len(chosen))
        codes = new_code[self.codes]
        rows = np.flatnonzero(codes >= 0)
        example = np.searchsorted(rows, self.example[chosen])
        return rows, Groups(codes[rows], len(chosen), example)


def group_rows(keys: Sequence[GroupKey], length: int) -> Groups:
    """Group rows by keys; without keys there is one group, even of no rows."""
    if not keys:
        return Groups(np.zeros(length, np.int64), 1, np.zeros(min(length, 1), np.int64))
    codes, size = keys[0].codes, keys[0].size
    for key in keys[1:]:
        if size * key.size > _MAX_CODE:
            distinct, codes = np.unique(codes, return_inverse=True)
            size = len(distinct)
        codes, size = codes * key.size + key.codes, size * key.size
    return _grouped(codes, size)


def all_differ(key: GroupKey) -> bool:
    """Whether no two rows have the same code."""
    codes = key.codes
    if len(codes) < 2 or np.all(codes[1:] > codes[:-1]):
        return True
    if len(codes) > key.size or key.size > MAX_CODE_SPREAD * len(codes):
        return False
    return int(np.bincount(codes, minlength=1).max()) == 1


def _grouped(codes: Codes, size: int) -> Groups:
    if size > MAX_CODE_SPREAD * len(codes) + 1024:
        distinct, example, inverse = np.unique(codes, return_index=True, return_inverse=True)
        return Groups(np.asarray(inverse, np.int64), len(distinct), np.asarray(example, np.int64))
    first = np.full(size, -1, np.int64)
    # Written from the last row to the first, so the first row of each group remains.
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    used = np.flatnonzero(first >= 0)
    group = np.empty(size, np.int64)
    group[used] = np.arange(len(used))
    return Groups(group[codes], len(used), first[used])


def key_of(values: pa.Array) -> GroupKey:
    """Equal values as equal codes; nulls are equal, and so are zeros and NaNs."""
    keys = sort_keys(values, descending=False)
    ranks = keys[-1]
    present = ranks if len(keys) == 1 else ranks[keys[0] != 0]
    low, high = (int(present.min()), int(present.max())) if len(present) else (0, 0)
    if high - low <= MAX_CODE_SPREAD * len(ranks):
        # Close enough together to be codes as they are.
        codes, size = ranks - low, high - low + 1
    else:
        distinct, codes = np.unique(ranks, return_inverse=True)
        size = len(distinct)
    if len(keys) > 1:
        codes = np.where(keys[0] == 0, 0, codes + 1)
    return GroupKey(np.asarray(codes, np.int64), size + 1)


def distinct_rows(values: pa.Array, groups: Groups) -> tuple[Positions, Groups]:
    """The first row of each value in each group, and the grouping of these rows; nulls are left out."""
    present = _present(values)
    rows = np.arange(len(values)) if present is None else np.flatnonzero(present)
    key = key_of(values)
    group = (rows if groups.codes is None else groups.codes[rows]).astype(np.int64)
    value = key.codes[rows]
    pairs = _grouped(group * key.size + value, groups.count * key.size)
    assert pairs.example is not None, "rows were grouped by codes"
    chosen = rows[pairs.example]
    codes = chosen if groups.codes is None else groups.codes[chosen]
    return chosen, Groups(np.asarray(codes, np.int64), groups.count, None)


def collect(values: pa.Array, codes: Codes, count: int, order: Positions) -> pa.Array:
    """The values of each group as a list, in a row order; nulls are left out."""
    present = _present(values)
    if present is not None:
        order = order[present[order]]
    group = codes[order]
    ends = np.cumsum(np.bincount(group, minlength=count))
    offsets = pa.array(np.concatenate([[0], ends]), pa.int32())
    items = values.take(pa.array(order[np.argsort(group, kind="stable")]))
    items = items.combine_chunks() if isinstance(items, pa.ChunkedArray) else items
    kind = pa.list_(pa.field("item", items.type))
    return pa.ListArray.from_arrays(offsets, items, type=kind)


def aggregate(
    function: AggregateFunction,
    values: pa.Array | None,
    groups: Groups,
    weights: Weights | None,
    length: int,
) -> pa.Array:
    """One value per group of `length` rows. Without `values`, every row counts as present."""
    present = _present(values)
    if function is AggregateFunction.COUNT:
        return pa.array(_counts(present, groups, weights, length), pa.int64())
    assert values is not None, "only rows can be counted without values"
    if function in (AggregateFunction.SUM, AggregateFunction.AVG):
        return _sums(function, values, present, groups, weights)
    if groups.codes is None:
        return values
    return _extremes(function, values, present, groups.codes, groups.count)


def _present(values: pa.Array | None) -> Mask | None:
    """Which rows have a value; None for all."""
    if values is None or not values.null_count:
        return None
    return np.asarray(values.is_valid().to_numpy(zero_copy_only=False), np.bool_)


def _counts(
    present: Mask | None, groups: Groups, weights: Weights | None, length: int
) -> npt.NDArray[np.int64]:
    if groups.codes is None:
        found = np.ones(length, np.int64) if weights is None else weights
        return found if present is None else np.where(present, found, 0)
    if present is None:
        return sum_by(groups.codes, weights, groups.count)
    return sum_by(
        groups.codes[present], None if weights is None else weights[present], groups.count
    )


def _sums(
    function: AggregateFunction,
    values: pa.Array,
    present: Mask | None,
    groups: Groups,
    weights: Weights | None,
) -> pa.Array:
    numbers = without_nulls(values).cast(pa.float64(), safe=False).to_numpy()
    if weights is not None:
        numbers = numbers * weights
    sums = numbers
    if groups.codes is not None:
        sums = np.bincount(groups.codes, weights=numbers, minlength=groups.count)
    counts = _counts(present, groups, weights, len(values))
    found = sums / np.maximum(counts, 1) if function is AggregateFunction.AVG else sums
    return pa.array(np.asarray(found, np.float64), pa.float64(), mask=counts == 0)


def _extremes(
    function: AggregateFunction,
    values: pa.Array,
    present: Mask | None,
    codes: Codes,
    count: int,
) -> pa.Array:
    """The smallest or largest value of each group."""
    rows = np.arange(len(values)) if present is None else np.flatnonzero(present)
    rank = sort_keys(values, descending=function is AggregateFunction.MAX)[-1][rows]
    codes = codes[rows]
    order = np.lexsort((rank, codes))
    placed = codes[order]
    first = np.ones(len(placed), np.bool_)
    first[1:] = placed[1:] != placed[:-1]
    chosen = np.full(count, -1, np.int64)
    chosen[placed[first]] = rows[order[first]]
    return values.take(pa.array(chosen, mask=chosen < 0))
