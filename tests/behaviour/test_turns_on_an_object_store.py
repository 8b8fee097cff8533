"""Turns on an object store: table commits of changes that do not concern each other are made at once."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.errors import MutationError, StoreCallFailed
from tests.contract.objects.moto_server import BUCKET, environment_for
from tests.support.faults import Call, Pause, armed

TYPES = ("A", "B", "C")
SCHEMA = "\n".join(f"node {name} {{ k: String @key }}" for name in TYPES) + "\nedge E: A -> B\n"
LINK = "query q($a: String, $b: String) { insert E { from: $a, to: $b } }"
DROP = "query q($k: String) { delete B where k = $k }"
BEFORE_TABLE, AFTER_TABLE = "mutation.pre_table_commit", "mutation.post_table_commit"
PUBLISH = "graph_publish.before_manifest_commit"
WAITING_SECONDS = 1.0
"""Long enough for a few writes to be prepared and to wait for their turn."""


@pytest.fixture
def graph(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Graph:
    for name, value in environment_for(s3_endpoint).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("omnigraph.commit.turn.MAX_REMOTE_TURN_SECONDS", 60.0)
    graph = init(f"s3://{BUCKET}/{uuid.uuid4().hex}", SCHEMA)
    graph.load({name: [{"k": "first"}] for name in TYPES}, "append")
    return graph


def insert(graph: Graph, type: str, key: str) -> Any:
    return graph.mutate(f"query q($k: String) {{ insert {type} {{ k: $k }} }}", {"k": key})


def in_one_turn(graph: Graph, writes: Sequence[Callable[[], Any]]) -> list[Any]:
    """The outcomes of writes that wait for the same turn, in this order: results or errors."""
    alone = Pause()
    with ThreadPoolExecutor(len(writes) + 1) as pool:
        with armed(AFTER_TABLE, alone, times=1):
            first = pool.submit(insert, graph, "A", uuid.uuid4().hex)
            alone.wait_until_reached()
            waiting = []
            for write in writes:
                waiting.append(pool.submit(write))
                time.sleep(WAITING_SECONDS / len(writes))
            time.sleep(WAITING_SECONDS)
            alone.release()
            first.result(timeout=60)
        return [later.exception(timeout=60) or later.result() for later in waiting]


def keys(graph: Graph, type: str) -> set[str]:
    return set(graph.scan(type, columns=["id"]).read_all().column("id").to_pylist())


def check_sound(graph: Graph) -> None:
    graph.maintenance.wait()
    assert graph.maintenance.recoveries() == []
    assert graph.maintenance.verify().problems == ()
    commits = graph.log(reverse=True)
    assert [commit.number for commit in commits] == list(range(1, len(commits) + 1))
    assert [commit.parents[0] for commit in commits[1:]] == [commit.id for commit in commits[:-1]]


def test_types_are_committed_side_by_side_and_published_in_order(graph):
    meet, publishes = threading.Barrier(len(TYPES)), list[object]()

    def meeting(hit: Any) -> None:
        if publishes:  # That of the write the others wait for.
            meet.wait(60)

    writes = [partial(insert, graph, name, "new") for name in TYPES]
    with armed(BEFORE_TABLE, Call(meeting)), armed(PUBLISH, Call(publishes.append)):
        made = [result.receipt for result in in_one_turn(graph, writes)]
    assert len(publishes) == 2
    assert [r.manifest_version for r in made] == [4, 5, 6]
    for name, receipt in zip(TYPES, made, strict=True):
        at = receipt.graph_commit_id
        present = {t: "new" in keys_at(graph, t, at) for t in TYPES}
        assert present == {t: TYPES.index(t) <= TYPES.index(name) for t in TYPES}
    check_sound(graph)


def keys_at(graph: Graph, type: str, at: str) -> set[str]:
    return set(graph.scan(type, columns=["id"], at=at).read_all().column("id").to_pylist())


def test_a_change_that_looks_at_what_another_one_writes_is_made_after_it(graph):
    outcomes = in_one_turn(
        graph,
        [
            lambda: insert(graph, "C", "new"),
            lambda: graph.mutate(DROP, {"k": "first"}),
            lambda: graph.mutate(LINK, {"a": "first", "b": "first"}),
            lambda: insert(graph, "A", "new"),
        ],
    )
    assert isinstance(outcomes[2], MutationError)
    assert [type(o).__name__ for o in outcomes if o is not outcomes[2]] == ["MutationResult"] * 3
    assert keys(graph, "B") == set()
    assert keys(graph, "C") == {"first", "new"}
    assert graph.scan("E").read_all().num_rows == 0
    check_sound(graph)


def test_when_one_of_them_fails_the_turn_is_undone_and_each_is_made_on_its_own(graph):
    writes = [partial(insert, graph, name, "new") for name in TYPES]
    publishes: list[object] = []

    def fail(hit: Any) -> None:
        if len(publishes) == 1 and hit.context["table"] == "node:B":
            raise StoreCallFailed("commit", "node:B", "for once")

    with armed(BEFORE_TABLE, Call(fail)), armed(PUBLISH, Call(publishes.append)):
        outcomes = in_one_turn(graph, writes)
    assert [getattr(outcome, "receipt", None) is not None for outcome in outcomes] == [True] * 3
    for name in TYPES:
        assert "new" in keys(graph, name)
    graph.maintenance.wait()
    assert graph.maintenance.verify().problems == ()
