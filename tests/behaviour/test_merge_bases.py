"""What branches have in common when they merge, after they have merged before."""

from __future__ import annotations

import pytest

from omnigraph.engine.graph import Graph
from omnigraph.errors import (
    CommitBranchGone,
)
from tests.behaviour.graphs import PERSON
from tests.behaviour.merging import (
    ages,
    conflicts,
    four_people,
    set_age,
)


@pytest.fixture
def graph(memory_uri: str) -> Graph:
    return four_people(memory_uri)


@pytest.mark.acceptance("S-187")
def test_ancestry_outlives_the_branch_it_came_from(graph):
    graph.create_branch("other")
    set_age(graph, "feature", "Alice", 31)
    lost = graph.head("feature")
    graph.merge("feature")
    graph.merge("feature", "other")
    graph.delete_branch("feature")
    assert graph.commit(lost).branch == "feature"
    with pytest.raises(CommitBranchGone):
        graph.snapshot_of(lost)
    assert lost in [commit.graph_commit_id for commit in graph.ancestry()]
    assert lost not in [commit.graph_commit_id for commit in graph.commits()]
    assert graph.merge("other").outcome.value == "merged"
    assert graph.merge("other").outcome.value == "already_up_to_date"


def test_a_later_merge_starts_from_the_last_one(graph):
    set_age(graph, "feature", "Alice", 31)
    graph.merge("feature")
    set_age(graph, "feature", "Alice", 32)
    set_age(graph, "main", "Bob", 41)
    graph.merge("feature")
    assert ages(graph)["Alice"] == 32


def test_branches_that_merged_each_other_crosswise_have_their_merge_in_common(graph):
    set_age(graph, "main", "Alice", 31)
    set_age(graph, "feature", "Bob", 41)
    graph.create_branch("as-main-was")
    graph.merge("feature")
    graph.merge("as-main-was", "feature")
    # Both had both changes when they went on: only one has changed each of the two since.
    set_age(graph, "main", "Alice", 32)
    set_age(graph, "feature", "Bob", 42)
    assert graph.merge("feature").outcome.value == "merged"
    assert ages(graph) == {"Alice": 32, "Bob": 42, "Carol": None, "Dan": None}


def test_a_change_taken_back_after_a_crosswise_merge_is_a_change(graph):
    set_age(graph, "main", "Alice", 31)
    set_age(graph, "feature", "Bob", 41)
    graph.create_branch("as-main-was")
    graph.merge("feature")
    graph.merge("as-main-was", "feature")
    set_age(graph, "main", "Alice", 30)
    set_age(graph, "feature", "Alice", 33)
    assert conflicts(lambda: graph.merge("feature")) == [(PERSON, "Alice", "divergent_update")]


@pytest.mark.parametrize(("source", "target"), [("feature", "main"), ("main", "feature")])
def test_ancestors_that_disagree_leave_the_row_to_whoever_merges(graph, source, target):
    set_age(graph, "main", "Alice", 31)
    set_age(graph, "feature", "Alice", 41)
    graph.create_branch("as-main-was")
    graph.merge("feature", strategy="ours")
    graph.merge("as-main-was", "feature", strategy="ours")
    found = conflicts(lambda: graph.merge(source, target))
    assert found == [(PERSON, "Alice", "divergent_update")]
    graph.merge(source, target, strategy="theirs")
    assert ages(graph, target)["Alice"] == ages(graph, source)["Alice"]
