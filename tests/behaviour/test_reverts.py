"""One commit undone, or done again on another branch."""

from __future__ import annotations

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.errors import CommitNotFound, InputError
from tests.behaviour.graphs import PERSON, SCHEMA, pins
from tests.behaviour.merging import (
    add,
    ages,
    conflicts,
    edge,
    exported,
    lines,
    person,
    remove,
    set_age,
)


@pytest.fixture
def graph(memory_uri: str) -> Graph:
    graph = init(memory_uri, SCHEMA)
    rows = [person("Alice", age=30), person("Bob", age=40)]
    graph.load(lines(*rows, edge("Knows", "Alice", "Bob", id="k1")), "append")
    return graph


def test_a_commit_is_undone_by_a_commit(graph):
    remove(graph, "main", "Bob")
    undone = graph.head().id
    add(graph, "main", "Dan")
    before = graph.head().id
    done = graph.as_actor("ada").revert(undone, message="Bob is back")
    commit = graph.commit(graph.head().id)
    assert (commit.parents, commit.operation) == ((before,), "revert")
    assert (commit.actor, commit.message) == ("ada", "Bob is back")
    assert ages(graph) == {"Alice": 30, "Bob": 40, "Dan": None}
    assert [row["data"]["id"] for row in exported(graph, "main", "Knows")] == ["k1"]
    assert done.receipt.counts[PERSON].to_json() == {"inserted": 1, "updated": 0, "deleted": 0}


def test_reverting_a_revert_does_it_again(graph):
    set_age(graph, "main", "Bob", 41)
    graph.revert(graph.head().id)
    assert ages(graph)["Bob"] == 40
    graph.revert(graph.head().id)
    assert ages(graph)["Bob"] == 41


def test_a_row_that_has_changed_since_is_a_conflict(graph):
    set_age(graph, "main", "Bob", 41)
    undone = graph.head().id
    set_age(graph, "main", "Bob", 42)
    before = graph.head().id
    assert conflicts(lambda: graph.revert(undone)) == [(PERSON, "Bob", "divergent_update")]
    assert graph.head().id == before
    [conflict] = graph.revert(undone, dry_run=True).conflicts
    assert (conflict.base, conflict.ours, conflict.theirs) == tuple(
        {"id": "Bob", "name": "Bob", "age": age} for age in (41, 42, 40)
    )


def test_an_insert_that_others_have_built_on_is_not_undone(graph):
    add(graph, "main", "Dan")
    undone = graph.head().id
    graph.load(edge("Knows", "Dan", "Bob", id="k2").encode(), "merge")
    assert conflicts(lambda: graph.revert(undone)) == [("edge:Knows", "k2", "orphan_edge")]


def test_undoing_what_is_undone_already_commits_nothing(graph):
    set_age(graph, "main", "Bob", 41)
    undone = graph.head().id
    set_age(graph, "main", "Bob", 40)
    before = graph.head().id
    done = graph.revert(undone)
    assert (done.receipt.graph_commit_id, graph.head().id) == (None, before)


def test_a_merge_is_undone_as_a_whole(graph):
    graph.branches.create("feature")
    set_age(graph, "feature", "Bob", 41)
    add(graph, "feature", "Dan")
    set_age(graph, "main", "Alice", 31)
    graph.merge("feature")
    graph.revert(graph.head().id)
    assert ages(graph) == {"Alice": 31, "Bob": 40}


def test_a_commit_is_undone_on_another_branch_than_its_own(graph):
    set_age(graph, "main", "Bob", 41)
    undone = graph.head().id
    graph.branches.create("feature")
    before = pins(graph)
    graph.revert(undone, branch="feature")
    assert (ages(graph, "feature")["Bob"], pins(graph)) == (40, before)


def test_a_commit_of_a_branch_is_picked_alone(graph):
    graph.branches.create("feature")
    add(graph, "feature", "Dan")
    set_age(graph, "feature", "Bob", 41)
    picked = graph.head("feature").id
    add(graph, "feature", "Eve")
    before = graph.head().id
    done = graph.cherry_pick(picked)
    commit = graph.commit(graph.head().id)
    assert (commit.parents, commit.operation) == ((before,), "cherry_pick")
    assert (ages(graph), done.source_commit_id) == ({"Alice": 30, "Bob": 41}, picked)
    assert done.commit_id == commit.id


def test_what_a_picked_commit_builds_on_has_to_be_there(graph):
    graph.branches.create("feature")
    add(graph, "feature", "Dan")
    set_age(graph, "feature", "Dan", 5)
    picked = graph.head("feature").id
    assert conflicts(lambda: graph.cherry_pick(picked)) == [(PERSON, "Dan", "delete_vs_update")]
    found = graph.cherry_pick(picked, dry_run=True)
    assert (found.source_commit_id, len(found.conflicts)) == (picked, 1)
    assert found.commit_id is None


def test_commits_that_changed_no_rows_or_are_unknown_are_refused(graph):
    first = graph.log(reverse=True)[0].id
    with pytest.raises(InputError, match="is of init and changed no rows"):
        graph.revert(first)
    with pytest.raises(CommitNotFound):
        graph.cherry_pick("01ARZ3NDEKTSV4RRFFQ69G5FAV")
