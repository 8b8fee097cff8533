"""All ids in parts that have none in common, so that rows can be compared part by part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.limits import COMPARED_PARTS, COMPARED_ROWS_PER_TASK
from omnigraph.load.hashing import Buckets, buckets_of
from omnigraph.rows.equality import Mask

_END: Final = 8
_LAYERS: Final = 3
"""Bytes at either end of a text that decide about its bucket, and how often they are taken off."""

_MANY: Final = 2**31


@dataclass(frozen=True, slots=True)
class Part:
    """One of so many parts."""

    number: int
    of: int

    def __call__(self, ids: pa.Array) -> Mask:
        """Which of the ids belong to it."""
        mine: Mask = _numbers(ids) % self.of == self.number
        return mine


def _numbers(ids: pa.Array) -> Buckets:
    """A number of each id. Ids made of both ends of an edge differ in the middle, so that counts too."""
    mixed = np.zeros(len(ids), np.int64)
    rest = ids.view(pa.binary())
    for _ in range(_LAYERS):
        mixed = mixed * 31 + buckets_of(rest.view(pa.utf8()), _MANY)
        rest = pc.binary_slice(rest, _END, -_END)
    return mixed


def parts_for(rows: int) -> list[Part]:
    """Parts for so many rows. There are never many: whoever looks for one reads the ids of all."""
    count = min(max(1, -(-rows // COMPARED_ROWS_PER_TASK)), COMPARED_PARTS)
    return [Part(number, count) for number in range(count)]
