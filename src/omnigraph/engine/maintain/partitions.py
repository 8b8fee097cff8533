"""Partitions of a column of vectors: where their centres lie, and how many a search looks into.

Both are found from the vectors themselves: centres by k-means over a sample, and the number of
partitions by asking for the nearest of some vectors and looking where the true answers lie.
Tests: tests/behaviour/test_indexes.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from omnigraph.engine.read.vectors import numbers_of
from omnigraph.limits import APPROXIMATE_FROM, LEAST_PROBES, RECALL
from omnigraph.storage.indexes import Centres
from omnigraph.storage.table import Table

Units = npt.NDArray[np.float32]
"""Vectors of length one, a row each."""

_PER_CENTRE: Final = 64
"""Vectors of the sample for each centre. Four times as many make no better centres, only slower."""

_SAMPLE_BYTES: Final = 512 * 1024 * 1024
_ROUNDS: Final = 10
_BLOCK: Final = 8192
"""Vectors compared with all centres at a time."""

_QUERIES: Final = 100
_NEIGHBOURS: Final = 10
"""How many vectors are asked for, and how many answers each has, to find out how far to look."""

_SAME: Final = 1 - 1e-5
"""The cosine from which two vectors are the same one; single precision is not more precise."""

_NONE: Final = -2.0
"""The cosine of no vector."""


@dataclass(frozen=True, slots=True)
class Partitions:
    """The centres, and how many of the partitions nearest to a query hold its nearest vectors."""

    centres: Centres
    probes: int


def find_partitions(table: Table, column: str) -> Partitions | None:
    """The partitions of a stored column; None while it holds no vector that points anywhere."""
    chance = np.random.default_rng(0)
    sample, known = _sample(table, column, chance)
    if not known:
        return None
    count = 1 if known < APPROXIMATE_FROM else isqrt(known)
    centres = _centres(sample, count, chance)
    if count == 1:
        return Partitions(centres, 1)
    queries = sample[chance.choice(len(sample), min(_QUERIES, len(sample)), replace=False)]
    return Partitions(centres, _probes(table, column, centres, queries))


def _sample(table: Table, column: str, chance: np.random.Generator) -> tuple[Units, int]:
    """Some of the vectors, chosen evenly, and how many there are."""
    rows = table.row_count()
    wanted = _PER_CENTRE * max(isqrt(rows), 1)
    bytes_each = 4 * table.schema.field(column).type.list_size
    share = min(wanted, max(_SAMPLE_BYTES // bytes_each, 1)) / max(rows, 1)
    chosen: list[Units] = []
    known = 0
    for units in _units(table, column):
        known += len(units)
        chosen.append(units[chance.random(len(units)) < share] if share < 1 else units)
    sample = np.concatenate(chosen) if chosen else np.zeros((0, bytes_each // 4), np.float32)
    return sample, known if len(sample) else 0


def _units(table: Table, column: str) -> Iterator[Units]:
    """All vectors of a column, made length one, batch by batch, without those that have none."""
    for batch in table.scan([column]):
        vectors = batch.column(0)
        numbers = numbers_of(vectors)[np.asarray(vectors.is_valid())]
        lengths = np.sqrt(np.einsum("ij,ij->i", numbers, numbers))
        usable = np.isfinite(lengths) & (lengths > 0)
        yield numbers[usable] / lengths[usable, None]


def _centres(sample: Units, count: int, chance: np.random.Generator) -> Centres:
    """Centres by k-means on the sphere, begun at vectors of the sample."""
    centres = sample[chance.choice(len(sample), count, replace=len(sample) < count)].copy()
    for _ in range(_ROUNDS if count > 1 else 1):
        nearest = _nearest_centres(sample, centres)
        members = np.bincount(nearest, minlength=count)
        held = np.flatnonzero(members)
        starts = np.concatenate([[0], np.cumsum(members)[:-1]])[held]
        sums = np.add.reduceat(sample[np.argsort(nearest, kind="stable")], starts, axis=0)
        lengths = np.linalg.norm(sums, axis=1)
        moved = lengths > 0
        centres[held[moved]] = sums[moved] / lengths[moved, None]
        empty = np.flatnonzero(members == 0)
        centres[empty] = sample[chance.choice(len(sample), len(empty))]
    return centres


def _nearest_centres(vectors: Units, centres: Centres) -> npt.NDArray[np.int64]:
    starts = range(0, max(len(vectors), 1), _BLOCK)
    blocks = (vectors[start : start + _BLOCK] for start in starts)
    return np.concatenate([np.argmax(block @ centres.T, axis=1) for block in blocks])


def _probes(table: Table, column: str, centres: Centres, queries: Units) -> int:
    """The fewest partitions, nearest to a query first, that hold enough of the true answers."""
    order = np.argsort(-(queries @ centres.T), axis=1)
    places = np.empty_like(order)
    np.put_along_axis(places, order, np.arange(order.shape[1])[None, :], axis=1)
    neighbours = enumerate(_neighbours(table, column, queries))
    held = [places[number, _nearest_centres(found, centres)] for number, found in neighbours]
    ranks = np.sort(np.concatenate(held))
    if not len(ranks):
        return LEAST_PROBES
    enough = int(np.ceil(RECALL * len(ranks))) - 1
    return max(int(ranks[enough]) + 1, LEAST_PROBES)


def _neighbours(table: Table, column: str, queries: Units) -> list[Units]:
    """For each query its nearest vectors, without itself and its copies: who asks has none there."""
    best = np.full((len(queries), _NEIGHBOURS), _NONE, np.float32)
    found = np.zeros((len(queries), _NEIGHBOURS, queries.shape[1]), np.float32)
    for units in _units(table, column):
        likeness = queries @ units.T
        likeness[likeness > _SAME] = _NONE
        some = min(_NEIGHBOURS, likeness.shape[1])
        leading = np.argpartition(-likeness, some - 1, axis=1)[:, :some]
        candidates = np.concatenate([best, np.take_along_axis(likeness, leading, axis=1)], axis=1)
        kept = np.argsort(-candidates, axis=1)[:, :_NEIGHBOURS]
        vectors = np.concatenate([found, units[leading]], axis=1)
        best = np.take_along_axis(candidates, kept, axis=1)
        found = np.take_along_axis(vectors, kept[:, :, None], axis=1)
    return [mine[known] for mine, known in zip(found, best > _NONE, strict=True)]
