"""Differences as a reader sees them who may not see everything."""

from __future__ import annotations

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.errors import InputError
from omnigraph.read.view import ReadView
from omnigraph.storage.filters import Comparison
from tests.behaviour.graphs import PERSON, SCHEMA
from tests.behaviour.merging import edge, lines, person, remove, set_age

GROWN_UPS = ReadView(rows={"Person": Comparison("age", ">", 35)})


@pytest.fixture
def graph(memory_uri: str) -> Graph:
    graph = init(memory_uri, SCHEMA)
    rows = [person("Alice", age=30), person("Bob", age=40), person("Carol")]
    graph.load(lines(*rows, edge("Knows", "Bob", "Carol", id="k1")), "append")
    return graph


def changes(graph: Graph, before: str, after: str, **wanted) -> list[tuple[str, str, str]]:
    found = graph.diff(before, after, **wanted).to_arrow().to_pylist()
    return [(c["op"], c["table_key"], c["id"]) for c in found]


def test_what_a_reader_may_not_see_has_not_changed(graph):
    before = graph.head().id
    set_age(graph, "main", "Bob", 41)
    remove(graph, "main", "Carol")
    without_ages = ReadView(hidden_properties=frozenset({("Person", "age")}))
    assert changes(graph, before, "main", view=without_ages) == [
        ("delete", "edge:Knows", "k1"),
        ("delete", PERSON, "Carol"),
    ]
    without_people = ReadView(hidden_types=frozenset({"Person"}))
    assert changes(graph, before, "main", view=without_people) == []
    with pytest.raises(InputError, match="no type 'Person'"):
        graph.diff(before, "main", types=["Person"], view=without_people)


def test_a_row_that_becomes_visible_was_inserted_for_its_reader(graph):
    graph.load(edge("Knows", "Alice", "Carol", id="k2").encode(), "merge")
    before = graph.head().id
    set_age(graph, "main", "Alice", 80)
    set_age(graph, "main", "Bob", 10)
    set_age(graph, "main", "Carol", 70)
    graph.mutate('query q() { delete Knows where from = "Bob" }')
    assert changes(graph, before, "main", view=GROWN_UPS) == [
        ("insert", "edge:Knows", "k2"),
        ("insert", PERSON, "Alice"),
        ("delete", PERSON, "Bob"),
        ("insert", PERSON, "Carol"),
    ]
    unseen = ReadView(
        hidden_properties=frozenset({("Person", "age")}),
        rows={"Person": Comparison("age", "<", 90)},
    )
    assert changes(graph, before, "main", view=unseen) == [
        ("insert", "edge:Knows", "k2"),
        ("insert", PERSON, "Carol"),
    ]


def test_an_unchanged_edge_becomes_visible_and_invisible_with_its_endpoints(graph):
    graph.load(person("Carol", age=50).encode(), "merge")
    seen = graph.head().id
    set_age(graph, "main", "Carol", 20)
    hidden = graph.head().id
    assert changes(graph, seen, hidden, view=GROWN_UPS) == [
        ("delete", "edge:Knows", "k1"),
        ("delete", PERSON, "Carol"),
    ]
    assert changes(graph, hidden, seen, view=GROWN_UPS, types=["Knows"]) == [
        ("insert", "edge:Knows", "k1")
    ]
    assert changes(graph, seen, hidden) == [("update", PERSON, "Carol")]


def test_an_edge_with_an_endpoint_that_stays_invisible_has_not_changed(graph):
    before = graph.head().id
    set_age(graph, "main", "Bob", 20)
    assert changes(graph, before, "main", view=GROWN_UPS) == [("delete", PERSON, "Bob")]


def test_an_edge_that_was_changed_while_its_endpoint_became_invisible_is_gone(graph):
    graph.load(person("Carol", age=50).encode(), "merge")
    before = graph.head().id
    graph.load(edge("Knows", "Bob", "Carol", id="k1", since="2020-01-01").encode(), "merge")
    set_age(graph, "main", "Bob", 20)
    assert changes(graph, before, "main", view=GROWN_UPS) == [
        ("delete", "edge:Knows", "k1"),
        ("delete", PERSON, "Bob"),
    ]
