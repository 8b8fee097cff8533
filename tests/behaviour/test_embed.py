"""Vectors that are computed after their rows were written."""

from __future__ import annotations

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import (
    EmbeddingFailed,
    EmbeddingNotConfigured,
    HeadMoved,
    InputError,
    ReadOnlyHandle,
    UnknownType,
)
from omnigraph.faults import FAULT_POINTS
from tests.behaviour.notes import (
    GIVEN,
    MOCK,
    NOTES,
    before_bindings,
    mock,
    notes,
    run,
    states,
    vectors,
)
from tests.support.faults import Fail, InjectedFault, armed
from tests.unit.providers.speaking import Refuse, serving

PICTURES = """
node Picture { name: String @key  title: String?  pic: Blob?  vec: Vector(4)? @embed(title) }
node Page { slug: String @key  head: String?  body: String?
            head_vec: Vector(4)? @embed(head)  body_vec: Vector(4)? @embed(body) }
"""


@pytest.fixture
def graph(memory_uri, monkeypatch):
    """Six notes: pending, stale, ready, empty, and two with given vectors, one of them stale."""
    graph = init(memory_uri, NOTES)
    with monkeypatch.context() as with_provider:
        with_provider.setenv(MOCK, "1")
        graph.load(
            notes(
                {"slug": "stale", "body": "old"},
                {"slug": "ready", "body": "copper"},
                {"slug": "empty"},
                {"slug": "given", "body": "tin", "vec": GIVEN},
                {"slug": "given stale", "body": "old", "vec": GIVEN},
            ),
            "append",
        )
    graph.load(notes({"slug": "pending", "body": "zinc"}), "append")
    run(graph, 'update Note set { body: "new" } where body = "old"')
    return graph


@pytest.fixture
def mocked(graph, monkeypatch):
    monkeypatch.setenv(MOCK, "1")


COMPUTED = {
    "stale": mock("old"),
    "ready": mock("copper"),
    "empty": None,
    "given": GIVEN,
    "given stale": GIVEN,
    "pending": None,
}


def test_a_dry_run_counts_and_changes_nothing(graph, mocked):
    head = graph.head().id
    found = graph.embed(dry_run=True)
    assert found.dry_run
    assert found.model == "mock/fnv1a-xorshift64"
    assert found.receipt.graph_commit_id is None
    assert [p.to_json() for p in found.properties] == [
        {
            "table_key": "node:Note",
            "property": "vec",
            "ready": 2,
            "pending": 1,
            "stale": 2,
            "empty": 1,
            "given": 2,
            "embedded": 0,
            "skipped": 0,
        }
    ]
    assert graph.head().id == head
    assert vectors(graph) == COMPUTED


@pytest.mark.parametrize(
    ("options", "changed"),
    [
        ({}, {"pending": "zinc", "stale": "new"}),
        ({"pending": True}, {"pending": "zinc"}),
        ({"stale": True}, {"stale": "new"}),
        ({"pending": True, "stale": True}, {"pending": "zinc", "stale": "new"}),
        ({"all": True}, {"pending": "zinc", "stale": "new", "ready": "copper"}),
        ({"stale": True, "include_given": True}, {"stale": "new", "given stale": "new"}),
    ],
)
def test_embedding_computes_what_is_asked_for(graph, mocked, options, changed):
    done = graph.embed(**options)
    (found,) = done.properties
    assert found.embedded == len(changed)
    assert done.receipt.counts["node:Note"].updated == len(changed)
    assert vectors(graph) == COMPUTED | {slug: mock(text) for slug, text in changed.items()}
    assert graph.log(reverse=True)[-1].operation == "embed"


def test_embedding_with_nothing_to_do_makes_no_commit(graph, mocked):
    graph.embed()
    head = graph.head().id
    done = graph.embed()
    assert done.receipt.graph_commit_id is None
    assert graph.head().id == head


def test_embedding_needs_a_provider(graph):
    with pytest.raises(EmbeddingNotConfigured, match="GEMINI_API_KEY"):
        graph.embed()
    assert vectors(graph) == COMPUTED


def test_embedding_records_who_asked_for_it(graph, mocked):
    done = graph.as_actor("ada").embed(message="new model")
    commit = graph.commit(done.receipt.graph_commit_id)
    assert (commit.actor, commit.message) == ("ada", "new model")


def test_embedding_may_insist_on_the_head(graph, mocked):
    with pytest.raises(HeadMoved):
        graph.embed(expected_head="01ARZ3NDEKTSV4RRFFQ69G5FAV")


def test_a_reader_counts_and_does_not_embed(local_uri):
    init(local_uri, NOTES).load(notes({"slug": "a", "body": "tin"}), "append")
    reader = open_graph(local_uri, read_only=True)
    assert states(reader) == {"pending": 1}
    with pytest.raises(ReadOnlyHandle):
        reader.embed()


def test_embedding_a_branch_leaves_others_alone(graph, mocked):
    branch = graph.branches.create("draft")
    branch.embed()
    assert states(branch, branch="draft") == {"ready": 4, "stale": 1, "empty": 1, "given": 2}
    assert vectors(graph) == COMPUTED


def test_types_and_properties_can_be_chosen(memory_uri, monkeypatch):
    graph = init(memory_uri, PICTURES)
    graph.load(
        b'{"type":"Page","data":{"slug":"p","head":"tin","body":"zinc"}}'
        b'{"type":"Picture","data":{"name":"x","title":"copper"}}',
        "append",
    )
    monkeypatch.setenv(MOCK, "1")
    done = graph.embed(types=["Page"], properties=["body_vec"])
    assert [(p.table_key, p.property, p.embedded) for p in done.properties] == [
        ("node:Page", "body_vec", 1)
    ]
    done = graph.embed(dry_run=True)
    assert [(p.table_key, p.property, p.states.pending) for p in done.properties] == [
        ("node:Page", "body_vec", 0),
        ("node:Page", "head_vec", 1),
        ("node:Picture", "vec", 1),
    ]


def test_what_is_not_there_cannot_be_chosen(graph):
    with pytest.raises(UnknownType, match="unknown node type 'Nope'"):
        graph.embed(types=["Nope"], dry_run=True)
    with pytest.raises(InputError, match="no @embed vector 'body'"):
        graph.embed(properties=["body"], dry_run=True)
    with pytest.raises(InputError, match="all=True already includes pending and stale"):
        graph.embed(all=True, stale=True)


def test_blobs_survive_embedding(memory_uri, monkeypatch):
    graph = init(memory_uri, PICTURES)
    row = b'{"type":"Picture","data":{"name":"x","title":"copper","pic":"base64:SGk="}}'
    graph.load(row, "append")
    monkeypatch.setenv(MOCK, "1")
    graph.embed()
    found = graph.at("main").get("Picture", "x") or {}
    assert found["pic"] == b"Hi"
    assert found["vec"] == pytest.approx(mock("copper"), abs=1e-7)


def test_rows_that_change_meanwhile_are_left_alone_and_counted(local_uri, monkeypatch):
    graph = init(local_uri, NOTES)
    rows = [{"slug": slug, "body": f"text of {slug}"} for slug in ("a", "b", "c", "d")]
    graph.load(notes(*rows), "append")
    other = open_graph(local_uri)
    done: list[bool] = []

    def meddle(_point, _context):
        if not done:
            done.append(True)
            monkeypatch.delenv(MOCK)
            run(other, 'update Note set { body: "else" } where slug = "a"')
            run(other, 'update Note set { tag: "kept" } where slug = "b"')
            run(other, 'delete Note where slug = "c"')

    monkeypatch.setenv(MOCK, "1")
    asking = FAULT_POINTS["embed.before_provider"]
    asking.set_trap(meddle)
    try:
        (found,) = graph.embed().properties
    finally:
        asking.remove_trap(meddle)
    assert (found.embedded, found.skipped) == (2, 2)
    computed = vectors(graph)
    assert [slug for slug, vector in computed.items() if vector is None] == ["a"]
    kept = graph.at("main").get("Note", "b") or {}
    assert kept["tag"] == "kept"


def test_embedding_that_gets_no_vector_fails_with_the_providers_words(graph, monkeypatch):
    with serving() as server:
        monkeypatch.setenv("GEMINI_API_KEY", "secret")
        monkeypatch.setenv("OMNIGRAPH_GEMINI_BASE_URL", server.url)
        monkeypatch.setenv("OMNIGRAPH_EMBED_RETRY_ATTEMPTS", "1")
        server.script = [Refuse(503)] * 4
        with pytest.raises(EmbeddingFailed, match="503: told to refuse"):
            graph.embed()
    assert vectors(graph) == COMPUTED


def test_what_was_answered_before_an_outage_is_committed(memory_uri, monkeypatch):
    graph = init(memory_uri, NOTES)
    rows = [{"slug": str(n), "body": f"text {n}"} for n in range(200)]
    graph.load(notes(*rows), "append")
    with serving() as server:
        monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "openai-compatible")
        monkeypatch.setenv("OMNIGRAPH_EMBED_BASE_URL", server.url)
        monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "local")
        monkeypatch.setenv("OMNIGRAPH_EMBED_RETRY_ATTEMPTS", "1")
        server.script = [None, Refuse(503)]
        done = graph.embed()
    (found,) = done.properties
    assert (found.embedded, found.states.pending) == (128, 72)
    assert [(w.code, w.count) for w in done.receipt.warnings] == [("embedding_pending", 72)]


@pytest.fixture
def unbound(memory_uri) -> Graph:
    with before_bindings():
        graph = init(memory_uri, NOTES)
        graph.load(notes({"slug": "a", "body": "tin"}, {"slug": "b", "vec": GIVEN}), "append")
    return graph


def test_vectors_without_bindings_are_given_ones_for_the_text_that_is_there(unbound, monkeypatch):
    assert states(unbound) == {"pending": 1, "ready": 1, "given": 1}
    monkeypatch.setenv(MOCK, "1")
    (done,) = unbound.embed().properties
    assert (done.embedded, done.states.ready, done.states.stale) == (1, 2, 0)
    assert unbound.embed().receipt.graph_commit_id is None
    run(unbound, 'update Note set { body: "zinc" } where slug = "b"')
    assert states(unbound) == {"ready": 1, "stale": 1, "given": 1}
    assert vectors(unbound) == {"a": mock("tin"), "b": GIVEN}


@pytest.mark.parametrize("branch", ["main", "later"])
def test_a_write_to_a_table_without_bindings_keeps_them_from_then_on(unbound, branch, monkeypatch):
    if branch != "main":
        unbound.branches.create(branch)
    monkeypatch.setenv(MOCK, "1")
    insert = 'query q() { insert Note { slug: "c", body: "copper" } }'
    unbound.mutate(insert, branch=branch)
    update = 'query q() { update Note set { body: "zinc" } where slug = "c" }'
    unbound.mutate(update, branch=branch)
    expected = {"a": None, "b": GIVEN, "c": mock("zinc")}
    assert vectors(unbound, branch=branch) == expected


def test_a_write_that_dies_after_the_columns_of_bindings_were_added_is_undone(unbound, monkeypatch):
    monkeypatch.setenv(MOCK, "1")
    insert = 'insert Note { slug: "c", body: "copper" }'
    with armed("mutation.post_columns", Fail()), pytest.raises(InjectedFault):
        run(unbound, insert)
    again = open_graph(unbound.uri)
    assert vectors(again) == {"a": None, "b": GIVEN}
    run(again, insert)
    run(again, 'update Note set { body: "zinc" } where slug = "c"')
    assert vectors(again) == {"a": None, "b": GIVEN, "c": mock("zinc")}
