"""Vectors that are computed from texts when rows are written."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest

from omnigraph.api.graph import init
from omnigraph.api.graph import open as open_graph
from omnigraph.commit import writer as committing
from omnigraph.commit.tables import stage_early
from omnigraph.errors import (
    EmbeddingModelUnavailable,
    InputError,
    LoadError,
    MutationError,
    TypeCheckError,
)
from omnigraph.faults import FAULT_POINTS
from tests.behaviour.graphs import Backstage
from tests.behaviour.notes import (
    GIVEN,
    MOCK,
    NOTES,
    REQUIRED,
    mock,
    notes,
    run,
    states,
    vectors,
    warnings,
)
from tests.unit.providers.speaking import EmbeddingServer, Refuse, serving

PENDING = ("embedding_pending", "Note.vec has text but no vector", 1)
STALE = ("embedding_stale", "Note.vec still has the vector of an earlier text", 1)


@pytest.fixture
def graph(memory_uri):
    return init(memory_uri, NOTES)


@pytest.fixture
def mocked(monkeypatch):
    monkeypatch.setenv(MOCK, "1")


@pytest.fixture
def server(monkeypatch):
    """A provider that can be told to misbehave, and that is asked once."""
    with serving() as found:
        monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "openai-compatible")
        monkeypatch.setenv("OMNIGRAPH_EMBED_BASE_URL", found.url)
        monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "local")
        monkeypatch.setenv("OMNIGRAPH_EMBED_RETRY_ATTEMPTS", "1")
        yield found


def asked(server: EmbeddingServer) -> list[list[str]]:
    """The texts of each request so far."""
    return [body["input"] for _, _, body in server.requests]


def close(found, text):
    return np.allclose(found, mock(text), atol=1e-6)


# -- inserts and updates ------------------------------------------------------------------------


@pytest.mark.acceptance("L-237")
def test_an_insert_computes_the_vector(graph, mocked):
    done = run(graph, 'insert Note { slug: "a", body: "copper" }  insert Note { slug: "b" }')
    assert done.receipt.warnings == ()
    assert vectors(graph) == {"a": mock("copper"), "b": None}
    assert vectors(graph)["a"] == pytest.approx([-0.645492, 0.311157, 0.696903, 0.029115], abs=1e-6)
    assert states(graph) == {"ready": 1, "empty": 1}


@pytest.mark.acceptance("L-238")
def test_an_update_of_the_text_computes_the_vector_again(graph, mocked):
    run(graph, 'insert Note { slug: "a", body: "copper" }')
    done = run(graph, 'update Note set { body: "tin" } where slug = "a"')
    assert done.receipt.warnings == ()
    assert vectors(graph) == {"a": mock("tin")}
    assert states(graph) == {"ready": 1}


@pytest.mark.acceptance("L-238")
def test_without_a_provider_an_update_of_the_text_leaves_a_stale_vector(graph, monkeypatch):
    with monkeypatch.context() as with_provider:
        with_provider.setenv(MOCK, "1")
        run(graph, 'insert Note { slug: "a", body: "copper" }')
    done = run(graph, 'update Note set { body: "tin" } where slug = "a"')
    assert warnings(done) == [STALE]
    assert vectors(graph) == {"a": mock("copper")}
    assert states(graph) == {"stale": 1}


@pytest.mark.acceptance("L-239")
def test_a_given_vector_is_kept_when_the_text_changes(graph, mocked):
    run(graph, 'insert Note { slug: "a", body: "copper", vec: $v }', v=GIVEN)
    assert states(graph) == {"ready": 1, "given": 1}
    done = run(graph, 'update Note set { body: "tin" } where slug = "a"')
    assert done.receipt.warnings == ()
    assert vectors(graph) == {"a": GIVEN}
    assert states(graph) == {"stale": 1, "given": 1}
    assert graph.embed().receipt.graph_commit_id is None
    assert vectors(graph) == {"a": GIVEN}
    (done,) = graph.embed(include_given=True).properties
    assert (done.embedded, done.states.ready) == (1, 1)
    assert vectors(graph) == {"a": mock("tin")}


@pytest.mark.acceptance("L-240")
def test_a_required_vector_without_provider_is_refused(memory_uri):
    graph = init(memory_uri, REQUIRED)
    with pytest.raises(MutationError, match=r"Note\.vec cannot be computed: GEMINI_API_KEY"):
        run(graph, 'insert Note { slug: "a", body: "copper" }')
    with pytest.raises(TypeCheckError, match="T12"):
        run(graph, 'insert Note { slug: "a" }')
    with pytest.raises(MutationError, match="non-nullable vector property 'vec' has null value"):
        run(graph, 'insert Note { slug: "a", body: " " }')
    assert vectors(graph) == {}


def test_without_a_provider_a_vector_is_pending(graph):
    done = run(graph, 'insert Note { slug: "a", body: "copper" }  insert Note { slug: "b" }')
    assert warnings(done) == [PENDING]
    assert vectors(graph) == {"a": None, "b": None}
    assert states(graph) == {"pending": 1, "empty": 1}


def test_a_pending_vector_is_computed_by_the_next_write_of_its_row(graph, monkeypatch):
    run(graph, 'insert Note { slug: "a", body: "copper" }')
    monkeypatch.setenv(MOCK, "1")
    run(graph, 'update Note set { tag: "new" } where slug = "a"')
    assert vectors(graph) == {"a": mock("copper")}


def test_an_update_of_other_properties_asks_no_provider(graph, server):
    run(graph, 'insert Note { slug: "a", body: "copper" }')
    run(graph, 'update Note set { tag: "new" } where slug = "a"')
    assert asked(server) == [["copper"]]
    assert states(graph) == {"ready": 1}


def test_the_same_text_assigned_again_asks_no_provider(graph, server):
    run(graph, 'insert Note { slug: "a", body: "copper" }')
    run(graph, 'update Note set { body: "copper" } where slug = "a"')
    run(graph, 'insert Note { slug: "a", body: "copper", tag: "whole row" }')
    run(graph, 'update Note set { vec: $v } where slug = "a"', v=None)
    assert asked(server) == [["copper"]]
    assert close(vectors(graph)["a"], "copper")
    assert states(graph) == {"ready": 1}


def test_statements_of_one_query_are_embedded_together_and_only_at_the_end(graph, server):
    run(
        graph,
        """
        insert Note { slug: "a", body: "draft" }
        insert Note { slug: "b", body: "tin" }
        insert Note { slug: "c", body: "gone" }
        update Note set { body: "copper" } where slug = "a"
        delete Note where slug = "c"
        """,
    )
    assert [sorted(texts) for texts in asked(server)] == [["copper", "tin"]]
    assert states(graph) == {"ready": 2}


def test_one_text_is_asked_for_once(graph, server):
    run(graph, 'insert Note { slug: "a", body: "tin" }  insert Note { slug: "b", body: "tin" }')
    assert asked(server) == [["tin"]]
    assert close(vectors(graph)["a"], "tin")
    assert close(vectors(graph)["b"], "tin")


def test_clearing_a_given_vector_has_it_computed(graph, mocked):
    run(graph, 'insert Note { slug: "a", body: "copper", vec: $v }', v=GIVEN)
    run(graph, 'update Note set { vec: $v } where slug = "a"', v=None)
    assert vectors(graph) == {"a": mock("copper")}


def test_giving_a_vector_replaces_a_computed_one(graph, mocked):
    run(graph, 'insert Note { slug: "a", body: "copper" }')
    run(graph, 'update Note set { body: "tin", vec: $v } where slug = "a"', v=GIVEN)
    assert vectors(graph) == {"a": GIVEN}
    assert states(graph) == {"ready": 1, "given": 1}


def test_a_computed_vector_goes_with_its_text(graph, mocked):
    run(graph, 'insert Note { slug: "a", body: "copper" }')
    run(graph, 'update Note set { body: "  " } where slug = "a"')
    assert vectors(graph) == {"a": None}
    assert states(graph) == {"empty": 1}


def test_a_required_vector_does_not_go_with_its_text(memory_uri, mocked):
    graph = init(memory_uri, REQUIRED)
    run(graph, 'insert Note { slug: "a", body: "copper" }')
    with pytest.raises(MutationError, match="non-nullable vector property 'vec'"):
        run(graph, 'update Note set { body: "" } where slug = "a"')
    assert vectors(graph) == {"a": mock("copper")}


def test_an_outage_leaves_vectors_pending_or_stale_and_says_why(graph, server):
    run(graph, 'insert Note { slug: "a", body: "copper" }')
    server.script = [Refuse(503)] * 2
    done = run(graph, 'update Note set { body: "tin" } where slug = "a"')
    ((code, message, count),) = warnings(done)
    assert (code, count) == ("embedding_stale", 1)
    assert "503: told to refuse" in message
    done = run(graph, 'insert Note { slug: "b", body: "zinc" }')
    ((code, message, count),) = warnings(done)
    assert (code, count) == ("embedding_pending", 1)
    assert "503: told to refuse" in message
    assert close(vectors(graph)["a"], "copper")
    assert states(graph) == {"stale": 1, "pending": 1}


def test_an_outage_fails_the_write_of_a_required_vector(memory_uri, server):
    graph = init(memory_uri, REQUIRED)
    server.script = [Refuse(503)]
    with pytest.raises(MutationError, match=r"Note\.vec cannot be computed: .*503: told to refuse"):
        run(graph, 'insert Note { slug: "a", body: "copper" }')
    assert vectors(graph) == {}


def test_a_text_the_provider_refuses_does_not_keep_others_from_their_vectors(graph, server):
    server.script = [Refuse(400, '{"error": {"message": "too long"}}')] * 2
    done = graph.load(notes(*({"slug": s, "body": s * 3} for s in "abc")), "append")
    assert len(asked(server)) > 2
    ((code, message, count),) = warnings(done)
    assert (code, count) == ("embedding_pending", 1)
    assert "400: too long" in message
    assert states(graph) == {"ready": 2, "pending": 1}


def test_a_wrong_setting_fails_the_write_that_needs_it_and_no_other(graph, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "oracle")
    with pytest.raises(InputError, match="OMNIGRAPH_EMBED_PROVIDER is `oracle`"):
        run(graph, 'insert Note { slug: "a", body: "copper" }')
    run(graph, 'delete Note where slug = "a"')
    assert vectors(graph) == {}


# -- loads --------------------------------------------------------------------------------------


@pytest.mark.acceptance("L-287", "U-135")
@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_a_load_computes_what_is_not_given(graph, mocked, mode):
    done = graph.load(
        notes(
            {"slug": "a", "body": "copper"},
            {"slug": "b", "body": "tin", "vec": GIVEN},
            {"slug": "c"},
            {"slug": "d", "body": " \t\n"},
        ),
        mode,
    )
    assert done.receipt.warnings == ()
    assert vectors(graph) == {"a": mock("copper"), "b": GIVEN, "c": None, "d": None}
    assert states(graph) == {"ready": 2, "empty": 2, "given": 1}
    nearest = 'match { $n: Note } return { $n.slug } order { nearest($n.vec, "copper") } limit 1'
    assert graph.query(f"query q() {{ {nearest} }}").to_dicts() == [{"n.slug": "a"}]


@pytest.mark.acceptance("L-288", "U-135")
def test_vectors_that_wait_for_a_provider_are_computed_later(graph, monkeypatch):
    rows = notes({"slug": "a", "body": "copper"}, {"slug": "b", "vec": GIVEN}, {"slug": "c"})
    assert warnings(graph.load(rows, "append")) == [PENDING]
    assert states(graph) == {"ready": 1, "pending": 1, "empty": 1, "given": 1}
    (shown,) = graph.maintenance.status().tables[0].embeddings
    assert (shown.property, shown.counts.pending) == ("vec", 1)
    monkeypatch.setenv(MOCK, "1")
    before = len(graph.log(reverse=True))
    done = graph.embed()
    assert [(p.embedded, p.skipped) for p in done.properties] == [(1, 0)]
    assert len(graph.log(reverse=True)) == before + 1
    assert states(graph) == {"ready": 2, "empty": 1, "given": 1}
    assert vectors(graph)["a"] == mock("copper")


@pytest.mark.acceptance("L-289")
@pytest.mark.parametrize("mode", ["merge", "overwrite"])
def test_a_reload_of_unchanged_texts_asks_no_provider(graph, server, mode):
    rows = notes({"slug": "a", "body": "copper"}, {"slug": "b", "body": "tin"})
    graph.load(rows, "append")
    before = vectors(graph)
    assert graph.load(rows, mode).receipt.warnings == ()
    assert vectors(graph) == before
    assert len(server.requests) == 1
    graph.load(notes({"slug": "a", "body": "zinc"}, {"slug": "b", "body": "tin"}), mode)
    assert asked(server)[1:] == [["zinc"]]


def test_unchanged_texts_keep_their_vectors_without_a_provider(memory_uri, monkeypatch):
    graph = init(memory_uri, REQUIRED)
    rows = notes({"slug": "a", "body": "copper"})
    with monkeypatch.context() as with_provider:
        with_provider.setenv(MOCK, "1")
        graph.load(rows, "append")
    graph.load(rows, "merge")
    run(graph, 'insert Note { slug: "a", body: "copper", tag: "whole row" }')
    assert vectors(graph) == {"a": mock("copper")}


def test_a_vector_of_another_model_is_computed_again_by_a_reload(graph, server, monkeypatch):
    rows = notes({"slug": "a", "body": "copper"})
    graph.load(rows, "append")
    monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "other")
    assert states(graph) == {"stale": 1}
    graph.load(rows, "merge")
    assert len(server.requests) == 2
    assert states(graph) == {"ready": 1}


@pytest.mark.acceptance("U-135")
def test_a_load_of_required_vectors_without_provider_lists_the_records(memory_uri):
    graph = init(memory_uri, REQUIRED)
    rows = notes(
        {"slug": "a", "body": "tin"},
        {"slug": "b", "vec": GIVEN},
        {"slug": "c", "body": "copper"},
    )
    with pytest.raises(LoadError) as error:
        graph.load(rows, "append")
    found = [(p.record, p.code, p.message, p.id) for p in error.value.load_errors]
    problem = "Note.vec cannot be computed: GEMINI_API_KEY is not set"
    assert found == [(1, "embedding", problem, "a"), (3, "embedding", problem, "c")]
    assert (error.value.bad_records, error.value.records) == (2, 3)
    assert vectors(graph) == {}


def test_what_was_answered_before_an_outage_is_kept(graph, server):
    server.script = [None, Refuse(503)]
    done = graph.load(notes(*({"slug": str(n), "body": f"text {n}"} for n in range(300))), "append")
    assert [(code, count) for code, _, count in warnings(done)] == [("embedding_pending", 172)]
    assert len(server.requests) == 2
    assert states(graph) == {"ready": 128, "pending": 172}


def test_exported_vectors_are_given_when_they_are_loaded_again(graph, memory_uri, mocked, tmp_path):
    run(graph, 'insert Note { slug: "a", body: "copper" }')
    with (tmp_path / "out.jsonl").open("wb") as out:
        graph.export(out)
    assert "__embed" not in (tmp_path / "out.jsonl").read_text()
    other = init(f"{memory_uri}-other", NOTES)
    other.load(tmp_path / "out.jsonl", "overwrite")
    assert states(other) == {"ready": 1, "given": 1}


def test_bindings_are_seen_nowhere(graph, mocked):
    run(graph, 'insert Note { slug: "a", body: "copper" }')
    found = graph.at("main").get("Note", "a")
    assert sorted(found) == ["body", "id", "slug", "tag", "vec"]
    result = graph.query("query q() { match { $n: Note } return { $n } }")
    assert "__embed" not in json.dumps(result.to_dicts())


# -- other writers ------------------------------------------------------------------------------


def test_no_provider_is_asked_while_the_branch_is_locked(local_uri, server):
    """A write that has to be prepared again, under the lock, has its vectors already."""
    init(local_uri, NOTES).load(notes({"slug": "a", "body": "copper"}), "append")
    writer, other = open_graph(local_uri), open_graph(local_uri)
    overtaken = threading.Event()

    def overtake(_point, _context):
        if not overtaken.is_set():
            overtaken.set()
            run(other, 'insert Note { slug: "a", body: "tin" }')
            server.requests.clear()

    asking = FAULT_POINTS["embed.before_provider"]
    asking.set_trap(overtake)
    try:
        writer.load(notes({"slug": "a", "body": "copper"}, {"slug": "b", "body": "zinc"}), "merge")
    finally:
        asking.remove_trap(overtake)
    assert overtaken.is_set()
    assert asked(server) == [["zinc"]]
    found = vectors(writer)
    assert close(found["a"], "copper")
    assert close(found["b"], "zinc")
    assert states(writer) == {"ready": 2}


def test_texts_that_turn_up_under_the_lock_are_embedded_without_it(local_uri, server, monkeypatch):
    """Another process writes a text without a vector after this write was prepared."""
    writer = init(local_uri, NOTES)
    writer.load(notes({"slug": "a", "body": "copper"}), "append")
    server.requests.clear()
    other, stage = open_graph(local_uri), stage_early

    def overtake(*arguments):
        monkeypatch.setattr(committing, "stage_early", stage)
        with monkeypatch.context() as patch:
            patch.delenv("OMNIGRAPH_EMBED_PROVIDER")
            patch.delenv("OMNIGRAPH_EMBED_BASE_URL")
            run(other, 'insert Note { slug: "b", body: "tin" }')
        return stage(*arguments)

    free = []

    def look_at_lock(_point, _context):
        with Backstage(local_uri).locks.hold(None, "look", wait_ms=0):
            free.append(True)

    monkeypatch.setattr(committing, "stage_early", overtake)
    asking = FAULT_POINTS["embed.before_provider"]
    asking.set_trap(look_at_lock)
    try:
        done = run(writer, 'update Note set { tag: "x" } where slug != "z"')
    finally:
        asking.remove_trap(look_at_lock)
    assert done.affected_nodes == 2
    assert free == [True]
    assert asked(server) == [["tin"]]
    assert states(writer) == {"ready": 2}


def test_the_state_of_a_branch_is_its_own(graph, mocked, monkeypatch):
    run(graph, 'insert Note { slug: "a", body: "copper" }')
    branch = graph.branches.create("draft")
    monkeypatch.delenv(MOCK)
    run(branch, 'update Note set { body: "tin" } where slug = "a"')
    assert states(branch) == {"stale": 1}
    assert states(graph) == {"ready": 1}


# -- models that the schema names ---------------------------------------------------------------

TWO = """
node Note {
    slug: String @key
    body: String?
    vec: Vector(4)? @embed(body)
    other: Vector(4)? @embed("body", model="openai-compatible/second")
}
"""


def test_each_vector_is_computed_by_the_model_its_property_names(memory_uri, server):
    graph = init(memory_uri, TWO)
    graph.load(notes({"slug": "a", "body": "copper"}), "append")
    run(graph, 'insert Note { slug: "b", body: "tin" }')
    run(graph, 'update Note set { body: "zinc" } where slug = "b"')
    graph.load(notes({"slug": "a", "body": "lead"}), "patch")
    models = [(body["model"], body["input"]) for _, _, body in server.requests]
    texts = (["copper"], ["tin"], ["zinc"], ["lead"])
    assert sorted(models) == sorted((m, text) for text in texts for m in ("second", "local"))
    counted = {p.property: p.states.ready for p in graph.embed(dry_run=True).properties}
    assert counted == {"vec": 2, "other": 2}
    query = 'query q() { match { $n: Note } return { $n.slug } order { nearest($n.%s, "tin") } limit 1 }'
    for name, model in (("vec", "local"), ("other", "second")):
        graph.query(query % name)
        assert server.requests[-1][2]["model"] == model


@pytest.mark.acceptance("U-381")
def test_a_model_that_is_not_configured_refuses_the_write_naming_both(memory_uri, mocked):
    graph = init(memory_uri, TWO.replace("openai-compatible/second", "openai/x"))
    before = graph.head().id
    for write in (
        lambda: graph.load(notes({"slug": "a", "body": "copper"}), "append"),
        lambda: run(graph, 'insert Note { slug: "a", body: "copper" }'),
    ):
        with pytest.raises(EmbeddingModelUnavailable, match=r"openai/x.*OPENAI_API_KEY.*mock/"):
            write()
    assert graph.head().id == before
    # Without a text, or with a vector of its own, there is nothing to compute.
    graph.load(notes({"slug": "a"}, {"slug": "b", "body": "tin", "other": [1, 0, 0, 0]}), "append")
    query = "query q() { match { $n: Note } return { $n.slug } order { nearest($n.other, %s) } limit 1 }"
    with pytest.raises(EmbeddingModelUnavailable, match=r"openai/x.*mock/"):
        graph.query(query % '"tin"')
    assert graph.query(query % "[1.0, 0.0, 0.0, 0.0]").to_dicts() == [{"n.slug": "b"}]
    assert graph.maintenance.status().to_json()["tables"]


def test_another_model_makes_vectors_stale(memory_uri, server):
    graph = init(memory_uri, TWO)
    graph.load(notes({"slug": "a", "body": "copper"}), "append")
    plan = graph.schema.apply(TWO.replace("/second", "/third"))
    assert plan.receipt.graph_commit_id is not None
    counted = {p.property: p.states.stale for p in graph.embed(dry_run=True).properties}
    assert counted == {"vec": 0, "other": 1}
    graph.embed()
    assert server.requests[-1][2]["model"] == "third"
    counted = {p.property: p.states.ready for p in graph.embed(dry_run=True).properties}
    assert counted == {"vec": 1, "other": 1}


def test_without_any_provider_vectors_of_a_named_model_wait(memory_uri):
    graph = init(memory_uri, TWO)
    result = graph.load(notes({"slug": "a", "body": "copper"}), "append")
    assert {w.code for w in result.receipt.warnings} == {"embedding_pending"}
