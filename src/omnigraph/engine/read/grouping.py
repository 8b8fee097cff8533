"""Grouping and aggregates over weighted rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.engine.read.adjacency import summed
from omnigraph.engine.read.frame import Weights
from omnigraph.engine.read.numbering import Mask, Positions
from omnigraph.engine.read.ordering import sort_keys, without_nulls
from omnigraph.language.query.ast import AggregateFunction

Codes = npt.NDArray[np.int64]

_SPARSE: Final = 8
"""Codes spread over more than this many times their number are sorted instead of counted."""

_MOST: Final = 2**62


@dataclass(frozen=True, slots=True)
class Key:
    """A column of codes from zero up to `size`: equal codes are equal values of a group key."""

    codes: Codes
    size: int


@dataclass(frozen=True, slots=True)
class Groups:
    """The group each row belongs to, how many there are, and a row of each.

    `codes` and `example` are None when every row is a group of its own.
    """

    codes: Codes | None
    count: int
    example: Codes | None

    def only(self, chosen: Positions) -> tuple[Positions, Groups]:
        """The rows of some groups, and how they are grouped."""
        if self.codes is None or self.example is None:
            return chosen, Groups(None, len(chosen), None)
        place = np.full(self.count, -1, np.int64)
        place[chosen] = np.arange(len(chosen))
        codes = place[self.codes]
        rows = np.flatnonzero(codes >= 0)
        example = np.searchsorted(rows, self.example[chosen])
        return rows, Groups(codes[rows], len(chosen), example)


def group_rows(keys: Sequence[Key], length: int) -> Groups:
    """Group rows by codes; without any, all rows are one group, even if there are none."""
    if not keys:
        return Groups(np.zeros(length, np.int64), 1, np.zeros(min(length, 1), np.int64))
    codes, size = keys[0].codes, keys[0].size
    for key in keys[1:]:
        if size * key.size > _MOST:
            distinct, codes = np.unique(codes, return_inverse=True)
            size = len(distinct)
        codes, size = codes * key.size + key.codes, size * key.size
    return _grouped(codes, size)


def all_differ(key: Key) -> bool:
    """Whether no two rows have the same code."""
    codes = key.codes
    if len(codes) < 2 or np.all(codes[1:] > codes[:-1]):
        return True
    if len(codes) > key.size or key.size > _SPARSE * len(codes):
        return False
    return int(np.bincount(codes, minlength=1).max()) == 1


def _grouped(codes: Codes, size: int) -> Groups:
    if size > _SPARSE * len(codes) + 1024:
        distinct, example, inverse = np.unique(codes, return_index=True, return_inverse=True)
        return Groups(np.asarray(inverse, np.int64), len(distinct), np.asarray(example, np.int64))
    first = np.full(size, -1, np.int64)
    # Written from the last row to the first, so that the first of each group stays.
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    used = np.flatnonzero(first >= 0)
    place = np.empty(size, np.int64)
    place[used] = np.arange(len(used))
    return Groups(place[codes], len(used), first[used])


def key_of(values: pa.Array) -> Key:
    """Equal values as equal numbers; nulls are equal, and so are zeros and NaNs."""
    keys = sort_keys(values, descending=False)
    distinct, codes = np.unique(keys[-1], return_inverse=True)
    if len(keys) > 1:
        codes = np.where(keys[0] == 0, 0, codes + 1)
    return Key(np.asarray(codes, np.int64), len(distinct) + 1)


def aggregate(
    function: AggregateFunction,
    values: pa.Array | None,
    groups: Groups,
    weights: Weights | None,
    length: int,
) -> pa.Array:
    """One value per group of `length` rows. `values` None stands for something every row has."""
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
    """Which rows have a value; None when all have."""
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
        return summed(groups.codes, weights, groups.count)
    return summed(
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
    """The row of the smallest or largest value of each group, then its value."""
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
