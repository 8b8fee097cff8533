"""Named pins: commits that stay readable whatever is cleaned up."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from omnigraph.engine.graph import Graph, init
from omnigraph.engine.graph import open as open_graph
from omnigraph.errors import (
    CommitNotFound,
    ConflictError,
    HistoryRemoved,
    InputError,
    ManifestDamaged,
    NotFoundError,
    ReadOnlyHandle,
)
from omnigraph.versioning.pins import PINS_DIR
from tests.behaviour.graphs import SCHEMA

NOW = timedelta()


@pytest.fixture
def graph(local_uri: str) -> Graph:
    graph = init(local_uri, SCHEMA)
    for number in range(4):
        graph.load(json.dumps({"type": "Person", "data": {"name": "ada", "age": number}}))
    return graph


def ages(graph: Graph, at: str) -> list[object]:
    query = "query q() { match { $p: Person } return { $p.age } }"
    return [row["p.age"] for row in open_graph(graph.uri).query(query, at=at).to_dicts()]


def test_a_pinned_commit_outlives_a_cleanup_until_the_pin_goes(graph):
    second = graph.commits()[2].graph_commit_id
    pin = graph.pin("release-1", second, actor="ada")
    assert (pin.graph_commit_id, pin.version, pin.actor_id) == (second, 3, "ada")
    assert open_graph(graph.uri, read_only=True).pins() == [pin]
    report = graph.cleanup(older_than=NOW, min_age=NOW)
    people = next(t for t in report.tables if t.table_key == "node:Person")
    assert people.kept == {"current on main": 1, "pinned as release-1": 1}
    assert ages(graph, second) == [1]
    with pytest.raises(HistoryRemoved):
        ages(graph, graph.commits()[1].graph_commit_id)
    graph.unpin("release-1")
    graph.cleanup(older_than=NOW, min_age=NOW)
    with pytest.raises(HistoryRemoved):
        ages(graph, second)


def test_a_pin_protects_from_hard_drops_and_dropped_types(graph):
    pin = graph.pin("before")
    text = SCHEMA.replace("  age: I32?", "").replace("edge WorksAt: Person -> Company\n", "")
    graph.apply_schema(text, allow_data_loss=True)
    graph.cleanup(older_than=NOW, min_age=NOW)
    assert ages(graph, pin.graph_commit_id) == [3]
    fresh = open_graph(graph.uri)
    assert (
        fresh.snapshot_at(pin.graph_commit_id).open(fresh._tables, "edge:WorksAt").row_count() == 0
    )


def test_what_cannot_be_pinned_is_refused(graph):
    first = graph.commits()[1].graph_commit_id
    graph.pin("a")
    with pytest.raises(ConflictError, match="already exists"):
        graph.pin("a")
    with pytest.raises(CommitNotFound):
        graph.pin("b", "01KV8Z6M3Q9V2X4T7B5N0C1D2E")
    for name in ("", "a/b", ".a", "x" * 65):
        with pytest.raises(InputError):
            graph.pin(name)
    graph.cleanup(older_than=NOW, min_age=NOW)
    with pytest.raises(HistoryRemoved):
        graph.pin("late", first)
    with pytest.raises(NotFoundError):
        graph.unpin("late")
    with pytest.raises(ReadOnlyHandle):
        open_graph(graph.uri, read_only=True).pin("c")


def test_a_pin_that_cannot_be_read_stops_every_cleanup(graph):
    graph.pin("a")
    Path(graph.uri, PINS_DIR, "a.json").write_text("{")
    with pytest.raises(ManifestDamaged, match="pin 'a'"):
        graph.cleanup(keep_versions=1, min_age=NOW)
    assert ages(graph, graph.commits()[1].graph_commit_id) == [0]
