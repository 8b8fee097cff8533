"""Grouping and aggregates over weighted rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.read.frame import Weights
from omnigraph.engine.read.ordering import sort_keys
from omnigraph.language.query.ast import AggregateFunction

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Groups:
    """The group each row belongs to, how many there are, and a row of each."""

    codes: Codes
    count: int
    example: Codes


def group_rows(keys: Sequence[Codes], length: int) -> Groups:
    """Group rows by columns of codes; without any, all rows are one group, even if there are none."""
    if not keys:
        return Groups(np.zeros(length, np.int64), 1, np.zeros(min(length, 1), np.int64))
    codes = keys[0]
    for key in keys[1:]:
        # Dense codes first, so that two of them fit into one number.
        codes = _dense(codes) * (int(key.max(initial=0)) + 1) + _dense(key)
    distinct, example, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return Groups(np.asarray(inverse, np.int64), len(distinct), np.asarray(example, np.int64))


def codes_of(values: pa.Array) -> Codes:
    """Equal values as equal numbers; nulls are equal, and so are zeros and NaNs."""
    keys = sort_keys(values, descending=False)
    codes = _dense(keys[-1])
    return codes if len(keys) == 1 else np.where(keys[0] == 0, 0, codes + 1)


def aggregate(
    function: AggregateFunction, values: pa.Array | None, groups: Groups, weights: Weights | None
) -> pa.Array:
    """One value per group. `values` None stands for something every row has."""
    if function is AggregateFunction.COUNT:
        return pa.array(_counts(_present(values, len(groups.codes)), groups, weights), pa.int64())
    assert values is not None, "only rows can be counted without values"
    present = _present(values, len(groups.codes))
    if function in (AggregateFunction.SUM, AggregateFunction.AVG):
        return _sums(function, values, present, groups, weights)
    return _extremes(function, values, present, groups)


def _present(values: pa.Array | None, length: int) -> npt.NDArray[np.bool_] | None:
    """Which rows have a value; None when all have."""
    if values is None or not values.null_count:
        return None
    return np.asarray(values.is_valid().to_numpy(zero_copy_only=False), np.bool_)


def _counts(
    present: npt.NDArray[np.bool_] | None, groups: Groups, weights: Weights | None
) -> npt.NDArray[np.int64]:
    codes = groups.codes if present is None else groups.codes[present]
    if weights is None:
        return np.bincount(codes, minlength=groups.count).astype(np.int64)
    found = np.zeros(groups.count, np.int64)
    np.add.at(found, codes, weights if present is None else weights[present])
    return found


def _sums(
    function: AggregateFunction,
    values: pa.Array,
    present: npt.NDArray[np.bool_] | None,
    groups: Groups,
    weights: Weights | None,
) -> pa.Array:
    numbers = pc.fill_null(values, 0).cast(pa.float64(), safe=False).to_numpy()
    if weights is not None:
        numbers = numbers * weights
    sums = np.bincount(groups.codes, weights=numbers, minlength=groups.count)
    counts = _counts(present, groups, weights)
    found = sums / np.maximum(counts, 1) if function is AggregateFunction.AVG else sums
    return pa.array(np.asarray(found, np.float64), pa.float64(), mask=counts == 0)


def _extremes(
    function: AggregateFunction,
    values: pa.Array,
    present: npt.NDArray[np.bool_] | None,
    groups: Groups,
) -> pa.Array:
    """The row of the smallest or largest value of each group, then its value."""
    rows = np.arange(len(values)) if present is None else np.flatnonzero(present)
    rank = sort_keys(values, descending=function is AggregateFunction.MAX)[-1][rows]
    codes = groups.codes[rows]
    order = np.lexsort((rank, codes))
    placed = codes[order]
    first = np.ones(len(placed), np.bool_)
    first[1:] = placed[1:] != placed[:-1]
    chosen = np.full(groups.count, -1, np.int64)
    chosen[placed[first]] = rows[order[first]]
    return values.take(pa.array(chosen, mask=chosen < 0))


def _dense(codes: Codes) -> Codes:
    """The same grouping with codes from zero on, without gaps."""
    return np.asarray(np.unique(codes, return_inverse=True)[1], np.int64)
