"""Path kernels against an enumeration of all paths of small random graphs."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.read.paths import LabelList, Meeting, fewest_edges, least_cost

SIZE = 6
NODES = st.integers(0, SIZE - 1)
EDGES = st.lists(st.tuples(NODES, NODES, st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0])), max_size=16)
ORDERS = st.permutations(range(SIZE))
BOUNDS = st.tuples(st.integers(1, 3), st.integers(0, 3)).map(lambda b: (b[0], b[0] + b[1]))


def column(values):
    return np.array(list(values), np.int64)


def follower(edges, *, back=False, weighted=False):
    def follow(nodes):
        found = [
            (row, a if back else b, w)
            for row, node in enumerate(nodes)
            for a, b, w in edges
            if (b if back else a) == node
        ]
        rows, reached = column(r for r, _, _ in found), column(n for _, n, _ in found)
        weights = np.array([w for *_, w in found], np.float64)
        return (rows, reached, weights) if weighted else (rows, reached)

    return follow


def walks(edges, start, high):
    """All walks of up to `high` edges that do not come back to the start."""
    waiting: list[tuple[tuple[int, ...], float]] = [((start,), 0.0)]
    for _ in range(high):
        waiting = [
            ((*path, b), cost + w)
            for path, cost in waiting
            for a, b, w in edges
            if a == path[-1] and b != start
        ]
        yield from waiting


def best(edges, start, bounds, order, *, weighted):
    """The best walk to each node: cost, length, then node ids; None is no walk."""
    found: dict[int, Any] = {}
    for path, cost in walks(edges, start, bounds[1]):
        key = (cost if weighted else 0, len(path), [order[node] for node in path], path)
        found[path[-1]] = min(found.get(path[-1], key), key)
    return {
        node: (list(path), cost)
        for node, (cost, length, _, path) in found.items()
        if weighted or length - 1 >= bounds[0]
    }


def paths_of(found, labels, *, backwards=False):
    begin, nodes = found.chains(labels, backwards=backwards)
    return [nodes[a:b].tolist() for a, b in pairwise(begin.tolist())]


@pytest.mark.parametrize("backwards", [False, True])
@given(EDGES, st.lists(NODES, max_size=3, unique=True), BOUNDS, ORDERS)
def test_the_first_of_the_shortest_paths_to_every_node(backwards, edges, starts, bounds, order):
    found = LabelList()
    seen: dict[tuple[int, int], list[int]] = {}
    layers = fewest_edges(
        follower(edges, back=backwards),
        column(order).__getitem__,
        lambda rows: None,
        column(starts),
        bounds,
        found,
        backwards=backwards,
    )
    for layer in layers:
        shown = paths_of(found, layer.labels, backwards=backwards)
        keys = zip(layer.starts.tolist(), layer.nodes.tolist(), strict=True)
        seen |= dict(zip(keys, shown, strict=True))
    expected = {}
    for number, start in enumerate(starts):
        for other in range(SIZE):
            source, target = (other, start) if backwards else (start, other)
            path = best(edges, source, bounds, order, weighted=False).get(target)
            if path is not None:
                expected[number, other] = path[0]
    assert seen == expected


@given(EDGES, st.lists(st.tuples(NODES, NODES), max_size=5, unique=True), BOUNDS, ORDERS)
def test_the_first_of_the_shortest_paths_between_pairs(edges, pairs, bounds, order):
    found = LabelList()
    ends = column(a for a, _ in pairs), column(b for _, b in pairs)
    meeting = Meeting(
        follower(edges),
        follower(edges, back=True),
        column(order).__getitem__,
        lambda rows: None,
        ends,
        bounds,
    )
    numbers, labels = meeting.run(found)
    shown = dict(zip(numbers.tolist(), paths_of(found, labels), strict=True))
    expected = {}
    for number, (start, end) in enumerate(pairs):
        path = best(edges, start, bounds, order, weighted=False).get(end)
        if path is not None:
            expected[number] = path[0]
    assert shown == expected
    # Without spelling, the lengths are the same.
    plain = LabelList()
    again = Meeting(
        follower(edges),
        follower(edges, back=True),
        column(order).__getitem__,
        lambda rows: None,
        ends,
        bounds,
        spelled=False,
    )
    numbers, labels = again.run(plain)
    lengths = dict(zip(numbers.tolist(), plain.labels.lengths[labels].tolist(), strict=True))
    assert lengths == {number: len(path) - 1 for number, path in expected.items()}
    assert plain.labels.nodes[labels].tolist() == ends[1][numbers].tolist()


@pytest.mark.parametrize("backwards", [False, True])
@given(EDGES, st.lists(NODES, max_size=3, unique=True), BOUNDS)
def test_lengths_alone_need_no_order_of_paths(backwards, edges, starts, bounds):
    found = LabelList()
    layers = fewest_edges(
        follower(edges, back=backwards),
        lambda nodes: pytest.fail("ids are not wanted"),
        lambda rows: None,
        column(starts),
        bounds,
        found,
        backwards=backwards,
        spelled=False,
    )
    seen: dict[tuple[int, int], int] = {}
    for layer in layers:
        keys = zip(layer.starts.tolist(), layer.nodes.tolist(), strict=True)
        seen |= dict(zip(keys, found.labels.lengths[layer.labels].tolist(), strict=True))
    expected = {}
    for number, start in enumerate(starts):
        for other in range(SIZE):
            source, target = (other, start) if backwards else (start, other)
            path = best(edges, source, bounds, range(SIZE), weighted=False).get(target)
            if path is not None:
                expected[number, other] = len(path[0]) - 1
    assert seen == expected


@pytest.mark.parametrize("backwards", [False, True])
@given(EDGES, st.lists(NODES, max_size=3, unique=True), st.integers(1, 5), ORDERS)
def test_the_first_of_the_cheapest_paths_to_every_node(backwards, edges, starts, high, order):
    found = LabelList()
    ends = least_cost(
        follower(edges, back=backwards, weighted=True),
        column(order).__getitem__,
        lambda rows: None,
        column(starts),
        high,
        found,
        backwards=backwards,
    )
    shown = paths_of(found, ends.labels, backwards=backwards)
    costs = found.labels.costs[ends.labels].tolist()
    keys = zip(ends.starts.tolist(), ends.nodes.tolist(), strict=True)
    seen = dict(zip(keys, zip(shown, costs, strict=True), strict=True))
    expected = {}
    for (number, start), other in product(enumerate(starts), range(SIZE)):
        source, target = (other, start) if backwards else (start, other)
        path = best(edges, source, (1, high), order, weighted=True).get(target)
        if path is not None:
            expected[number, other] = path
    assert seen == expected


@given(EDGES, st.lists(st.tuples(NODES, NODES), max_size=5), st.integers(1, 5), ORDERS)
def test_the_first_of_the_cheapest_paths_between_pairs(edges, pairs, high, order):
    found = LabelList()
    ends = least_cost(
        follower(edges, weighted=True),
        column(order).__getitem__,
        lambda rows: None,
        column(a for a, _ in pairs),
        high,
        found,
        targets=column(b for _, b in pairs),
    )
    shown = paths_of(found, ends.labels)
    costs = found.labels.costs[ends.labels].tolist()
    seen = dict(zip(ends.starts.tolist(), zip(shown, costs, strict=True), strict=True))
    expected = {}
    for number, (start, end) in enumerate(pairs):
        path = best(edges, start, (1, high), order, weighted=True).get(end)
        if path is not None:
            expected[number] = path
    assert seen == expected
