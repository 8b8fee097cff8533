"""What branches have in common when they merge, after they have merged before."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from omnigraph.api.graph import Graph
from omnigraph.errors import (
    CommitBranchGone,
    MergeConflicts,
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
    graph.branches.create("other")
    set_age(graph, "feature", "Alice", 31)
    lost = graph.head("feature").id
    graph.merge("feature")
    graph.merge("feature", "other")
    graph.branches.delete("feature")
    assert graph.commit(lost).branch == "feature"
    with pytest.raises(CommitBranchGone):
        graph.at(lost)
    assert lost in [commit.id for commit in graph.log(merged=True)]
    assert lost not in [commit.id for commit in graph.log(reverse=True)]
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
    graph.branches.create("as-main-was")
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
    graph.branches.create("as-main-was")
    graph.merge("feature")
    graph.merge("as-main-was", "feature")
    set_age(graph, "main", "Alice", 30)
    set_age(graph, "feature", "Alice", 33)
    assert conflicts(lambda: graph.merge("feature")) == [(PERSON, "Alice", "divergent_update")]


@pytest.mark.parametrize(("source", "target"), [("feature", "main"), ("main", "feature")])
def test_ancestors_that_disagree_leave_the_row_to_the_caller(graph, source, target):
    set_age(graph, "main", "Alice", 31)
    set_age(graph, "feature", "Alice", 41)
    graph.branches.create("as-main-was")
    graph.merge("feature", strategy="ours")
    graph.merge("as-main-was", "feature", strategy="ours")
    found = conflicts(lambda: graph.merge(source, target))
    assert found == [(PERSON, "Alice", "divergent_update")]
    graph.merge(source, target, strategy="theirs")
    assert ages(graph, target)["Alice"] == ages(graph, source)["Alice"]


def test_a_merge_base_outlives_its_branch(graph):
    """Rows that two branches merged from a third do not conflict, even after the third is deleted."""
    graph.branches.create("dev")
    set_age(graph, "feature", "Alice", 31)
    graph.merge("feature")
    graph.merge("feature", "dev")
    graph.branches.delete("feature")
    assert list(graph.branches) == ["main", "dev"]
    set_age(graph, "dev", "Alice", 32)
    assert graph.merge("dev").outcome.value == "merged"
    assert ages(graph)["Alice"] == 32


def test_a_merge_base_whose_state_no_other_commit_has_outlives_its_branch(graph):
    """Both others had changes of their own when they took those of the third."""
    graph.branches.create("dev")
    set_age(graph, "main", "Bob", 41)
    set_age(graph, "dev", "Carol", 51)
    set_age(graph, "feature", "Alice", 31)
    graph.merge("feature")
    graph.merge("feature", "dev")
    graph.branches.delete("feature")
    set_age(graph, "dev", "Alice", 32)
    assert graph.merge("dev").outcome.value == "merged"
    assert ages(graph) == {"Alice": 32, "Bob": 41, "Carol": 51, "Dan": None}


def test_a_branch_of_the_same_name_has_nothing_of_a_retired_one(graph):
    graph.branches.create("dev")
    set_age(graph, "feature", "Alice", 31)
    graph.merge("feature", "dev")
    graph.merge("feature")
    graph.branches.delete("feature")
    set_age(graph, "main", "Alice", 40)
    again = graph.branches.create("feature")
    assert ages(again, "feature")["Alice"] == 40
    set_age(graph, "feature", "Bob", 41)
    set_age(graph, "dev", "Alice", 32)
    graph.branches.delete("feature")
    with pytest.raises(MergeConflicts):
        graph.merge("dev")


def test_a_branch_from_which_a_retired_one_was_made_can_be_deleted(graph):
    dev, other = graph.branches.create("dev"), graph.branches.create("other")
    set_age(graph, "dev", "Bob", 41)
    dev.branches.create("child", "dev")
    set_age(graph, "child", "Alice", 31)
    graph.merge("child")
    graph.merge("child", "other")
    graph.branches.delete("child")
    graph.branches.delete("dev")
    assert list(graph.branches) == ["main", "feature", "other"]
    set_age(other, "other", "Alice", 32)
    assert graph.merge("other").outcome.value == "merged"
    assert (ages(graph)["Alice"], ages(graph)["Bob"]) == (32, 41)


@pytest.mark.parametrize("merged", [False, True])
def test_cleanup_keeps_a_merge_base_as_long_as_two_branches_have_it_in_common(local_uri, merged):
    graph = four_people(local_uri)
    graph.branches.create("dev")
    set_age(graph, "main", "Bob", 41)
    set_age(graph, "feature", "Alice", 31)
    graph.merge("feature")
    graph.merge("feature", "dev")
    graph.branches.delete("feature")
    if merged:
        graph.merge("dev")
    for age in range(50, 53):
        set_age(graph, "main", "Dan", age)
    set_age(graph, "dev", "Alice", 32)
    nothing = timedelta()
    report = graph.maintenance.cleanup(keep_versions=1, older_than=nothing, min_age=nothing)
    reclaimed = [name for name in report.orphans if "feature" in name]
    assert bool(reclaimed) == merged
    assert list(Path(local_uri).glob("**/tree/feature")) == [] or not merged
    assert graph.merge("dev").outcome.value == "merged"
    assert ages(graph)["Alice"] == 32


def test_a_branch_that_no_two_others_have_in_common_leaves_nothing(local_uri):
    graph = four_people(local_uri)
    graph.branches.create("dev")
    set_age(graph, "feature", "Alice", 31)
    graph.merge("feature")
    graph.branches.delete("feature")
    assert list(Path(local_uri).glob("**/tree/feature")) == []
    assert list(Path(local_uri).glob("**/feature.json")) == []
