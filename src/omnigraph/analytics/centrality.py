"""Degrees, PageRank, betweenness and the sizes of neighbourhoods.

Tests: tests/unit/analytics compares all of them with networkx.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from omnigraph.analytics.network import Neighbours, Network, Numbers, Values
from omnigraph.read.adjacency import expand_spans, pair_keys, sum_by
from omnigraph.read.positions import in_sorted, sorted_distinct

Check = Callable[[int], None]
"""Called between steps with the bytes that the next one takes; raises when the budget is used up."""


def degrees(network: Network, directed: bool) -> dict[str, Numbers]:
    """The number of edges at each node, parallel ones included. A self-loop counts at both ends."""
    counts, size = network.counts, network.size
    out = sum_by(network.sources.astype(np.int64), counts, size)
    into = sum_by(network.targets.astype(np.int64), counts, size)
    if not directed:
        return {"degree": out + into}
    return {"in_degree": into, "out_degree": out, "degree": out + into}


def strengths(network: Network, directed: bool) -> dict[str, Values]:
    """The sum of the weights of the edges at each node."""
    if network.weights is None:
        return {}
    out, into = np.zeros(network.size), np.zeros(network.size)
    np.add.at(out, network.sources, network.weights)
    np.add.at(into, network.targets, network.weights)
    if not directed:
        return {"strength": out + into}
    return {"in_strength": into, "out_strength": out, "strength": out + into}


def pagerank(
    network: Network,
    *,
    directed: bool,
    damping: float,
    iterations: int,
    tolerance: float,
    check: Check,
) -> Values:
    """The PageRank of each node; all together make 1. Nodes without a way out lead everywhere.

    Stops when the ranks of all nodes together changed by less than `tolerance` times their number.
    """
    size = network.size
    if not size:
        return np.empty(0, np.float64)
    matrix = network.matrix(directed=directed)
    sums = np.asarray(matrix.sum(axis=1), np.float64)
    stuck = np.flatnonzero(sums == 0)
    shares = np.divide(1.0, sums, out=np.zeros(size), where=sums != 0)
    incoming = matrix.T.tocsr()
    del matrix
    rank = np.full(size, 1.0 / size)
    for _ in range(iterations):
        check(0)
        before = rank
        rank = incoming @ (rank * shares)
        rank *= damping
        rank += (damping * before[stuck].sum() + 1.0 - damping) / size
        if np.abs(rank - before).sum() < size * tolerance:
            break
    return rank


def betweenness(
    network: Network, *, directed: bool, samples: int, seed: int, normalized: bool, check: Check
) -> Values:
    """The share of shortest paths that lead through each node, from a sample of start nodes.

    With at least as many samples as nodes it is exact. Paths have no weights.
    """
    size = network.size
    total = np.zeros(size)
    if size < 3:
        return total
    near = network.neighbours(directed=directed)
    starts = np.arange(size)
    if samples < size:
        starts = np.sort(np.random.default_rng(seed).choice(size, samples, replace=False))
    for start in starts.tolist():
        check(0)
        total += _dependencies(near, start)
    total *= size / len(starts)
    if normalized:
        total /= (size - 1) * (size - 2)
    elif not directed:
        total /= 2
    return total


def _dependencies(near: Neighbours, start: int) -> Values:
    """How many shortest paths from one node lead through each other (Brandes 2001)."""
    paths, share = np.zeros(near.size), np.zeros(near.size)
    distance = np.full(near.size, -1, np.int32)
    paths[start], distance[start] = 1.0, 0
    frontier = np.array([start])
    levels: list[tuple[Numbers, Numbers]] = []
    while len(frontier):
        rows, offsets = expand_spans(near.starts[frontier], near.degrees_of(frontier))
        reached = near.targets[offsets].astype(np.int64)
        fresh = distance[reached] < 0
        before, reached = frontier[rows[fresh]], reached[fresh]
        np.add.at(paths, reached, paths[before])
        frontier = sorted_distinct(reached)
        distance[frontier] = len(levels) + 1
        levels.append((before, reached))
    for before, reached in reversed(levels):
        np.add.at(share, before, paths[before] / paths[reached] * (1.0 + share[reached]))
    share[start] = 0.0
    return share


MAX_REACHED: int = 4_000_000
"""Nodes that are followed at a time, for several start nodes together."""


def hop_sizes(network: Network, *, directed: bool, hops: int, check: Check) -> list[Numbers]:
    """For each distance from 1: how many nodes are that far from each node, and no nearer."""
    near = network.neighbours(directed=directed)
    found = [np.zeros(near.size, np.int64) for _ in range(hops)]
    waiting = [np.arange(near.size, dtype=np.int64)]
    while waiting:
        starts = waiting.pop()
        if len(starts) and not _count_hops(near, starts, found, check):
            middle = len(starts) // 2
            waiting += [starts[middle:], starts[:middle]]
    return found


def _count_hops(near: Neighbours, starts: Numbers, found: list[Numbers], check: Check) -> bool:
    """Count for some start nodes; False if they reach too many nodes to be counted together."""
    seen = frontier = pair_keys(np.arange(len(starts)), starts)
    counted = []
    for _ in found:
        at = frontier & 0xFFFFFFFF
        counts = near.degrees_of(at)
        many = int(counts.sum())
        if many > MAX_REACHED and len(starts) > 1:
            return False
        check(32 * many)
        rows, offsets = expand_spans(near.starts[at], counts)
        reached = sorted_distinct(pair_keys(frontier[rows] >> 32, near.targets[offsets]))
        frontier = reached[~in_sorted(seen, reached)]
        seen = np.sort(np.concatenate([seen, frontier]))
        counted.append(np.bincount(frontier >> 32, minlength=len(starts)))
    for sizes, count in zip(found, counted, strict=True):
        sizes[starts] = count
    return True
