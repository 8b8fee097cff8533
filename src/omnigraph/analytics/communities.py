"""Components, communities, triangles and cores.

Tests: tests/unit/analytics compares all of them with networkx or a plain implementation.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omnigraph.analytics.centrality import Check
from omnigraph.analytics.network import Neighbours, Network, Numbers, Values
from omnigraph.read.adjacency import expand_spans, pair_keys
from omnigraph.read.positions import in_sorted, sorted_distinct


def numbered_by_size(labels: npt.NDArray[np.integer]) -> Numbers:
    """Groups numbered from 0, the largest first; of equal ones that with the first node."""
    _, first, inverse, sizes = np.unique(
        labels, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.lexsort((first, -sizes))
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.arange(len(order))
    return numbers[inverse]


def components(network: Network, *, directed: bool) -> Numbers:
    """The connected component of each node; with a direction the strongly connected one."""
    from scipy.sparse.csgraph import connected_components

    if not network.size:
        return np.empty(0, np.int64)
    matrix = network.matrix(directed=True)
    # An edge of weight 0 connects too.
    matrix.data = np.ones(len(matrix.data), np.float64)
    kind = "strong" if directed else "weak"
    _, labels = connected_components(matrix, directed=True, connection=kind)
    return numbered_by_size(labels)


def label_propagation(
    network: Network, *, directed: bool, iterations: int, seed: int, check: Check
) -> Numbers:
    """Communities: every node has the label that is the most frequent among its neighbours.

    In each round about half of the nodes whose neighbours prefer another label take it, chosen by a hash
    of node, round and seed: if all took it at once, labels would swap places for ever. A tie between labels
    is broken by such a hash too, and does not move a node whose own label is among them. With a direction a
    node listens to the nodes it points at.
    """
    matrix = network.matrix(directed=directed, loops=False)
    starts, targets = matrix.indptr.astype(np.int64), matrix.indices
    weights: Values = matrix.data
    labels = np.arange(network.size, dtype=np.int64)
    heard_by = matrix.T.tocsr() if directed else matrix
    back = Neighbours(heard_by.indptr.astype(np.int64), heard_by.indices)
    active = np.flatnonzero(np.diff(starts))
    for round_number in range(iterations):
        if not len(active):
            break
        check(64 * int((starts[active + 1] - starts[active]).sum()))
        salt = seed * 1_000_003 + round_number
        wanted, is_better = _preferred_labels(starts, targets, weights, labels, active, salt)
        moving = active[is_better]
        now = (_hashed(moving, salt) & np.uint64(1)).astype(np.bool_)
        labels[moving[now]] = wanted[is_better][now]
        _, offsets = expand_spans(back.starts[moving[now]], back.degrees_of(moving[now]))
        listeners = back.targets[offsets].astype(np.int64)
        active = sorted_distinct(np.concatenate([moving[~now], listeners]))
    return numbered_by_size(labels)


def _preferred_labels(
    starts: Numbers,
    targets: npt.NDArray[np.integer],
    weights: Values,
    labels: Numbers,
    nodes: Numbers,
    salt: int,
) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    """The label that the neighbours of each node favour, and whether it beats the node's own.

    Every node has neighbours.
    """
    rows, offsets = expand_spans(starts[nodes], starts[nodes + 1] - starts[nodes])
    keys = pair_keys(rows, labels[targets[offsets]])
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    support = np.add.reduceat(weights[offsets][order], first)
    keys = keys[first]
    row, label = keys >> 32, keys & 0xFFFFFFFF
    # Ascending: the last entry of a node has its favourite label.
    order = np.lexsort((_hashed(label, salt), support, row))
    last = order[np.append(np.flatnonzero(np.diff(row[order])), len(order) - 1)]
    own = np.zeros(len(nodes))
    mine = labels[nodes[row]] == label
    own[row[mine]] = support[mine]
    return label[last], support[last] > own


def _hashed(values: Numbers, salt: int) -> npt.NDArray[np.uint64]:
    """Well mixed bits of numbers (the finaliser of SplitMix64)."""
    with np.errstate(over="ignore"):
        found = values.astype(np.uint64) + np.uint64((salt + 1) * 0x9E3779B97F4A7C15 % 2**64)
        found = (found ^ (found >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return found ^ (found >> np.uint64(31))


MAX_PATHS = 4_000_000
"""Paths of two edges that are compared with the edges at a time."""


def triangles(network: Network, check: Check) -> tuple[Numbers, Values]:
    """The triangles each node is part of, and the share of its pairs of neighbours that are neighbours.

    Every edge leads from the node with fewer neighbours to the other, so that no node has many.
    """
    near = network.neighbours(directed=False)
    degree = near.degrees
    sources = np.repeat(np.arange(near.size, dtype=np.int64), degree)
    targets = near.targets.astype(np.int64)
    rises = (degree[sources] < degree[targets]) | (
        (degree[sources] == degree[targets]) & (sources < targets)
    )
    sources, targets = sources[rises], targets[rises]
    edges = pair_keys(sources, targets)
    starts = np.zeros(near.size + 1, np.int64)
    np.cumsum(np.bincount(sources, minlength=near.size), out=starts[1:])
    paths = starts[targets + 1] - starts[targets]
    found = np.zeros(near.size, np.int64)
    ends = np.cumsum(paths)
    begin = 0
    while begin < len(edges):
        done = int(ends[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(ends, done + MAX_PATHS, side="right")), begin + 1)
        check(64 * int(ends[end - 1] - done))
        rows, offsets = expand_spans(starts[targets[begin:end]], paths[begin:end])
        third = targets[offsets]
        closed = in_sorted(edges, pair_keys(sources[begin:end][rows], third))
        rows, third = rows[closed], third[closed]
        for corner in (sources[begin:end][rows], targets[begin:end][rows], third):
            found += np.bincount(corner, minlength=near.size)
        begin = end
    pairs = degree * (degree - 1)
    share = np.divide(2.0 * found, pairs, out=np.zeros(near.size), where=pairs > 0)
    return found, share


def core_numbers(network: Network, check: Check) -> Numbers:
    """The largest k for which a node is in a part of the graph where all have k neighbours there."""
    near = network.neighbours(directed=False)
    degree = near.degrees
    core = np.zeros(near.size, np.int64)
    left = np.ones(near.size, np.bool_)
    remaining, k = near.size, 0
    while remaining:
        k = max(k, int(degree[left].min()))
        peeled = np.flatnonzero(left & (degree <= k))
        while len(peeled):
            check(0)
            core[peeled] = k
            left[peeled] = False
            remaining -= len(peeled)
            _, offsets = expand_spans(near.starts[peeled], near.degrees_of(peeled))
            beside = near.targets[offsets].astype(np.int64)
            beside, lost = np.unique(beside[left[beside]], return_counts=True)
            degree[beside] -= lost
            peeled = beside[degree[beside] <= k]
    return core
