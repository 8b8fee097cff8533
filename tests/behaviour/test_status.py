"""How a graph is doing, as its status tells."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.commit import background
from omnigraph.maintenance import status as statuses
from omnigraph.versioning.rows import RECOVERY_DIR
from tests.behaviour.graphs import COMPANY, PERSON
from tests.behaviour.reshaping import WITHOUT_SCORE
from tests.support.faults import Fail, InjectedFault, armed


def person(name: str, age: int = 1) -> str:
    return json.dumps({"type": "Person", "data": {"name": name, "age": age}})


def table(graph: Graph, key: str = PERSON) -> statuses.TableStatus:
    return next(t for t in graph.maintenance.status().tables if t.table_key == key)


def test_rows_fragments_and_indexes_are_counted(graph, monkeypatch):
    monkeypatch.setattr(background, "MAX_SMALL_FRAGMENTS", 10**6)
    for number in range(4):
        graph.load(person(f"p{number}").encode(), "merge")
    found = table(graph)
    assert (found.rows, found.fragments) == (4, 4)
    assert found.bytes > 0
    assert "id" in found.missing_indexes
    graph.maintenance.ensure_indexes()
    assert {i.column: i.unindexed_rows for i in table(graph).indexes}["id"] == 0
    graph.load(person("eve").encode(), "merge")
    assert {i.column: i.unindexed_rows for i in table(graph).indexes}["id"] == 1
    assert (table(graph, COMPANY).rows, table(graph, COMPANY).fragments) == (0, 0)


def test_many_small_fragments_are_worth_advice(graph, monkeypatch):
    monkeypatch.setattr(background, "MAX_SMALL_FRAGMENTS", 10**6)
    monkeypatch.setattr(statuses, "_MAX_SMALL_FRAGMENTS", 3)
    for number in range(4):
        graph.load(person(f"p{number}").encode(), "merge")
    [advice] = graph.maintenance.status().advice
    assert str(advice) == "graph.maintenance.optimize(): many small files in node:Person"
    assert advice.as_command() == "`omnigraph optimize`: many small files in node:Person"
    graph.maintenance.optimize()
    assert graph.maintenance.status().advice == ()


def test_interrupted_writes_are_counted_as_pending_or_quarantined(local_graph):
    with armed("mutation.post_table_commit", Fail()), pytest.raises(InjectedFault):
        local_graph.load(person("eve").encode(), "merge")
    Path(local_graph.uri, RECOVERY_DIR, "01KV8Z6M3Q9V2X4T7B5N0C1D2E.json").write_text("{")
    status = open_graph(local_graph.uri, read_only=True).maintenance.status()
    assert status.to_json()["recovery"] == {"pending": 1, "quarantined": 1}
    assert [advice.call for advice in status.advice] == [
        "graph.maintenance.repair()",
        "graph.maintenance.recover()",
    ]
    assert status.to_json()["advice"][0].startswith("`omnigraph repair`: ")
    assert status.to_json()["advice"][1].startswith("run any write: interrupted")


def test_vectors_are_counted_by_their_state(uri, monkeypatch):
    for name in ("OMNIGRAPH_EMBEDDINGS_MOCK", "GEMINI_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    graph = init(
        uri, 'node Doc { name: String @key  text: String?  v: Vector(4)? @embed("text") }\n'
    )
    rows = [
        {"name": "a", "text": "x"},
        {"name": "b"},
        {"name": "c", "text": "y", "v": [1, 2, 3, 4]},
    ]
    lines = "\n".join(json.dumps({"type": "Doc", "data": row}) for row in rows)
    graph.load(lines.encode(), "merge")
    [vectors] = table(graph, "node:Doc").embeddings
    assert (vectors.property, vectors.source) == ("v", "text")
    counts = vectors.counts
    assert (counts.ready, counts.pending, counts.empty, counts.given) == (1, 1, 1, 1)
    [advice] = graph.maintenance.status().advice
    assert str(advice) == "graph.embed(): missing or stale vectors in node:Doc.v (1)"


def test_what_is_kept_in_memory_is_counted(graph):
    graph.load(person("ada").encode(), "merge")
    before = graph.maintenance.status().cached_bytes
    graph.query("query q() { match { $p: Person  $p knows $q } return { $p.name, $q.age } }")
    graph.query("query q() { match { $p: Person } return { $p.name } }")
    assert graph.maintenance.status().cached_bytes > before


def test_values_of_dropped_properties_are_worth_an_optimize(workshop_graph):
    assert workshop_graph.maintenance.status().advice == ()
    workshop_graph.schema.apply(WITHOUT_SCORE)
    [advice] = workshop_graph.maintenance.status().advice
    assert advice.reason == "values of dropped properties in node:Maker"
    workshop_graph.maintenance.optimize()
    assert workshop_graph.maintenance.status().advice == ()
