"""Shortest paths for many starts at once: by number of edges or by the sum of a weight.

Equal paths are told apart by their sequences of node ids. A path is a chain of labels, each with its
parent; ids are fetched only for nodes of one search layer. Tests: tests/unit/engine/test_paths.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.read.adjacency import Keys, pair_keys
from omnigraph.read.positions import Mask, Positions, in_sorted, sorted_distinct

Costs = npt.NDArray[np.float64]

Follow = Callable[[Positions], tuple[Positions, Positions]]
"""The neighbours of nodes: the index of the node, and the neighbour. One may be found repeatedly."""

FollowWeighted = Callable[[Positions], tuple[Positions, Positions, Costs]]
"""As `Follow`, with the weight of each edge."""

Order = Callable[[Positions], Positions]
"""Numbers in the order of the ids of some nodes."""

Check = Callable[[int], None]
"""Counts rows against the budget of the query."""


@dataclass(frozen=True, slots=True)
class Labels:
    """Ends of paths. `parents` are labels of the same list, -1 at a start."""

    nodes: Positions
    parents: Positions
    lengths: Positions
    costs: Costs

    @property
    def count(self) -> int:
        return len(self.nodes)


class LabelList:
    """Labels that a search appends to."""

    def __init__(self) -> None:
        self._parts: list[Labels] = []
        self._count = 0
        self._all: Labels | None = None

    def append(
        self, nodes: Positions, parents: Positions, lengths: Positions, costs: Costs | None = None
    ) -> Positions:
        """Add labels; returns their numbers."""
        if costs is None:
            costs = np.full(len(nodes), np.nan)
        self._parts.append(Labels(nodes, parents, lengths, costs))
        first, self._count = self._count, self._count + len(nodes)
        self._all = None
        return np.arange(first, self._count, dtype=np.int64)

    @property
    def labels(self) -> Labels:
        if self._all is None:
            empty = np.empty(0, np.int64)
            parts = [Labels(empty, empty, empty, np.empty(0)), *self._parts]
            self._all = Labels(
                np.concatenate([part.nodes for part in parts]),
                np.concatenate([part.parents for part in parts]),
                np.concatenate([part.lengths for part in parts]),
                np.concatenate([part.costs for part in parts]),
            )
            self._parts = [self._all]
        return self._all

    def chains(self, ends: Positions, *, backwards: bool) -> tuple[Positions, Positions]:
        """The nodes of paths, one path after the other: where each begins, and the nodes.

        Parents lead to the start of a path, or to its end if the search ran `backwards`.
        """
        labels = self.labels
        lengths = labels.lengths[ends]
        bounds = np.zeros(len(ends) + 1, np.int64)
        np.cumsum(lengths + 1, out=bounds[1:])
        nodes = np.empty(int(bounds[-1]), np.int64)
        at = bounds[:-1].copy() if backwards else bounds[1:] - 1
        step = 1 if backwards else -1
        current = ends
        while len(current):
            nodes[at] = labels.nodes[current]
            parents = labels.parents[current]
            on = parents >= 0
            current, at = parents[on], at[on] + step
        return bounds, nodes


class PathStore(Protocol):
    """The paths of a path variable, whose positions are labels; -1 is no path."""

    def values(self, part: str, labels: Positions) -> pa.Array:
        """`length`, `cost`, `nodes` or `edges` of paths."""
        ...


@dataclass(frozen=True, slots=True)
class Frontier:
    """The labels that a search goes on from. `ranks` order those of one start."""

    starts: Positions
    nodes: Positions
    labels: Positions
    ranks: Positions
    costs: Costs

    @classmethod
    def around(cls, nodes: Positions, found: LabelList) -> Frontier:
        none = np.zeros(len(nodes), np.int64)
        costs = np.zeros(len(nodes))
        labels = found.append(nodes, none - 1, none, costs)
        return cls(np.arange(len(nodes), dtype=np.int64), nodes, labels, none, costs)

    def where(self, mask: Mask) -> Frontier:
        return Frontier(
            self.starts[mask],
            self.nodes[mask],
            self.labels[mask],
            self.ranks[mask],
            self.costs[mask],
        )


def _ranked(
    frontier: Frontier, parent_ranks: Positions, order: Order, *, backwards: bool
) -> Frontier:
    """With the order of the paths: by those of the parents, then by the id of the node.

    A path that was searched backwards begins with its newest node.
    """
    ids = order(frontier.nodes)
    if backwards:
        return replace(frontier, ranks=ids)
    keys = (ids, parent_ranks, frontier.starts)
    ranks = np.empty(len(ids), np.int64)
    ranks[np.lexsort(keys)] = np.arange(len(ids))
    return replace(frontier, ranks=ranks)


def first_of_each(keys: Keys, *ranks: npt.NDArray[np.generic]) -> Positions:
    """The row of each distinct key, in key order, with the least rank."""
    order = np.lexsort((*reversed(ranks), keys))
    ordered = keys[order]
    first = np.ones(len(order), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return order[first]


# -- by number of edges -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ends:
    """Ends of shortest paths: the index of the start, the node, and the label."""

    starts: Positions
    nodes: Positions
    labels: Positions


def fewest_edges(
    follow: Follow,
    order: Order,
    check: Check,
    starts: Positions,
    bounds: tuple[int, int],
    found: LabelList,
    *,
    backwards: bool = False,
    spelled: bool = True,
) -> Iterator[Ends]:
    """All nodes whose shortest distance from a start is within bounds, layer by layer.

    A start is never its own end. Unless paths are `spelled`, any of equal paths may be found.
    """
    low, high = bounds
    frontier = Frontier.around(starts, found)
    seen = pair_keys(frontier.starts, frontier.nodes)
    for depth in range(1, high + 1):
        rows, nodes = follow(frontier.nodes)
        check(len(seen) + len(rows))
        keys = pair_keys(frontier.starts[rows], nodes)
        fresh = np.flatnonzero(~in_sorted(seen, keys))
        rows, nodes, keys = rows[fresh], nodes[fresh], keys[fresh]
        if not len(keys):
            return
        first = first_of_each(keys, frontier.ranks[rows])
        rows, nodes, keys = rows[first], nodes[first], keys[first]
        length = np.full(len(rows), depth, np.int64)
        labels = found.append(nodes, frontier.labels[rows], length)
        parents = frontier.ranks[rows]
        frontier = Frontier(frontier.starts[rows], nodes, labels, parents, np.zeros(len(rows)))
        if depth >= low:
            yield Ends(frontier.starts, nodes, labels)
        if depth < high:
            if spelled:
                frontier = _ranked(frontier, parents, order, backwards=backwards)
            seen = np.sort(np.concatenate([seen, keys]))


class Meeting:
    """Fewest edges between pairs of nodes, searched from both sides until the sides meet."""

    def __init__(
        self,
        out: Follow,
        back: Follow,
        order: Order,
        check: Check,
        ends: tuple[Positions, Positions],
        bounds: tuple[int, int],
        *,
        spelled: bool = True,
    ) -> None:
        """`ends` are the starts and the ends of distinct pairs. Not `spelled`, paths only have lengths."""
        self._follow = (out, back)
        self._order = order
        self._check = check
        self._ends = ends
        self._low, self._high = bounds
        self._spelled = spelled

    def run(self, found: LabelList) -> tuple[Positions, Positions]:
        """The pairs that are joined within the bounds, and the labels of their paths."""
        pairs, labels = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        numbers = np.flatnonzero(self._ends[0] != self._ends[1])
        sides = [_Side([pair_keys(numbers, end[numbers])]) for end in self._ends]
        while all(len(side.last) for side in sides):
            distance = sum(side.depth for side in sides) + 1
            if distance > self._high:
                break
            near = 0 if len(sides[0].last) <= len(sides[1].last) else 1
            self._advance(sides[near], near)
            met = sides[near].last[in_sorted(sides[1 - near].last, sides[near].last)]
            if len(met):
                done = sorted_distinct(met >> 32)
                if distance >= self._low:
                    pairs.append(done)
                    if self._spelled:
                        labels.append(self._spell(done, met, sides, found))
                    else:
                        none = np.zeros(len(done), np.int64)
                        labels.append(found.append(self._ends[1][done], none - 1, none + distance))
                sides = [side.without(done) for side in sides]
            # A pair with an exhausted side has no path.
            alive = [sorted_distinct(side.last >> 32) for side in sides]
            sides = [side.only(other) for side, other in zip(sides, reversed(alive), strict=True)]
        return np.concatenate(pairs), np.concatenate(labels)

    def _advance(self, side: _Side, direction: int) -> None:
        rows, nodes = self._follow[direction](side.last & 0xFFFFFFFF)
        self._check(len(side.seen) + len(rows))
        keys = sorted_distinct(pair_keys(side.last[rows] >> 32, nodes))
        side.advance(keys[~in_sorted(side.seen, keys)])

    def _spell(
        self, pairs: Positions, met: Keys, sides: list[_Side], found: LabelList
    ) -> Positions:
        """The first path, by node ids, of each of some pairs."""
        out, back = self._follow
        kept = [met]
        for layer in reversed(sides[0].layers[:-1]):
            # Nodes that lead to a meeting in the fewest edges.
            rows, nodes = back(kept[0] & 0xFFFFFFFF)
            keys = sorted_distinct(pair_keys(kept[0][rows] >> 32, nodes))
            kept.insert(0, layer[in_sorted(keys, layer)])
        current = self._ends[0][pairs]
        none = np.zeros(len(pairs), np.int64)
        labels = found.append(current, none - 1, none)
        for length, layer in enumerate((*kept[1:], *reversed(sides[1].layers[:-1])), 1):
            rows, nodes = out(current)
            keys = pair_keys(pairs[rows], nodes)
            allowed = in_sorted(layer, keys)
            rows, nodes = rows[allowed], nodes[allowed]
            first = first_of_each(rows, self._order(nodes))
            current = nodes[first]
            labels = found.append(current, labels, none + length)
        return labels


class _Side:
    """The layers around one end of every pair, as sorted keys of a pair and a node."""

    def __init__(self, layers: list[Keys], seen: Keys | None = None) -> None:
        self.layers = layers
        self.seen = layers[0] if seen is None else seen

    @property
    def last(self) -> Keys:
        return self.layers[-1]

    @property
    def depth(self) -> int:
        return len(self.layers) - 1

    def advance(self, keys: Keys) -> None:
        self.layers.append(keys)
        self.seen = np.sort(np.concatenate([self.seen, keys]))

    def without(self, pairs: Positions) -> _Side:
        return self._where(lambda keys: ~in_sorted(pairs, keys >> 32))

    def only(self, pairs: Positions) -> _Side:
        if len(pairs) and pairs[-1] - pairs[0] + 1 == len(pairs):
            keys = self.last
            if not len(keys) or pairs[0] <= keys[0] >> 32 <= keys[-1] >> 32 <= pairs[-1]:
                return self
        return self._where(lambda keys: in_sorted(pairs, keys >> 32))

    def _where(self, kept: Callable[[Keys], Mask]) -> _Side:
        return _Side([keys[kept(keys)] for keys in self.layers], self.seen[kept(self.seen)])


# -- by the sum of a weight ---------------------------------------------------------------------


def least_cost(
    follow: FollowWeighted,
    order: Order,
    check: Check,
    starts: Positions,
    high: int,
    found: LabelList,
    *,
    targets: Positions | None = None,
    backwards: bool = False,
) -> Ends:
    """The cheapest paths of up to `high` edges from each start to every node, or to its target.

    Labels are corrected by number of edges: round n goes on from the nodes that a path of n edges
    improved. Weights must not be negative; edges without one are not given.
    """
    frontier = Frontier.around(starts, found)
    known = np.empty(0, np.int64)
    costs, labels = np.empty(0), np.empty(0, np.int64)
    limits = np.full(len(starts), np.inf)
    for length in range(1, high + 1):
        rows, nodes, weights = follow(frontier.nodes)
        check(len(known) + len(rows))
        owners = frontier.starts[rows]
        sums = frontier.costs[rows] + weights
        usable = (nodes != starts[owners]) & (sums < limits[owners])
        rows, nodes, sums, owners = rows[usable], nodes[usable], sums[usable], owners[usable]
        keys = pair_keys(owners, nodes)
        first = first_of_each(keys, sums, frontier.ranks[rows])
        rows, nodes, sums, keys = rows[first], nodes[first], sums[first], keys[first]
        at = np.searchsorted(known, keys)
        there = in_sorted(known, keys)
        better = ~there
        better[there] = sums[there] < costs[at[there]]
        if not better.any():
            break
        rows, nodes, sums, keys = rows[better], nodes[better], sums[better], keys[better]
        lengths = np.full(len(rows), length, np.int64)
        fresh = found.append(nodes, frontier.labels[rows], lengths, sums)
        parents = frontier.ranks[rows]
        frontier = Frontier(frontier.starts[rows], nodes, fresh, parents, sums)
        replaced = there[better]
        costs[at[better][replaced]] = sums[replaced]
        labels[at[better][replaced]] = fresh[replaced]
        place = np.searchsorted(known, keys[~replaced])
        known = np.insert(known, place, keys[~replaced])
        costs = np.insert(costs, place, sums[~replaced])
        labels = np.insert(labels, place, fresh[~replaced])
        if targets is not None:
            reached = frontier.nodes == targets[frontier.starts]
            limits[frontier.starts[reached]] = sums[reached]
            going_on = ~reached & (frontier.costs < limits[frontier.starts])
            frontier = frontier.where(going_on)
        if length < high:
            ranks = frontier.ranks
            frontier = _ranked(frontier, ranks, order, backwards=backwards)
    owners, nodes = known >> 32, known & 0xFFFFFFFF
    if targets is not None:
        at_target = nodes == targets[owners]
        owners, nodes, labels = owners[at_target], nodes[at_target], labels[at_target]
    return Ends(owners, nodes, labels)
