"""Merges that are interrupted, or made while others are at work."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import HeadMoved, ReadOnlyHandle, StorageError
from omnigraph.merge.plan import MergePlanner
from tests.behaviour.graphs import SCHEMA
from tests.behaviour.merging import (
    add,
    ages,
    four_people,
    lines,
    person,
    set_age,
)
from tests.support.faults import Fail, FailStorage, InjectedFault, armed

MERGED = "branch_merge.post_phase_b_pre_manifest_commit"


@pytest.fixture
def graph(memory_uri: str) -> Graph:
    return four_people(memory_uri)


@pytest.mark.acceptance("S-109")
@pytest.mark.parametrize("target", ["main", "other"])
def test_a_merge_that_died_before_its_publish_is_finished_with_both_parents(local_uri, target):
    graph = init(local_uri, SCHEMA)
    graph.load(lines(person("Alice", age=30), person("Bob")), "append")
    graph.branches.create("feature")
    graph.branches.create("other")
    set_age(graph, "feature", "Alice", 31)
    set_age(graph, target, "Bob", 41)
    parents = (graph.head(target).id, graph.head("feature").id)
    with armed(MERGED, Fail()), pytest.raises(InjectedFault):
        graph.merge("feature", target)
    again = open_graph(local_uri)
    commit = again.commit(again.head(target).id)
    assert (commit.parents, commit.operation) == (parents, "recovery")
    assert ages(again, target) == {"Alice": 31, "Bob": 41}
    assert again.merge("feature", target).outcome.value == "already_up_to_date"
    again.branches.delete("feature")
    assert again.commit(parents[1]).id == parents[1]


def _apply_schema(graph: Graph) -> None:
    graph.branches.delete("feature")
    graph.schema.apply(SCHEMA.replace("age: I32?", "age: I32?  nick: String?"))


@pytest.mark.acceptance("S-069")
@pytest.mark.parametrize(
    "write",
    [
        lambda graph: set_age(graph, "main", "Eve", 7),
        lambda graph: graph.merge("feature"),
        _apply_schema,
    ],
    ids=["mutation", "merge", "schema apply"],
)
def test_the_next_write_recovers_an_interrupted_one_first(graph, write):
    set_age(graph, "feature", "Alice", 31)
    with armed("mutation.post_finalize_pre_publisher", Fail()), pytest.raises(InjectedFault):
        add(graph, "main", "Eve")
    write(graph)
    assert "Eve" in ages(graph)
    [recovered] = graph.maintenance.recoveries()
    assert recovered.audit.kind.value == "RolledForward"


def test_a_merge_recovers_its_source_too(graph):
    with armed("mutation.post_finalize_pre_publisher", Fail()), pytest.raises(InjectedFault):
        add(graph, "feature", "Eve")
    graph.merge("feature")
    assert "Eve" in ages(graph)
    assert graph._core.recovery.status().pending == ()


@pytest.mark.acceptance("S-081")
@pytest.mark.parametrize(
    "write",
    [
        lambda graph: graph.load(person("Alice", age=31).encode(), "merge"),
        lambda g: g.merge("feature"),
    ],
    ids=["load", "merge"],
)
def test_a_write_whose_sidecar_cannot_be_written_changes_nothing(graph, write):
    set_age(graph, "feature", "Alice", 31)
    before = graph._snapshot().to_json()
    with (
        armed("recovery.sidecar_write", FailStorage(), times=1),
        pytest.raises(StorageError, match="injected failure"),
    ):
        write(graph)
    assert (graph._snapshot().to_json(), graph._core.recovery.status().pending) == (before, ())
    write(graph)
    assert ages(graph)["Alice"] == 31


def test_a_target_that_moves_meanwhile_is_merged_as_it_is_then(graph, monkeypatch):
    set_age(graph, "feature", "Alice", 31)
    plan = MergePlanner.plan
    planned: list[object] = []

    def plan_slowly(planner, *states):
        found = plan(planner, *states)
        planned.append(found)
        if len(planned) == 1:
            set_age(open_graph(graph.uri), "main", "Bob", 41)
        return found

    monkeypatch.setattr(MergePlanner, "plan", plan_slowly)
    assert graph.merge("feature").outcome.value == "merged"
    assert (len(planned), ages(graph)["Alice"], ages(graph)["Bob"]) == (2, 31, 41)


def test_a_merge_that_another_process_makes_meanwhile_is_not_made_twice(graph, monkeypatch):
    set_age(graph, "feature", "Alice", 31)
    plan = MergePlanner.plan

    def plan_slowly(planner, *states):
        found = plan(planner, *states)
        monkeypatch.setattr(MergePlanner, "plan", plan)
        open_graph(graph.uri).merge("feature")
        return found

    monkeypatch.setattr(MergePlanner, "plan", plan_slowly)
    commits = len(graph.log(reverse=True))
    assert graph.merge("feature").outcome.value == "already_up_to_date"
    assert len(graph.log(reverse=True)) == commits + 1


def test_a_merge_can_insist_on_the_head_of_its_target(graph):
    add(graph, "feature", "Eve")
    before = graph.head().id
    add(graph, "main", "Fay")
    with pytest.raises(HeadMoved):
        graph.merge("feature", expected_head=before)
    graph.merge("feature", expected_head=graph.head().id)


def test_a_graph_open_for_reading_is_not_merged(local_uri):
    init(local_uri, SCHEMA).branches.create("feature")
    with pytest.raises(ReadOnlyHandle):
        open_graph(local_uri, read_only=True).merge("feature")


@pytest.mark.acceptance("S-111")
def test_merges_into_two_targets_at_once_are_both_right(graph):
    graph.branches.create("other")
    set_age(graph, "feature", "Alice", 31)
    set_age(graph, "main", "Bob", 41)
    set_age(graph, "other", "Bob", 42)
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda into: graph.merge("feature", into), ["main", "other"]))
    assert [result.outcome.value for result in done] == ["merged", "merged"]
    assert (ages(graph)["Alice"], ages(graph)["Bob"]) == (31, 41)
    assert (ages(graph, "other")["Alice"], ages(graph, "other")["Bob"]) == (31, 42)
