"""Which nodes an edge type joins: compressed rows of neighbours, one set per direction.

Neighbours are distinct; a node with a self-loop is its own neighbour. A later version of the edge
table is reached by a small overlay of joined and parted pairs instead of building anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.read.numbering import Positions, is_among

Keys = npt.NDArray[np.int64]
"""A pair of positions in one number: the source in the upper half, the target in the lower."""

Targets = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int64]
Spans = tuple[Counts, Counts]
"""Where the neighbours of each source begin, and how many there are."""

_EXACT_IN_FLOAT: Final = 2**53
_MOST_IN_32: Final = 2**31 - 1
_MANY: Final = 10_000


def pair_keys(sources: npt.NDArray[np.integer], targets: npt.NDArray[np.integer]) -> Keys:
    return (sources.astype(np.int64) << 32) | targets.astype(np.int64)


def summed(places: Positions, weights: Counts | None, size: int) -> Counts:
    """The sum of the weights that fall on each of `size` places; without weights, how many fall."""
    if size == 1:
        return np.array([len(places) if weights is None else int(weights.sum())], np.int64)
    if weights is None:
        return np.bincount(places, minlength=size)
    if not len(places) or int(weights.max()) * len(places) <= _EXACT_IN_FLOAT:
        return np.bincount(places, weights=weights, minlength=size).astype(np.int64)
    found = np.zeros(size, np.int64)
    np.add.at(found, places, weights)
    return found


def spread_out(begin: Counts, counts: Counts) -> tuple[Positions, Positions]:
    """All places of spans, in order: the number of the span, and the place."""
    if len(counts) == 1:
        first, length = int(begin[0]), int(counts[0])
        return np.zeros(length, np.int64), np.arange(first, first + length, dtype=np.int64)
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    if total < _MANY:
        rows = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
        places = (begin - ends + counts).take(rows)
        places += np.arange(total, dtype=np.int64)
        return rows, places
    # The same as sums of steps: np.repeat keeps all other threads from running.
    filled = np.flatnonzero(counts)
    begin, counts, ends = begin.take(filled), counts.take(filled), ends.take(filled)
    return _stepped(filled, counts, ends, 0), _stepped(begin, counts, ends, 1)


def _stepped(first: Counts, counts: Counts, ends: Counts, step: int) -> Positions:
    """For spans one after the other: each begins with its first number and goes on in steps."""
    steps = np.full(int(ends[-1]), step, np.int64)
    steps[0] = first[0]
    steps[ends[:-1]] = np.diff(first) - step * (counts[:-1] - 1)
    return np.cumsum(steps, out=steps)


def _no_keys() -> Keys:
    return np.empty(0, np.int64)


@dataclass(frozen=True)
class Adjacency:
    """Neighbours in one direction. `multiplicity` is None when no pair has parallel edges."""

    starts: Counts
    targets: Targets
    multiplicity: npt.NDArray[np.int32] | None
    changed: Keys = field(default_factory=_no_keys)
    """Pairs whose number of edges differs from the built one, sorted, and by how many."""
    by: npt.NDArray[np.int64] = field(default_factory=_no_keys)

    @property
    def nbytes(self) -> int:
        parallel = 0 if self.multiplicity is None else self.multiplicity.nbytes
        return int(self.starts.nbytes + self.targets.nbytes + parallel + 2 * self.changed.nbytes)

    @property
    def sources(self) -> int:
        """How many sources were known when this was built; later ones have no neighbours in it."""
        return len(self.starts) - 1

    @property
    def overlay_share(self) -> float:
        return len(self.changed) / max(len(self.targets), 1)

    @cached_property
    def _overlay(self) -> tuple[Keys, Keys]:
        """Pairs that are joined now and were not, and the other way round."""
        before = self._built_counts(self.changed)
        now = before + self.by
        return self.changed[(before == 0) & (now > 0)], self.changed[(before > 0) & (now <= 0)]

    @cached_property
    def _degrees(self) -> Counts:
        return np.diff(self.starts)

    def degrees(self, size: int) -> Counts:
        """The number of neighbours of each of the first `size` positions."""
        if size == self.sources and not len(self.changed):
            return self._degrees
        found = np.zeros(size, np.int64)
        built = min(size, self.sources)
        found[:built] = self._degrees[:built]
        if len(self.changed):
            joined, parted = self._overlay
            np.add.at(found, joined >> 32, 1)
            np.subtract.at(found, parted >> 32, 1)
        return found

    def spans(self, sources: Positions) -> Spans:
        """Where the built neighbours of each source are; those an overlay has parted are among them."""
        if not len(sources) or int(sources.max()) < self.sources:
            begin = self.starts.take(sources)
            return begin, self.starts.take(sources + 1) - begin
        inside = sources < self.sources
        first = np.where(inside, sources, 0)
        return self.starts[first], np.where(inside, self.starts[first + 1] - self.starts[first], 0)

    def neighbours(
        self, sources: Positions, spans: Spans | None = None
    ) -> tuple[Positions, Positions]:
        """For each source its neighbours: the index of the source, and the neighbour."""
        rows, offsets = spread_out(*(spans or self.spans(sources)))
        targets = self.targets.take(offsets).astype(np.int64)
        return self._overlaid(sources, rows, targets) if len(self.changed) else (rows, targets)

    def sum_over_neighbours(self, weights: Counts, size: int) -> Counts:
        """For each of `size` sources the sum of its neighbours' weights."""
        most = int(weights.max(initial=0)) * len(self.targets)
        narrow = np.int32 if most <= _MOST_IN_32 else np.int64
        # Arrow's kernel takes the narrow positions as they are; numpy would widen them first.
        taken = pc.take(pa.array(weights.astype(narrow)), pa.array(self.targets), boundscheck=False)
        running = np.zeros(len(self.targets) + 1, narrow)
        np.cumsum(taken.to_numpy(), out=running[1:])
        found = np.zeros(size, np.int64)
        built = min(size, self.sources)
        at = running[self.starts[: built + 1]]
        np.subtract(at[1:], at[:-1], out=found[:built])
        if len(self.changed):
            joined, parted = self._overlay
            np.add.at(found, joined >> 32, weights[joined & 0xFFFFFFFF])
            np.subtract.at(found, parted >> 32, weights[parted & 0xFFFFFFFF])
        return found

    def has(self, sources: Positions, targets: Positions) -> npt.NDArray[np.bool_]:
        """Whether each target is a neighbour of its source."""
        keys = pair_keys(sources, targets)
        counts = self._built_counts(keys)
        if len(self.changed):
            place = np.minimum(np.searchsorted(self.changed, keys), len(self.changed) - 1)
            counts += np.where(self.changed[place] == keys, self.by[place], 0)
        return counts > 0

    def turned(self, size: int) -> Adjacency:
        """The same edges followed the other way, from `size` nodes."""
        sources = np.repeat(np.arange(self.sources, dtype=np.int64), self._degrees)
        keys = pair_keys(self.targets, sources)
        if self.multiplicity is None:
            keys.sort()
            built = _compressed(keys, None, size)
        else:
            order = np.argsort(keys)
            built = _compressed(keys[order], self.multiplicity[order], size)
        changed = _turned(self.changed)
        order = np.argsort(changed)
        return replace(built, changed=changed[order], by=self.by[order])

    def with_changes(self, added: Keys, removed: Keys) -> Adjacency:
        """The same after edges between some pairs were added and removed."""
        keys = np.concatenate([self.changed, added, removed])
        by = np.concatenate(
            [self.by, np.ones(len(added), np.int64), np.full(len(removed), -1, np.int64)]
        )
        changed, place = np.unique(keys, return_inverse=True)
        summed = np.zeros(len(changed), np.int64)
        np.add.at(summed, place, by)
        differs = summed != 0
        return replace(self, changed=changed[differs], by=summed[differs])

    def _overlaid(
        self, sources: Positions, rows: Positions, targets: Positions
    ) -> tuple[Positions, Positions]:
        joined, parted = self._overlay
        loses = is_among(parted >> 32, sources)
        if loses.any():
            met = np.flatnonzero(loses.take(rows))
            stays = np.ones(len(rows), np.bool_)
            stays[met] = ~is_among(parted, pair_keys(sources[rows[met]], targets[met]))
            rows, targets = np.compress(stays, rows), np.compress(stays, targets)
        affected = np.flatnonzero(is_among(joined >> 32, sources))
        if len(affected):
            low = np.searchsorted(joined, sources[affected] << 32)
            high = np.searchsorted(joined, (sources[affected] + 1) << 32)
            more, offsets = spread_out(low, high - low)
            rows = np.concatenate([rows, affected[more]])
            targets = np.concatenate([targets, joined[offsets] & 0xFFFFFFFF])
        return rows, targets

    def _built_counts(self, keys: Keys) -> npt.NDArray[np.int64]:
        """How many edges each pair had when this was built: a binary search in its source's row."""
        sources, targets = keys >> 32, keys & 0xFFFFFFFF
        inside = sources < self.sources
        first = np.where(inside, sources, 0)
        low = self.starts[first].copy()
        end = np.where(inside, self.starts[first + 1], low)
        high = end.copy()
        while True:
            open_ = low < high
            if not open_.any():
                break
            middle = (low + high) >> 1
            below = np.zeros(len(keys), np.bool_)
            below[open_] = self.targets[middle[open_]] < targets[open_]
            low = np.where(open_ & below, middle + 1, low)
            high = np.where(open_ & ~below, middle, high)
        found = low < end
        counts = np.zeros(len(keys), np.int64)
        hit = np.flatnonzero(found)
        hit = hit[self.targets[low[hit]] == targets[hit]]
        counts[hit] = 1 if self.multiplicity is None else self.multiplicity[low[hit]]
        return counts


def build_adjacency(sources: Positions, targets: Positions, size: int) -> Adjacency:
    """Compress pairs of positions; parallel edges become one neighbour with a count."""
    keys = np.sort(pair_keys(sources, targets))
    multiplicity = None
    if len(keys) > 1 and not np.all(keys[1:] != keys[:-1]):
        first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        multiplicity = np.diff(first, append=len(keys)).astype(np.int32)
        keys = keys[first]
    return _compressed(keys, multiplicity, size)


def _compressed(keys: Keys, multiplicity: npt.NDArray[np.int32] | None, size: int) -> Adjacency:
    """Adjacency of distinct pairs in order."""
    # One source at least: an overlay may bring edges to a type that had no node yet.
    size = max(size, 1)
    starts = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(keys >> 32, minlength=size), out=starts[1:])
    return Adjacency(starts, (keys & 0xFFFFFFFF).astype(np.int32), multiplicity)


def _turned(keys: Keys) -> Keys:
    return ((keys & 0xFFFFFFFF) << 32) | (keys >> 32)
