"""Which rows of two columns hold the same value: typed, null equal to null, NaN equal to NaN.

Unlike `==` this is about content: what was stored twice is equal to itself, and a text that is empty
is not the text that is missing. Tests: tests/unit/rows/test_equality.py.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Mask = npt.NDArray[np.bool_]


def equal_rows(left: pa.Table, right: pa.Table, columns: Iterable[str]) -> Mask:
    """For every row, whether both tables hold the same in all the columns.

    Vectors, lists and blobs are looked at last, and only where all else is the same.
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
