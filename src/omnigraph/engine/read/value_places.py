"""Where the values of a column are: one value is found without looking at all rows.

A value leads to candidates; whether a candidate has it is for the caller to see. So equal hashes do no
harm, and rows that have changed since are simply candidates for everything.
Tests: tests/unit/engine/test_value_places.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.engine.read.numbering import Positions, distinct_sorted
from omnigraph.rows.equality import Hashes, hashes_of

_IN_64_BITS: Final = range(-(2**63), 2**63)

_SELECTIVE: Final = 16
"""Rows of one value, on average, up to which a value leads to few enough of them."""

_MOST_CHANGED: Final = 0.005
"""Share of rows that may have changed before all are put in order again."""


@dataclass(frozen=True, slots=True)
class ValuePlaces:
    """Positions in the order of the hashes of their values; nulls are left out."""

    size: int
    hashes: Hashes
    positions: npt.NDArray[np.int32] | Positions
    changed: Positions
    is_selective: bool

    @classmethod
    def of(cls, values: pa.Array) -> ValuePlaces | None:
        """Those of a column; None for a kind of values that is not found this way."""
        if not (pa.types.is_string(values.type) or pa.types.is_integer(values.type)):
            return None
        filled = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
        hashes = hashes_of(values.drop_null())
        order = np.argsort(hashes, kind="stable")
        hashes, positions = hashes[order], filled[order]
        if len(values) < 2**31:
            positions = positions.astype(np.int32)
        distinct = 1 + int(np.count_nonzero(hashes[1:] != hashes[:-1]))
        is_selective = len(hashes) <= _SELECTIVE * distinct
        return cls(len(values), hashes, positions, np.empty(0, np.int64), is_selective)

    @property
    def nbytes(self) -> int:
        return int(self.hashes.nbytes + self.positions.nbytes + self.changed.nbytes)

    def carried_on(self, changed: Positions) -> ValuePlaces | None:
        """The same when some rows have come or changed; None when those are many."""
        changed = distinct_sorted(np.concatenate([self.changed, changed]))
        if len(changed) > _MOST_CHANGED * self.size:
            return None
        return replace(self, changed=changed)

    def candidates(self, value: object) -> Positions | None:
        """The positions that may have a value, in order; None if it is not found this way."""
        if not self.is_selective:
            return None
        if isinstance(value, str):
            asked = pa.array([value], pa.utf8())
        elif isinstance(value, int) and not isinstance(value, bool) and value in _IN_64_BITS:
            asked = pa.array([value], pa.int64())
        else:
            return None
        [wanted] = hashes_of(asked)
        first = np.searchsorted(self.hashes, wanted)
        end = np.searchsorted(self.hashes, wanted, side="right")
        found = self.positions[first:end].astype(np.int64)
        return (
            distinct_sorted(np.concatenate([found, self.changed])) if len(self.changed) else found
        )
