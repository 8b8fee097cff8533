"""Vector columns, cosine distances, and the stored index of a vector column.

Distances are one minus the cosine, in double precision whatever the vectors are stored in.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import StoreCallFailed
from omnigraph.limits import APPROXIMATE_FROM
from omnigraph.read.positions import Positions, covers_all
from omnigraph.storage.indexes import (
    PARTITIONED,
    condemn_index,
    probes_of,
    uncovered_fragments,
)
from omnigraph.storage.ordered import nearest_row_ids
from omnigraph.storage.table import Table

Distances = npt.NDArray[np.float64]
"""NaN for a missing vector and for the zero vector."""

DOUBLE_BLOCK_ROWS: Final = 8192
"""Vectors converted to double precision at a time."""

GATHER_BLOCK_ROWS: Final = 1024
"""Vectors gathered at a time, into one buffer that stays in the processor's cache."""

MIN_FULL_PRODUCT_SHARE: Final = 0.4
"""Share of vectors from which products with all of them are faster than gathering."""

MAX_FLOAT32_ERROR: Final = 1e-5
"""Bound for the error of a single-precision distance. Rounding of a product of unit vectors grows with the
square root of their length and stays below a tenth of this."""

MAX_UNINDEXED_SHARE: Final = 0.05
"""Share of rows that an index may lack. They are compared from disk on every search."""

MEASURED_ROWS: Final = 10
"""Number of results for which the number of probed partitions was measured."""


@dataclass(frozen=True, slots=True)
class VectorColumn:
    """One vector per position, and its length; zero for a missing vector."""

    numbers: npt.NDArray[np.float32]
    lengths: npt.NDArray[np.float64]

    @property
    def nbytes(self) -> int:
        return int(self.numbers.nbytes + self.lengths.nbytes)

    def distances(self, query: npt.NDArray[np.float64], positions: Positions) -> Distances:
        """The distances of the vectors at positions."""
        found = np.full(len(positions), np.nan)
        length = float(np.linalg.norm(query))
        if length == 0:
            return found
        for start in range(0, len(positions), DOUBLE_BLOCK_ROWS):
            block = positions[start : start + DOUBLE_BLOCK_ROWS]
            # Row by row instead of a matrix product: equal vectors get equal distances.
            products = np.einsum("ij,j->i", self.numbers[block].astype(np.float64), query)
            lengths = self.lengths[block] * length
            part = found[start : start + len(block)]
            np.divide(products, lengths, where=lengths > 0, out=part)
        return 1.0 - found

    def nearest(
        self, query: npt.NDArray[np.float64], positions: Positions, count: int
    ) -> npt.NDArray[np.int64]:
        """Indices into positions: the `count` nearest vectors and possibly others.

        Single precision rules out the vectors that are certainly further away.
        """
        length = float(np.linalg.norm(query))
        if length == 0:
            return np.zeros(0, np.int64)
        lengths = self.lengths[positions]
        present = np.flatnonzero(lengths > 0)
        if len(present) <= count:
            return present
        unit = (query / length).astype(np.float32)
        if covers_all(positions, len(self.numbers)):
            similarity = self.numbers @ unit
        elif len(positions) > MIN_FULL_PRODUCT_SHARE * len(self.numbers):
            similarity = (self.numbers @ unit)[positions]
        else:
            similarity = self._products(unit, positions)
        similarity = np.divide(
            similarity, lengths, where=lengths > 0, out=np.full(len(lengths), -2.0)
        )
        bound = np.partition(similarity, len(similarity) - count)[len(similarity) - count]
        return np.flatnonzero(similarity >= max(bound - MAX_FLOAT32_ERROR, -1.5))

    def _products(
        self, unit: npt.NDArray[np.float32], positions: Positions
    ) -> npt.NDArray[np.float32]:
        """The products of the vectors at positions with a unit vector."""
        found = np.empty(len(positions), np.float32)
        gathered = np.empty((GATHER_BLOCK_ROWS, len(unit)), np.float32)
        for start in range(0, len(positions), GATHER_BLOCK_ROWS):
            block = positions[start : start + GATHER_BLOCK_ROWS]
            # With mode="clip" numpy writes into the buffer directly.
            some = np.take(self.numbers, block, axis=0, out=gathered[: len(block)], mode="clip")
            np.dot(some, unit, out=found[start : start + len(block)])
        return found


def numbers_of(vectors: pa.Array) -> npt.NDArray[np.float32]:
    """Vectors as a matrix, a row each; the row of a missing vector is undefined."""
    size = vectors.type.list_size
    found = pc.fill_null(vectors.values, 0.0).to_numpy(zero_copy_only=False)
    start = vectors.offset * size
    return np.asarray(found[start : start + len(vectors) * size], np.float32).reshape(-1, size)


def vector_column(vectors: pa.Array) -> VectorColumn:
    """A vector column with the length of each vector."""
    rows = numbers_of(vectors)
    lengths = np.empty(len(rows))
    for start in range(0, len(rows), DOUBLE_BLOCK_ROWS):
        block = rows[start : start + DOUBLE_BLOCK_ROWS].astype(np.float64)
        lengths[start : start + len(block)] = np.sqrt(np.einsum("ij,ij->i", block, block))
    lengths[~np.asarray(vectors.is_valid())] = 0.0
    return VectorColumn(rows, lengths)


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """The stored index of a vector column, and the partitions to probe for a few results."""

    table: Table
    column: str
    probes: int
    nbytes: int = 0

    def row_ids(self, query: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.uint64] | None:
        """The row ids of about the nearest vectors; None if the index fails.

        More results need more partitions. A failed index is not used again.
        """
        probes = ceil(self.probes * (1 + log2(max(count / MEASURED_ROWS, 1))))
        try:
            return nearest_row_ids(self.table, self.column, query, count, probes)
        except StoreCallFailed as error:
            condemn_index(self.table, self.column, PARTITIONED, error.cause)
            return None


def find_vector_index(table: Table, column: str) -> VectorIndex | None:
    """The index of a large column, if there is one that covers nearly all rows."""
    rows = table.row_count()
    if rows < APPROXIMATE_FROM:
        return None
    uncovered = uncovered_fragments(table, column, PARTITIONED)
    probes = None if uncovered is None else probes_of(table, column)
    if uncovered is None or probes is None:
        return None
    lacking = sum(f.rows for f in table.fragments() if f.id in uncovered)
    return VectorIndex(table, column, probes) if lacking <= MAX_UNINDEXED_SHARE * rows else None
