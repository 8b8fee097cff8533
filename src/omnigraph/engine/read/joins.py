"""Pairs of rows of two columns whose values are equal, by the rules of `compare`: numbers by value
whatever their types, NaN equal to itself, -0.0 to 0.0, null to nothing.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.read.adjacency import Counts, spread_out
from omnigraph.engine.read.numbering import Mask, Positions

Codes = npt.NDArray[np.int64]
"""Numbers that are equal where values are; -1 equals nothing."""

_DENSE: Final = 4
"""Integers of no wider a range than this many times their number are codes as they are."""


class EqualRows:
    """Which rows of a right column equal each row of a left one."""

    def __init__(self, left: pa.Array, right: pa.Array) -> None:
        codes, others, size = _codes(*_comparable(left, right))
        self._codes = codes
        self._others = others
        # The first place is that of the code -1, which equals nothing.
        self._per_code = np.bincount(others + 1, minlength=size + 1)
        self._per_code[0] = 0
        self._counts: Counts = self._per_code[codes + 1]

    @property
    def exist(self) -> Mask:
        """Which left rows have an equal right row."""
        return self._counts > 0

    @property
    def total(self) -> int:
        """How many pairs there are."""
        return int(self._counts.sum())

    def pairs(self) -> tuple[Positions, Positions]:
        """All pairs: the left row and the right row."""
        if int(self._per_code.max(initial=0)) <= 1:
            place = np.empty(len(self._per_code), np.int64)
            place[self._others + 1] = np.arange(len(self._others))
            rows = np.flatnonzero(self._counts)
            return rows, place[self._codes[rows] + 1]
        equal_nothing = int(np.count_nonzero(self._others < 0))
        begin = equal_nothing + np.cumsum(self._per_code) - self._per_code
        rows, places = spread_out(begin[self._codes + 1], self._counts)
        return rows, np.argsort(self._others, kind="stable")[places]


def _codes(left: pa.Array, right: pa.Array) -> tuple[Codes, Codes, int]:
    """The codes of both columns, and how many different ones there may be."""
    both = pa.chunked_array([left, right])
    if pa.types.is_integer(left.type):
        low, high = (bound.as_py() or 0 for bound in pc.min_max(both).values())
        if high - low <= _DENSE * len(both):
            codes, others = (pc.subtract(c, pa.scalar(low, c.type)) for c in (left, right))
            return _known(codes, left), _known(others, right), int(high - low) + 1
    encoded = [
        chunk for chunk in both.dictionary_encode().unify_dictionaries().chunks if len(chunk)
    ]
    size = len(encoded[0].dictionary) if encoded else 0
    indices = [chunk.indices for chunk in encoded]
    codes = indices.pop(0) if len(left) else pa.array([], pa.int32())
    others = indices.pop(0) if len(right) else pa.array([], pa.int32())
    return _known(codes, left), _known(others, right), size


def _known(codes: pa.Array, values: pa.Array) -> Codes:
    """Codes as numbers, -1 where there is no value."""
    found = pc.fill_null(codes, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    if values.null_count:
        found[values.is_null().to_numpy(zero_copy_only=False)] = -1
    return np.asarray(found, np.int64)


def _comparable(left: pa.Array, right: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Both columns in one type; a value that type cannot hold equals nothing and becomes null."""
    kinds = left.type, right.type
    if all(map(pa.types.is_floating, kinds)):
        return _float(left), _float(right)
    if any(map(pa.types.is_floating, kinds)):
        if pa.types.is_floating(left.type):
            return _whole(left, right.type), right
        return left, _whole(right, left.type)
    if left.type == right.type:
        return left, right
    if all(map(pa.types.is_integer, kinds)):
        return _integer(left), _integer(right)
    return left.cast(pa.utf8()), right.cast(pa.utf8())


def _float(values: pa.Array) -> pa.Array:
    """As doubles with one zero."""
    return pc.add(values.cast(pa.float64()), 0.0)


def _integer(values: pa.Array) -> pa.Array:
    """As signed integers. A larger one has no equal, as not both columns are of the widest type."""
    if not pa.types.is_uint64(values.type):
        return values.cast(pa.int64())
    fits = pc.less_equal(values, pa.scalar(2**63 - 1, pa.uint64()))
    return pc.if_else(fits, values, pa.scalar(None, pa.uint64())).cast(pa.int64())


def _whole(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Floats as integers of a type, where they are such."""
    numbers = values.cast(pa.float64())
    low = 0.0 if pa.types.is_unsigned_integer(kind) else -(2.0 ** (kind.bit_width - 1))
    high = 2.0 ** (kind.bit_width - (0 if pa.types.is_unsigned_integer(kind) else 1))
    fits = pc.and_(pc.greater_equal(numbers, low), pc.less(numbers, high))
    fits = pc.and_(fits, pc.equal(numbers, pc.floor(numbers)))
    return pc.if_else(fits, numbers, pa.scalar(None, pa.float64())).cast(kind)
