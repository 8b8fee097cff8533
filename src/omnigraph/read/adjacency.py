"""Adjacency of an edge type in one direction, as compressed sparse rows (CSR).

Neighbours are distinct; a node with a self-loop is its own neighbour. For a later version of the edge
table, an overlay of added and removed pairs replaces a rebuild.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.read.positions import Positions, in_sorted

Keys = npt.NDArray[np.int64]
"""Pairs of positions packed into one number: source in the upper half, target in the lower."""

Targets = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int64]
Spans = tuple[Counts, Counts]
"""Where the neighbours of each source begin, and how many there are."""

MAX_REPEATED_ROWS: Final = 10_000
"""Rows up to which spans are expanded with `np.repeat`, which holds the interpreter lock."""

_MAX_EXACT_FLOAT: Final = 2**53
_MAX_INT32: Final = 2**31 - 1


def pair_keys(sources: npt.NDArray[np.integer], targets: npt.NDArray[np.integer]) -> Keys:
    return (sources.astype(np.int64) << 32) | targets.astype(np.int64)


def sum_by(groups: Positions, weights: Counts | None, size: int) -> Counts:
    """The sum of weights per group, of `size` groups; without weights, the number of rows."""
    if size == 1:
        return np.array([len(groups) if weights is None else int(weights.sum())], np.int64)
    if weights is None:
        return np.bincount(groups, minlength=size)
    if not len(groups) or int(weights.max()) * len(groups) <= _MAX_EXACT_FLOAT:
        return np.bincount(groups, weights=weights, minlength=size).astype(np.int64)
    found = np.zeros(size, np.int64)
    np.add.at(found, groups, weights)
    return found


def expand_spans(begin: Counts, counts: Counts) -> tuple[Positions, Positions]:
    """All offsets in spans, in order: the number of the span, and the offset."""
    if len(counts) == 1:
        first, length = int(begin[0]), int(counts[0])
        return np.zeros(length, np.int64), np.arange(first, first + length, dtype=np.int64)
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    if total < MAX_REPEATED_ROWS:
        rows = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
        offsets = (begin - ends + counts).take(rows)
        offsets += np.arange(total, dtype=np.int64)
        return rows, offsets
    # The same as cumulative sums, which let other threads run.
    filled = np.flatnonzero(counts)
    begin, counts, ends = begin.take(filled), counts.take(filled), ends.take(filled)
    return _ramp(filled, counts, ends, 0), _ramp(begin, counts, ends, 1)


def _ramp(first: Counts, counts: Counts, ends: Counts, step: int) -> Positions:
    """For consecutive spans: each starts at its first number and grows by `step`."""
    steps = np.full(int(ends[-1]), step, np.int64)
    steps[0] = first[0]
    steps[ends[:-1]] = np.diff(first) - step * (counts[:-1] - 1)
    return np.cumsum(steps, out=steps)


def _no_keys() -> Keys:
    return np.empty(0, np.int64)


@dataclass(frozen=True)
class Adjacency:
    """Neighbours in one direction. `multiplicity` is None if no pair has parallel edges.

    `changed` holds the sorted pairs whose edge count differs from the built one, by `deltas`.
    """

    starts: Counts
    targets: Targets
    multiplicity: npt.NDArray[np.int32] | None
    changed: Keys = field(default_factory=_no_keys)
    deltas: npt.NDArray[np.int64] = field(default_factory=_no_keys)

    @property
    def nbytes(self) -> int:
        parallel = 0 if self.multiplicity is None else self.multiplicity.nbytes
        return int(self.starts.nbytes + self.targets.nbytes + parallel + 2 * self.changed.nbytes)

    @property
    def sources(self) -> int:
        """Number of sources when this was built; later ones have neighbours only in the overlay."""
        return len(self.starts) - 1

    @property
    def overlay_share(self) -> float:
        return len(self.changed) / max(len(self.targets), 1)

    @cached_property
    def _overlay(self) -> tuple[Keys, Keys]:
        """Pairs that became connected since the build, and pairs that were disconnected."""
        before = self._built_counts(self.changed)
        now = before + self.deltas
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
            added, removed = self._overlay
            np.add.at(found, added >> 32, 1)
            np.subtract.at(found, removed >> 32, 1)
        return found

    def spans(self, sources: Positions) -> Spans:
        """Where the built neighbours of each source are, including those an overlay removes."""
        if not len(sources) or int(sources.max()) < self.sources:
            begin = self.starts.take(sources)
            return begin, self.starts.take(sources + 1) - begin
        inside = sources < self.sources
        first = np.where(inside, sources, 0)
        return self.starts[first], np.where(inside, self.starts[first + 1] - self.starts[first], 0)

    def neighbours(
        self, sources: Positions, spans: Spans | None = None
    ) -> tuple[Positions, Positions]:
        """The neighbours of each source: the index of the source, and the neighbour."""
        rows, offsets = expand_spans(*(spans or self.spans(sources)))
        targets = self.targets.take(offsets).astype(np.int64)
        return self._apply_overlay(sources, rows, targets) if len(self.changed) else (rows, targets)

    def sum_over_neighbours(self, weights: Counts, size: int) -> Counts:
        """The sum of neighbours' weights for each of `size` sources."""
        largest = int(weights.max(initial=0)) * len(self.targets)
        narrow = np.int32 if largest <= _MAX_INT32 else np.int64
        # Arrow takes 32-bit positions as they are; numpy would widen them first.
        taken = pc.take(pa.array(weights.astype(narrow)), pa.array(self.targets), boundscheck=False)
        running = np.zeros(len(self.targets) + 1, narrow)
        np.cumsum(taken.to_numpy(), out=running[1:])
        found = np.zeros(size, np.int64)
        built = min(size, self.sources)
        at = running[self.starts[: built + 1]]
        np.subtract(at[1:], at[:-1], out=found[:built])
        if len(self.changed):
            added, removed = self._overlay
            np.add.at(found, added >> 32, weights[added & 0xFFFFFFFF])
            np.subtract.at(found, removed >> 32, weights[removed & 0xFFFFFFFF])
        return found

    def has(self, sources: Positions, targets: Positions) -> npt.NDArray[np.bool_]:
        """Whether each target is a neighbour of its source."""
        keys = pair_keys(sources, targets)
        counts = self._built_counts(keys)
        if len(self.changed):
            at = np.minimum(np.searchsorted(self.changed, keys), len(self.changed) - 1)
            counts += np.where(self.changed[at] == keys, self.deltas[at], 0)
        return counts > 0

    def pairs(self) -> tuple[Positions, Positions, Counts]:
        """All connected pairs, in order of their sources, and how many edges each pair has."""
        sources = np.repeat(np.arange(self.sources, dtype=np.int64), self._degrees)
        counts = np.ones(len(sources), np.int64)
        if self.multiplicity is not None:
            counts = self.multiplicity.astype(np.int64)
        if not len(self.changed):
            return sources, self.targets.astype(np.int64), counts
        keys, inverse = np.unique(
            np.concatenate([pair_keys(sources, self.targets), self.changed]), return_inverse=True
        )
        total = np.zeros(len(keys), np.int64)
        np.add.at(total, inverse, np.concatenate([counts, self.deltas]))
        keys, counts = keys[total > 0], total[total > 0]
        return keys >> 32, keys & 0xFFFFFFFF, counts

    def reversed(self, size: int) -> Adjacency:
        """The same edges in the other direction, from `size` nodes."""
        sources = np.repeat(np.arange(self.sources, dtype=np.int64), self._degrees)
        keys = pair_keys(self.targets, sources)
        if self.multiplicity is None:
            keys.sort()
            built = _compressed(keys, None, size)
        else:
            order = np.argsort(keys)
            built = _compressed(keys[order], self.multiplicity[order], size)
        changed = ((self.changed & 0xFFFFFFFF) << 32) | (self.changed >> 32)
        order = np.argsort(changed)
        return replace(built, changed=changed[order], deltas=self.deltas[order])

    def with_changes(self, added: Keys, removed: Keys) -> Adjacency:
        """The adjacency after edges between some pairs were added and removed."""
        keys = np.concatenate([self.changed, added, removed])
        deltas = np.concatenate(
            [self.deltas, np.ones(len(added), np.int64), np.full(len(removed), -1, np.int64)]
        )
        changed, inverse = np.unique(keys, return_inverse=True)
        total = np.zeros(len(changed), np.int64)
        np.add.at(total, inverse, deltas)
        differs = total != 0
        return replace(self, changed=changed[differs], deltas=total[differs])

    def _apply_overlay(
        self, sources: Positions, rows: Positions, targets: Positions
    ) -> tuple[Positions, Positions]:
        added, removed = self._overlay
        loses = in_sorted(removed >> 32, sources)
        if loses.any():
            affected = np.flatnonzero(loses.take(rows))
            stays = np.ones(len(rows), np.bool_)
            stays[affected] = ~in_sorted(
                removed, pair_keys(sources[rows[affected]], targets[affected])
            )
            rows, targets = np.compress(stays, rows), np.compress(stays, targets)
        gains = np.flatnonzero(in_sorted(added >> 32, sources))
        if len(gains):
            low = np.searchsorted(added, sources[gains] << 32)
            high = np.searchsorted(added, (sources[gains] + 1) << 32)
            more, offsets = expand_spans(low, high - low)
            rows = np.concatenate([rows, gains[more]])
            targets = np.concatenate([targets, added[offsets] & 0xFFFFFFFF])
        return rows, targets

    def _built_counts(self, keys: Keys) -> npt.NDArray[np.int64]:
        """The edge count of each pair at build time, by binary search in its source's row."""
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
    """Build from pairs of positions; parallel edges become one neighbour with a multiplicity."""
    keys = np.sort(pair_keys(sources, targets))
    multiplicity = None
    if len(keys) > 1 and not np.all(keys[1:] != keys[:-1]):
        first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        multiplicity = np.diff(first, append=len(keys)).astype(np.int32)
        keys = keys[first]
    return _compressed(keys, multiplicity, size)


def _compressed(keys: Keys, multiplicity: npt.NDArray[np.int32] | None, size: int) -> Adjacency:
    """Adjacency of distinct, sorted pairs."""
    # At least one source: an overlay may add edges to a type that had no nodes yet.
    size = max(size, 1)
    starts = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(keys >> 32, minlength=size), out=starts[1:])
    return Adjacency(starts, (keys & 0xFFFFFFFF).astype(np.int32), multiplicity)
