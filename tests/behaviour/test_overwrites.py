"""Overwrites of nodes that edges point to: refused, or the edges go too; no edge is left dangling."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.commit import writer as committing
from omnigraph.commit.tables import stage_early
from omnigraph.errors import DanglingEdges, InputError, LoadError
from tests.spark.in_process import tasks_in_this_process

SCHEMA = """
node Person { name: String @key  age: I32? }
node Firm { name: String @key }
edge Knows: Person -> Person
edge WorksAt: Person -> Firm { @unique(src, dst) }
edge Pairs: Person -> Firm @card(2..)
edge Owns: Firm -> Firm
"""


def person(name: str, **values: Any) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, **values}}


def firm(name: str) -> dict[str, Any]:
    return {"type": "Firm", "data": {"name": name}}


def edge(kind: str, source: str, target: str, **values: Any) -> dict[str, Any]:
    return {"edge": kind, "from": source, "to": target, "data": values}


def lines(*records: dict[str, Any]) -> bytes:
    return "\n".join(map(json.dumps, records)).encode()


def exported(graph: Graph, branch: str = "main") -> bytes:
    out = io.BytesIO()
    graph.export(out, branch=branch)
    return out.getvalue().decode().encode()


def ends(graph: Graph, kind: str) -> set[tuple[str, str]]:
    records = [json.loads(line) for line in exported(graph).splitlines()]
    return {(r["from"], r["to"]) for r in records if r.get("edge") == kind}


@pytest.fixture(params=["inline", "spark"])
def engine(request) -> Iterator[str]:
    """Loads in one process, and by the kernels of tasks on splits of a few records."""
    with nullcontext() if request.param == "inline" else tasks_in_this_process(120):
        yield request.param


@pytest.fixture
def graph(tmp_path) -> Graph:
    graph = init(str(tmp_path / "g"), SCHEMA)
    people = [person(name) for name in ("ada", "bob", "cy")]
    knows = [
        edge("Knows", "ada", "bob", id="k1"),
        edge("Knows", "bob", "ada", id="k2"),
        edge("Knows", "cy", "cy", id="k3"),
    ]
    works = [edge("WorksAt", "ada", "X"), edge("WorksAt", "bob", "Y")]
    graph.load(lines(*people, firm("X"), firm("Y"), *knows, *works), "append")
    return graph


def test_what_is_in_the_way_is_named_with_counts_and_first_ids(graph, engine):
    before = exported(graph)
    with pytest.raises(DanglingEdges) as refused:
        graph.load(lines(person("bob"), person("cy", age=3)), "overwrite", engine=engine)
    found = {part.type: (part.count, part.ids) for part in refused.value.edges}
    assert found == {"Knows": (2, ("k1", "k2")), "WorksAt": (1, found["WorksAt"][1])}
    assert "3 edges point to nodes that the overwrite removes" in str(refused.value)
    assert exported(graph) == before
    assert not graph._core.recovery.status().pending


def test_the_first_ids_are_those_in_order_however_many_there_are(graph, engine):
    many = [edge("Knows", "ada", "bob", id=f"m{n:03}") for n in reversed(range(200))]
    graph.load(lines(*many), "append")
    with pytest.raises(DanglingEdges) as refused:
        graph.load(lines(person("cy")), "overwrite", engine=engine)
    knows, _ = refused.value.edges
    assert (knows.count, knows.ids) == (202, ("k1", "k2", "m000", "m001", "m002"))
    assert "Knows: 202 edges, k1, k2, m000, m001, m002, …" in str(refused.value)


def test_a_cascade_deletes_the_edges_in_the_same_commit_and_counts_them(graph, engine):
    result = graph.load(
        lines(person("bob"), person("cy"), person("dee")), "overwrite", cascade=True, engine=engine
    )
    counts = {key: c.to_json() for key, c in result.receipt.counts.items() if c}
    assert counts == {
        "node:Person": {"inserted": 1, "updated": 2, "deleted": 1},
        "edge:Knows": {"inserted": 0, "updated": 0, "deleted": 2},
        "edge:WorksAt": {"inserted": 0, "updated": 0, "deleted": 1},
    }
    assert result.rows_loaded == {"node:Person": 3}
    assert result.receipt.manifest_version == 3
    assert ends(graph, "Knows") == {("cy", "cy")}
    copy = init(f"memory://cascaded-{engine}", SCHEMA)
    copy.load(exported(graph), "append")
    assert exported(copy) == exported(graph)


def test_an_export_loads_again_after_any_overwrite(graph, engine):
    for records in ([person("cy")], [firm("Y")], [firm("X"), edge("WorksAt", "cy", "X")]):
        try:
            graph.load(lines(*records), "overwrite", engine=engine)
        except DanglingEdges:
            graph.load(lines(*records), "overwrite", cascade=True, engine=engine)
        copy = init(f"memory://again-{engine}-{len(exported(graph))}", SCHEMA)
        copy.load(exported(graph), "append")
        assert exported(copy) == exported(graph)


def test_nodes_that_come_back_keep_their_edges(graph, engine):
    before = ends(graph, "Knows"), ends(graph, "WorksAt")
    people = [person(name, age=n) for n, name in enumerate(["cy", "bob", "ada", "new"])]
    graph.load(lines(*people), "overwrite", engine=engine)
    assert (ends(graph, "Knows"), ends(graph, "WorksAt")) == before


def test_edge_types_of_the_same_load_are_validated_with_it(graph, engine):
    records = [person("bob"), edge("Knows", "bob", "bob")]
    with pytest.raises(DanglingEdges, match="1 edge points"):
        graph.load(lines(*records), "overwrite", engine=engine)
    graph.load(lines(*records, edge("WorksAt", "bob", "X")), "overwrite", engine=engine)
    assert (ends(graph, "Knows"), ends(graph, "WorksAt")) == ({("bob", "bob")}, {("bob", "X")})
    with pytest.raises(LoadError, match="src 'ada' not found"):
        graph.load(lines(person("bob"), edge("Knows", "ada", "bob")), "overwrite", cascade=True, engine=engine)  # fmt: skip


def test_a_table_without_rows_removes_all_nodes_of_its_type(graph, engine):
    none = pa.table({"name": pa.array([], pa.utf8())})
    nobody = pa.table({"from": pa.array([], pa.utf8()), "to": pa.array([], pa.utf8())})
    with pytest.raises(DanglingEdges) as refused:
        graph.load({"Firm": none}, "overwrite", engine=engine)
    assert [(part.type, part.count) for part in refused.value.edges] == [("WorksAt", 2)]
    graph.load({"Firm": none, "WorksAt": nobody}, "overwrite", engine=engine)
    graph.load({"Person": none}, "overwrite", cascade=True, engine=engine)
    assert exported(graph) == b""


def test_rows_that_are_set_aside_are_rows_that_are_removed(graph, engine, tmp_path):
    records = lines(person("bob"), person("cy"), {"type": "Person", "data": {"name": 7}})
    with pytest.raises(DanglingEdges, match="Knows: 2 edges"):
        graph.load(records, "overwrite", quarantine=tmp_path / "bad", engine=engine)
    bad_edge = edge("WorksAt", "bob", "nowhere")
    with pytest.raises(DanglingEdges, match="WorksAt: 1 edge,"):
        # Its only record is bad, so the edge type is not overwritten after all.
        graph.load(lines(person("bob"), edge("Knows", "bob", "bob"), bad_edge), "overwrite", quarantine=tmp_path / "worse", engine=engine)  # fmt: skip


def test_a_minimum_of_edges_is_no_reason_to_keep_one(graph, engine):
    # As after a delete by a mutation: what is left may be fewer than edges are added with.
    graph.load(lines(edge("Pairs", "ada", "X"), edge("Pairs", "ada", "Y")), "append")
    graph.load(lines(firm("Y")), "overwrite", cascade=True, engine=engine)
    assert ends(graph, "Pairs") == {("ada", "Y")}


def test_on_a_branch_main_stays_as_it_was(graph, engine):
    before = exported(graph)
    graph.branches.create("draft")
    with pytest.raises(DanglingEdges):
        graph.load(lines(person("cy")), "overwrite", branch="draft", engine=engine)
    graph.load(lines(person("cy")), "overwrite", branch="draft", cascade=True, engine=engine)
    records = [json.loads(line) for line in exported(graph, "draft").splitlines()]
    assert sorted(r.get("edge", r.get("type")) for r in records) == [
        "Firm", "Firm", "Knows", "Person",
    ]  # fmt: skip
    assert exported(graph) == before


@pytest.mark.parametrize("cascade", [False, True])
def test_an_edge_that_comes_between_check_and_lock_is_seen(graph, engine, cascade, monkeypatch):
    graph.load(lines(person("cy"), person("late")), "overwrite", cascade=True)
    other = open_graph(graph.uri)
    came: list[bool] = []

    def stage(*arguments: Any) -> Any:
        if not came:
            came.append(True)
            other.load(lines(edge("Knows", "late", "late", id="new")), "append")
        return stage_early(*arguments)

    monkeypatch.setattr(committing, "stage_early", stage)

    def overwrite() -> Any:
        return open_graph(graph.uri).load(
            lines(person("cy")), "overwrite", cascade=cascade, engine=engine
        )

    if cascade:
        assert overwrite().receipt.counts["edge:Knows"].deleted == 1
    else:
        with pytest.raises(DanglingEdges, match="Knows: 1 edge, new"):
            overwrite()
    assert came
    assert (("late", "late") in ends(graph, "Knows")) is not cascade


def test_only_an_overwrite_can_cascade(graph):
    for mode in ("append", "merge"):
        with pytest.raises(InputError, match=f"mode {mode} removes no nodes"):
            graph.load(lines(person("zoe")), mode, cascade=True)
