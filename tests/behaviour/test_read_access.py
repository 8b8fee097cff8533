"""Access paths: look-ups for few nodes of an uncached graph, memory for the rest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.commit import tables
from omnigraph.errors import InputError, QueryBudgetExceeded, QueryCancelled
from omnigraph.read.budget import (
    CancelToken,
    QueryBudget,
)

SCHEMA = """
node Person { name: String @key  age: I32 }
edge Knows: Person -> Person
edge Likes: Person -> Person
"""
PEOPLE, EDGES = 5_000, 100_000
FRIENDS = """
query friends($name: String) {
    match { $p: Person { name: $name }  $p knows $q }
    return { $q.name, $q.age }
    order { $q.name }
}
"""


def names(numbers: np.ndarray) -> pa.Array:
    return pa.array([f"p{number:04d}" for number in numbers])


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("access") / "graph"
    random = np.random.default_rng(7)
    everybody = np.arange(PEOPLE)
    tables: dict[str, pa.Table] = {
        "Person": pa.table({"name": names(everybody), "age": (everybody % 90).astype(np.int32)})
    }
    for edge in ("Knows", "Likes"):
        ends = random.integers(0, PEOPLE, (2, EDGES))
        tables[edge] = pa.table({"from": names(ends[0]), "to": names(ends[1])})
    init(path, SCHEMA).load(tables, "merge")
    return path


@pytest.fixture
def fresh(stored: Path) -> Graph:
    """A handle of a process that has not read anything yet."""
    return open_graph(stored, read_only=True)


def test_few_nodes_of_an_unread_graph_are_looked_up(fresh):
    explained = fresh.explain(FRIENDS, {"name": "p0007"}, analyze=True)
    assert explained.looks_up
    scan, follow, _ = explained.steps
    assert scan.measured.rows == 1
    assert scan.measured.lookups == 1
    assert 0 < follow.measured.rows < 100
    assert "look-ups" in str(explained.to_json()["plan"]["detail"]["access"])


@pytest.mark.parametrize("mode", ["csr", "indexed", "auto", ""])
def test_every_way_leads_to_the_same_rows(stored, monkeypatch, mode):
    expected = open_graph(stored, read_only=True).query(FRIENDS, {"name": "p0042"}).to_dicts()
    monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_MODE", mode)
    graph = open_graph(stored, read_only=True)
    assert graph.explain(FRIENDS).looks_up is (mode != "csr")
    assert graph.query(FRIENDS, {"name": "p0042"}).to_dicts() == expected
    assert len(expected) > 5


def test_an_unknown_mode_is_refused_when_a_graph_is_opened(stored, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_MODE", "fast")
    with pytest.raises(
        InputError, match="OMNIGRAPH_TRAVERSAL_MODE is 'fast'; set it to one of 'auto'"
    ):
        open_graph(stored, read_only=True)


def test_what_is_in_memory_is_not_looked_up(fresh):
    fresh.query("query q() { match { $p knows $q  $p.age < $q.age } return { count($p) as n } }")
    assert not fresh.explain(FRIENDS).looks_up


def test_unread_edges_are_looked_up_from_nodes_in_memory(fresh):
    fresh.query("query q() { match { $p knows $q  $p.age < $q.age } return { count($p) as n } }")
    text = """query q($name: String) {
        match { $p: Person { name: $name }  $p knows $q  $q likes $r } return { $r.name }
    }"""
    explained = fresh.explain(text, {"name": "p0001"}, analyze=True)
    assert not explained.looks_up
    _, knows, likes, _ = explained.steps
    assert knows.measured.lookups == 0
    assert likes.measured.lookups > 0


def test_a_start_from_everywhere_reads_everything(fresh):
    text = "query q() { match { $p knows $q  $p.age < $q.age } return { $p.name } limit 3 }"
    assert not fresh.explain(text).looks_up


@pytest.mark.parametrize(
    ("variable", "bounds"),
    [
        ("OMNIGRAPH_EXPAND_INDEXED_MAX_FRONTIER", "knows{1,2}"),
        ("OMNIGRAPH_EXPAND_INDEXED_MAX_HOPS", "knows{2,2}"),
    ],
)
def test_ceilings_keep_wide_and_long_searches_in_memory(stored, monkeypatch, variable, bounds):
    text = f"""query q($name: String) {{
        match {{ $p: Person {{ name: $name }}  $p {bounds} $q }} return {{ $q.name }} limit 1
    }}"""
    monkeypatch.setenv("OMNIGRAPH_EXPAND_INDEXED_MAX_FRONTIER", "1000000")
    assert open_graph(stored, read_only=True).explain(text).looks_up
    monkeypatch.setenv(variable, "1")
    assert not open_graph(stored, read_only=True).explain(text).looks_up
    monkeypatch.setenv(variable, "0")
    monkeypatch.setenv("OMNIGRAPH_EXPAND_INDEXED_MAX_FRONTIER", "1000000")
    assert open_graph(stored, read_only=True).explain(text).looks_up


def test_a_table_that_is_looked_at_again_and_again_ends_up_in_memory(fresh):
    answers = []
    for number in range(60):
        answers.append(fresh.query(FRIENDS, {"name": f"p{number:04d}"}).row_count)
    assert not fresh.explain(FRIENDS).looks_up
    again = [fresh.query(FRIENDS, {"name": f"p{number:04d}"}).row_count for number in range(60)]
    assert again == answers


def test_some_rows_of_a_type_are_found_without_reading_all(stored, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_MODE", "indexed")
    fresh = open_graph(stored, read_only=True)
    text = "query q() { match { $p: Person  $p.age > 30 } return { $p.name, $p.age } limit 4 }"
    (scan, _) = fresh.explain(text, analyze=True).steps
    assert scan.measured is not None
    assert scan.measured.rows == 4
    rows = fresh.query(text).to_dicts()
    assert len(rows) == 4
    assert all(row["p.age"] > 30 for row in rows)


@pytest.mark.parametrize("mode", ["csr", "indexed"])
def test_limits_hold_on_every_way(stored, monkeypatch, mode):
    monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_MODE", mode)
    graph = open_graph(stored, read_only=True)
    token = CancelToken()
    token.cancel()
    with pytest.raises(QueryCancelled):
        graph.query(FRIENDS, {"name": "p0007"}, cancel=token)
    with pytest.raises(QueryBudgetExceeded) as caught:
        graph.query(FRIENDS, {"name": "p0007"}, budget=QueryBudget(max_rows=3))
    assert caught.value.resource == "rows"
    assert graph.query(FRIENDS, {"name": "p0007"}).row_count > 3


def test_a_search_ends_when_enough_rows_are_found(fresh):
    text = "query q() { match { $p knows $q } return { $p.name, $q.name } limit 10 }"
    explained = fresh.explain(text, analyze=True)
    assert explained.steps[-1].measured.rows == 10
    assert explained.steps[1].measured.rows < EDGES / 2


def test_a_read_of_the_past_leaves_the_present_in_memory(tmp_path):
    graph = init(tmp_path / "graph", SCHEMA)
    first = graph.load(
        {"Person": pa.table({"name": names(np.arange(3)), "age": [1, 2, 3]})}, "merge"
    )
    graph.load({"Knows": pa.table({"from": ["p0000", "p0001"], "to": ["p0001", "p0002"]})}, "merge")
    text = "query q() { match { $p: Person  not { $p knows $_ } } return { $p.name } }"
    for _ in range(2):
        assert graph.query(text).to_dicts() == [{"p.name": "p0002"}]
        past = graph.query(text, at=first.receipt.graph_commit_id)
        assert past.row_count == 3
    assert not graph.explain(text).looks_up


def test_patterns_that_are_linked_by_an_equality_only_are_joined_on_it(fresh):
    text = """query q($name: String) {
        match { $p: Person { name: $name }  $q: Person  $q.age = $p.age } return { $q.name }
    }"""
    explained = fresh.explain(text, {"name": "p0003"}, analyze=True)
    assert [step.op for step in explained.steps] == ["scan", "join", "return"]
    assert explained.steps[1].measured.rows == len(range(3, PEOPLE, 90))


def test_a_join_of_a_type_with_itself_costs_what_it_finds(fresh):
    text = """query q() {
        match { $p: Person  $q: Person  $q.name = $p.name } return { count($p) as n }
    }"""
    assert fresh.query(text).to_dicts() == [{"n": PEOPLE}]


def test_demanded_look_ups_without_an_index_are_warned_of(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(tables, "INDEX_MIN_ROWS", 10**9)
    graph = init(tmp_path / "graph", SCHEMA)
    people = np.arange(2_000)
    graph.load(
        {
            "Person": pa.table({"name": names(people), "age": people.astype(np.int32)}),
            "Knows": pa.table({"from": names(people), "to": names(people[::-1])}),
        },
        "merge",
    )
    assert graph.query(FRIENDS, {"name": "p0001"}).row_count == 1
    assert caplog.messages == []
    monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_MODE", "indexed")
    demanded = open_graph(graph.uri, read_only=True)
    assert demanded.query(FRIENDS, {"name": "p0001"}).to_dicts() == [
        {"q.name": "p1998", "q.age": 1998}
    ]
    assert caplog.messages == ["look-ups by Knows.src scan 2000 rows that no index covers"]
