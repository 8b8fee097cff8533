"""Following edges for many rows at once: single hops, bounded searches, and counting both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from omnigraph.engine.read.adjacency import Adjacency, Counts, pair_keys, spread_out, summed
from omnigraph.engine.read.budget import Meter
from omnigraph.engine.read.numbering import (
    Mask,
    Positions,
    distinct_positions,
    distinct_sorted,
    is_among,
)
from omnigraph.engine.read.source import GraphSource
from omnigraph.plan.ir import Direction
from omnigraph.plan.physical.steps import Hop

_FEW: Final = 0.25
"""Share of a type's nodes up to which it is quicker to follow edges back from them."""

_LARGE: Final = 500_000
"""Pairs from which a search marks what it has seen in a table instead of sorting it."""

_CELLS: Final = 1 << 25
"""Flags of such a table. With fewer, blocks are so small that threads wait for each other's steps."""

_BACK: Final = {Direction.OUT: Direction.IN, Direction.IN: Direction.OUT}


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
        distinct, place = distinct_positions(sources)
        starts, nodes = self._search(hop, distinct)
        if place is None:
            return starts, nodes
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
        spans = adjacency.spans(sources)
        self._meter.check(_total(spans[1]))
        rows, nodes = adjacency.neighbours(sources, spans)
        seen = self._source.nodes(hop.node_type).keep_visible(nodes)
        if seen is None:
            return rows, nodes
        kept = np.flatnonzero(seen)
        return rows[kept], nodes[kept]

    def _search(self, hop: Hop, starts: Positions) -> tuple[Positions, Positions]:
        """Breadth first from every start at once; what was seen is a sorted list of pairs."""
        numbers = np.arange(len(starts), dtype=np.int64)
        seen = pair_keys(numbers, starts)
        layer = _Layer(numbers, starts)
        found: list[_Layer] = []
        for depth in range(1, hop.high + 1):
            if self._grows_large(hop, layer):
                found += self._search_blocks(hop, depth, layer, seen)
                break
            rows, nodes = self._single(hop, layer.nodes)
            keys = distinct_sorted(pair_keys(layer.starts[rows], nodes))
            keys = np.compress(~is_among(seen, keys), keys)
            if not len(keys):
                break
            layer = _Layer(keys >> 32, keys & 0xFFFFFFFF)
            if depth >= hop.low:
                found.append(layer)
            if depth < hop.high:
                seen = _merged(seen, keys)
            self._meter.check(len(seen))
        return _joined(found)

    def _grows_large(self, hop: Hop, layer: _Layer) -> bool:
        """Whether the next layer has so many pairs that sorting them would take longest."""
        if not self._source.nodes(hop.node_type).is_whole:
            return False
        adjacency = self._source.neighbours(hop, len(layer.nodes))
        return isinstance(adjacency, Adjacency) and _total(adjacency.spans(layer.nodes)[1]) > _LARGE

    def _search_blocks(
        self, hop: Hop, depth: int, layer: _Layer, seen: Positions
    ) -> Iterator[_Layer]:
        """The rest of a search, for some starts at a time: what was seen is a table of flags."""
        starts = int(layer.starts[-1]) + 1
        # A pair is the number of a flag: the start, counted within the block, before the node.
        bits = (self._source.nodes(hop.node_type).size - 1).bit_length()
        per_block = max(1, min(_CELLS >> bits, starts))
        flags = _Flags(per_block << bits)
        reached = len(seen)
        firsts = np.arange(0, starts + per_block, per_block)
        cuts = np.searchsorted(layer.starts, firsts).tolist()
        seen_cuts = np.searchsorted(seen, firsts << 32).tolist()
        for block, first in enumerate(firsts[:-1].tolist()):
            known = seen[slice(*seen_cuts[block : block + 2])]
            flags.add((((known >> 32) - first) << bits) | (known & 0xFFFFFFFF))
            place = slice(*cuts[block : block + 2])
            numbers, nodes = layer.starts[place] - first, layer.nodes[place]
            for at_depth in range(depth, hop.high + 1):
                rows, found = self._single(hop, nodes)
                fresh = flags.add((numbers << bits).take(rows) | found)
                if not len(fresh):
                    break
                reached += len(fresh)
                self._meter.check(reached)
                numbers, nodes = fresh >> bits, fresh & ((1 << bits) - 1)
                if at_depth >= hop.low:
                    yield _Layer(numbers + first, nodes)
            flags.clear()


@dataclass(frozen=True, slots=True)
class _Layer:
    """Nodes at one distance from starts: the number of the start, and the node."""

    starts: Positions
    nodes: Positions


class _Flags:
    """A set of small numbers that can be emptied at the cost of what is in it."""

    def __init__(self, size: int) -> None:
        self._present = np.zeros(size, np.bool_)
        self._added: list[Positions] = []

    def add(self, numbers: Positions) -> Positions:
        """Add numbers; gives those that were not there, each once and in order."""
        # In order they are next to each other in memory as well.
        numbers = np.sort(numbers)
        is_new = ~self._present[numbers]
        is_new[1:] &= numbers[1:] != numbers[:-1]
        fresh: Positions = np.compress(is_new, numbers)
        self._present[fresh] = True
        self._added.append(fresh)
        return fresh

    def clear(self) -> None:
        for numbers in self._added:
            self._present[numbers] = False
        self._added.clear()


def _nothing() -> tuple[Positions, Positions]:
    return np.empty(0, np.int64), np.empty(0, np.int64)


def _total(counts: Counts) -> int:
    return int(counts.sum())


def _joined(layers: list[_Layer]) -> tuple[Positions, Positions]:
    if not layers:
        return _nothing()
    if len(layers) == 1:
        return layers[0].starts, layers[0].nodes
    starts, nodes = [layer.starts for layer in layers], [layer.nodes for layer in layers]
    return np.concatenate(starts), np.concatenate(nodes)


def _merged(ordered: Positions, keys: Positions) -> Positions:
    return np.sort(np.concatenate([ordered, keys]), kind="stable")


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
