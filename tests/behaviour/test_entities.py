"""Single entities: one row as JSON or as Python values, at any version, commit or branch."""

from __future__ import annotations

import datetime as dt
import io
import json
from typing import Any

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import (
    BranchNotFound,
    CommitNotFound,
    InputError,
    UnknownType,
    UnknownVersion,
)
from omnigraph.read.entities import get_entity, read_entity
from omnigraph.read.view import ReadView
from omnigraph.storage.filters import Comparison
from omnigraph.storage.table import Table
from tests.behaviour.graphs import COMPANY, PERSON

RICH = """
node Thing {
    name: String @key
    small: I32?  large: U64?  half: F32?  whole: F64?  yes: Bool?
    day: Date?  moment: DateTime?  level: enum(low, high)?
    tags: [String]?  days: [Date]?  place: Vector(2)?  image: Blob?  link: Blob?
}
edge Near: Thing -> Thing { since: Date? }
"""
THING = {
    "name": 'it\'s "one"',
    "small": -7,
    "large": 2**64 - 1,
    "half": 0.1,
    "whole": 1e300,
    "yes": False,
    "day": "2020-01-02",
    "moment": "2020-01-02T03:04:05.006Z",
    "level": "low",
    "tags": ["a", None, "ü"],
    "days": ["1970-01-02"],
    "place": [0.5, -1],
    "image": "base64:SGk=",
    "link": "s3://elsewhere/picture",
}


def person(name: str, age: int | None = None) -> str:
    return json.dumps({"type": "Person", "data": {"name": name, "age": age}}) + "\n"


def as_json(graph: Graph, table_key: str, id: str) -> dict[str, Any] | None:
    """An entity in the forms of an export."""
    return read_entity(graph._snapshot(), graph._core.tables, table_key, id)


@pytest.fixture
def history(graph: Graph) -> Graph:
    """Ada is born, ages, and is gone, in versions 2, 3 and 4."""
    graph.load(person("ada", 1).encode(), "append")
    graph.load((person("ada", 2) + person("bo")).encode(), "merge")
    graph.load(person("bo", 9).encode(), "overwrite")
    return graph


@pytest.mark.acceptance("S-039")
def test_an_entity_is_shown_as_each_version_left_it(history):
    seen = [history.at(version).get("Person", "ada") for version in range(1, 5)]
    assert seen == [
        None,
        {"id": "ada", "age": 1, "name": "ada"},
        {"id": "ada", "age": 2, "name": "ada"},
        None,
    ]
    ages = 'query q() { match { $p: Person { name: "ada" } } return { $p.age } }'
    answers = [history.query(ages, at=version).to_dicts() for version in range(1, 5)]
    assert answers == [[], [{"p.age": 1}], [{"p.age": 2}], []]
    for version in (0, 5):
        with pytest.raises(UnknownVersion):
            history.at(version).get("Person", "ada")
        with pytest.raises(UnknownVersion):
            history.query(ages, at=version)


def test_a_target_is_a_branch_a_commit_or_a_version(history):
    born = history.log(reverse=True)[1].id
    history.branches.create("draft").load(person("ada", 77).encode(), "merge")
    reader = open_graph(history.uri, read_only=True)
    for target, age in ((born, 1), (3, 2), ("draft", 77)):
        found = reader.at(target).get("Person", "ada")
        assert found == {"id": "ada", "age": age, "name": "ada"}
    assert reader.at("main").get("Person", "ada") is None
    assert open_graph(history.uri, branch="draft").at(5).get("Person", "ada") is not None


def test_an_unknown_target_is_an_error_and_not_an_absent_entity(history):
    with pytest.raises(CommitNotFound):
        history.at("nowhere").get("Person", "ada")
    with pytest.raises(BranchNotFound):
        open_graph(history.uri, branch="nowhere")


@pytest.mark.parametrize(
    ("key", "id"),
    [
        (PERSON, "nobody"),
        (PERSON, ""),
        (PERSON, "' or true --"),
        (COMPANY, "bo"),
        ("node:Ghost", "bo"),
        ("edge:Person", "bo"),
        ("Person", "bo"),
        ("", ""),
    ],
)
def test_what_is_not_there_is_none(history, key, id):
    assert as_json(history, key, id) is None


@pytest.mark.parametrize("name", ["o'neil", '"', "a'' or id = 'bo", "\\", "%_", "日本", "a\nb"])
def test_an_id_is_taken_literally(graph, name):
    graph.load((person(name, 1) + person("bo", 2)).encode(), "append")
    found = graph.at(2).get("Person", name)
    assert found == {"id": name, "age": 1, "name": name}


def test_every_kind_of_value_is_shown_as_an_export_writes_it(uri, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_EXTERNAL_BLOBS", "s3://elsewhere")
    graph = init(uri, RICH)
    graph.load(json.dumps({"type": "Thing", "data": THING}).encode(), "append")
    found = as_json(graph, "node:Thing", str(THING["name"]))
    assert found is not None
    half = found.pop("half")
    assert half == pytest.approx(0.1)
    assert found == {
        **{name: value for name, value in THING.items() if name != "half"},
        "id": THING["name"],
        "day": 18263,
        "moment": "2020-01-02T03:04:05.006",
        "days": [1],
        "place": [0.5, -1.0],
    }
    assert next(iter(found)) == "id"
    out = io.BytesIO()
    graph.export(out)
    assert json.loads(out.getvalue())["data"] == {**found, "half": half}


def test_absent_values_are_null(uri):
    graph = init(uri, RICH)
    graph.load(b'{"type": "Thing", "data": {"name": "bare"}}', "append")
    names = sorted(graph.schema.catalog.nodes["Thing"].properties)
    for found in (as_json(graph, "node:Thing", "bare"), graph.get("Thing", "bare")):
        assert found == {"id": "bare", **dict.fromkeys(names), "name": "bare"}
        assert list(found) == ["id", *names]


def test_an_edge_has_its_ends(uri):
    graph = init(uri, RICH)
    lines = [{"type": "Thing", "data": {"name": name}} for name in "ab"]
    edge = {"edge": "Near", "from": "a", "to": "b", "data": {"id": "e1", "since": 5}}
    graph.load("\n".join(map(json.dumps, [*lines, edge])).encode(), "append")
    found = as_json(graph, "edge:Near", "e1")
    assert found == {"id": "e1", "src": "a", "dst": "b", "since": 5}
    assert list(found) == ["id", "src", "dst", "since"]


# -- as Python values ---------------------------------------------------------------------------


def get(graph: Graph, type_name: Any, id: Any, **wanted: Any) -> dict[str, Any] | None:
    return get_entity(graph._snapshot(), graph._core.parts.tables, type_name, id, **wanted)


def test_an_entity_is_had_by_the_name_of_its_type_with_python_values(uri, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_EXTERNAL_BLOBS", "s3://elsewhere")
    graph = init(uri, RICH)
    graph.load(json.dumps({"type": "Thing", "data": THING}).encode(), "append")
    found = get(graph, "Thing", THING["name"])
    assert found is not None
    assert list(found) == ["id", *graph.schema.catalog.nodes["Thing"].properties]
    assert found.pop("half") == pytest.approx(0.1)
    assert found == {
        **{name: value for name, value in THING.items() if name != "half"},
        "id": THING["name"],
        "day": dt.date(2020, 1, 2),
        "moment": dt.datetime(2020, 1, 2, 3, 4, 5, 6000, tzinfo=dt.UTC),
        "days": [dt.date(1970, 1, 2)],
        "place": [0.5, -1.0],
        "image": b"Hi",
    }


def test_an_edge_is_had_by_the_name_of_its_type(uri):
    graph = init(uri, RICH)
    rows = [{"type": "Thing", "data": {"name": name}} for name in "ab"]
    edge = {"edge": "Near", "from": "a", "to": "b", "data": {"id": "e1", "since": 5}}
    graph.load("\n".join(map(json.dumps, [*rows, edge])).encode(), "append")
    found = get(graph, "Near", "e1")
    assert found == {"id": "e1", "src": "a", "dst": "b", "since": dt.date(1970, 1, 6)}
    assert list(found) == ["id", "src", "dst", "since"]
    assert get(graph, "Near", "e2") is None


def test_an_id_of_a_composite_key_is_taken_as_stored(memory_uri):
    graph = init(memory_uri, "node Cell { x: I32  y: Bool  @key(x, y) }")
    graph.load(b'{"type": "Cell", "data": {"x": 1, "y": true}}', "append")
    assert get(graph, "Cell", '["1","true"]') == {"id": '["1","true"]', "x": 1, "y": True}


def test_what_a_type_does_not_have_is_none(history):
    for id in ("nobody", "", "ada", "' or true --"):
        assert get(history, "Person", id) is None
    assert get(history, "Company", "bo") is None


@pytest.mark.parametrize(
    ("type_name", "message"),
    [
        ("Persn", "unknown node or edge type 'Persn'; did you mean `Person`?"),
        ("edge:Person", "unknown node or edge type 'edge:Person'"),
        ("person", "unknown node or edge type 'person'; did you mean `Person`?"),
    ],
)
def test_an_unknown_type_is_an_error_and_not_an_absent_entity(history, type_name, message):
    with pytest.raises(UnknownType) as caught:
        get(history, type_name, "bo")
    assert str(caught.value) == message


def test_arguments_of_a_wrong_kind_are_named(history):
    for id, found in ((None, "NoneType"), (7, "int")):
        with pytest.raises(InputError, match=f"id must be the text of an id, not a {found}"):
            get(history, "Person", id)
    with pytest.raises(InputError, match="type must be the name of a type"):
        get(history, None, "bo")


def test_what_a_view_hides_is_none_or_unknown(graph):
    rows = [person("ada", 1), person("bo", 9)]
    edge = json.dumps({"edge": "Knows", "from": "ada", "to": "bo", "data": {"id": "k"}})
    graph.load(("".join(rows) + edge).encode(), "append")
    elders = ReadView(rows={"Person": Comparison("age", ">", 5)})
    assert get(graph, "Person", "ada", view=elders) is None
    assert get(graph, "Person", "bo", view=elders) is not None
    assert get(graph, "Knows", "k", view=elders) is None
    ageless = ReadView(hidden_properties=frozenset({("Person", "age")}))
    assert get(graph, "Person", "ada", view=ageless) == {"id": "ada", "name": "ada"}
    with pytest.raises(UnknownType):
        get(graph, "Person", "ada", view=ReadView(hidden_types=frozenset({"Person"})))


def test_a_look_up_reads_only_fragments_that_may_have_the_id(local_graph, monkeypatch):
    for number in range(8):
        local_graph.load(person(f"p{number}", number).encode(), "append")
    read: list[list[int] | None] = []
    real = Table._worth_reading

    def noting(self, filter):
        read.append(real(self, filter))
        return read[-1]

    monkeypatch.setattr(Table, "_worth_reading", noting)
    assert get(local_graph, "Person", "p3") == {"id": "p3", "age": 3, "name": "p3"}
    assert [len(fragments or ()) for fragments in read] == [1]
