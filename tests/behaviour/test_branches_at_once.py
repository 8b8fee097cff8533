"""Branches that are made, deleted and read by several callers at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier, Event
from typing import Any

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import BranchExists, BranchNotFound, CommitNotFound
from omnigraph.versioning.rows import MANIFEST_PATH
from tests.behaviour.graphs import SCHEMA


def at_once(*calls: Callable[[], Any]) -> Sequence[Any]:
    """What several calls return or raise when they are made together."""
    together = Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        together.wait()
        try:
            return call()
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(run, calls))


@pytest.mark.acceptance("S-034")
def test_branches_made_at_once_on_one_handle_have_their_own_sources(graph, backstage):
    graph.branches.create("p1")
    graph.branches.create("p2")
    heads = {name: backstage.publish(name).graph_commit_id for name in ("p1", "p2")}
    for round in range(3):
        made = at_once(
            partial(graph.branches.create, f"a{round}", "p1"),
            partial(graph.branches.create, f"b{round}", "p2"),
        )
        assert [type(handle) for handle in made] == [Graph, Graph]
        assert graph.head(f"a{round}").id == heads["p1"]
        assert graph.head(f"b{round}").id == heads["p2"]
    assert graph.branch == "main"


def test_of_several_creates_of_one_name_exactly_one_succeeds(graph, backstage):
    graph.branches.create("p1")
    backstage.publish("p1")
    handles = [open_graph(graph.uri) for _ in range(3)]
    for round in range(4):
        name = f"race/{round}"
        results = at_once(
            partial(handles[0].branches.create, name),
            partial(handles[1].branches.create, name, "p1"),
            partial(handles[2].branches.create, name),
        )
        assert sorted(type(result).__name__ for result in results) == [
            "BranchExists",
            "BranchExists",
            "Graph",
        ]
        assert list(graph.branches).count(name) == 1
    assert set(backstage.tables.list_branches(MANIFEST_PATH)) == {
        "p1",
        *(f"race_s{round}" for round in range(4)),
    }


def test_of_several_deletes_of_one_name_exactly_one_succeeds(graph):
    handles = [open_graph(graph.uri) for _ in range(3)]
    for _ in range(3):
        graph.branches.create("feature")
        results = at_once(*(partial(h.branches.delete, "feature") for h in handles))
        kinds = sorted(type(result).__name__ for result in results)
        assert kinds == ["BranchNotFound", "BranchNotFound", "NoneType"]
    assert list(graph.branches) == ["main"]


def test_creates_and_deletes_of_one_name_at_once_end_in_one_state(graph):
    handles = [open_graph(graph.uri) for _ in range(2)]
    for _ in range(4):
        results = at_once(
            partial(handles[0].branches.create, "feature"),
            partial(handles[1].branches.delete, "feature"),
        )
        failures = [result for result in results if isinstance(result, Exception)]
        assert {type(failure) for failure in failures} <= {BranchExists, BranchNotFound}
        listed = list(graph.branches)
        assert listed in (["main"], ["main", "feature"])
        if "feature" in listed:
            assert graph._snapshot("feature").version == 1
            graph.branches.delete("feature")


def test_branches_are_listed_while_others_come_and_go(local_graph):
    """A branch may be deleted between the moment it is listed and the moment its ref is read."""
    for number in range(12):
        local_graph.branches.create(f"b{number:02}")
    done = Event()

    def churn() -> None:
        graph = open_graph(local_graph.uri)
        for number in range(12):
            graph.branches.delete(f"b{number:02}")

    reader = open_graph(local_graph.uri)
    with ThreadPoolExecutor(1) as thread:
        deleting = thread.submit(churn)
        deleting.add_done_callback(lambda _: done.set())
        while not done.is_set():
            assert next(iter(reader.branches)) == "main"
        deleting.result()
    assert list(reader.branches) == ["main"]


def test_branches_deleted_at_once_do_not_disturb_each_other(local_graph):
    handles = [open_graph(local_graph.uri) for _ in range(3)]
    for round in range(4):
        names = [f"{name}{round}" for name in "abc"]
        for name in names:
            local_graph.branches.create(name)
        calls = [partial(h.branches.delete, n) for h, n in zip(handles, names, strict=True)]
        assert at_once(*calls) == [None, None, None]
    assert list(local_graph.branches) == ["main"]


def test_a_commit_is_found_while_branches_come_and_go(local_graph):
    done = Event()

    def churn() -> None:
        graph = open_graph(local_graph.uri)
        for number in range(15):
            graph.branches.create(f"b{number}")
            graph.branches.delete(f"b{number}")

    reader = open_graph(local_graph.uri)
    head = reader.head().id
    with ThreadPoolExecutor(1) as thread:
        deleting = thread.submit(churn)
        deleting.add_done_callback(lambda _: done.set())
        while not done.is_set():
            assert reader.commit(head).id == head
            with pytest.raises(CommitNotFound):
                reader.commit("nope")
        deleting.result()


def test_a_local_graph_in_two_spellings_has_one_set_of_branches(tmp_path):
    init(tmp_path / "g", SCHEMA)
    (tmp_path / "link").symlink_to(tmp_path / "g")
    one, two = open_graph(tmp_path / "g"), open_graph(tmp_path / "link")
    results = at_once(partial(one.branches.create, "x"), partial(two.branches.create, "x"))
    assert sorted(type(result).__name__ for result in results) == ["BranchExists", "Graph"]
    assert list(one.branches) == list(two.branches) == ["main", "x"]
