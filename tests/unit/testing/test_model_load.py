"""Loading into the reference graph where the text cases do not reach: embeddings, quarantine, order."""

from __future__ import annotations

import json

import pytest

from tests.support.outcome import Refusal
from tests.unit.testing.graphs import graph_of, run

NOTES = "node Note { slug: String @key  body: String?  vec: Vector(2)%s @embed(body) }"


def stream(*records):
    return "\n".join(map(json.dumps, records))


def note(slug, **data):
    return {"type": "Note", "data": {"slug": slug, **data}}


def problems(graph, text, **options):
    with pytest.raises(Refusal) as refusal:
        graph.load(text, **options)
    return [(e.record, e.code) for e in refusal.value.load_errors]


# Vectors that follow a text, without anybody to compute them


def test_a_missing_vector_waits_when_it_may_be_null():
    graph = graph_of(NOTES % "?")
    records = [note("a", body="copper"), note("b", body=" "), note("c", body="x", vec=[1, 0])]
    (warning,) = graph.load(stream(*records)).receipt.warnings
    assert (warning.code, warning.count) == ("embedding_pending", 1)
    vectors = {id: row["vec"] for id, row in graph.at("main").tables["node:Note"].items()}
    assert vectors == {"a": None, "b": None, "c": (1.0, 0.0)}


def test_a_required_vector_cannot_wait():
    graph = graph_of(NOTES % "")
    with pytest.raises(Refusal, match=r"Note\.vec.*GEMINI_API_KEY"):
        graph.load(stream(note("a", body="copper")))
    assert problems(graph, stream(note("a", body="copper"), note("b"))) == [
        (1, "embedding"),
        (2, "missing_value"),
    ]
    with pytest.raises(Refusal, match="GEMINI_API_KEY"):
        run(graph, 'insert Note { slug: "a", body: "copper" }')


def test_an_update_of_the_text_keeps_a_given_vector():
    graph = graph_of(NOTES % "?")
    graph.load(stream(note("a", body="copper", vec=[1, 0])))
    result = run(graph, 'update Note set { body: "tin" } where slug = "a"')
    assert result.receipt.warnings == ()
    assert graph.at("main").tables["node:Note"]["a"]["vec"] == (1.0, 0.0)


def test_an_insert_without_vector_waits_too():
    graph = graph_of(NOTES % "?")
    (warning,) = run(graph, 'insert Note { slug: "a", body: "copper" }').receipt.warnings
    assert warning.code == "embedding_pending"


# Many errors


def test_all_errors_of_a_record_are_reported_together():
    graph = graph_of("node T { k: I32 @key  a: I32  e: enum(x, y)?  @range(a, 0..5) }")
    text = stream({"type": "T", "data": {"k": "one", "a": 9, "e": "z"}}, {"type": "T"})
    assert problems(graph, text) == [
        (1, "bad_value"),
        (1, "enum"),
        (1, "range"),
        (2, "bad_key"),
        (2, "missing_value"),
    ]


def test_records_are_validated_together_only_when_each_is_good_alone():
    graph = graph_of("node T { k: String @key }")
    twice = [{"type": "T", "data": {"k": "a"}}] * 2
    assert problems(graph, stream(*twice, {"type": "X"})) == [(3, "unknown_type")]
    assert problems(graph, stream(*twice)) == [(2, "unique")]


def test_errors_come_in_the_order_of_records_and_those_of_many_records_last():
    graph = graph_of("node T { k: String @key }  edge E: T -> T @card(0..1)")
    records = [
        {"edge": "E", "from": "a", "to": "a"},
        {"edge": "E", "from": "a", "to": "b"},
        {"type": "T", "data": {"k": "a"}},
        {"type": "T", "data": {"k": "a"}},
    ]
    assert problems(graph, stream(*records)) == [
        (2, "endpoint_not_found"),
        (4, "unique"),
        (None, "cardinality"),
    ]


def test_the_line_of_a_record_is_where_it_begins():
    graph = graph_of("node T { k: String @key }")
    with pytest.raises(Refusal) as refusal:
        graph.load('{"type":"T",\n"data":{"k":"a"}}\n\n{"type":"X"}')
    assert [(e.record, e.line) for e in refusal.value.load_errors] == [(2, 4)]


def test_what_quarantine_takes_out_may_make_more_records_bad():
    graph = graph_of("node T { k: String @key  u: I32? @unique }  edge E: T -> T")
    graph.load(stream({"type": "T", "data": {"k": "old", "u": 1}}))
    records = [
        # Gives up 1, but is itself in conflict with the next record …
        {"type": "T", "data": {"k": "old", "u": 2}},
        {"type": "T", "data": {"k": "b", "u": 2}},
        # … so that 1 is taken after all, and the edge has no end any more.
        {"type": "T", "data": {"k": "c", "u": 1}},
        {"edge": "E", "from": "c", "to": "old"},
        {"type": "T", "data": {"k": "d"}},
    ]
    result = graph.load(stream(*records), "merge", quarantine=True)
    bad = [(b.record, [e.code for e in b.errors]) for b in result.quarantined]
    assert bad == [
        (1, ["unique"]),
        (2, ["unique"]),
        (3, ["unique"]),
        (4, ["endpoint_not_found"]),
    ]
    assert sorted(graph.at("main").tables["node:T"]) == ["d", "old"]


def test_a_minimum_concerns_the_sources_that_get_an_edge():
    graph = graph_of("node T { k: String @key }  edge E: T -> T @card(2..)")
    nodes = [{"type": "T", "data": {"k": k}} for k in "abc"]
    edges = [{"edge": "E", "from": "a", "to": to} for to in "bc"]
    graph.load(stream(*nodes, *edges))
    run(graph, 'delete E where to = "b"')
    graph.load(stream({"type": "T", "data": {"k": "d"}}))
    assert problems(graph, stream({"edge": "E", "from": "b", "to": "c"})) == [(None, "cardinality")]
    graph.load(stream({"edge": "E", "from": "a", "to": "d"}))


def test_an_edge_identity_with_a_null_in_its_tuple_is_never_matched():
    graph = graph_of("node T { k: String @key }  edge E: T -> T { w: I32?  @unique(src, dst, w) }")
    graph.load(stream({"type": "T", "data": {"k": "a"}}))
    edge = {"edge": "E", "from": "a", "to": "a"}
    graph.load(stream(edge, edge, {**edge, "data": {"w": 1}}))
    graph.load(stream(edge, {**edge, "data": {"w": 1}}))
    ids = sorted(graph.at("main").tables["edge:E"])
    assert len(ids) == 4
    assert ids[-1] == '["a","a","1"]'


def test_an_empty_key_is_an_id_like_any_other():
    graph = graph_of("node T { k: String @key }")
    graph.load(stream({"type": "T", "data": {"k": ""}}))
    assert list(graph.at("main").tables["node:T"]) == [""]
