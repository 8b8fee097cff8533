"""A column of a numbered table version, decoded: one value per position.

A later version shares the values of an earlier one. What has come since lies beside them, and both are
put together when somebody asks for all values; who asks for few does not wait for that.
Tests: tests/unit/engine/test_dense_column.py.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.engine.read.numbering import Difference, Numbering, Positions
from omnigraph.storage.scan import ROW_ID

_FEW: Final = 0.125
"""Share of all values up to which some of them are picked from both places."""

_FEW_RUNS: Final = 1000
"""Runs of changed positions up to which the others are copied run by run."""

_MOST_BESIDE: Final = 0.005
"""Share of all values that may lie beside the others."""


class DenseColumn:
    """One value per position; what stands at the position of a row that is gone means nothing.

    Thread-safe: what it holds is replaced as a whole, by something that says the same.
    """

    def __init__(
        self,
        values: pa.Array,
        size: int | None = None,
        changed: Positions | None = None,
        fresh: pa.Array | None = None,
    ) -> None:
        """`changed` are positions in order whose values are the `fresh` ones."""
        self._size = len(values) if size is None else size
        none = np.empty(0, np.int64)
        self._parts = (values, none if changed is None else changed, fresh)
        self.nbytes = int(values.nbytes + (0 if fresh is None else fresh.nbytes))

    def __len__(self) -> int:
        return self._size

    @property
    def values(self) -> pa.Array:
        """The values at all positions."""
        values, changed, fresh = self._parts
        if fresh is None and len(values) == self._size:
            return values
        together = _put_together(values, self._size, changed, fresh)
        self._parts = (together, changed[:0], None)
        return together

    def take(self, positions: Positions) -> pa.Array:
        """The values at some positions."""
        if len(positions) > _FEW * self._size:
            return self.values.take(pa.array(positions))
        values, changed, fresh = self._parts
        if fresh is None and len(values) == self._size:
            return values.take(pa.array(positions))
        at = np.searchsorted(changed, positions)
        is_fresh = np.append(changed, -1)[at] == positions
        is_old = ~is_fresh & (positions < len(values))
        old = np.count_nonzero(is_old)
        places = np.full(len(positions), -1, np.int64)
        places[is_old] = np.arange(old)
        places[is_fresh] = old + np.arange(np.count_nonzero(is_fresh))
        picked = [values.take(pa.array(positions[is_old]))]
        if fresh is not None:
            picked.append(fresh.take(pa.array(at[is_fresh])))
        return pa.concat_arrays(picked).take(pa.array(places, mask=places < 0))

    def carried_on(self, size: int, changed: Positions, fresh: pa.Array) -> DenseColumn:
        """The column of a later version, in which some positions have fresh values."""
        values, before, kept = self._parts
        order = np.argsort(changed)
        changed, fresh = changed[order], fresh.take(pa.array(order))
        if kept is not None:
            stays = ~np.isin(before, changed)
            changed = np.concatenate([before[stays], changed])
            fresh = pa.concat_arrays([kept.filter(pa.array(stays)), fresh])
            order = np.argsort(changed)
            changed, fresh = changed[order], fresh.take(pa.array(order))
        if not len(changed):
            return DenseColumn(values, size)
        if len(changed) > _MOST_BESIDE * size:
            return DenseColumn(_put_together(values, size, changed, fresh))
        return DenseColumn(values, size, changed, fresh)


def _put_together(
    values: pa.Array, size: int, changed: Positions, fresh: pa.Array | None
) -> pa.Array:
    """The values of a column of some size, in which some positions have fresh values."""
    fresh = values[:0] if fresh is None else fresh
    runs = np.flatnonzero(np.diff(changed, prepend=-2) != 1)
    if len(runs) <= _FEW_RUNS:
        # Several times as quick as picking value by value, where texts are concerned.
        pieces, done = [], 0
        for begin, end in pairwise([*runs.tolist(), len(changed)]):
            first = int(changed[begin])
            pieces += [*_stretch(values, done, first), fresh[begin:end]]
            done = first + end - begin
        return pa.concat_arrays([*pieces, *_stretch(values, done, size)])
    places = np.arange(size, dtype=np.int64)
    places[len(values) :] = -1
    places[changed] = len(values) + np.arange(len(changed))
    return pa.concat_arrays([values, fresh]).take(pa.array(places, mask=places < 0))


def _stretch(values: pa.Array, first: int, end: int) -> list[pa.Array]:
    """The values from one position to another; nulls where rows came and went between two versions."""
    missing = end - max(first, len(values))
    kept = values[min(first, len(values)) : end]
    return [kept, pa.nulls(missing, values.type)] if missing > 0 else [kept]


def read_column(numbering: Numbering, column: str) -> DenseColumn:
    """Decode a whole column of a table version, in the order of the numbering."""
    rows = numbering.table.read([column, ROW_ID])
    row_ids = rows.column(ROW_ID).to_numpy()
    values = rows.column(column).combine_chunks()
    if len(row_ids) == numbering.size and np.array_equal(row_ids, numbering.row_ids):
        return DenseColumn(values)
    places = np.full(numbering.size, -1, np.int64)
    places[numbering.positions(row_ids)] = np.arange(len(row_ids))
    return DenseColumn(values.take(pa.array(places, mask=places < 0)))


def patched_column(
    earlier: DenseColumn, numbering: Numbering, column: str, change: Difference
) -> DenseColumn:
    """The column of a later version, from that of an earlier one and the pieces that are new."""
    come = change.come_rows([column, ROW_ID])
    changed = numbering.positions(come.column(ROW_ID).to_numpy())
    return earlier.carried_on(numbering.size, changed, come.column(column).combine_chunks())
