"""Rules that only both sides of a merge together break."""

from __future__ import annotations

import json

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.errors import (
    MergeConflicts,
)
from tests.behaviour.merging import (
    conflicts,
    edge,
    exported,
    four_people,
    lines,
    person,
    remove,
)


@pytest.fixture
def graph(memory_uri: str) -> Graph:
    return four_people(memory_uri)


@pytest.mark.acceptance("S-104")
def test_a_unique_value_on_both_sides_is_a_conflict(memory_uri):
    graph = init(memory_uri, "node Person { name: String @key  email: String? @unique }\n")
    graph.load(lines(person("Alice"), person("Bob")), "append")
    graph.branches.create("feature")
    graph.load(person("Alice", email="x@y").encode(), "merge", branch="feature")
    graph.load(person("Bob", email="x@y").encode(), "merge")
    with pytest.raises(MergeConflicts) as refused:
        graph.merge("feature")
    [conflict] = refused.value.conflicts
    assert (conflict.row_id, conflict.kind) == ("Bob", "unique_violation")
    assert conflict.message == "'Alice' and 'Bob' share Person.email 'x@y'"


EMPLOYERS = """
node Person { name: String @key }
node Company { name: String @key }
edge WorksAt: Person -> Company @card(0..1)
"""


@pytest.mark.acceptance("S-104")
def test_an_employer_from_each_side_is_one_too_many(memory_uri):
    graph = init(memory_uri, EMPLOYERS)
    firms = [json.dumps({"type": "Company", "data": {"name": name}}) for name in ("A", "B")]
    graph.load(lines(person("Alice"), *firms), "append")
    graph.branches.create("feature")
    graph.load(edge("WorksAt", "Alice", "A").encode(), "merge", branch="feature")
    graph.load(edge("WorksAt", "Alice", "B").encode(), "merge")
    found = conflicts(lambda: graph.merge("feature"))
    assert found == [("edge:WorksAt", None, "cardinality_violation")]


@pytest.mark.acceptance("S-105")
def test_pairs_that_share_a_source_are_different_pairs(memory_uri):
    schema = (
        "node Person { name: String @key }\nedge Knows: Person -> Person { @unique(src, dst) }\n"
    )
    graph = init(memory_uri, schema)
    graph.load(lines(*map(person, ["Alice", "Bob", "Carol"])), "append")
    graph.branches.create("feature")
    graph.load(edge("Knows", "Alice", "Bob").encode(), "merge", branch="feature")
    graph.load(edge("Knows", "Alice", "Carol").encode(), "merge")
    graph.merge("feature")
    assert len(exported(graph, "main", "Knows")) == 2


@pytest.mark.acceptance("S-175")
def test_the_same_identified_edge_on_both_sides_is_one_edge(memory_uri):
    edges = "edge Knows: Person -> Person { since: I32?  @unique(src, dst) }\n"
    graph = init(memory_uri, f"node Person {{ name: String @key }}\n{edges}")
    graph.load(lines(person("Alice"), person("Bob")), "append")
    graph.branches.create("feature")
    graph.load(edge("Knows", "Alice", "Bob", since=1).encode(), "merge", branch="feature")
    graph.load(edge("Knows", "Alice", "Bob", since=1).encode(), "merge")
    assert graph.merge("feature").outcome.value == "merged"
    assert len(exported(graph, "main", "Knows")) == 1
    graph.load(edge("Knows", "Bob", "Alice", since=1).encode(), "merge", branch="feature")
    graph.load(edge("Knows", "Bob", "Alice", since=2).encode(), "merge")
    found = conflicts(lambda: graph.merge("feature"))
    assert found == [("edge:Knows", '["Bob","Alice"]', "divergent_insert")]


@pytest.mark.acceptance("S-176")
def test_edges_without_identity_are_all_kept(graph):
    for branch in ("feature", "main"):
        graph.load(edge("Knows", "Alice", "Bob").encode(), "merge", branch=branch)
    graph.merge("feature")
    found = [row for row in exported(graph, "main", "Knows") if row["from"] == "Alice"]
    assert len(found) == 2


def test_an_edge_whose_node_the_other_side_removed_is_an_orphan(graph):
    graph.load(edge("Knows", "Alice", "Dan", id="k2").encode(), "merge", branch="feature")
    remove(graph, "main", "Dan")
    remove(graph, "feature", "Bob")
    graph.load(edge("Knows", "Bob", "Alice", id="k3").encode(), "merge")
    assert conflicts(lambda: graph.merge("feature")) == [
        ("edge:Knows", "k2", "orphan_edge"),
        ("edge:Knows", "k3", "orphan_edge"),
    ]


def test_what_was_wrong_on_one_side_alone_is_not_the_merge_s_business(memory_uri):
    graph = init(memory_uri, EMPLOYERS.replace("0..1", "2.."))
    firms = [json.dumps({"type": "Company", "data": {"name": name}}) for name in ("A", "B")]
    works = [edge("WorksAt", "Alice", name) for name in ("A", "B")]
    graph.load(lines(person("Alice"), *firms, *works), "append")
    graph.branches.create("feature")
    # A delete may leave fewer edges than the minimum.
    graph.mutate('query q() { delete WorksAt where to = "B" }', branch="feature")
    assert graph.merge("feature").outcome.value == "fast_forward"
    assert len(exported(graph, "main", "WorksAt")) == 1
