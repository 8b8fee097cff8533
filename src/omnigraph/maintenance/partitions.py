"""Partitions of a vector index: their centroids, and the number a search has to probe.

Centroids come from k-means over a sample. The number of probes is measured: it is the smallest that finds
enough of the true neighbours of sampled vectors.
Tests: tests/behaviour/test_indexes.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from omnigraph.limits import APPROXIMATE_FROM, LEAST_PROBES, RECALL
from omnigraph.read.vectors import numbers_of
from omnigraph.storage.indexes import Centres
from omnigraph.storage.table import Table

Units = npt.NDArray[np.float32]
"""Vectors of length one, one per row."""

_SAMPLED_PER_CENTRE: Final = 64
"""Sampled vectors per centroid. Four times as many give no better centroids."""

_MAX_SAMPLE_BYTES: Final = 512 * 1024 * 1024
_KMEANS_ROUNDS: Final = 10
_BLOCK_ROWS: Final = 8192
"""Vectors compared with all centroids at a time."""

_MEASURED_QUERIES: Final = 100
_MEASURED_NEIGHBOURS: Final = 10
"""Queries, and true neighbours of each, that the number of probes is measured with."""

_EQUAL_COSINE: Final = 1 - 1e-5
"""The cosine from which two vectors count as equal, in single precision."""

_NO_COSINE: Final = -2.0
"""Less than the cosine of any two vectors."""


@dataclass(frozen=True, slots=True)
class Partitions:
    """The centroids, and the number of partitions to probe."""

    centres: Centres
    probes: int


def find_partitions(table: Table, column: str) -> Partitions | None:
    """Partition a stored column; None if it has no vector other than zero."""
    rng = np.random.default_rng(0)
    sample, known = _sample(table, column, rng)
    if not known:
        return None
    count = 1 if known < APPROXIMATE_FROM else isqrt(known)
    centres = _centres(sample, count, rng)
    if count == 1:
        return Partitions(centres, 1)
    queries = sample[rng.choice(len(sample), min(_MEASURED_QUERIES, len(sample)), replace=False)]
    return Partitions(centres, _probes(table, column, centres, queries))


def _sample(table: Table, column: str, rng: np.random.Generator) -> tuple[Units, int]:
    """An even sample of the vectors, and their total number."""
    rows = table.row_count()
    wanted = _SAMPLED_PER_CENTRE * max(isqrt(rows), 1)
    bytes_each = 4 * table.schema.field(column).type.list_size
    share = min(wanted, max(_MAX_SAMPLE_BYTES // bytes_each, 1)) / max(rows, 1)
    chosen: list[Units] = []
    known = 0
    for units in _units(table, column):
        known += len(units)
        chosen.append(units[rng.random(len(units)) < share] if share < 1 else units)
    sample = np.concatenate(chosen) if chosen else np.zeros((0, bytes_each // 4), np.float32)
    return sample, known if len(sample) else 0


def _units(table: Table, column: str) -> Iterator[Units]:
    """The vectors of a column scaled to length one, by batch, without zero and infinite ones."""
    for batch in table.scan([column]):
        vectors = batch.column(0)
        numbers = numbers_of(vectors)[np.asarray(vectors.is_valid())]
        lengths = np.sqrt(np.einsum("ij,ij->i", numbers, numbers))
        usable = np.isfinite(lengths) & (lengths > 0)
        yield numbers[usable] / lengths[usable, None]


def _centres(sample: Units, count: int, rng: np.random.Generator) -> Centres:
    """Centroids by spherical k-means, initialised with sampled vectors."""
    centres = sample[rng.choice(len(sample), count, replace=len(sample) < count)].copy()
    for _ in range(_KMEANS_ROUNDS if count > 1 else 1):
        nearest = _nearest_centres(sample, centres)
        members = np.bincount(nearest, minlength=count)
        held = np.flatnonzero(members)
        starts = np.concatenate([[0], np.cumsum(members)[:-1]])[held]
        sums = np.add.reduceat(sample[np.argsort(nearest, kind="stable")], starts, axis=0)
        lengths = np.linalg.norm(sums, axis=1)
        moved = lengths > 0
        centres[held[moved]] = sums[moved] / lengths[moved, None]
        empty = np.flatnonzero(members == 0)
        centres[empty] = sample[rng.choice(len(sample), len(empty))]
    return centres


def _nearest_centres(vectors: Units, centres: Centres) -> npt.NDArray[np.int64]:
    starts = range(0, max(len(vectors), 1), _BLOCK_ROWS)
    blocks = (vectors[start : start + _BLOCK_ROWS] for start in starts)
    return np.concatenate([np.argmax(block @ centres.T, axis=1) for block in blocks])


def _probes(table: Table, column: str, centres: Centres, queries: Units) -> int:
    """The fewest partitions, nearest first, that contain enough of the true neighbours."""
    order = np.argsort(-(queries @ centres.T), axis=1)
    ranks_of = np.empty_like(order)
    np.put_along_axis(ranks_of, order, np.arange(order.shape[1])[None, :], axis=1)
    neighbours = enumerate(_neighbours(table, column, queries))
    held = [ranks_of[number, _nearest_centres(found, centres)] for number, found in neighbours]
    ranks = np.sort(np.concatenate(held))
    if not len(ranks):
        return LEAST_PROBES
    enough = int(np.ceil(RECALL * len(ranks))) - 1
    return max(int(ranks[enough]) + 1, LEAST_PROBES)


def _neighbours(table: Table, column: str, queries: Units) -> list[Units]:
    """The nearest vectors of each query, except equal ones: a real query is not stored itself."""
    best = np.full((len(queries), _MEASURED_NEIGHBOURS), _NO_COSINE, np.float32)
    found = np.zeros((len(queries), _MEASURED_NEIGHBOURS, queries.shape[1]), np.float32)
    for units in _units(table, column):
        cosines = queries @ units.T
        cosines[cosines > _EQUAL_COSINE] = _NO_COSINE
        some = min(_MEASURED_NEIGHBOURS, cosines.shape[1])
        leading = np.argpartition(-cosines, some - 1, axis=1)[:, :some]
        candidates = np.concatenate([best, np.take_along_axis(cosines, leading, axis=1)], axis=1)
        kept = np.argsort(-candidates, axis=1)[:, :_MEASURED_NEIGHBOURS]
        vectors = np.concatenate([found, units[leading]], axis=1)
        best = np.take_along_axis(candidates, kept, axis=1)
        found = np.take_along_axis(vectors, kept[:, :, None], axis=1)
    return [mine[known] for mine, known in zip(found, best > _NO_COSINE, strict=True)]
