"""One commit undone, or done again on another branch."""

from __future__ import annotations

import pytest

from omnigraph.engine.graph import Graph, init
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
    undone = graph.head()
    add(graph, "main", "Dan")
    before = graph.head()
    done = graph.revert(undone, actor="ada", message="Bob is back")
    commit = graph.commit(graph.head())
    assert (commit.parents, commit.draft.operation.value) == ((before,), "revert")
    assert (commit.draft.actor_id, commit.draft.message) == ("ada", "Bob is back")
    assert ages(graph) == {"Alice": 30, "Bob": 40, "Dan": None}
    assert [row["data"]["id"] for row in exported(graph, "main", "Knows")] == ["k1"]
    assert done.receipt.counts[PERSON].to_json() == {"inserted": 1, "updated": 0, "deleted": 0}


def test_reverting_a_revert_does_it_again(graph):
    set_age(graph, "main", "Bob", 41)
    graph.revert(graph.head())
    assert ages(graph)["Bob"] == 40
    graph.revert(graph.head())
    assert ages(graph)["Bob"] == 41


def test_a_row_that_has_changed_since_is_a_conflict(graph):
    set_age(graph, "main", "Bob", 41)
    undone = graph.head()
    set_age(graph, "main", "Bob", 42)
    before = graph.head()
    assert conflicts(lambda: graph.revert(undone)) == [(PERSON, "Bob", "divergent_update")]
    assert graph.head() == before
    [conflict] = graph.revert(undone, dry_run=True).conflicts
    assert (conflict.base, conflict.ours, conflict.theirs) == tuple(
        {"id": "Bob", "name": "Bob", "age": age} for age in (41, 42, 40)
    )


def test_an_insert_that_others_have_built_on_is_not_undone(graph):
    add(graph, "main", "Dan")
    undone = graph.head()
    graph.load(edge("Knows", "Dan", "Bob", id="k2").encode())
    assert conflicts(lambda: graph.revert(undone)) == [("edge:Knows", "k2", "orphan_edge")]


def test_undoing_what_is_undone_already_commits_nothing(graph):
    set_age(graph, "main", "Bob", 41)
    undone = graph.head()
    set_age(graph, "main", "Bob", 40)
    before = graph.head()
    done = graph.revert(undone)
    assert (done.receipt.graph_commit_id, graph.head()) == (None, before)


def test_a_merge_is_undone_as_a_whole(graph):
    graph.create_branch("feature")
    set_age(graph, "feature", "Bob", 41)
    add(graph, "feature", "Dan")
    set_age(graph, "main", "Alice", 31)
    graph.merge("feature")
    graph.revert(graph.head())
    assert ages(graph) == {"Alice": 31, "Bob": 40}


def test_a_commit_is_undone_on_another_branch_than_its_own(graph):
    set_age(graph, "main", "Bob", 41)
    undone = graph.head()
    graph.create_branch("feature")
    before = pins(graph)
    graph.revert(undone, branch="feature")
    assert (ages(graph, "feature")["Bob"], pins(graph)) == (40, before)


def test_a_commit_of_a_branch_is_picked_alone(graph):
    graph.create_branch("feature")
    add(graph, "feature", "Dan")
    set_age(graph, "feature", "Bob", 41)
    picked = graph.head("feature")
    add(graph, "feature", "Eve")
    before = graph.head()
    done = graph.cherry_pick(picked)
    commit = graph.commit(graph.head())
    assert (commit.parents, commit.draft.operation.value) == ((before,), "cherry_pick")
    assert (ages(graph), done.commit_id) == ({"Alice": 30, "Bob": 41}, picked)


def test_what_a_picked_commit_builds_on_has_to_be_there(graph):
    graph.create_branch("feature")
    add(graph, "feature", "Dan")
    set_age(graph, "feature", "Dan", 5)
    picked = graph.head("feature")
    assert conflicts(lambda: graph.cherry_pick(picked)) == [(PERSON, "Dan", "delete_vs_update")]
    found = graph.cherry_pick(picked, dry_run=True)
    assert (found.commit_id, len(found.conflicts)) == (picked, 1)


def test_commits_that_changed_no_rows_or_are_unknown_are_refused(graph):
    first = graph.commits()[0].graph_commit_id
    with pytest.raises(InputError):
        graph.revert(first)
    with pytest.raises(CommitNotFound):
        graph.cherry_pick("01ARZ3NDEKTSV4RRFFQ69G5FAV")
