"""Following edges for many rows at once: single hops, bounded breadth-first search, and counting.

A search keeps one number per pair of a start and a node. What a hop reaches is sorted together with the
pairs seen before, and the unseen ones remain. Each step is one numpy call over very many pairs, so that
other threads can run meanwhile. Tests: tests/unit/engine/test_read_kernels.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from omnigraph.plan.ir import Direction, Member
from omnigraph.plan.steps import Hop
from omnigraph.read.adjacency import (
    Adjacency,
    Counts,
    Spans,
    expand_spans,
    pair_keys,
    sum_by,
)
from omnigraph.read.budget import Meter
from omnigraph.read.edge_rows import MEMBER_BITS
from omnigraph.read.joined import Neighbours, distinct_pairs
from omnigraph.read.positions import (
    Mask,
    Positions,
    distinct_positions,
    in_sorted,
    sorted_distinct,
)
from omnigraph.read.source import GraphSource

MAX_REVERSE_NODE_SHARE: Final = 0.25
"""Share of a type's nodes up to which following edges back from them is faster."""

SUMMED_EDGE_COST: Final = 0.2
"""Cost of an edge in a sum over all edges, relative to following it from its source."""

PAIRS_PER_BLOCK: Final = 1 << 19
"""Pairs that a search follows at a time. With fewer, threads contend over short steps; with more, the
allocator returns fresh pages for each array."""


class Expander:
    """Follows edges of one graph within a budget. Only visible nodes are reached."""

    def __init__(self, source: GraphSource, meter: Meter) -> None:
        self._source = source
        self._meter = meter

    def reach(self, hop: Hop, sources: Positions) -> tuple[Positions, Positions]:
        """The distinct nodes a hop reaches from each source: the source's index, and the node.

        Within one type a node is reached at its shortest distance only; the source itself at distance
        1 if it has a self-loop, and never by a longer cycle.
        """
        if not self.is_possible(hop):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        if hop.is_single:
            return self._single(hop, sources)
        distinct, inverse = distinct_positions(sources)
        starts, nodes = starts_and_nodes(list(self._search(hop, distinct)))
        if inverse is None:
            return starts, nodes
        return repeat_per_row(inverse, starts, nodes, len(distinct))

    def counts(self, hop: Hop, sources: Positions) -> Counts:
        """The number of nodes a hop reaches from each of some distinct sources, or of edges."""
        if hop.edges_apart:
            return self._edge_counts(hop, sources)
        if hop.is_single:
            adjacency = self._source.neighbours(hop, len(sources))
            spans = adjacency.spans(sources)
            nodes = self._source.nodes(hop.node_type)
            is_as_built = isinstance(adjacency, Adjacency) and not len(adjacency.changed)
            if is_as_built and nodes.is_whole and nodes.visible is None:
                return spans[1]
            rows, reached = self._follow(hop, adjacency, sources, spans)
            if hop.only is None:
                rows, _ = distinct_pairs(rows, reached)
            return sum_by(rows, None, len(sources))
        found = np.zeros(len(sources), np.int64)
        for layer in self._search(hop, sources):
            layer.add_counts(found)
        return found

    def is_possible(self, hop: Hop) -> bool:
        """Whether the edge can be chained as often as the hop demands."""
        return hop.low <= 1 or hop.chains

    def degrees(self, hop: Hop, size: int) -> Counts:
        """The number of visible nodes a single hop reaches from each of `size` sources."""
        return self._source.degrees(*_only(hop), size)

    def sum_cost(self, hop: Hop, nodes: int, edges: int) -> float:
        """The cost of `sums` over some nodes, in followed edges."""
        size = self._source.nodes(hop.node_type).size
        return edges * (
            nodes / max(size, 1) if nodes <= MAX_REVERSE_NODE_SHARE * size else SUMMED_EDGE_COST
        )

    def sums(self, hop: Hop, nodes: Positions, weights: Counts | None, size: int) -> Counts:
        """The sum of the weights of the nodes a single hop reaches, for each of `size` sources.

        Other nodes weigh nothing. Few nodes are followed back to the sources.
        """
        edge, direction = _only(hop)
        if len(nodes) <= MAX_REVERSE_NODE_SHARE * self._source.nodes(hop.node_type).size:
            back = self._source.adjacency(edge, direction.reversed)
            spans = back.spans(nodes)
            self._meter.check(int(spans[1].sum()))
            rows, sources = back.neighbours(nodes, spans)
            return sum_by(sources, None if weights is None else weights[rows], size)
        all_weights = np.zeros(self._source.nodes(hop.node_type).size, np.int64)
        all_weights[nodes] = 1 if weights is None else weights
        adjacency = self._source.adjacency(edge, direction)
        return adjacency.sum_over_neighbours(all_weights, size)

    def connects(self, hop: Hop, sources: Positions, targets: Positions) -> Mask:
        """Whether a hop leads from each source to its target."""
        if not self.is_possible(hop):
            return np.zeros(len(sources), np.bool_)
        if hop.is_single:
            return self._source.neighbours(hop, len(sources)).has(sources, targets)
        starts, nodes = self.reach(hop, sources)
        found = np.sort(pair_keys(starts, nodes))
        return in_sorted(found, pair_keys(np.arange(len(sources)), targets))

    # -- edges apart ------------------------------------------------------------------------

    def edges(self, hop: Hop, sources: Positions) -> tuple[Positions, Positions, Positions]:
        """The visible edges of a hop: the index of the source, the edge, and the node it leads to.

        An edge that joins a node with itself is found once.
        """
        found = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        names = hop.edge_types
        for edge, direction in hop.members:
            visible = self._source.edges(edge)
            at_nodes = visible.at_nodes(direction)
            self._meter.check(int(at_nodes.counts(sources).sum()), 24)
            rows, edges = at_nodes.follow(sources)
            seen = visible.visible_mask(edges)
            if seen is not None:
                rows, edges = rows[seen], edges[seen]
            nodes = at_nodes.far(edges)
            if direction is Direction.IN and (edge, Direction.OUT) in hop.members:
                kept = nodes != sources[rows]
                rows, edges, nodes = rows[kept], edges[kept], nodes[kept]
            number = names.index(edge)
            for parts, part in zip(
                found, (rows, edges | number << MEMBER_BITS, nodes), strict=True
            ):
                parts.append(part)
        rows, edges, nodes = (np.concatenate(parts) for parts in found)
        return rows, edges, nodes

    def ends_of(self, hop: Hop, edges: Positions) -> tuple[Positions, Positions, Positions]:
        """Both ends of some edges of a hop, once per direction: start, edge and node led to."""
        found = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        numbers = edges >> MEMBER_BITS
        for edge, direction in hop.members:
            number = hop.edge_types.index(edge)
            own = edges if len(hop.edge_types) == 1 else edges[numbers == number]
            ends = self._source.edges(edge).ends(own - (number << MEMBER_BITS))
            near, far = ends if direction is Direction.OUT else ends[::-1]
            if direction is Direction.IN and (edge, Direction.OUT) in hop.members:
                kept = near != far
                near, own, far = near[kept], own[kept], far[kept]
            for parts, part in zip(found, (near, own, far), strict=True):
                parts.append(part)
        near, edges, far = (np.concatenate(parts) for parts in found)
        return near, edges, far

    def _edge_counts(self, hop: Hop, sources: Positions) -> Counts:
        """The number of visible edges of a hop at each source."""
        if hop.only is not None:
            edge, direction = hop.only
            rows = self._source.edges(edge)
            if rows.is_whole and rows.visible is None:
                return rows.at_nodes(direction).counts(sources)
        return sum_by(self.edges(hop, sources)[0], None, len(sources))

    def step(self, hop: Hop, sources: Positions) -> tuple[Positions, Positions]:
        """The nodes that one edge of a hop leads to, some of them repeatedly: source index and node."""
        adjacency = self._source.neighbours(hop, len(sources))
        return self._follow(hop, adjacency, sources, adjacency.spans(sources))

    # -- single hops ------------------------------------------------------------------------

    def _single(self, hop: Hop, sources: Positions) -> tuple[Positions, Positions]:
        found = self.step(hop, sources)
        return found if hop.only is not None else distinct_pairs(*found)

    def _follow(
        self, hop: Hop, adjacency: Neighbours, sources: Positions, spans: Spans
    ) -> tuple[Positions, Positions]:
        self._meter.check(int(spans[1].sum()))
        rows, nodes = adjacency.neighbours(sources, spans)
        seen = self._source.nodes(hop.node_type).visible_mask(nodes)
        if seen is None:
            return rows, nodes
        kept = np.flatnonzero(seen)
        return rows[kept], nodes[kept]

    def _search(self, hop: Hop, starts: Positions) -> Iterator[Layer]:
        """Breadth-first search from all starts at once: the layers that a hop reaches."""
        nodes = self._source.nodes(hop.node_type)
        bits = (nodes.size - 1).bit_length() if nodes.is_whole else 32
        reached = len(starts)
        for depth, layer in self._layers(hop, 1, Frontier.around(starts, bits)):
            reached += len(layer.pairs)
            self._meter.check(reached)
            if depth >= hop.low:
                yield layer

    def _layers(self, hop: Hop, depth: int, frontier: Frontier) -> Iterator[tuple[int, Layer]]:
        """All layers from a distance on; many pairs are followed in blocks of starts."""
        for distance in range(depth, hop.high + 1):
            nodes = frontier.layer.nodes
            adjacency = self._source.neighbours(hop, len(nodes))
            spans = adjacency.spans(nodes)
            if frontier.layer.count > 1 and int(spans[1].sum()) > 2 * PAIRS_PER_BLOCK:
                blocks = frontier.split(spans[1], PAIRS_PER_BLOCK)
                if len(blocks) > 1:
                    for block in blocks:
                        yield from self._layers(hop, distance, block)
                    return
            frontier = frontier.advance(*self._follow(hop, adjacency, nodes, spans))
            if not len(frontier.layer.pairs):
                return
            yield distance, frontier.layer


def _only(hop: Hop) -> Member:
    assert hop.only is not None, "degrees are those of one edge type in one direction"
    return hop.only


def repeat_per_row(
    inverse: Positions, starts: Positions, nodes: Positions, distinct: int
) -> tuple[Positions, Positions]:
    """Results per distinct start, repeated for every row that starts there."""
    order = np.argsort(starts, kind="stable")
    starts, nodes = starts[order], nodes[order]
    begin = np.searchsorted(starts, np.arange(distinct))
    counts = np.diff(np.append(begin, len(starts)))
    rows, offsets = expand_spans(begin[inverse], counts[inverse])
    return rows, nodes[offsets]


# -- breadth-first search ----------------------------------------------------------------------

Pairs: TypeAlias = npt.NDArray[np.uint32] | npt.NDArray[np.int64]
"""A start, numbered from the first of its block, in the bits above the position of a node."""


@dataclass(frozen=True, slots=True)
class Layer:
    """Nodes at one distance from `count` starts, sorted. A node takes the lowest `bits` of a pair."""

    first: int
    count: int
    bits: int
    pairs: Pairs

    @property
    def nodes(self) -> Positions:
        return (self.pairs & ((1 << self.bits) - 1)).astype(np.int64)

    def add_counts(self, counts: Counts) -> None:
        """Add the number of nodes of each start to its count."""
        bounds = np.arange(self.count + 1, dtype=np.int64)
        found = np.diff(_begin(bounds, self.pairs, self.bits))
        counts[self.first : self.first + self.count] += found

    def write(self, starts: Positions, nodes: Positions) -> None:
        """Write start numbers and nodes into arrays of the layer's length."""
        np.right_shift(self.pairs, self.bits, out=starts, casting="unsafe")
        starts += self.first
        np.bitwise_and(self.pairs, (1 << self.bits) - 1, out=nodes, casting="unsafe")


@dataclass(frozen=True, slots=True)
class Frontier:
    """The outermost layer around some starts, and all pairs seen before it."""

    seen: Pairs
    layer: Layer

    @classmethod
    def around(cls, starts: Positions, bits: int) -> Frontier:
        """Before the first hop: every start at itself."""
        numbers = np.arange(len(starts), dtype=np.int64)
        pairs = _narrowed((numbers << bits) | starts, len(starts), bits)
        return cls(pairs[:0], Layer(0, len(starts), bits, pairs))

    def advance(self, rows: Positions, nodes: Positions) -> Frontier:
        """One hop further: `nodes` are reached from the pairs `rows` of the layer."""
        bits, pairs = self.layer.bits, self.layer.pairs
        seen = np.concatenate([self.seen, pairs])
        reached = ((pairs >> bits) << bits).take(rows)
        reached |= nodes.astype(pairs.dtype)
        # The first hop reports a start with a self-loop, so starts do not count as seen yet.
        excluded = seen if len(self.seen) else self.seen
        return Frontier(seen, replace(self.layer, pairs=_unseen(excluded, reached)))

    def split(self, weights: Counts, max_weight: int) -> list[Frontier]:
        """Frontiers of fewer starts, whose pairs weigh little more than `max_weight` each."""
        bits, pairs = self.layer.bits, self.layer.pairs
        running = np.cumsum(weights)
        full = np.searchsorted(running, np.arange(max_weight, int(running[-1]), max_weight))
        bounds = sorted_distinct(
            np.append((pairs[full] >> bits).astype(np.int64), (0, self.layer.count))
        )
        seen = self.seen.copy()
        seen.sort()
        of_seen = _begin(bounds, seen, bits).tolist()
        of_layer = _begin(bounds, pairs, bits).tolist()
        return [
            self._block(first, end, seen[slice(*span)], pairs[slice(*layer)])
            for (first, end), span, layer in zip(
                pairwise(bounds.tolist()), pairwise(of_seen), pairwise(of_layer), strict=True
            )
        ]

    def _block(self, first: int, end: int, seen: Pairs, pairs: Pairs) -> Frontier:
        count, bits = end - first, self.layer.bits
        seen, pairs = (_narrowed(kept - (first << bits), count, bits) for kept in (seen, pairs))
        return Frontier(seen, Layer(self.layer.first + first, count, bits, pairs))


def starts_and_nodes(layers: Sequence[Layer]) -> tuple[Positions, Positions]:
    """All pairs of some layers: start numbers and nodes."""
    ends = np.cumsum([0, *(len(layer.pairs) for layer in layers)]).tolist()
    starts, nodes = np.empty(ends[-1], np.int64), np.empty(ends[-1], np.int64)
    for layer, (begin, end) in zip(layers, pairwise(ends), strict=True):
        layer.write(starts[begin:end], nodes[begin:end])
    return starts, nodes


def _begin(starts: Positions, pairs: Pairs, bits: int) -> Positions:
    """Where the pairs of each start begin among sorted pairs."""
    # A wider type would make numpy copy all pairs first.
    return np.searchsorted(pairs, (starts << bits).astype(pairs.dtype))


def _unseen(seen: Pairs, pairs: Pairs) -> Pairs:
    """The distinct pairs that are not among those seen, sorted."""
    # The lowest bit marks unseen pairs and sorts seen ones before their equals.
    both = np.concatenate([seen, pairs])
    both <<= 1
    both[len(seen) :] |= 1
    both.sort()
    is_new = (both & 1).astype(np.bool_)
    both >>= 1
    is_new[1:] &= both[1:] != both[:-1]
    fresh: Pairs = np.compress(is_new, both)
    return fresh


def _narrowed(pairs: npt.NDArray[np.integer], count: int, bits: int) -> Pairs:
    """As 32-bit numbers if the pairs of `count` starts and one more bit fit: they sort twice as fast."""
    fits = count << (bits + 1) <= 1 << 32
    return pairs.astype(np.uint32) if fits else pairs.astype(np.int64)
