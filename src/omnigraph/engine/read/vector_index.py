"""The stored index of a column of vectors, if it has one that is worth asking."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2
from typing import Final

import numpy as np
import numpy.typing as npt

from omnigraph.errors import StoreCallFailed
from omnigraph.limits import APPROXIMATE_FROM
from omnigraph.storage.indexes import (
    PARTITIONED,
    condemn_index,
    probes_of,
    uncovered_fragments,
)
from omnigraph.storage.ordered import nearest_row_ids
from omnigraph.storage.table import Table

_UNCOVERED: Final = 0.05
"""Share of rows an index may lack. They are all compared, from disk, at every question."""

_MEASURED: Final = 10
"""The number of answers for which it was measured how many partitions hold them."""


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """The index of a column of vectors, and how many partitions it looks into for a few answers."""

    table: Table
    column: str
    probes: int
    nbytes: int = 0

    def row_ids(self, query: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.uint64] | None:
        """The row ids of about the nearest; more answers lie in more partitions.

        None if the index fails: it is not used again, and the vectors themselves are there.
        """
        wider = 1 + log2(max(count / _MEASURED, 1))
        probes = ceil(self.probes * wider)
        try:
            return nearest_row_ids(self.table, self.column, query, count, probes)
        except StoreCallFailed as error:
            condemn_index(self.table, self.column, PARTITIONED, error.cause)
            return None


def vector_index(table: Table, column: str) -> VectorIndex | None:
    """The index of a column; None if it has none that knows nearly all rows of very many."""
    rows = table.row_count()
    if rows < APPROXIMATE_FROM:
        return None
    uncovered = uncovered_fragments(table, column, PARTITIONED)
    probes = None if uncovered is None else probes_of(table, column)
    if uncovered is None or probes is None:
        return None
    lacking = sum(f.rows for f in table.fragments() if f.id in uncovered)
    return VectorIndex(table, column, probes) if lacking <= _UNCOVERED * rows else None
