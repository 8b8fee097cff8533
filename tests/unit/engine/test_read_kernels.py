"""Read kernels against plain loops: neighbours, searches, sums and groups of random numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import QueryBudgetExceeded
from omnigraph.language.query.ast import AggregateFunction
from omnigraph.plan.ir import Direction
from omnigraph.plan.steps import Hop
from omnigraph.read import adjacency as adjacency_module
from omnigraph.read import expand as expand_module
from omnigraph.read.adjacency import build_adjacency, expand_spans, pair_keys, sum_by
from omnigraph.read.aggregate import GroupKey, aggregate, all_differ, group_rows, key_of
from omnigraph.read.budget import QueryBudget
from omnigraph.read.cache import ByteCache
from omnigraph.read.columns import encode_texts
from omnigraph.read.expand import Expander

SIZE = 7
NODES = st.integers(0, SIZE - 1)
LOOPS = NODES.map(lambda node: (node, node))
PAIRS = st.lists(st.one_of(LOOPS, st.tuples(NODES, NODES), st.tuples(NODES, NODES)), max_size=30)
HUGE = 2**40


def column(values):
    return np.array(values, np.int64)


def ends(pairs):
    return column([a for a, _ in pairs]), column([b for _, b in pairs])


def built(pairs):
    sources, targets = ends(pairs)
    return build_adjacency(sources, targets, SIZE)


def changed(pairs, added, removed):
    """Adjacency of pairs after some were added and some taken away, and the pairs that are left."""
    left = [*pairs, *added]
    gone = []
    for pair in removed:
        if pair in left:
            left.remove(pair)
            gone.append(pair)
    adjacency = built(pairs)
    adjacency = adjacency.with_changes(pair_keys(*ends(added)), pair_keys(*ends(gone)))
    return adjacency, set(left)


@pytest.mark.parametrize("many", [1, 10**9])
@given(spans=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 4)), max_size=6))
def test_spans_are_spread_out_in_order(many, spans):
    begin, counts = ends(spans)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adjacency_module, "MAX_REPEATED_ROWS", many)
        rows, places = expand_spans(begin, counts)
    expected = [(n, b + i) for n, (b, length) in enumerate(spans) for i in range(length)]
    assert list(zip(rows.tolist(), places.tolist(), strict=True)) == expected


@given(PAIRS, PAIRS, PAIRS, st.lists(NODES, max_size=6))
def test_neighbours_are_those_of_the_pairs_that_are_left(pairs, added, removed, sources):
    adjacency, left = changed(pairs, added, removed)
    rows, nodes = adjacency.neighbours(column(sources))
    found = sorted(zip(rows.tolist(), nodes.tolist(), strict=True))
    assert found == sorted((n, b) for n, s in enumerate(sources) for a, b in left if a == s)
    degrees = [sum(a == source for a, _ in left) for source in range(SIZE)]
    assert adjacency.degrees(SIZE).tolist() == degrees


@given(
    PAIRS, PAIRS, PAIRS, st.lists(st.sampled_from([0, 1, 3, HUGE]), min_size=SIZE, max_size=SIZE)
)
def test_weights_of_neighbours_are_summed_exactly(pairs, added, removed, weights):
    adjacency, left = changed(pairs, added, removed)
    expected = [sum(weights[b] for a, b in left if a == source) for source in range(SIZE)]
    assert adjacency.sum_over_neighbours(column(weights), SIZE).tolist() == expected


@given(st.lists(st.tuples(NODES, st.sampled_from([0, 1, 5, 2**52, 2**53 + 1])), max_size=20))
def test_sums_per_place_are_exact_however_large(rows):
    places, weights = ends(rows)
    expected = [sum(w for p, w in rows if p == place) for place in range(SIZE)]
    assert sum_by(places, weights, SIZE).tolist() == expected
    assert sum_by(places, None, SIZE).tolist() == [(places == p).sum() for p in range(SIZE)]


def hops_over(pairs, size=SIZE, **budget):
    adjacency = built(pairs)
    nodes = SimpleNamespace(size=size, is_whole=True, visible=None, visible_mask=lambda nodes: None)
    edge = SimpleNamespace(is_self_typed=True)
    source: Any = SimpleNamespace(
        nodes=lambda name: nodes,
        neighbours=lambda hop, frontier: adjacency,
        catalog=SimpleNamespace(edges={"Knows": edge}),
    )
    return Expander(source, QueryBudget(**budget).start())


def within(pairs, start, low, high):
    distance, frontier = {start: 0}, {start}
    for depth in range(1, high + 1):
        frontier = {b for a, b in pairs if a in frontier} - distance.keys()
        distance.update(dict.fromkeys(frontier, depth))
    distance[start] = 1 if (start, start) in pairs else 0
    return {node for node, depth in distance.items() if low <= depth <= high and depth}


@pytest.mark.parametrize("size", [SIZE, 2**28])
@pytest.mark.parametrize("many", [10**9, 1, 2, 5])
@given(
    pairs=PAIRS,
    starts=st.lists(NODES, min_size=1, max_size=8),
    low=st.integers(1, 3),
    more=st.integers(0, 3),
)
def test_a_search_reaches_each_node_once_at_its_shortest_distance(
    size, many, pairs, starts, low, more
):
    hop = Hop((("Knows", Direction.OUT),), "Person", "Person", low, low + more)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(expand_module, "PAIRS_PER_BLOCK", many)
        rows, nodes = hops_over(pairs, size).reach(hop, column(starts))
        counts = hops_over(pairs, size).counts(hop, np.unique(column(starts)))
    found = sorted(zip(rows.tolist(), nodes.tolist(), strict=True))
    expected = [(n, b) for n, s in enumerate(starts) for b in within(pairs, s, low, low + more)]
    assert found == sorted(expected)
    assert counts.tolist() == [len(within(pairs, s, low, low + more)) for s in sorted(set(starts))]


def test_a_large_search_keeps_to_its_budget(monkeypatch):
    monkeypatch.setattr(expand_module, "PAIRS_PER_BLOCK", 1)
    everyone = [(a, b) for a in range(SIZE) for b in range(SIZE) if a != b]
    hop = Hop((("Knows", Direction.OUT),), "Person", "Person", 1, 3)
    with pytest.raises(QueryBudgetExceeded):
        hops_over(everyone, max_rows=SIZE + 1).reach(hop, np.arange(SIZE))


KEYS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 2), st.one_of(st.none(), st.integers(-2, 2))),
    max_size=12,
)


@given(KEYS, st.sampled_from([4, 2**40]), st.sampled_from([3, 2**40]))
def test_rows_with_equal_keys_are_one_group(rows, first_size, second_size):
    keys = [
        GroupKey(column([a for a, _, _ in rows]), first_size),
        GroupKey(column([b for _, b, _ in rows]), second_size),
        key_of(pa.array([c for _, _, c in rows], pa.int32())),
    ]
    groups = group_rows(keys, len(rows))
    assert groups.codes is not None
    assert groups.example is not None
    by_code: dict[int, set[Any]] = {}
    for code, row in zip(groups.codes.tolist(), rows, strict=True):
        by_code.setdefault(code, set()).add(row)
    assert sorted(by_code) == list(range(groups.count))
    assert all(len(members) == 1 for members in by_code.values())
    assert groups.count == len(set(rows))
    assert [rows[n] for n in groups.example] == [by_code[c].pop() for c in range(groups.count)]


@given(st.lists(st.integers(0, 40), max_size=12), st.sampled_from([41, 10**6]))
def test_codes_that_all_differ_are_told_by_counting(codes, size):
    if all_differ(GroupKey(column(codes), size)):
        assert len(set(codes)) == len(codes)
    elif size == 41 and len(codes) > 5:
        assert len(set(codes)) < len(codes)


FUNCTIONS = st.sampled_from(list(AggregateFunction))
VALUES = st.lists(st.one_of(st.none(), st.integers(-9, 9)), min_size=1, max_size=8)


@given(FUNCTIONS, VALUES, st.data())
def test_groups_of_one_row_aggregate_like_any_others(function, values, data):
    weights = data.draw(
        st.one_of(
            st.none(), st.lists(st.integers(1, 4), min_size=len(values), max_size=len(values))
        )
    )
    given_weights = None if weights is None else column(weights)
    rows = np.arange(len(values))
    array = pa.array(values, pa.int32())
    alone = group_rows([], 0)
    single = type(alone)(None, len(values), None)
    spelled = group_rows([GroupKey(rows, len(values))], len(values))
    found, expected = (
        aggregate(function, array, groups, given_weights, len(values)).to_pylist()
        for groups in (single, spelled)
    )
    assert found == expected


@given(KEYS, st.data())
def test_some_groups_keep_their_rows_and_nothing_else(rows, data):
    groups = group_rows([GroupKey(column([a for a, _, _ in rows]), 4)], len(rows))
    chosen = data.draw(st.lists(st.integers(0, max(groups.count - 1, 0)), unique=True, max_size=4))
    chosen = sorted(chosen) if groups.count else []
    kept, fewer = groups.only(column(chosen))
    assert groups.codes is not None
    assert fewer.codes is not None
    assert fewer.example is not None
    assert kept.tolist() == [n for n, code in enumerate(groups.codes) if code in chosen]
    assert [chosen[code] for code in fewer.codes] == groups.codes[kept].tolist()
    assert [fewer.codes[row] for row in fewer.example] == list(range(fewer.count))


@given(st.lists(st.one_of(st.none(), st.text(max_size=2))), st.text(max_size=2))
def test_texts_are_numbered_in_their_order(texts, wanted):
    codes = encode_texts(pa.array(texts, pa.utf8()))
    assert codes.dictionary is not None
    distinct = sorted({text for text in texts if text is not None}, key=str.encode)
    assert codes.dictionary.to_pylist() == distinct
    assert [None if n < 0 else distinct[n] for n in codes.codes] == texts
    assert (codes.codes == codes.code_of(wanted)).tolist() == [text == wanted for text in texts]


def test_a_cache_says_when_it_has_lost_something():
    cache = ByteCache(10)
    cache.put("a", np.zeros(8, np.int8))
    assert cache.losses == 0
    cache.put("b", np.zeros(8, np.int8))
    assert cache.losses == 1
    cache.put("c", np.zeros(11, np.int8))
    assert cache.losses == 2


@given(PAIRS, PAIRS, PAIRS)
def test_reversed_edges_lead_back(pairs, added, removed):
    adjacency, left = changed(pairs, added, removed)
    rows, nodes = adjacency.reversed(SIZE).neighbours(np.arange(SIZE))
    assert sorted(zip(nodes.tolist(), rows.tolist(), strict=True)) == sorted(left)


@given(PAIRS, PAIRS)
def test_edges_reversed_twice_still_count_parallel_ones(pairs, removed):
    """Taking away one of two parallel edges leaves a neighbour, whichever way it is looked at."""
    adjacency, left = changed(pairs, [], [])
    for pair in removed:
        if pair in pairs:
            pairs.remove(pair)
            adjacency = adjacency.reversed(SIZE).with_changes(
                column([]), pair_keys(column([pair[1]]), column([pair[0]]))
            )
            adjacency = adjacency.reversed(SIZE)
    rows, nodes = adjacency.neighbours(np.arange(SIZE))
    assert set(zip(rows.tolist(), nodes.tolist(), strict=True)) == set(pairs) <= left
