"""A column of vectors, and how far each is from a given one.

Distance is one minus the cosine of the angle, in double precision whatever the vectors are kept in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.read.numbering import Positions, is_everything

Distances = npt.NDArray[np.float64]
"""NaN where there is none: no vector, or one of no length."""

_BLOCK: Final = 8192
"""Vectors made double at a time."""

_GATHERED: Final = 1024
"""Vectors gathered at a time: so few that the next ones are put where the last ones were."""

_MANY: Final = 0.4
"""Share of vectors from which all of them are compared."""

_SLACK: Final = 1e-5
"""How far a distance in single precision may be off, with room to spare: rounding of a product of
unit vectors grows with the square root of their length and stays below a tenth of this."""


@dataclass(frozen=True, slots=True)
class VectorColumn:
    """One vector per position, with its length: zero for vectors that are missing."""

    numbers: npt.NDArray[np.float32]
    lengths: npt.NDArray[np.float64]

    @property
    def nbytes(self) -> int:
        return int(self.numbers.nbytes + self.lengths.nbytes)

    def distances(self, query: npt.NDArray[np.float64], positions: Positions) -> Distances:
        """The distance of each of the vectors at positions."""
        found = np.full(len(positions), np.nan)
        length = float(np.linalg.norm(query))
        if length == 0:
            return found
        for start in range(0, len(positions), _BLOCK):
            block = positions[start : start + _BLOCK]
            # One row at a time and not as a matrix product: equal vectors get equal distances.
            products = np.einsum("ij,j->i", self.numbers[block].astype(np.float64), query)
            lengths = self.lengths[block] * length
            part = found[start : start + len(block)]
            np.divide(products, lengths, where=lengths > 0, out=part)
        return 1.0 - found

    def nearest(
        self, query: npt.NDArray[np.float64], positions: Positions, count: int
    ) -> npt.NDArray[np.int64]:
        """Indices into the positions: the `count` nearest vectors, and others that may be.

        Single precision rules out the many that are surely further away.
        """
        length = float(np.linalg.norm(query))
        if length == 0:
            return np.zeros(0, np.int64)
        lengths = self.lengths[positions]
        present = np.flatnonzero(lengths > 0)
        if len(present) <= count:
            return present
        unit = (query / length).astype(np.float32)
        if is_everything(positions, len(self.numbers)):
            likeness = self.numbers @ unit
        elif len(positions) > _MANY * len(self.numbers):
            # Reading all of them in order is quicker than gathering so many.
            likeness = (self.numbers @ unit)[positions]
        else:
            likeness = self._products(unit, positions)
        likeness = np.divide(likeness, lengths, where=lengths > 0, out=np.full(len(lengths), -2.0))
        bound = np.partition(likeness, len(likeness) - count)[len(likeness) - count]
        return np.flatnonzero(likeness >= max(bound - _SLACK, -1.5))

    def _products(
        self, unit: npt.NDArray[np.float32], positions: Positions
    ) -> npt.NDArray[np.float32]:
        """The product of each of the vectors at positions with a given one."""
        found = np.empty(len(positions), np.float32)
        gathered = np.empty((_GATHERED, len(unit)), np.float32)
        for start in range(0, len(positions), _GATHERED):
            block = positions[start : start + _GATHERED]
            # Only without a check of the positions they go straight to where they shall be.
            some = np.take(self.numbers, block, axis=0, out=gathered[: len(block)], mode="clip")
            np.dot(some, unit, out=found[start : start + len(block)])
        return found


def numbers_of(vectors: pa.Array) -> npt.NDArray[np.float32]:
    """The numbers of vectors, a row each; those of a missing vector do not matter."""
    size = vectors.type.list_size
    found = pc.fill_null(vectors.values, 0.0).to_numpy(zero_copy_only=False)
    start = vectors.offset * size
    return np.asarray(found[start : start + len(vectors) * size], np.float32).reshape(-1, size)


def vector_column(vectors: pa.Array) -> VectorColumn:
    """A column of vectors, with the length of each."""
    rows = numbers_of(vectors)
    lengths = np.empty(len(rows))
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK].astype(np.float64)
        lengths[start : start + len(block)] = np.sqrt(np.einsum("ij,ij->i", block, block))
    lengths[~np.asarray(vectors.is_valid())] = 0.0
    return VectorColumn(rows, lengths)
