"""All ids in parts that have none in common, so that rows can be compared part by part."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from omnigraph.limits import COMPARED_PARTS, COMPARED_ROWS_PER_TASK
from omnigraph.rows.equality import Mask, buckets_of, hashes_of


@dataclass(frozen=True, slots=True)
class Part:
    """One of so many parts."""

    number: int
    of: int

    def __call__(self, ids: pa.Array) -> Mask:
        """Which of the ids belong to it."""
        mine: Mask = buckets_of(hashes_of(ids), self.of) == self.number
        return mine


def parts_for(rows: int) -> list[Part]:
    """Parts for so many rows. There are never many: whoever looks for one reads the ids of all."""
    count = min(max(1, -(-rows // COMPARED_ROWS_PER_TASK)), COMPARED_PARTS)
    return [Part(number, count) for number in range(count)]
