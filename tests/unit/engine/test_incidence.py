"""Edges at nodes against plain loops: edges apart, later edges behind sorted ones, joined neighbours."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.plan.ir import Direction
from omnigraph.read.adjacency import build_adjacency
from omnigraph.read.incidence import EdgeEnds, build_incidence
from omnigraph.read.joined import JoinedNeighbours, distinct_pairs

SIZE = 6
NODES = st.integers(-1, SIZE - 1)
PAIRS = st.lists(st.tuples(NODES, NODES), max_size=20)
SOURCES = st.lists(st.integers(0, SIZE + 1), max_size=8)


def column(values):
    return np.array(list(values), np.int64)


def ends(pairs):
    return EdgeEnds(
        column(a for a, _ in pairs).astype(np.int32), column(b for _, b in pairs).astype(np.int32)
    )


@given(PAIRS, PAIRS, SOURCES, st.sampled_from(Direction))
def test_every_edge_is_found_at_its_node(pairs, later, sources, direction):
    known = build_incidence(ends(pairs), direction, SIZE).with_ends(ends(pairs + later))
    assert known is not None
    rows, edges = known.follow(column(sources))
    near = 0 if direction is Direction.OUT else 1
    expected = [
        (row, edge)
        for row, source in enumerate(sources)
        for edge, pair in enumerate(pairs + later)
        if pair[near] == source
    ]
    assert sorted(zip(rows.tolist(), edges.tolist(), strict=True)) == expected
    counts = known.counts(column(sources)).tolist()
    assert counts == [sum(r == row for r, _ in expected) for row in range(len(sources))]
    assert known.far(edges).tolist() == [(pairs + later)[edge][1 - near] for edge in edges]


def test_an_edge_with_other_ends_is_noticed():
    known = build_incidence(ends([(0, 1), (1, 2)]), Direction.OUT, SIZE)
    assert known.with_ends(ends([(0, 1), (2, 2)])) is None
    assert known.with_ends(ends([(0, 1)])) is None


@given(PAIRS, PAIRS, SOURCES)
def test_neighbours_of_several_edge_types_are_distinct(pairs, more, sources):
    parts = [[p for p in found if min(p) >= 0] for found in (pairs, more)]
    joined = JoinedNeighbours(
        tuple(
            build_adjacency(column(a for a, _ in p), column(b for _, b in p), SIZE) for p in parts
        )
    )
    rows, nodes = distinct_pairs(*joined.neighbours(column(sources)))
    expected = {
        (row, b) for row, s in enumerate(sources) for part in parts for a, b in part if a == s
    }
    assert list(zip(rows.tolist(), nodes.tolist(), strict=True)) == sorted(expected)
    assert (joined.spans(column(sources))[1] >= np.bincount(rows, minlength=len(sources))).all()
    for target in range(SIZE):
        has = joined.has(column(sources), np.full(len(sources), target, np.int64))
        assert has.tolist() == [(row, target) in expected for row in range(len(sources))]
