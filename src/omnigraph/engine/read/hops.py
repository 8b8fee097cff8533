"""Following edges for many rows at once: single hops, bounded searches, and counting both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from omnigraph.engine.read.adjacency import Adjacency, Counts, Spans, pair_keys, spread_out, summed
from omnigraph.engine.read.budget import Meter
from omnigraph.engine.read.frontier import Frontier, Layer, starts_and_nodes
from omnigraph.engine.read.looked_up import LookedUpEdges
from omnigraph.engine.read.numbering import Mask, Positions, distinct_positions
from omnigraph.engine.read.source import GraphSource
from omnigraph.plan.ir import Direction
from omnigraph.plan.steps import Hop

_FEW: Final = 0.25
"""Share of a type's nodes up to which it is quicker to follow edges back from them."""

_SUMMED: Final = 0.2
"""What an edge takes in a sum over all of them, against following it from its source."""

_MANY: Final = 1 << 19
"""Pairs that a search follows at a time. With fewer, threads wait for each other's short steps; with
more, the system hands out fresh memory for each of them."""

_BACK: Final = {Direction.OUT: Direction.IN, Direction.IN: Direction.OUT}


class Hops:
    """Edges of one graph, followed within a budget. Only visible nodes are reached."""

    def __init__(self, source: GraphSource, meter: Meter) -> None:
        self._source = source
        self._meter = meter

    def reach(self, hop: Hop, sources: Positions) -> tuple[Positions, Positions]:
        """For each source the distinct nodes a hop leads to: the source's index, and the node.

        Within one type a node is reached at its shortest distance only; the source itself at distance
        1 if it has a self-loop, and never by a longer cycle.
        """
        if not self.is_possible(hop):
            return _nothing()
        if (hop.low, hop.high) == (1, 1) or not self._chains(hop):
            return self._single(hop, sources)
        distinct, place = distinct_positions(sources)
        starts, nodes = starts_and_nodes(list(self._search(hop, distinct)))
        if place is None:
            return starts, nodes
        return _for_each(place, starts, nodes, len(distinct))

    def counts(self, hop: Hop, sources: Positions) -> Counts:
        """How many nodes a hop leads to from each of some distinct sources."""
        if self.is_single(hop):
            adjacency = self._source.neighbours(hop, len(sources))
            spans = adjacency.spans(sources)
            nodes = self._source.nodes(hop.node_type)
            is_as_built = isinstance(adjacency, Adjacency) and not len(adjacency.changed)
            if is_as_built and nodes.is_whole and nodes.visible is None:
                return spans[1]
            rows, _ = self._follow(hop, adjacency, sources, spans)
            return summed(rows, None, len(sources))
        found = np.zeros(len(sources), np.int64)
        for layer in self._search(hop, sources):
            layer.add_counts(found)
        return found

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

    def cost_of_sums(self, hop: Hop, nodes: int, edges: int) -> float:
        """What `sums` takes for so many nodes, in edges that are followed."""
        size = self._source.nodes(hop.node_type).size
        return edges * (nodes / max(size, 1) if nodes <= _FEW * size else _SUMMED)

    def sums(self, hop: Hop, nodes: Positions, weights: Counts | None, size: int) -> Counts:
        """The sum of the weights of the nodes a single hop leads to, for each of `size` sources.

        Nodes that are not given weigh nothing. A few of them are followed back to the sources.
        """
        if len(nodes) <= _FEW * self._source.nodes(hop.node_type).size:
            back = self._source.adjacency(hop.edge, _BACK[hop.direction])
            spans = back.spans(nodes)
            self._meter.check(_total(spans[1]))
            rows, sources = back.neighbours(nodes, spans)
            return summed(sources, None if weights is None else weights[rows], size)
        everywhere = np.zeros(self._source.nodes(hop.node_type).size, np.int64)
        everywhere[nodes] = 1 if weights is None else weights
        adjacency = self._source.adjacency(hop.edge, hop.direction)
        return adjacency.sum_over_neighbours(everywhere, size)

    def joins(self, hop: Hop, sources: Positions, targets: Positions) -> Mask:
        """Whether a hop leads from each source to its target."""
        if not self.is_possible(hop):
            return np.zeros(len(sources), np.bool_)
        if self.is_single(hop):
            return self._source.neighbours(hop, len(sources)).has(sources, targets)
        starts, nodes = self.reach(hop, sources)
        found = np.sort(pair_keys(starts, nodes))
        wanted = pair_keys(np.arange(len(sources)), targets)
        place = np.minimum(np.searchsorted(found, wanted), max(len(found) - 1, 0))
        return found[place] == wanted if len(found) else np.zeros(len(sources), np.bool_)

    def _chains(self, hop: Hop) -> bool:
        return self._source.catalog.edges[hop.edge].is_self_typed

    def _single(self, hop: Hop, sources: Positions) -> tuple[Positions, Positions]:
        adjacency = self._source.neighbours(hop, len(sources))
        return self._follow(hop, adjacency, sources, adjacency.spans(sources))

    def _follow(
        self, hop: Hop, adjacency: Adjacency | LookedUpEdges, sources: Positions, spans: Spans
    ) -> tuple[Positions, Positions]:
        self._meter.check(_total(spans[1]))
        rows, nodes = adjacency.neighbours(sources, spans)
        seen = self._source.nodes(hop.node_type).keep_visible(nodes)
        if seen is None:
            return rows, nodes
        kept = np.flatnonzero(seen)
        return rows[kept], nodes[kept]

    def _search(self, hop: Hop, starts: Positions) -> Iterator[Layer]:
        """Breadth first from every start at once: the layers that a hop leads to."""
        nodes = self._source.nodes(hop.node_type)
        bits = (nodes.size - 1).bit_length() if nodes.is_whole else 32
        reached = len(starts)
        for depth, layer in self._layers(hop, 1, Frontier.around(starts, bits)):
            reached += len(layer.pairs)
            self._meter.check(reached)
            if depth >= hop.low:
                yield layer

    def _layers(self, hop: Hop, depth: int, frontier: Frontier) -> Iterator[tuple[int, Layer]]:
        """All layers from a distance on; very many pairs are followed for some starts at a time."""
        for distance in range(depth, hop.high + 1):
            nodes = frontier.layer.nodes
            adjacency = self._source.neighbours(hop, len(nodes))
            spans = adjacency.spans(nodes)
            if frontier.layer.count > 1 and _total(spans[1]) > 2 * _MANY:
                parts = frontier.parts(spans[1], _MANY)
                if len(parts) > 1:
                    for part in parts:
                        yield from self._layers(hop, distance, part)
                    return
            frontier = frontier.further(*self._follow(hop, adjacency, nodes, spans))
            if not len(frontier.layer.pairs):
                return
            yield distance, frontier.layer


def _nothing() -> tuple[Positions, Positions]:
    return np.empty(0, np.int64), np.empty(0, np.int64)


def _total(counts: Counts) -> int:
    return int(counts.sum())


def _for_each(
    place: Positions, starts: Positions, nodes: Positions, distinct: int
) -> tuple[Positions, Positions]:
    """Results per distinct start, handed to every row that started there."""
    order = np.argsort(starts, kind="stable")
    starts, nodes = starts[order], nodes[order]
    begin = np.searchsorted(starts, np.arange(distinct))
    counts = np.diff(np.append(begin, len(starts)))
    rows, offsets = spread_out(begin[place], counts[place])
    return rows, nodes[offsets]
