"""How far a search over several hops has come: one number for each pair of a start and a node.

What a hop leads to is sorted together with what was met before, and what is new remains. Each step
is one call for very many pairs, so that other threads can run meanwhile.
Tests: tests/unit/engine/test_read_kernels.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from omnigraph.engine.read.adjacency import Counts
from omnigraph.engine.read.numbering import Positions, distinct_sorted

Pairs: TypeAlias = npt.NDArray[np.uint32] | npt.NDArray[np.int64]
"""The number of a start, counted from the first of its block, above the position of a node."""


@dataclass(frozen=True, slots=True)
class Layer:
    """Nodes at one distance from `count` starts, in order. A node takes the lowest bits of a pair."""

    first: int
    count: int
    bits: int
    pairs: Pairs

    @property
    def nodes(self) -> Positions:
        return (self.pairs & ((1 << self.bits) - 1)).astype(np.int64)

    def add_counts(self, counts: Counts) -> None:
        """Add the number of nodes of each start to what was counted for it."""
        bounds = np.arange(self.count + 1, dtype=np.int64)
        found = np.diff(_begin(bounds, self.pairs, self.bits))
        counts[self.first : self.first + self.count] += found

    def write(self, starts: Positions, nodes: Positions) -> None:
        """Put the numbers of the starts and the nodes into arrays of this length."""
        np.right_shift(self.pairs, self.bits, out=starts, casting="unsafe")
        starts += self.first
        np.bitwise_and(self.pairs, (1 << self.bits) - 1, out=nodes, casting="unsafe")


@dataclass(frozen=True, slots=True)
class Frontier:
    """The outermost layer around some starts, and all pairs met before it."""

    seen: Pairs
    layer: Layer

    @classmethod
    def around(cls, starts: Positions, bits: int) -> Frontier:
        """Before the first hop: every start is at itself."""
        numbers = np.arange(len(starts), dtype=np.int64)
        pairs = _narrowed((numbers << bits) | starts, len(starts), bits)
        return cls(pairs[:0], Layer(0, len(starts), bits, pairs))

    def further(self, rows: Positions, nodes: Positions) -> Frontier:
        """One hop on: the nodes it leads to, and from which pair of the layer."""
        bits, pairs = self.layer.bits, self.layer.pairs
        seen = np.concatenate([self.seen, pairs])
        led_to = ((pairs >> bits) << bits).take(rows)
        led_to |= nodes.astype(pairs.dtype)
        # The first hop reports a start that has a self-loop, so the starts do not count as seen yet.
        excluded = seen if len(self.seen) else self.seen
        return Frontier(seen, replace(self.layer, pairs=_first_met(excluded, led_to)))

    def parts(self, weights: Counts, most: int) -> list[Frontier]:
        """The same for fewer starts at a time, whose pairs weigh little more than `most` together."""
        bits, pairs = self.layer.bits, self.layer.pairs
        running = np.cumsum(weights)
        full = np.searchsorted(running, np.arange(most, int(running[-1]), most))
        bounds = distinct_sorted(
            np.append((pairs[full] >> bits).astype(np.int64), (0, self.layer.count))
        )
        seen = self.seen.copy()
        seen.sort()
        of_seen = _begin(bounds, seen, bits).tolist()
        of_layer = _begin(bounds, pairs, bits).tolist()
        return [
            self._part(first, end, seen[slice(*span)], pairs[slice(*layer)])
            for (first, end), span, layer in zip(
                pairwise(bounds.tolist()), pairwise(of_seen), pairwise(of_layer), strict=True
            )
        ]

    def _part(self, first: int, end: int, seen: Pairs, pairs: Pairs) -> Frontier:
        count, bits = end - first, self.layer.bits
        seen, pairs = (_narrowed(kept - (first << bits), count, bits) for kept in (seen, pairs))
        return Frontier(seen, Layer(self.layer.first + first, count, bits, pairs))


def starts_and_nodes(layers: Sequence[Layer]) -> tuple[Positions, Positions]:
    """All pairs of some layers: the number of the start, and the node."""
    ends = np.cumsum([0, *(len(layer.pairs) for layer in layers)]).tolist()
    starts, nodes = np.empty(ends[-1], np.int64), np.empty(ends[-1], np.int64)
    for layer, (begin, end) in zip(layers, pairwise(ends), strict=True):
        layer.write(starts[begin:end], nodes[begin:end])
    return starts, nodes


def _begin(starts: Positions, pairs: Pairs, bits: int) -> Positions:
    """Where the pairs of each start begin among pairs in order."""
    # In a wider type than theirs, all pairs would be copied first.
    return np.searchsorted(pairs, (starts << bits).astype(pairs.dtype))


def _first_met(seen: Pairs, pairs: Pairs) -> Pairs:
    """The pairs that are not among those seen, each once and in order."""
    # The lowest bit tells them apart, and puts what was seen before its equals.
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
    """Half as wide if the pairs of `count` starts and one bit more fit: that sorts twice as fast."""
    fits = count << (bits + 1) <= 1 << 32
    return pairs.astype(np.uint32) if fits else pairs.astype(np.int64)
