"""The net change between two states of a graph, and the life of one entity."""

from __future__ import annotations

import json

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.errors import CommitNotFound, InputError
from tests.behaviour.graphs import PERSON, SCHEMA
from tests.behaviour.merging import add, edge, lines, person, remove, set_age


@pytest.fixture
def graph(memory_uri: str) -> Graph:
    graph = init(memory_uri, SCHEMA)
    rows = [person("Alice", age=30), person("Bob", age=40), person("Carol")]
    graph.load(lines(*rows, edge("Knows", "Bob", "Carol", id="k1")), "append")
    return graph


def changes(
    graph: Graph, before: str | int, after: str | int, **wanted
) -> list[tuple[str, str, str]]:
    found = graph.diff(before, after, **wanted).to_arrow().to_pylist()
    return [(c["op"], c["table_key"], c["id"]) for c in found]


@pytest.mark.acceptance("S-040")
def test_inserts_updates_and_deletes_with_the_edges_that_went_along(graph):
    before = graph.head().id
    add(graph, "main", "Dan")
    set_age(graph, "main", "Alice", 31)
    remove(graph, "main", "Bob")
    found = graph.diff(before, "main")
    assert found.to_json(rows=True)["changes"] == [
        {
            "table_key": "edge:Knows",
            "kind": "edge",
            "type_name": "Knows",
            "id": "k1",
            "op": "delete",
            "endpoints": {"src": "Bob", "dst": "Carol"},
            "before": {"id": "k1", "src": "Bob", "dst": "Carol", "since": None},
            "after": None,
        },
        _change("Alice", "update", 30, 31),
        _change("Bob", "delete", 40, None),
        _change("Dan", "insert", None, None),
    ]
    assert found.stats() == {
        "inserts": 1,
        "updates": 1,
        "deletes": 2,
        "types_affected": ["Knows", "Person"],
    }


def _change(name: str, op: str, before: int | None, after: int | None) -> dict[str, object]:
    change = {"table_key": PERSON, "kind": "node", "type_name": "Person", "id": name, "op": op}
    return change | {
        "before": None if op == "insert" else {"id": name, "name": name, "age": before},
        "after": None if op == "delete" else {"id": name, "name": name, "age": after},
    }


@pytest.mark.acceptance("S-041")
def test_a_change_of_a_value_on_a_branch_is_one_update(graph):
    graph.branches.create("feature")
    set_age(graph, "feature", "Bob", 41)
    assert changes(graph, "main", "feature") == [("update", PERSON, "Bob")]


@pytest.mark.acceptance("S-042")
@pytest.mark.parametrize("branch", ["main", "feature"])
def test_a_row_written_again_with_the_same_values_is_no_change(graph, branch):
    graph.branches.create("feature")
    before = graph.head().id
    graph.load(person("Bob", age=40).encode(), "merge", branch=branch)
    assert changes(graph, before, branch) == []


@pytest.mark.acceptance("S-036")
def test_a_diff_of_two_branches_does_not_depend_on_the_handle(graph):
    feature = graph.branches.create("feature")
    set_age(graph, "feature", "Bob", 41)
    add(graph, "main", "Dan")
    one, other = graph.head().id, graph.head("feature").id
    assert graph.diff(one, other).to_json() == feature.diff(one, other).to_json()
    assert changes(feature, one, other) == [("update", PERSON, "Bob"), ("delete", PERSON, "Dan")]


def test_a_diff_goes_both_ways_and_takes_versions(graph):
    add(graph, "main", "Dan")
    assert changes(graph, 2, 3) == [("insert", PERSON, "Dan")]
    assert changes(graph, 3, 2) == [("delete", PERSON, "Dan")]
    with pytest.raises(CommitNotFound):
        graph.diff("main", "nowhere")


def test_a_merge_shows_only_what_it_brought(graph):
    graph.branches.create("feature")
    set_age(graph, "feature", "Bob", 41)
    set_age(graph, "main", "Alice", 31)
    before = graph.head().id
    graph.merge("feature")
    assert changes(graph, before, "main") == [("update", PERSON, "Bob")]


def test_changes_can_be_narrowed_down(graph):
    before = graph.head().id
    remove(graph, "main", "Bob")
    add(graph, "main", "Dan")
    assert changes(graph, before, "main", types=["Knows"]) == [("delete", "edge:Knows", "k1")]
    assert changes(graph, before, "main", kinds=["node"], ops=["delete"]) == [
        ("delete", PERSON, "Bob")
    ]
    for wrong, message in (
        ({"types": ["Robot"]}, "there is no type 'Robot'"),
        ({"kinds": ["vertex"]}, "a kind is node or edge, not vertex"),
        ({"ops": ["merge"]}, "an operation is insert, update or delete"),
    ):
        with pytest.raises(InputError, match=message):
            graph.diff(before, "main", **wrong)


def test_pages_follow_each_other_without_a_gap(graph):
    before = graph.head().id
    for number in range(5):
        add(graph, "main", f"p{number}")
    remove(graph, "main", "Bob")
    found = graph.diff(before, "main")
    pages, cursor = [], None
    while True:
        page = found.to_json(limit=3, cursor=cursor)
        pages.append([change["id"] for change in page["changes"]])
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert pages == [["k1", "Bob", "p0"], ["p1", "p2", "p3"], ["p4"]]
    with pytest.raises(InputError, match="not a valid diff cursor"):
        found.to_json(cursor="nonsense")


def test_values_are_there_as_columns_too(graph):
    before = graph.head().id
    set_age(graph, "main", "Bob", 41)
    add(graph, "main", "Dan")
    rows = graph.diff(before, "main").values("Person").to_pylist()
    assert rows == [
        {
            "op": "update",
            "id": "Bob",
            "before": {"id": "Bob", "age": 40, "name": "Bob"},
            "after": {"id": "Bob", "age": 41, "name": "Bob"},
        },
        {
            "op": "insert",
            "id": "Dan",
            "before": None,
            "after": {"id": "Dan", "age": None, "name": "Dan"},
        },
    ]


def test_a_change_tells_the_version_that_wrote_its_row_where_it_means_something(graph):
    before = graph.head().id
    set_age(graph, "main", "Bob", 41)
    wrote = graph._snapshot().entry(PERSON).version
    remove(graph, "main", "Alice")
    found = graph.diff(before, "main").to_arrow().select(["id", "manifest_version", "row_version"])
    version = graph._snapshot().version
    assert found.to_pylist() == [
        {"id": "Alice", "manifest_version": version, "row_version": None},
        {"id": "Bob", "manifest_version": version, "row_version": wrote},
    ]
    graph.branches.create("feature")
    set_age(graph, "feature", "Bob", 42)
    across = graph.diff("main", "feature").to_arrow()
    assert across.column("row_version").to_pylist() == [None]


def test_changes_of_every_kind_of_value_are_seen(memory_uri):
    graph = init(
        memory_uri,
        "node Thing { slug: String @key  tags: [String]?  vec: Vector(2)?  file: Blob?  f: F64? }\n",
    )

    def put(**data: object) -> None:
        record = {"type": "Thing", "data": {"slug": "a", **data}}
        graph.load(json.dumps(record).encode(), "merge")

    put(tags=["x"], vec=[1, 2], file="base64:YQ==", f=1.5)
    start = graph.head().id
    put(tags=["x"], vec=[1, 2], file="base64:YQ==", f=1.5)
    assert changes(graph, start, "main") == []
    for different in (
        {"tags": ["x", "y"], "vec": [1, 2], "file": "base64:YQ==", "f": 1.5},
        {"tags": ["x"], "vec": [1, 3], "file": "base64:YQ==", "f": 1.5},
        {"tags": ["x"], "vec": [1, 2], "file": "base64:Yg==", "f": 1.5},
        {"tags": ["x"], "vec": [1, 2], "file": "base64:YQ==", "f": None},
        {"tags": [], "vec": [1, 2], "file": "base64:YQ==", "f": 1.5},
    ):
        put(**different)
        assert changes(graph, start, "main") == [("update", "node:Thing", "a")]


def test_the_life_of_an_entity_is_told_commit_by_commit(graph):
    set_age(graph, "main", "Bob", 41)
    add(graph, "main", "Dan")
    graph.load(person("Bob", age=41).encode(), "merge")
    remove(graph, "main", "Bob")
    changes = [
        (c.op.value, c.before and c.before["age"], c.after and c.after["age"])
        for c in graph.history("Person", "Bob")
    ]
    assert changes == [("insert", None, 40), ("update", 40, 41), ("delete", 41, None)]
    assert list(graph.history("Person", "Nobody")) == []
    with pytest.raises(InputError, match="'Robot'"):
        list(graph.history("Robot", "x"))
