"""A graph at an earlier commit answers every question as it would have then."""

from __future__ import annotations

import io
import json

import pytest

import omnigraph as og
from omnigraph.errors import CommitNotFound, InputError, TypeCheckError

SCHEMA = """
node Person { name: String @key  age: I32?  photo: Blob? }
edge Knows: Person -> Person
"""
AGES = """query q($least: I32) {
    match { $p: Person  $p.age >= $least }
    return { $p.name, $p.age }
    order { $p.name }
}"""
FRIENDS = "query q() { match { $a knows $b } return { count($b) as n } }"


@pytest.fixture
def graph(tmp_path) -> og.Graph:
    """Ada alone; then with Bo, whom she knows; then older and without him."""
    graph = og.init(tmp_path / "g.omni", SCHEMA)
    graph.mutate(
        'query q($photo: Blob) { insert Person { name: "ada", age: 1, photo: $photo } }',
        {"photo": "base64:SGk="},
    )
    graph.mutate(
        'query q() { insert Person { name: "bo", age: 5 } insert Knows { from: "ada", to: "bo" } }'
    )
    graph.mutate(
        'query q() { update Person set { age: 2 } where name = "ada" delete Person where name = "bo" }'
    )
    return graph


def test_questions_of_every_kind_are_answered_as_of_then(graph):
    then = graph.at(3)
    assert [(row["p.name"], row["p.age"]) for row in then.query(AGES, {"least": 0})] == [
        ("ada", 1),
        ("bo", 5),
    ]
    assert then.query(AGES, {"least": 3}).to_dicts() == [{"p.name": "bo", "p.age": 5}]
    assert then.query(FRIENDS).to_dicts() == [{"n": 1}]
    assert then.explain(FRIENDS, analyze=True).steps[-1].measured.rows == 1
    assert then.get("Person", "ada") == {
        "id": "ada",
        "age": 1,
        "name": "ada",
        "photo": b"Hi",
    }
    assert then.get("Person", "cy") is None
    assert then.blobs.open("Person", "ada", "photo").read() == b"Hi"
    lines = io.BytesIO()
    assert then.export(lines, types=["Person"]) == 2
    assert [
        json.loads(line)["data"]["name"] for line in lines.getvalue().decode().splitlines()
    ] == [
        "ada",
        "bo",
    ]


def test_a_moment_is_named_by_number_commit_or_branch(graph, tmp_path):
    commits = graph.log(reverse=True)
    for version, commit in enumerate(commits, start=1):
        for then in (graph.at(version), graph.at(commit.id)):
            assert (then.number, then.commit_id) == (version, commit.id)
            assert (then.branch, then._snapshot.branch) == ("main", "main")
            result = then.query(FRIENDS)
            assert (result.commit_id, result.snapshot) == (then.commit_id, then.commit_id)
    draft = graph.branches.create("draft")
    draft.mutate('query q() { insert Person { name: "cy", age: 9 } }')
    assert graph.at("draft").query(AGES, {"least": 9}).row_count == 1
    with pytest.raises(CommitNotFound):
        graph.at("nowhere")


def test_its_answers_stay_whatever_is_committed_later(graph):
    now = graph.at("main")
    graph.mutate('query q() { insert Person { name: "dee", age: 70 } }')
    assert now.query(AGES, {"least": 0}).row_count == 1
    assert graph.query(AGES, {"least": 0}).row_count == 2


def test_it_is_asked_under_the_names_of_today(graph):
    before = graph.head().id
    next_schema = SCHEMA.replace("age: I32?", 'years: I32? @rename_from("age")  city: String?')
    graph.schema.apply(next_schema)
    then = graph.at(before)
    question = "query q() { match { $p: Person } return { $p.years, $p.city } }"
    assert then.query(question).to_dicts() == [{"p.years": 2, "p.city": None}]
    assert sorted(then.catalog.nodes["Person"].properties) == ["city", "name", "photo", "years"]


def test_a_view_and_a_name_that_is_none_are_heeded(graph):
    hidden = og.ReadView(hidden_types=frozenset({"Knows"}))
    with pytest.raises(TypeCheckError):
        graph.at(3).query(FRIENDS, view=hidden)
    with pytest.raises(InputError, match="name must be a string, not dict"):
        graph.at(3).query(AGES, name={"least": 1})
    with pytest.raises(InputError, match="pass either branch or at, not both"):
        graph.query(FRIENDS, branch="main", at=3)


def test_it_changes_nothing_and_says_what_it_is(graph):
    then = graph.at(2)
    assert not hasattr(then, "mutate")
    assert repr(then) == f"GraphAt({then.commit_id!r}, branch='main', number=2)"
