"""Graph algorithms on a graph: selection of types, views, history, weights, budgets, writing values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.analytics.algorithms import ALGORITHMS, bind_parameters, result_columns
from omnigraph.cli.commands.analyze import ALGORITHMS as COMMAND_NAMES
from omnigraph.errors import (
    HeadMoved,
    InputError,
    MissingExtra,
    ParameterError,
    QueryBudgetExceeded,
    UnknownColumn,
    UnknownType,
)
from omnigraph.storage.filters import Comparison

SCHEMA = """
node Person { name: String @key  rank: F64?  group: I64?  note: String? }
node City { name: String @key  rank: F32? }
node Thing { label: String? }
edge Knows: Person -> Person { strength: F64? }
edge LivesIn: Person -> City
"""


@pytest.fixture
def people(memory_uri):
    graph = og.init(memory_uri, SCHEMA)
    names = ["ann", "bob", "cat", "dan"]
    pairs = [("ann", "bob", 1.0), ("bob", "cat", 2.0), ("cat", "ann", 1.0), ("ann", "ann", 4.0)]
    graph.load(
        {
            "Person": [{"name": name} for name in names],
            "City": [{"name": "Ulm"}],
            "Knows": [{"from": a, "to": b, "strength": s} for a, b, s in pairs],
            "LivesIn": [{"from": "dan", "to": "Ulm"}],
        },
        "append",
    )
    return graph


def value(graph, kind, id, name):
    found = graph.get(kind, id)
    assert found is not None
    return found[name]


def rows(result, column):
    return {(row["type"], row["id"]): row[column] for row in result}


def test_the_whole_graph_is_taken_unless_types_are_named(people):
    assert rows(people.analyze("degrees"), "degree") == {
        ("Person", "ann"): 4, ("Person", "bob"): 2, ("Person", "cat"): 2, ("Person", "dan"): 1,
        ("City", "Ulm"): 1,
    }  # fmt: skip
    assert set(rows(people.analyze("degrees", edges=["Knows"]), "degree").values()) == {4, 2, 0}
    only = people.analyze("degrees", nodes=["City"])
    assert rows(only, "degree") == {("City", "Ulm"): 0}
    assert people.analyze("degrees", nodes=["Thing"]).row_count == 0
    assert only.to_arrow().schema.types == [pa.utf8(), pa.utf8(), *[pa.int64()] * 3]


def test_the_columns_of_every_algorithm_are_those_announced(people):
    assert tuple(ALGORITHMS) == COMMAND_NAMES
    for name, algorithm in ALGORITHMS.items():
        found = people.analyze(name)
        parameters = bind_parameters(name, algorithm, {})
        expected = result_columns(name, bool(algorithm.directed), False, parameters)
        assert found.columns == ["type", "id", *expected]
        assert [kind.scalar for kind in found.types[2:]] == list(expected.values())
        assert found.row_count == 5
        assert found.receipt is None
        assert repr(found.to_pandas()) == repr(people.analyze(name).to_pandas())


def test_top_returns_the_largest_values(people):
    assert people.analyze("pagerank", top=2).row_count == 2
    best = people.analyze("degrees", {}, edges=["Knows"], directed=False, top=1)
    assert list(best) == [{"type": "Person", "id": "ann", "degree": 4}]


def test_edges_added_and_removed_after_the_first_read_count(people):
    people.analyze("degrees")
    people.insert("Knows", [{"from": "dan", "to": "ann"}, {"from": "dan", "to": "ann"}])
    people.mutate('query q() { delete Person where name = "bob" }')
    found = rows(people.analyze("degrees", nodes=["Person"]), "degree")
    assert found == {("Person", "ann"): 5, ("Person", "cat"): 1, ("Person", "dan"): 2}
    reopened = og.open(people.uri)
    assert rows(reopened.analyze("degrees", nodes=["Person"]), "degree") == found
    before = people.at("main~2").analyze("degrees", nodes=["Person"])
    assert rows(before, "degree")[("Person", "bob")] == 2
    assert before.snapshot is not None
    assert rows(people.analyze("degrees", nodes=["Person"], at="main~2"), "degree") == rows(
        before, "degree"
    )


def test_weights_come_from_a_property_of_the_edges(people):
    found = people.analyze("degrees", edges=["Knows"], weight="strength", directed=False)
    assert rows(found, "strength")[("Person", "ann")] == 10.0
    weighted = people.analyze("pagerank", edges=["Knows"], weight="strength")
    assert rows(weighted, "score") != rows(people.analyze("pagerank", edges=["Knows"]), "score")


@pytest.mark.parametrize("value", [None, -1.0])
def test_an_edge_without_a_usable_weight_is_reported(people, value):
    people.insert("Knows", [{"from": "dan", "to": "ann", "strength": value}])
    with pytest.raises(InputError, match=r"in 1 of 5 edges of Knows"):
        people.analyze("pagerank", edges=["Knows"], weight="strength")


def test_a_view_hides_nodes_and_their_edges(people):
    view = og.ReadView(rows={"Person": Comparison("name", "!=", "bob")})
    seen = og.open(people.uri, view=view).analyze("degrees", edges=["Knows"])
    assert rows(seen, "degree") == {
        ("Person", "ann"): 3,
        ("Person", "cat"): 1,
        ("Person", "dan"): 0,
    }
    weighted = og.open(people.uri, view=view).analyze("degrees", edges=["Knows"], weight="strength")
    assert rows(weighted, "strength")[("Person", "ann")] == 9.0
    hidden = og.open(people.uri, view=og.ReadView(hidden_types=frozenset(["City"])))
    assert {row["type"] for row in hidden.analyze("degrees")} == {"Person"}
    with pytest.raises(UnknownType):
        hidden.analyze("degrees", nodes=["City"])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda g: g.analyze("page_rank"), InputError, "did you mean `pagerank`"),
        (lambda g: g.analyze("pagerank", {"dampening": 1}), ParameterError, "'dampening'.*damping"),
        (lambda g: g.analyze("k_hop", {"hops": 0}), ParameterError, "a whole number from 1 to 64"),
        (lambda g: g.analyze("k_hop", {"hops": 1.5}), ParameterError, "a whole number"),
        (lambda g: g.analyze("betweenness", {"normalized": 1}), ParameterError, "true or false"),
        (lambda g: g.analyze("degrees", nodes=["Persn"]), UnknownType, "`Person`"),
        (lambda g: g.analyze("degrees", edges=["Know"]), UnknownType, "`Knows`"),
        (
            lambda g: g.analyze("degrees", nodes=["Person"], edges=["LivesIn"]),
            InputError,
            "ends at 'City'",
        ),
        (lambda g: g.analyze("triangles", directed=True), InputError, "leave directed out"),
        (lambda g: g.analyze("k_core", weight="strength"), InputError, "takes no weight"),
        (lambda g: g.analyze("pagerank", weight="strength"), UnknownColumn, "LivesIn"),
        (lambda g: g.analyze("pagerank", top=-1), InputError, "top must be"),
        (lambda g: g.analyze("pagerank", message="why"), InputError, "message belongs to a write"),
        (lambda g: g.analyze("pagerank", write={}), InputError, "write must map"),
        (lambda g: g.analyze("degrees", write={"score": "rank"}), UnknownColumn, "'score'"),
        (lambda g: g.analyze("pagerank", write={"score": "rank"}), InputError, "'Thing' has no"),
        (
            lambda g: g.analyze("pagerank", nodes=["Person"], write={"score": "note"}),
            InputError,
            r"Person.note is String\?, and 'score' needs F64 or F32",
        ),
        (
            lambda g: g.analyze("components", nodes=["Person"], write={"component": "name"}),
            InputError,
            "Person.name is String",
        ),
        (
            lambda g: g.analyze("pagerank", nodes=["Person"], write={"score": "rank"}, at="main"),
            InputError,
            "not both",
        ),
    ],
)  # fmt: skip
def test_a_wrong_call_says_what_is_wrong(people, call, error, message):
    with pytest.raises(error, match=message):
        call(people)


def test_values_are_written_in_one_commit(people):
    before = len(people.log())
    types = {"nodes": ["Person", "City"]}
    found = people.analyze(
        "pagerank", **types, write={"score": "rank"}, message="ranks", idempotency_key="k1"
    )
    assert len(people.log()) == before + 1
    assert people.head().message == "ranks"
    assert found.receipt.counts["node:Person"].updated == 4
    assert value(people, "Person", "ann", "rank") == rows(found, "score")[("Person", "ann")]
    ulm = rows(found, "score")[("City", "Ulm")]
    assert value(people, "City", "Ulm", "rank") == float(np.float32(ulm))
    again = people.analyze("pagerank", **types, write={"score": "rank"}, idempotency_key="k1")
    assert again.receipt.replayed
    groups = people.analyze("components", nodes=["Person"], write={"component": "group"})
    assert (
        value(people, "Person", "dan", "group") == 1 == rows(groups, "component")[("Person", "dan")]
    )


def test_nodes_without_a_key_are_written_by_id(memory_uri):
    graph = og.init(
        memory_uri, "node Thing { label: String?  degree: I32? }\nedge Near: Thing -> Thing"
    )
    graph.load(
        {"Thing": [{"id": "t1", "label": "a"}, {"id": "t2"}], "Near": [{"from": "t1", "to": "t2"}]},
        "append",
    )
    graph.analyze("degrees", write={"out_degree": "degree"})
    assert (value(graph, "Thing", "t1", "degree"), value(graph, "Thing", "t1", "label")) == (1, "a")


def test_values_are_computed_again_if_the_branch_moves(people, monkeypatch):
    other, plain = og.open(people.uri), og.Graph.load
    moved: list[object] = []

    def load_late(self, *given, **named):
        if not moved:
            moved.append(None)
            moved[0] = other.insert("Person", [{"name": "eve"}])
        return plain(self, *given, **named)

    monkeypatch.setattr(og.Graph, "load", load_late)
    found = people.analyze("degrees", nodes=["Person"], write={"degree": "group"})
    assert found.row_count == 5
    assert value(people, "Person", "eve", "group") == 0
    with pytest.raises(HeadMoved):
        people.analyze(
            "degrees", nodes=["Person"], write={"degree": "group"}, expected_head=moved[0]
        )


@pytest.mark.parametrize(
    "given",
    [
        {"algorithm": "degrees", "edges": ["Knows"], "weight": "strength"},
        {"algorithm": "degrees", "directed": False},
        {"algorithm": "pagerank"},
        {"algorithm": "pagerank", "edges": ["Knows"], "weight": "strength", "directed": False},
        {"algorithm": "components"},
    ],
)
@pytest.mark.parametrize("is_restricted", [False, True])
def test_edges_beyond_the_budget_go_through_files(people, monkeypatch, given, is_restricted):
    more = [{"from": "dan", "to": "bob", "strength": 0.5}] * 3
    people.insert("Knows", more)
    people.mutate('query q() { delete Person where name = "cat" }')
    view = og.ReadView(rows={"Person": Comparison("name", "!=", "ann")}) if is_restricted else None
    graph = og.open(people.uri, view=view)
    expected = graph.analyze(**given)
    monkeypatch.setattr("omnigraph.analytics.run.needed_bytes", lambda *_: 2**60)
    monkeypatch.setattr("omnigraph.analytics.run.CHUNK_EDGES", 2)
    found = graph.analyze(**given)
    assert [row.keys() for row in found] == [row.keys() for row in expected]
    for mine, other in zip(found, expected, strict=True):
        assert mine == pytest.approx(other)
    for name, directed in (("k_core", None), ("components", True)):
        with pytest.raises(QueryBudgetExceeded, match=f"{2**60:,}"):
            graph.analyze(name, directed=directed)


def test_the_budget_names_the_bytes(people):
    budget = og.QueryBudget(max_bytes=100)
    with pytest.raises(QueryBudgetExceeded, match=r"bytes; the query needs \d+") as caught:
        people.analyze("pagerank", budget=budget)
    assert caught.value.allowed == "100"
    token = og.CancelToken()
    token.cancel()
    with pytest.raises(og.errors.QueryCancelled):
        people.analyze("pagerank", cancel=token)


def test_without_scipy_the_extra_is_named(people, monkeypatch):
    monkeypatch.setattr("omnigraph.analytics.network.is_installed", lambda library: False)
    with pytest.raises(MissingExtra, match="extra 'analytics'"):
        people.analyze("pagerank")
