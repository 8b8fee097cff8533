"""Processes that merge at the same time, and one that dies while it merges."""

from __future__ import annotations

import io
import json
import signal

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from tests.behaviour.graphs import SCHEMA
from tests.processes.children import child
from tests.processes.conftest import Place, local_first
from tests.support.faults import Arm, Kill

MERGED = "branch_merge.post_phase_b_pre_manifest_commit"


def names(graph: Graph, branch: str) -> set[str]:
    out = io.BytesIO()
    graph.export(out, branch=branch, types=["Person"])
    return {json.loads(line)["data"]["name"] for line in out.getvalue().decode().splitlines()}


def check_merges_at_once(place: Place, run, workers: str, times: int) -> None:
    graph = init(place.uri, SCHEMA)
    for name in workers:
        graph.branches.create(name)
    outcomes = run(place, [("merge_many", place.uri, name, times) for name in workers])
    assert [len(found) for found in outcomes] == [times] * len(workers)
    everybody = {f"{name}{number}" for name in workers for number in range(times)}
    again = open_graph(place.uri)
    assert names(again, "main") == everybody
    merges = again.log(operation="merge", reverse=True)
    assert len(merges) == times * len(workers)
    assert len({commit.parents[1] for commit in merges}) == len(merges)
    for name in workers:
        again.merge("main", name)
        assert names(again, name) == everybody
        assert again.merge(name, "main").outcome.value in ("fast_forward", "already_up_to_date")


def test_branches_merged_into_main_and_back_at_the_same_time_lose_nothing(local_place, run):
    check_merges_at_once(local_place, run, "abc", 2)


@pytest.mark.slow
def test_merges_at_the_same_time_lose_nothing_for_longer(place, run):
    check_merges_at_once(place, run, "abcd", 10)


@local_first
def test_the_same_merge_by_several_processes_is_made_once(place, run):
    graph = init(place.uri, SCHEMA)
    graph.branches.create("f")
    graph.mutate('query q() { insert Person { name: "ada" } }', branch="f")
    outcomes = run(place, [("merge_once", place.uri, "f", "main")] * 3)
    assert sorted(outcomes) == ["already_up_to_date", "already_up_to_date", "fast_forward"]
    assert len(open_graph(place.uri).log(operation="merge", reverse=True)) == 1


@pytest.mark.acceptance("S-109")
def test_a_merge_whose_process_was_killed_is_finished_by_the_next_opener(local_place):
    graph = init(local_place.uri, SCHEMA)
    graph.branches.create("f")
    graph.mutate('query q() { insert Person { name: "ada" } }', branch="f")
    graph.mutate('query q() { insert Person { name: "bo" } }')
    parents = graph.head().id, graph.head("f").id
    process = child(local_place, [Arm(MERGED, Kill())], "merge_once", local_place.uri, "f", "main")
    assert process.wait(60) == -signal.SIGKILL
    again = open_graph(local_place.uri)
    assert names(again, "main") == {"ada", "bo"}
    assert again.head().parents == parents
    assert again.merge("f").outcome.value == "already_up_to_date"
