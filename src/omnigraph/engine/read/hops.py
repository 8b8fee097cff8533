"""Following edges for many rows at once: single hops, bounded searches, and counting both."""

from __future__ import annotations

import numpy as np

from omnigraph.engine.read.adjacency import Counts, pair_keys
from omnigraph.engine.read.budget import Meter
from omnigraph.engine.read.numbering import Mask, Positions
from omnigraph.engine.read.source import GraphSource
from omnigraph.plan.physical.steps import Hop


class Hops:
    """Edges of one graph, followed within a budget. Only visible nodes are reached."""

    def __init__(self, source: GraphSource, meter: Meter) -> None:
        self._source = source
        self._meter = meter

    def reach(self, hop: Hop, sources: Positions) -> tuple[Positions, Positions]:
        """For each source the distinct nodes a hop leads to: the source's index, and the node.

        Within one type a node is reached at its shortest distance only, and never from itself.
        """
        if not self.is_possible(hop):
            return _nothing()
        if (hop.low, hop.high) == (1, 1) or not self._chains(hop):
            return self._single(hop, sources)
        distinct, place = np.unique(sources, return_inverse=True)
        starts, nodes = self._search(hop, distinct)
        return _for_each(place, starts, nodes, len(distinct))

    def is_possible(self, hop: Hop) -> bool:
        """Edges between different types cannot be chained."""
        return hop.low <= 1 or self._chains(hop)

    def is_single(self, hop: Hop) -> bool:
        return hop.low <= 1 and (hop.high == 1 or not self._chains(hop))

    def degrees(self, hop: Hop, size: int) -> Counts:
        """How many visible nodes a single hop leads to, for each of `size` sources."""
        adjacency = self._source.adjacency(hop.edge, hop.direction)
        visible = self._source.nodes(hop.node_type).visible
        if visible is None:
            return adjacency.degrees(size)
        return adjacency.sum_over_neighbours(visible.astype(np.int64), size)

    def sums(self, hop: Hop, weights: Counts, size: int) -> Counts:
        """The sum of the weights of the nodes a single hop leads to, for each of `size` sources."""
        return self._source.adjacency(hop.edge, hop.direction).sum_over_neighbours(weights, size)

    def joins(self, hop: Hop, sources: Positions, targets: Positions) -> Mask:
        """Whether a hop leads from each source to its target."""
        if not self.is_possible(hop):
            return np.zeros(len(sources), np.bool_)
        if self.is_single(hop):
            return self._source.adjacency(hop.edge, hop.direction).has(sources, targets)
        starts, nodes = self.reach(hop, sources)
        found = np.sort(pair_keys(starts, nodes))
        wanted = pair_keys(np.arange(len(sources)), targets)
        place = np.minimum(np.searchsorted(found, wanted), max(len(found) - 1, 0))
        return found[place] == wanted if len(found) else np.zeros(len(sources), np.bool_)

    def _chains(self, hop: Hop) -> bool:
        return self._source.catalog.edges[hop.edge].is_self_typed

    def _single(self, hop: Hop, sources: Positions) -> tuple[Positions, Positions]:
        adjacency = self._source.adjacency(hop.edge, hop.direction)
        self._meter.check(_total(adjacency.degrees_of(sources)))
        rows, nodes = adjacency.neighbours(sources)
        seen = self._source.nodes(hop.node_type).keep_visible(nodes)
        return (rows, nodes) if seen is None else (rows[seen], nodes[seen])

    def _search(self, hop: Hop, starts: Positions) -> tuple[Positions, Positions]:
        """Breadth first from every start at once; what was seen is a sorted list of pairs."""
        numbers = np.arange(len(starts), dtype=np.int64)
        seen = np.sort(pair_keys(numbers, starts))
        at, nodes = numbers, starts
        found: list[tuple[Positions, Positions]] = []
        for depth in range(1, hop.high + 1):
            rows, nodes = self._single(hop, nodes)
            keys = np.unique(pair_keys(at[rows], nodes))
            keys = keys[~_contains(seen, keys)]
            if not len(keys):
                break
            at, nodes = keys >> 32, keys & 0xFFFFFFFF
            if depth >= hop.low:
                found.append((at, nodes))
            seen = _merged(seen, keys)
            self._meter.check(len(seen))
        if not found:
            return _nothing()
        return (
            np.concatenate([rows for rows, _ in found]),
            np.concatenate([nodes for _, nodes in found]),
        )


def _nothing() -> tuple[Positions, Positions]:
    return np.empty(0, np.int64), np.empty(0, np.int64)


def _total(counts: Counts) -> int:
    return int(counts.sum())


def _contains(ordered: Positions, keys: Positions) -> Mask:
    if not len(ordered):
        return np.zeros(len(keys), np.bool_)
    place = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
    return np.asarray(ordered[place] == keys, np.bool_)


def _merged(ordered: Positions, keys: Positions) -> Positions:
    return np.sort(np.concatenate([ordered, keys]), kind="stable")


def _for_each(
    place: Positions, starts: Positions, nodes: Positions, distinct: int
) -> tuple[Positions, Positions]:
    """Results per distinct start, handed to every row that started there."""
    order = np.argsort(starts, kind="stable")
    starts, nodes = starts[order], nodes[order]
    begin = np.searchsorted(starts, np.arange(distinct))
    counts = np.diff(np.append(begin, len(starts)))[place]
    rows = np.repeat(np.arange(len(place), dtype=np.int64), counts)
    offsets = np.arange(int(counts.sum()), dtype=np.int64)
    offsets += np.repeat(begin[place] - (np.cumsum(counts) - counts), counts)
    return rows, nodes[offsets]
