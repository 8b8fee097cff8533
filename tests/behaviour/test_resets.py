"""Resets: a branch gets the content of another state, as one commit."""

from __future__ import annotations

from datetime import timedelta

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import (
    BranchNotFound,
    CommitNotFound,
    HeadMoved,
    HistoryRemoved,
    IdempotencyKeyReused,
    ReadOnlyHandle,
    RefUnderOtherSchema,
)
from tests.behaviour.graphs import PERSON, SCHEMA
from tests.behaviour.merging import add, ages, edge, exported, lines, person, remove, set_age


@pytest.fixture
def graph(uri: str) -> Graph:
    """Three people, then one changed, one removed with an edge, and a company added."""
    graph = init(uri, SCHEMA)
    rows = [person("Alice", age=30), person("Bob", age=40), person("Carol")]
    graph.load(lines(*rows, edge("Knows", "Alice", "Bob", id="k1")), "append")
    graph.tags.create("v1")
    set_age(graph, "main", "Alice", 31)
    remove(graph, "main", "Bob")
    graph.mutate('query q() { insert Company { name: "acme" } }')
    add(graph, "main", "Dan")
    return graph


def content(graph: Graph, branch: str = "main") -> list[str]:
    return sorted(map(str, exported(graph, branch)))


def test_main_gets_the_content_of_a_tag_as_one_commit(graph):
    graph.branches.create("then", "v1")
    before = graph.head().id
    done = graph.as_actor("ada").branches.reset("main", "v1", message="back")
    commit = graph.commit("main")
    assert content(graph) == content(graph, "then")
    assert (commit.parents, commit.operation) == ((before,), "revert")
    assert (commit.actor, commit.message) == ("ada", "back")
    assert (done.branch, done.commit_id) == ("main", commit.id)
    assert done.source_commit_id == graph.tags.all()[0].commit_id
    counts = {key: tuple(c.to_json().values()) for key, c in done.receipt.counts.items()}
    assert counts == {
        "edge:Knows": (1, 0, 0),
        "node:Company": (0, 0, 1),
        PERSON: (1, 1, 1),
    }
    assert len(graph.log(reverse=True)) == 7


def test_without_a_message_it_says_what_it_was(graph):
    done = graph.branches.reset("main", "v1")
    assert graph.commit("main").message == f"reset to {done.source_commit_id}"


def test_a_reset_can_be_reset(graph):
    before, head = content(graph), graph.head().id
    graph.branches.reset("main", "main~3")
    assert content(graph) != before
    graph.branches.reset("main", head)
    assert content(graph) == before


def test_a_branch_is_reset_to_another_one(graph):
    graph.branches.create("feature", "v1")
    add(graph, "feature", "Eve")
    graph.branches.reset("feature", "main")
    assert content(graph, "feature") == content(graph)
    assert graph.merge("main", "feature").receipt.counts == {}
    assert content(graph, "feature") == content(graph)
    add(graph, "feature", "Flo")
    graph.branches.reset("main", "feature")
    assert "Flo" in ages(graph)


def test_a_branch_that_has_the_content_already_gets_no_commit(graph):
    graph.branches.create("feature")
    before = graph.head().id
    for branch, ref in (("main", "main"), ("feature", "main"), ("main", "feature")):
        assert graph.branches.reset(branch, ref).receipt.graph_commit_id is None
    add(graph, "main", "Eve")
    remove(graph, "main", "Eve")
    done = graph.branches.reset("main", before)
    assert (done.receipt.graph_commit_id, done.receipt.counts) == (None, {})


def test_a_dry_run_says_what_would_change_and_changes_nothing(graph):
    before = graph.head().id
    done = graph.branches.reset("main", "v1", dry_run=True)
    assert done.dry_run
    assert done.receipt.counts[PERSON].to_json() == {"inserted": 1, "updated": 1, "deleted": 1}
    assert graph.head().id == before


def test_what_is_written_meanwhile_goes_too(graph):
    """Another writer changes a type that the reset did not have to touch when it was prepared."""
    graph.branches.create("then", "v1")
    other = open_graph(graph.uri)

    class Writing:
        """Write from another handle just before the reset is committed."""

        def stage(self, name: str, total: int | None = None) -> None:
            if name == "write":
                other.load(lines(edge("WorksAt", "Dan", "acme")), "append")

        def advance(self, rows: int) -> None: ...

    graph.branches.reset("main", "v1", progress=Writing())
    assert content(graph) == content(graph, "then")


def test_it_insists_on_the_head_that_is_expected(graph):
    old = graph.head().id
    add(graph, "main", "Eve")
    with pytest.raises(HeadMoved):
        graph.branches.reset("main", "v1", expected_head=old)
    graph.branches.reset("main", "v1", expected_head=graph.head().id)


def test_a_second_call_with_the_same_key_resets_once(graph):
    first = graph.branches.reset("main", "main~2", idempotency_key="k")
    head = graph.head().id
    graph.tags.create("other")
    again = graph.branches.reset("main", "main~2", idempotency_key="k")
    assert (again.receipt.replayed, again.commit_id, graph.head().id) == (
        True,
        first.commit_id,
        head,
    )
    assert again.receipt.graph_commit_id == first.receipt.graph_commit_id
    with pytest.raises(IdempotencyKeyReused):
        graph.branches.reset("main", "main~1", idempotency_key="k")


def test_what_cannot_be_reset_is_refused(graph):
    for refused, error in (
        (lambda: graph.branches.reset("nope", "v1"), BranchNotFound),
        (lambda: graph.branches.reset("main", "nope"), CommitNotFound),
        (
            lambda: open_graph(graph.uri, read_only=True).branches.reset("main", "v1"),
            ReadOnlyHandle,
        ),
    ):
        with pytest.raises(error):
            refused()


def test_a_state_of_another_schema_is_refused(graph):
    graph.schema.apply(SCHEMA.replace("age: I32?", "age: I32?  city: String?"))
    before = graph.head().id
    with pytest.raises(RefUnderOtherSchema, match="'main' cannot be reset to it"):
        graph.branches.reset("main", "v1")
    assert graph.head().id == before


def test_a_state_that_was_cleaned_up_is_refused(local_uri):
    graph = init(local_uri, SCHEMA)
    for name in ("ada", "bo"):
        add(graph, "main", name)
    graph.maintenance.cleanup(older_than=timedelta(), min_age=timedelta())
    before = graph.head().id
    with pytest.raises(HistoryRemoved):
        open_graph(local_uri).branches.reset("main", "main~1")
    assert graph.head().id == before
