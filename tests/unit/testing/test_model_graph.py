"""Commits, branches, time travel and schema changes of the reference graph."""

from __future__ import annotations

import pytest

from omnigraph.catalog.compile import build_declared, build_schema
from omnigraph.catalog.migrate import carry_identities, plan_migration
from omnigraph.language.syntax import Source
from tests.support.model import ReferenceGraph, explain_difference, snapshot_equal
from tests.support.outcome import Counts, Refusal
from tests.unit.testing.graphs import graph_of, run, run_with

SCHEMA = "node Person { name: String @key  age: I32? }  edge Knows: Person -> Person"


def apply(graph: ReferenceGraph, schema: str):
    desired = build_declared(Source("<schema>", schema))
    accepted = graph.catalog.ir
    plan = plan_migration(accepted, desired)
    return graph.apply_schema(carry_identities(accepted, desired, plan))


def test_a_new_graph_has_one_commit():
    graph = graph_of(SCHEMA)
    (genesis,) = graph.commits()
    assert (genesis.operation, genesis.sequence, genesis.parents) == ("init", 1, ())
    assert graph.export() == []


def test_a_commit_carries_its_receipt():
    graph = graph_of(SCHEMA)
    before = graph.head().id
    receipt = graph.load(
        '{"type":"Person","data":{"name":"a"}}', actor="ada", message="first"
    ).receipt
    head = graph.head()
    assert receipt == head.receipt
    assert (receipt.commit, receipt.parent, receipt.version) == (head.id, before, 2)
    assert (receipt.actor, head.message, receipt.branch) == ("ada", "first", "main")
    assert receipt.counts == {"node:Person": Counts(inserted=1)}


def test_a_write_without_effect_has_a_receipt_without_commit():
    graph = graph_of(SCHEMA)
    receipt = run(graph, 'delete Person where name = "nobody"').receipt
    assert (receipt.commit, receipt.parent, receipt.version) == (None, graph.head().id, 1)


def test_versions_and_commits_are_read_as_they_were():
    graph = graph_of(SCHEMA)
    run(graph, 'insert Person { name: "a" }')
    second = graph.head().id
    run(graph, 'insert Person { name: "b" }')
    assert len(graph.at(1).tables["node:Person"]) == 0
    assert len(graph.at(2).tables["node:Person"]) == 1
    assert snapshot_equal(graph.at(second), graph.at(2))
    assert len(graph.at("main").tables["node:Person"]) == 2
    for version in (0, 4):
        with pytest.raises(Refusal, match=f"no version {version}"):
            graph.at(version)
    with pytest.raises(Refusal, match="commit 'nope' not found"):
        graph.at("nope")


def test_a_branch_continues_the_numbering_of_its_source():
    graph = graph_of(SCHEMA)
    run(graph, 'insert Person { name: "a" }')
    graph.create_branch("draft")
    run(graph, 'insert Person { name: "b" }', "draft")
    assert [c.sequence for c in graph.commits("draft")] == [1, 2, 3]
    assert [c.branch for c in graph.commits("draft")] == ["main", "main", "draft"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("", "bad_request"),
        ("  ", "bad_request"),
        ("a b", "bad_request"),
        ("/a", "bad_request"),
        ("a/", "bad_request"),
        ("a..b", "bad_request"),
        ("a\\b", "bad_request"),
        ("x" * 121, "bad_request"),
        ("/__schema_apply_lock__", "bad_request"),
    ],
)
def test_names_that_are_no_branch_names(name, kind):
    with pytest.raises(Refusal) as refusal:
        graph_of(SCHEMA).create_branch(name)
    assert refusal.value.kind == kind


def test_names_are_trimmed():
    graph = graph_of(SCHEMA)
    graph.create_branch(" draft ")
    assert graph.branches() == ["main", "draft"]
    assert graph.head(" draft").id == graph.head().id


def test_a_load_id_is_found_on_branches_made_later():
    graph = graph_of(SCHEMA)
    data = '{"type":"Person","data":{"name":"a"}}'
    first = graph.load(data, "append", load_id="job-1")
    graph.create_branch("draft")
    again = graph.load(data, "append", branch="draft", load_id="job-1")
    assert again.replayed
    assert again.receipt == first.receipt
    with pytest.raises(Refusal, match="invalid load id"):
        graph.load(data, load_id="no spaces")


def test_a_refused_load_into_a_new_branch_makes_no_branch():
    graph = graph_of(SCHEMA)
    with pytest.raises(Refusal):
        graph.load("{}", branch="draft", base="main")
    assert graph.branches() == ["main"]


def test_ids_come_from_where_the_caller_says():
    schema = build_schema(Source("<schema>", "node Note { text: String? }"))
    graph = ReferenceGraph(schema, ids=iter(["first", "second"]))
    run(graph, 'insert Note { text: "a" }')
    graph.load('{"type":"Note","data":{}}')
    assert sorted(graph.at("main").tables["node:Note"]) == ["first", "second"]


def test_an_edge_needs_both_ends():
    graph = graph_of(SCHEMA)
    run(graph, 'insert Person { name: "a" }')
    query = 'query q($to: String?) { insert Knows { from: "a", to: $to } }'
    with pytest.raises(Refusal, match="both ends"):
        run_with(graph, query, to=None)


# Schema changes


def test_values_follow_their_property_through_a_rename():
    graph = graph_of(SCHEMA)
    run(graph, 'insert Person { name: "a", age: 3 }')
    before = graph.head().id
    receipt = apply(
        graph,
        'node Human @rename_from("Person") { name: String @key  years: I32? @rename_from("age") }'
        "  edge Knows: Human -> Human",
    )
    assert receipt.commit is not None
    assert receipt.counts == {}
    expected = {"a": {"id": "a", "name": "a", "years": 3}}
    assert graph.at("main").tables["node:Human"] == expected
    assert graph.at(before).tables["node:Human"] == expected
    assert graph.diff(before, "main") == ()


def test_a_new_property_is_null_in_older_versions_whatever_its_backfill():
    graph = graph_of("node P { n: String @key }")
    run(graph, 'insert P { n: "a" }')
    before = graph.head().id
    apply(graph, 'node P { n: String @key  tags: [String] @backfill("[\\"x\\", null]") }')
    assert graph.at("main").tables["node:P"]["a"]["tags"] == ("x", None)
    assert graph.at(before).tables["node:P"]["a"]["tags"] is None
    (change,) = graph.diff(before, "main")
    assert (change.op, change.id) == ("update", "a")


def test_a_type_that_comes_back_is_another_one():
    graph = graph_of("node P { n: String @key }  node Q { n: String @key }")
    run(graph, 'insert P { n: "a" }')
    before = graph.head().id
    apply(graph, "node Q { n: String @key }")
    dropped = graph.diff(before, "main")
    apply(graph, "node P { n: String @key }  node Q { n: String @key }")
    assert graph.at("main").tables["node:P"] == {}
    assert [(c.op, c.table_key, c.id) for c in dropped] == [("delete", "node:P", "a")]
    assert [(c.op, c.id) for c in graph.diff(before, "main")] == [("delete", "a")]


def test_the_present_schema_applied_again_makes_no_commit():
    graph = graph_of(SCHEMA)
    assert graph.apply_schema(graph.catalog.ir).commit is None


# Comparing images


def test_equal_images_have_no_difference():
    one, other = graph_of(SCHEMA), graph_of(SCHEMA)
    for graph in (one, other):
        run(graph, 'insert Person { name: "a", age: 3 }')
    assert snapshot_equal(one.at("main"), other.at("main"))
    assert explain_difference(one.at("main"), other.at("main")) == ""


def test_a_difference_is_explained_row_by_row():
    one, other = graph_of(SCHEMA), graph_of(SCHEMA)
    run(one, 'insert Person { name: "a", age: 3 }  insert Person { name: "b" }')
    run(other, 'insert Person { name: "a", age: 4 }  insert Person { name: "c" }')
    assert not snapshot_equal(one.at("main"), other.at("main"))
    assert explain_difference(one.at("main"), other.at("main")).splitlines() == [
        "node:Person a: age 3 is not 4",
        "node:Person b: only left {'id': 'b', 'age': None, 'name': 'b'}",
        "node:Person c: only right {'id': 'c', 'age': None, 'name': 'c'}",
    ]


def test_a_difference_of_schemas_is_explained_first():
    one, other = graph_of("node A { x: I32 }"), graph_of("node B { x: I32 }")
    lines = explain_difference(one.at("main"), other.at("main")).splitlines()
    assert lines[0].startswith("schema: sha256:")
    assert lines[1:] == ["node:A: only left", "node:B: only right"]
