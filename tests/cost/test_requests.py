"""How many requests an operation makes on an object store, early and late in a history."""

from __future__ import annotations

from functools import partial

import pytest

from omnigraph.api.graph import open as open_graph
from omnigraph.storage.remote_objects import CACHE
from tests.cost.counting_proxy import Request, Traffic
from tests.cost.operations import DELAY_S, QUERY, MeasuredGraph, check_mutation

LONG = pytest.param(1000, marks=pytest.mark.slow)
LENGTHS = [10, 60, LONG]

OPEN_REQUESTS = 12
BRANCH_REQUESTS = 16
"""The table library makes ten of them, one after the other, when it makes a branch of a table. Ours take
the lock, list refs, look for a tag, reserve the name and give the lock back; one more reads the ref of a
branch that was made since refs were listed last."""


@pytest.mark.parametrize("commits", LENGTHS)
def test_requests_do_not_grow_with_history(measured: MeasuredGraph, commits: int) -> None:
    measured.write_until(commits)
    check_mutation(measured)
    measured.proxy.delay_s = 0.0
    warm = measured.warm_query()
    assert warm.kinds == {"LIST": 1}, warm
    for read_only in (True, False):
        CACHE.clear()
        opened = measured.open_and_query(read_only=read_only)
        assert len(opened) == 10 - read_only, opened
        assert len(opened) <= OPEN_REQUESTS
    for name in ("review", "draft"):
        created = measured.branch_creation(name)
        assert len(created) <= BRANCH_REQUESTS, created


def test_what_opening_needs_is_asked_for_at_once(measured: MeasuredGraph) -> None:
    measured.write_until(10)
    measured.proxy.delay_s = DELAY_S
    opened = measured.open_and_query(read_only=False)
    # All that opening needs; whether the branch moved; the table: its address, version and rows.
    assert opened.in_sequence <= 5, opened


def test_no_object_is_read_twice(measured: MeasuredGraph) -> None:
    measured.write_until(10)
    opened = measured.open_and_query(read_only=False)
    read = [request.path for request in opened.requests if request.kind == "GET"]
    assert len(read) == len(set(read)), opened


def _open_and_ask(uri: str, text: str) -> object:
    return open_graph(uri).query(text)


def test_several_properties_cost_no_more_requests_than_one(measured: MeasuredGraph) -> None:
    costs = []
    for shown in ("$p.name", "$p.email, $p.name, $p.age, $p.city"):
        CACHE.clear()
        text = QUERY.replace("$p.name", shown)
        costs.append(measured.cost(partial(_open_and_ask, measured.uri, text)))
    assert len(costs[0]) == len(costs[1]), costs[1]


def test_a_read_within_its_staleness_asks_nothing(measured: MeasuredGraph) -> None:
    graph = open_graph(measured.uri, max_staleness=60)
    graph.query(QUERY)
    calls = [
        lambda: graph.query(QUERY),
        lambda: measured.graph.query(QUERY, max_staleness=60),
        lambda: measured.graph.checkout("main", max_staleness=60).query(QUERY),
    ]
    measured.graph.query(QUERY)
    for call, requests in zip(calls, (0, 0, 1), strict=True):
        used = measured.cost(call)
        assert len(used) == requests, used
    used = measured.cost(lambda: graph.get("Person", "p0"))
    assert {request.kind for request in used.requests} == {"GET"}, used  # Rows, which are not kept.
    asked = measured.cost(lambda: graph.query(QUERY, max_staleness=0))
    assert asked.kinds == {"LIST": 1}, asked


def test_a_branch_is_found_and_read_at_the_same_time(measured: MeasuredGraph) -> None:
    branch = measured.graph.branches.create("review")
    branch.query(QUERY)
    measured.proxy.delay_s = DELAY_S
    used = measured.cost(lambda: branch.query(QUERY))
    assert (len(used), used.in_sequence) == (2, 1), used
    stale = measured.cost(lambda: branch.query(QUERY, max_staleness=60))
    assert len(stale) == 0, stale


def test_the_longest_chain_is_that_of_requests_that_do_not_overlap() -> None:
    times = [(0, 3), (1, 2), (2, 4), (4, 5), (4.5, 6)]
    requests = [Request("GET", "a", 200, 0, 0, start, end) for start, end in times]
    assert Traffic(requests).in_sequence == 3
    assert Traffic().in_sequence == 0
