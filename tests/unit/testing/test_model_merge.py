"""Merging in the reference graph: the truth table of one row, merge bases, rules of the result."""

from __future__ import annotations

import pytest

from tests.support.outcome import Refusal
from tests.unit.testing.graphs import graph_of, run

SCHEMA = "node Person { name: String @key  age: I32? }"


def write(graph, branch, age):
    """Bring one person to a state: an age, or gone."""
    here = any('"p"' in line for line in graph.export(branch))
    if age is None and here:
        run(graph, 'delete Person where name = "p"', branch)
    elif age is not None:
        run(graph, f'insert Person {{ name: "p", age: {age} }}', branch)


@pytest.mark.parametrize(
    ("base", "source", "target", "expected"),
    [
        (None, 1, None, 1),
        (None, None, 2, 2),
        (None, 1, 1, 1),
        (None, 1, 2, "divergent_insert"),
        (0, 0, 0, 0),
        (0, 0, 2, 2),
        (0, 0, None, None),
        (0, 1, 0, 1),
        (0, 1, 1, 1),
        (0, 1, 2, "divergent_update"),
        (0, 1, None, "delete_vs_update"),
        (0, None, 0, None),
        (0, None, 2, "delete_vs_update"),
        (0, None, None, None),
    ],
)
def test_the_three_states_of_a_row_decide(base, source, target, expected):
    graph = graph_of(SCHEMA)
    run(graph, 'insert Person { name: "other" }')
    write(graph, "main", base)
    graph.create_branch("feature")
    # Both sides get a commit of their own, so that the merge looks at rows and not at heads.
    run(graph, 'insert Person { name: "left" }', "feature")
    run(graph, 'insert Person { name: "right" }')
    write(graph, "feature", source)
    write(graph, "main", target)
    if isinstance(expected, str):
        with pytest.raises(Refusal) as refusal:
            graph.merge("feature")
        (conflict,) = refusal.value.conflicts
        assert (conflict.table_key, conflict.row_id, conflict.kind) == (
            "node:Person",
            "p",
            expected,
        )
        return
    before = graph.head().id
    graph.merge("feature")
    row = graph.at("main").tables["node:Person"].get("p")
    assert (row and row["age"]) == expected
    touched = {change.id for change in graph.diff(before, "main")}
    assert touched == {"left"} | ({"p"} if expected != target else set())


def test_a_merge_commit_has_both_heads_as_parents():
    graph = graph_of(SCHEMA)
    graph.create_branch("feature")
    run(graph, 'insert Person { name: "p" }', "feature")
    source, target = graph.head("feature"), graph.head()
    graph.merge("feature", actor="ada", message="review done")
    merged = graph.head()
    assert merged.parents == (target.id, source.id)
    assert (merged.operation, merged.actor, merged.message) == ("merge", "ada", "review done")
    assert [c.operation for c in graph.commits()] == ["init", "merge"]


def test_after_a_merge_the_source_s_head_is_the_base():
    graph = graph_of(SCHEMA)
    graph.create_branch("feature")
    run(graph, 'insert Person { name: "p", age: 1 }', "feature")
    graph.merge("feature")
    run(graph, 'update Person set { age: 2 } where name = "p"', "feature")
    run(graph, 'insert Person { name: "q" }')
    graph.merge("feature")
    people = graph.at("main").tables["node:Person"]
    assert {id: row["age"] for id, row in people.items()} == {"p": 2, "q": None}


def test_ancestry_outlives_the_branch_it_came_from():
    graph = graph_of(SCHEMA)
    graph.create_branch("feature")
    run(graph, 'insert Person { name: "p" }', "feature")
    graph.create_branch("other", "main")
    graph.merge("feature", into="other")
    lost = graph.head("feature").id
    graph.merge("feature")
    graph.delete_branch("feature")
    assert graph.merge("other").outcome == "merged"
    with pytest.raises(Refusal, match="gone"):
        graph.at(lost)


def test_every_row_conflict_is_listed_and_rules_are_validated_only_without_any():
    graph = graph_of("node P { n: String @key  a: I32?  u: String? @unique }  edge K: P -> P")
    run(graph, 'insert P { n: "x" }  insert P { n: "y" }  insert P { n: "z" }')
    graph.create_branch("feature")
    run(
        graph,
        'update P set { a: 1 } where n <= "y"  update P set { u: "s" } where n = "x"',
        "feature",
    )
    run(graph, 'update P set { a: 2 } where n <= "y"  update P set { u: "s" } where n = "z"')
    with pytest.raises(Refusal) as refusal:
        graph.merge("feature")
    assert [(c.row_id, c.kind) for c in refusal.value.conflicts] == [
        ("x", "divergent_update"),
        ("y", "divergent_update"),
    ]


def test_an_edge_with_both_ends_gone_is_two_conflicts():
    graph = graph_of("node P { n: String @key }  edge K: P -> P")
    run(graph, 'insert P { n: "x" }  insert P { n: "y" }')
    graph.create_branch("feature")
    run(graph, 'insert K { from: "x", to: "y" }', "feature")
    run(graph, 'delete P where n >= "x"')
    with pytest.raises(Refusal) as refusal:
        graph.merge("feature")
    assert [c.kind for c in refusal.value.conflicts] == ["orphan_edge", "orphan_edge"]
    assert refusal.value.message.startswith("merge conflicts: edge:K:")


def test_the_message_shows_three_conflicts_and_counts_the_rest():
    graph = graph_of(SCHEMA)
    names = ["a", "b", "c", "d", "e"]
    for name in names:
        run(graph, f'insert Person {{ name: "{name}" }}')
    graph.create_branch("feature")
    run(graph, 'update Person set { age: 1 } where name >= "a"', "feature")
    run(graph, 'update Person set { age: 2 } where name >= "a"')
    with pytest.raises(Refusal) as refusal:
        graph.merge("feature")
    assert refusal.value.message.endswith("node:Person:c (divergent_update); and 2 more")
    assert len(refusal.value.conflicts) == 5
