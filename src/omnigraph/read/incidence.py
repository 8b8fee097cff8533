"""The edges of a type at each node, every edge apart: what edge variables and weighted paths follow.

Edges have positions like nodes. Edges that were added since the edges were sorted form a short tail;
edges that were removed since stay until the next build, and are not visible.
Tests: tests/unit/engine/test_incidence.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from omnigraph.plan.ir import Direction
from omnigraph.read.adjacency import Counts, expand_spans, pair_keys
from omnigraph.read.positions import Positions

Ends = npt.NDArray[np.int32]


@dataclass(frozen=True)
class EdgeEnds:
    """The positions of both ends of each edge, by edge position; -1 for an end that no node has."""

    sources: Ends
    targets: Ends

    @property
    def size(self) -> int:
        return len(self.sources)

    @property
    def nbytes(self) -> int:
        return int(self.sources.nbytes + self.targets.nbytes)

    @cached_property
    def is_complete(self) -> bool:
        """Whether both ends of every edge are known."""
        return bool(min(self.sources.min(initial=0), self.targets.min(initial=0)) >= 0)

    def along(self, direction: Direction) -> tuple[Ends, Ends]:
        """Where each edge starts and where it leads, in a direction."""
        if direction is Direction.OUT:
            return self.sources, self.targets
        return self.targets, self.sources


@dataclass(frozen=True)
class Incidence:
    """Edges by the node at which they start in one direction.

    The first `built` edges are sorted: those of a node are `edges` from its entry in `starts` to the next.
    """

    ends: EdgeEnds
    direction: Direction
    starts: Counts
    edges: Ends
    built: int

    @property
    def nbytes(self) -> int:
        return int(self.starts.nbytes + self.edges.nbytes + self.ends.nbytes)

    @property
    def tail_share(self) -> float:
        return (self.ends.size - self.built) / max(self.built, 1)

    @cached_property
    def _tail(self) -> tuple[Positions, Positions]:
        """The start nodes of the edges behind the sorted ones, in order, and the edges."""
        near = self.ends.along(self.direction)[0][self.built :].astype(np.int64)
        order = np.argsort(near, kind="stable")
        order = order[near[order] >= 0]
        return near[order], order + self.built

    def with_ends(self, ends: EdgeEnds) -> Incidence | None:
        """The same edges and later ones; None if sorted ones have other ends."""
        old, new = self.ends.along(self.direction)[0], ends.along(self.direction)[0]
        if ends.size < self.built or not np.array_equal(old[: self.built], new[: self.built]):
            return None
        return replace(self, ends=ends)

    def far(self, edges: Positions) -> Positions:
        """The nodes that edges lead to."""
        return self.ends.along(self.direction)[1].take(edges).astype(np.int64)

    def counts(self, sources: Positions) -> Counts:
        """How many edges start at each node, removed ones included."""
        counts = self._spans(sources)[1]
        if self.ends.size > self.built:
            low, high = self._tail_spans(sources)
            counts = counts + (high - low)
        return counts

    def follow(self, sources: Positions) -> tuple[Positions, Positions]:
        """The edges that start at each node: the index of the node, and the edge."""
        rows, offsets = expand_spans(*self._spans(sources))
        edges = self.edges.take(offsets).astype(np.int64)
        if self.ends.size == self.built:
            return rows, edges
        low, high = self._tail_spans(sources)
        more, offsets = expand_spans(low, high - low)
        return np.concatenate([rows, more]), np.concatenate([edges, self._tail[1][offsets]])

    def _spans(self, sources: Positions) -> tuple[Counts, Counts]:
        size = len(self.starts) - 1
        if not len(sources) or int(sources.max()) < size:
            begin = self.starts.take(sources)
            return begin, self.starts.take(sources + 1) - begin
        inside = sources < size
        first = np.where(inside, sources, 0)
        return self.starts[first], np.where(inside, self.starts[first + 1] - self.starts[first], 0)

    def _tail_spans(self, sources: Positions) -> tuple[Positions, Positions]:
        near = self._tail[0]
        return np.searchsorted(near, sources), np.searchsorted(near, sources, side="right")


def build_incidence(ends: EdgeEnds, direction: Direction, size: int) -> Incidence:
    """Sort all edges by the node, of `size` nodes, at which they start."""
    near = ends.along(direction)[0]
    size = max(size, 1)
    keys = pair_keys(near, np.arange(len(near), dtype=np.int64))
    if not ends.is_complete:
        near = near[near >= 0]
        keys = keys[keys >= 0]
    keys.sort()
    starts = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(near, minlength=size), out=starts[1:])
    edges = (keys & 0xFFFFFFFF).astype(np.int32)
    return Incidence(ends, direction, starts, edges, ends.size)
