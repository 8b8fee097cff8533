"""Repeating a write: whatever became of the first call, its effect is there once.

The outcome of a call is unknown when neither its publish nor its undo got through. Recovery then
completes it or undoes it, and the repeat finds out which.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import pytest

from omnigraph.api.graph import Graph
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import (
    CommitStateUnknown,
    HeadMoved,
    IdempotencyKeyReused,
    InputError,
    LoadIdReused,
    RecoveryPending,
    StorageError,
)
from omnigraph.versioning.recovery.recover import Recovery
from tests.behaviour.graphs import SCHEMA
from tests.crash.recovery.situations import (
    ADD,
    AGE,
    EVERYBODY,
    ages,
    check_recovered,
    ids,
    new_graph,
    people,
    sidecars,
)
from tests.support.faults import Call, FailStorage, armed

TEXTS = "node Page { slug: String @key  body: String  vec: Vector(2)? @embed(body) }\n"
KEYLESS = "node Event { what: String }\n"
NOTE = "query note($what: String) { insert Event { what: $what } }"
WIDER = SCHEMA + KEYLESS + "node Robot { serial: I64 @key }\n"


@pytest.fixture
def graph(uri, monkeypatch) -> Graph:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    graph = new_graph(uri)
    graph.schema.apply(SCHEMA + KEYLESS)
    return graph


@dataclass(frozen=True)
class Write:
    """A kind of write that shows when it is made twice."""

    make: Callable[[Graph, str | None], Any]
    count: Callable[[Graph], int]
    """1 when it was made once."""
    set_up: Callable[[Graph], object] = lambda graph: None
    point: str = "mutation.post_finalize_pre_publisher"
    undo_point: str = "recovery.before_publish"
    """Where undoing it fails after it has begun."""


def _events(graph: Graph, branch: str = "main") -> int:
    return len(ids(graph, "node:Event", branch))


def _load(graph: Graph, key: str | None):
    rows = '{"type": "Event", "data": {"what": "x"}}'
    return graph.load(rows.encode(), "append", load_id=key)


def _grow(graph: Graph) -> None:
    graph.branches.create("side").mutate(NOTE, {"what": "side"})


def _embed(graph: Graph, key: str | None):
    return graph.embed(all=True, idempotency_key=key)


def _add_texts(graph: Graph) -> None:
    graph.schema.apply(SCHEMA + KEYLESS + TEXTS)
    graph.insert("Page", [{"slug": "a", "body": "zinc"}, {"slug": "b", "body": "tin"}])


def _last_commit(graph: Graph) -> str:
    return next(c.id for c in reversed(graph.log(reverse=True)) if c.message == "to revert")


WRITES = {
    "mutation": Write(
        lambda graph, key: graph.mutate(NOTE, {"what": "x"}, idempotency_key=key), _events
    ),
    "load": Write(_load, _events),
    "merge": Write(
        lambda graph, key: graph.merge("side", idempotency_key=key),
        lambda graph: sum(len(c.parents) == 2 for c in graph.log()),
        _grow,
        "branch_merge.post_phase_b_pre_manifest_commit",
    ),
    "revert": Write(
        lambda graph, key: graph.revert(_last_commit(graph), idempotency_key=key),
        lambda graph: 1 - _events(graph),
        lambda graph: graph.mutate(NOTE, {"what": "x"}, message="to revert"),
    ),
    "cherry-pick": Write(
        lambda graph, key: graph.cherry_pick(graph.head("side").id, idempotency_key=key),
        _events,
        _grow,
    ),
    "embed": Write(
        _embed,
        lambda graph: sum("node:Page" in commit.counts for commit in graph.log()) - 1,
        _add_texts,
    ),
    "schema change": Write(
        lambda graph, key: graph.schema.apply(WIDER, idempotency_key=key),
        lambda graph: int("Robot" in graph.schema.catalog.nodes),
        point="schema_apply.after_staging_write",
        undo_point="recovery.sidecar_delete",
    ),
}


def unknown(write: Write, graph: Graph, monkeypatch, *, landed: bool) -> CommitStateUnknown:
    """Make a write whose outcome is unknown to its caller; recovery completes it if it `landed`."""

    def fail(*_):
        raise StorageError("the store is gone")

    with monkeypatch.context() as patch:
        if landed:
            # Nothing of it is undone, so recovery finds all of it.
            patch.setattr(Recovery, "_undo", fail)
        with (
            armed(write.point, FailStorage(), times=1),
            nullcontext() if landed else armed(write.undo_point, FailStorage(), times=1),
            pytest.raises(CommitStateUnknown) as caught,
        ):
            write.make(graph, None)
    assert len(sidecars(graph)) == 1
    return caught.value


@pytest.mark.parametrize("landed", [True, False], ids=["landed", "undone"])
@pytest.mark.parametrize("same_handle", [True, False], ids=["same handle", "new handle"])
@pytest.mark.parametrize("kind", WRITES)
def test_a_repeat_after_an_unknown_outcome_writes_once(
    graph, monkeypatch, kind, landed, same_handle
):
    write = WRITES[kind]
    write.set_up(graph)
    error = unknown(write, graph, monkeypatch, landed=landed)
    assert error.idempotency_key in str(error)
    assert error.retry.value == "with the same key"
    handle = graph if same_handle else open_graph(graph.uri)
    repeated = write.make(handle, error.idempotency_key)
    assert repeated.receipt.replayed is landed
    assert write.count(graph) == 1
    assert repeated.receipt.graph_commit_id in {c.id for c in graph.log(reverse=True)}
    again = write.make(handle, error.idempotency_key)
    assert again.receipt.replayed
    assert again.receipt.graph_commit_id == repeated.receipt.graph_commit_id
    assert write.count(graph) == 1
    check_recovered(graph)


UPKEEP: dict[str, tuple[str, Callable[[Graph], Any]]] = {
    "optimize": ("optimize.post_phase_b_pre_manifest_commit", lambda g: g.maintenance.optimize()),
    "indexes": (
        "ensure_indices.post_phase_b_pre_manifest_commit",
        lambda g: g.maintenance.ensure_indexes(),
    ),
}


@pytest.mark.parametrize("kind", UPKEEP)
def test_a_call_that_takes_no_key_is_repeated_as_its_error_says(graph, monkeypatch, kind):
    point, make = UPKEEP[kind]
    for number in range(3):
        graph.mutate(NOTE, {"what": f"{number}"})
    graph.maintenance.wait()

    def fail(*_):
        raise StorageError("the store is gone")

    with monkeypatch.context() as patch:
        patch.setattr(Recovery, "_undo", fail)
        with (
            armed(point, FailStorage(), times=1),
            pytest.raises(CommitStateUnknown) as caught,
        ):
            make(graph)
    assert not caught.value.takes_key
    assert caught.value.retry.value == "as is"
    assert "key" not in str(caught.value).replace(graph.uri, "")
    with pytest.raises(RecoveryPending, match=r"graph\.maintenance\.recover\(\)"):
        graph.maintenance.optimize()
    graph.maintenance.recover()
    make(graph)
    graph.maintenance.optimize()
    assert _events(graph) == 3
    check_recovered(graph)


@pytest.mark.parametrize("kind", WRITES)
def test_a_chosen_key_gives_the_first_receipt_again(graph, kind):
    write = WRITES[kind]
    write.set_up(graph)
    first = write.make(graph, "job-7")
    head = graph.head().id
    second = write.make(open_graph(graph.uri), "job-7")
    assert (first.receipt.replayed, second.receipt.replayed) == (False, True)
    assert second.receipt.graph_commit_id == first.receipt.graph_commit_id == head
    assert second.receipt.counts == first.receipt.counts
    assert graph.head().id == head
    assert write.count(graph) == 1


def test_a_repeated_mutation_tells_what_it_changed(graph):
    first = graph.mutate(AGE, {"who": "Bob", "age": 5}, idempotency_key="k")
    graph.mutate(AGE, {"who": "Bob", "age": 6})
    second = graph.mutate(AGE, {"who": "Bob", "age": 5}, idempotency_key="k")
    assert (second.affected_nodes, second.affected_edges) == (1, 0)
    assert (second.query_name, second.branch) == (first.query_name, first.branch)
    assert ages(graph)["Bob"] == 6


def test_repeated_embedding_tells_what_it_computed(graph):
    _add_texts(graph)
    first = _embed(graph, "k")
    graph.insert("Page", [{"slug": "c", "body": "lead"}])
    second = _embed(graph, "k")
    assert [prop.embedded for prop in first.properties + second.properties] == [2, 2]
    with pytest.raises(IdempotencyKeyReused):
        graph.embed(pending=True, idempotency_key="k")


def test_a_repeated_merge_needs_no_source(graph):
    _grow(graph)
    first = graph.merge("side", idempotency_key="k")
    graph.branches.delete("side")
    second = graph.merge("side", idempotency_key="k")
    assert (second.outcome, second.receipt.replayed) == (first.outcome, True)


def test_the_expected_head_of_a_repeat_is_that_of_the_first_call(graph):
    head = graph.head().id
    for replayed in (False, True):
        result = graph.mutate(ADD, {"who": "Eve"}, expected_head=head, idempotency_key="k")
        assert result.receipt.replayed is replayed
    with pytest.raises(HeadMoved):
        graph.mutate(ADD, {"who": "Eve"}, expected_head=head)


@pytest.mark.parametrize(
    "other",
    [
        lambda graph: graph.mutate(NOTE, {"what": "y"}, idempotency_key="k"),
        lambda graph: graph.mutate(ADD, {"who": "x"}, idempotency_key="k"),
        lambda graph: graph.merge("side", idempotency_key="k"),
        lambda graph: graph.revert(graph.head().id, idempotency_key="k"),
    ],
    ids=["parameters", "query", "merge", "revert"],
)
def test_a_key_that_was_used_for_something_else_is_refused(graph, other):
    _grow(graph)
    made = graph.mutate(NOTE, {"what": "x"}, idempotency_key="k").receipt
    with pytest.raises(IdempotencyKeyReused, match="'k' was already used") as caught:
        other(graph)
    assert caught.value.commit_id == made.graph_commit_id
    with pytest.raises(LoadIdReused, match="'k' was already used"):
        graph.load(people("Eve").encode(), "append", load_id="k")
    assert graph.head().id == made.graph_commit_id


def test_a_load_id_is_no_key_for_a_mutation(graph):
    graph.load(people("Eve").encode(), "append", load_id="nightly")
    with pytest.raises(IdempotencyKeyReused):
        graph.mutate(NOTE, {"what": "x"}, idempotency_key="nightly")


def test_layout_and_comments_of_a_query_do_not_matter(graph):
    graph.mutate(NOTE, {"what": "x"}, idempotency_key="k")
    text = f"// again\n{NOTE.replace('{ insert', '{' + chr(10) + '  insert')}"
    assert graph.mutate(text, {"what": "x"}, idempotency_key="k").receipt.replayed


def test_a_key_belongs_to_its_branch(graph):
    graph.mutate(NOTE, {"what": "x"}, idempotency_key="k")
    graph.load(people("Eve").encode(), "merge", load_id="nightly")
    side = graph.branches.create("side")
    assert not side.mutate(NOTE, {"what": "x"}, idempotency_key="k").receipt.replayed
    assert not side.load(people("Eve").encode(), "merge", load_id="nightly").replayed
    assert side.mutate(NOTE, {"what": "x"}, idempotency_key="k").receipt.replayed
    assert side.load(people("Eve").encode(), "merge", load_id="nightly").replayed
    side.mutate(NOTE, {"what": "y"}, idempotency_key="k2")
    graph.merge("side")
    assert not graph.mutate(NOTE, {"what": "y"}, idempotency_key="k2").receipt.replayed


def test_a_call_that_changes_nothing_is_not_remembered(graph):
    nothing = graph.mutate(AGE, {"who": "Nobody", "age": 1}, idempotency_key="k")
    assert nothing.receipt.graph_commit_id is None
    graph.mutate(ADD, {"who": "Nobody"})
    assert not graph.mutate(AGE, {"who": "Nobody", "age": 1}, idempotency_key="k").receipt.replayed
    assert ages(graph)["Nobody"] == 1


@pytest.mark.parametrize("key", ["", "a b", "x" * 129, "ä", "a$b"])
def test_a_key_that_cannot_be_stored_is_refused(graph, key):
    head = graph.head().id
    with pytest.raises(InputError, match=r"idempotency key .* is not usable"):
        graph.mutate(NOTE, {"what": "x"}, idempotency_key=key)
    assert graph.head().id == head


def test_of_calls_with_one_key_at_the_same_time_one_writes(graph):
    """All have looked for sidecars, and none for the key, before the first one holds the lock."""
    handles = [open_graph(graph.uri) for _ in range(3)]
    barrier, waited = threading.Barrier(3), threading.local()

    def meet(_hit):
        if not getattr(waited, "done", False):
            waited.done = True
            barrier.wait(30)

    results = []
    with armed("recovery.sidecar_list", Call(meet)):
        threads = [
            threading.Thread(
                target=lambda handle=handle: results.append(
                    handle.mutate(NOTE, {"what": "x"}, idempotency_key="k")
                )
            )
            for handle in handles
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert sorted(result.receipt.replayed for result in results) == [False, True, True]
    assert len({result.receipt.graph_commit_id for result in results}) == 1
    assert _events(graph) == 1
    check_recovered(graph)


def test_an_insert_that_meets_its_own_row_is_a_repeat(graph, monkeypatch):
    """The first call lands between the look for the key and the check of the row."""
    from omnigraph.commit.keys import KeyedRequest

    look = KeyedRequest.earlier

    def look_too_early(self, manifest, branch):
        found = look(self, manifest, branch)
        monkeypatch.setattr(KeyedRequest, "earlier", look)
        open_graph(graph.uri).mutate(KNOW, idempotency_key="k")
        return found

    monkeypatch.setattr(KeyedRequest, "earlier", look_too_early)
    assert graph.mutate(KNOW, idempotency_key="k").receipt.replayed
    assert ids(graph) == [*EVERYBODY[1:]]


KNOW = """query forget() {
  insert Knows { from: "Alice", to: "Bob" }
  delete Person where name = "Alice"
}"""
