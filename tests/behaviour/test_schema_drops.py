"""Dropped properties and types: what earlier commits still show, and what comes back empty."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from omnigraph.engine.graph import Graph
from omnigraph.errors import (
    HistoryRemoved,
    TypeCheckError,
)
from omnigraph.faults import InjectedFault
from omnigraph.testing.faults import Fail, FailStorage, armed
from tests.behaviour.reshaping import SCORES, WITHOUT_SCORE, makers, open_again
from tests.workshop import WORKSHOP


@pytest.fixture
def graph(workshop_graph: Graph) -> Graph:
    """The workshop, in place of the small graph of the other tests."""
    return workshop_graph


@pytest.mark.acceptance("L-052", "L-062", "S-191")
def test_a_dropped_property_is_there_at_earlier_commits(graph):
    before = graph.head()
    steps = [step.to_json() for step in graph.apply_schema(WITHOUT_SCORE).plan.steps]
    assert [(step["kind"], step["mode"]) for step in steps] == [("drop_property", "soft")]
    with pytest.raises(TypeCheckError, match="score"):
        graph.query(SCORES)
    assert makers(graph, "score", at=before)[0] == ["ada", 9.5]
    assert makers(open_again(graph), "score", at=before)[0] == ["ada", 9.5]
    graph.mutate('query q() { update Maker set { age: 42 } where handle = "ada" }')
    assert makers(graph, "age")[0] == ["ada", 42]


@pytest.mark.acceptance("S-116")
def test_a_hard_drop_cannot_be_undone_by_going_back(graph):
    before = graph.head()
    graph.load('{"type":"Maker","data":{"handle":"eve","score":1}}')
    result = graph.apply_schema(WITHOUT_SCORE, allow_data_loss=True)
    assert [step.to_json()["mode"] for step in result.plan.steps] == ["hard"]
    for target in (before, result.receipt.parent_commit_id):
        with pytest.raises(HistoryRemoved, match="Maker"):
            makers(open_again(graph), "score", at=target)
    assert len(makers(graph, "age")) == 5
    assert graph.commit(before).graph_commit_id == before
    graph.mutate('query q() { delete Maker where handle = "eve" }')


def files_with(graph: Graph, word: str) -> list[Path]:
    """The files of a graph's rows that a word can be found in."""
    data = Path(graph.uri).glob("nodes/*/data/*")
    return [path for path in data if path.is_file() and word.encode() in path.read_bytes()]


WITH_SECRET = WORKSHOP.replace("    score: F64?", "    score: F64?\n    secret: String?")


def tell_secrets(graph: Graph) -> None:
    graph.apply_schema(WITH_SECRET)
    graph.load('{"type":"Maker","data":{"handle":"eve","secret":"under the doormat"}}')
    graph.optimize()


def test_what_a_hard_drop_dropped_is_in_no_file_any_more(graph):
    tell_secrets(graph)
    assert files_with(graph, "doormat")
    rows = makers(graph, "age", "score")
    applied = graph.apply_schema(WORKSHOP, allow_data_loss=True, actor="ada").receipt
    assert not files_with(graph, "doormat")
    assert makers(open_again(graph), "age", "score") == rows
    rewritten = graph.commit(graph.head())
    assert rewritten.parent_commit_id == applied.graph_commit_id
    assert (rewritten.draft.operation.value, rewritten.draft.actor_id) == ("optimize", "ada")
    assert not graph.optimize().receipt.graph_commit_id


def test_what_a_soft_drop_dropped_leaves_the_disk_with_optimize_and_cleanup(graph):
    tell_secrets(graph)
    before = graph.head()
    graph.apply_schema(WORKSHOP)
    assert makers(graph, "secret", at=before)[-1] == ["eve", "under the doormat"]
    optimized = {table.table_key: table for table in graph.optimize().tables}
    assert optimized["node:Maker"].committed
    assert makers(open_again(graph), "secret", at=before)[-1] == ["eve", "under the doormat"]
    graph.cleanup(keep_versions=1, min_age=timedelta())
    assert not files_with(graph, "doormat")
    assert makers(open_again(graph), "score")[0] == ["ada", 9.5]


def test_a_hard_drop_that_dies_while_rows_are_rewritten_is_finished_by_the_next_opener(graph):
    tell_secrets(graph)
    rows = makers(graph, "age")
    point = "optimize.post_phase_b_pre_manifest_commit"
    with armed(point, Fail()), pytest.raises(InjectedFault):
        graph.apply_schema(WORKSHOP, allow_data_loss=True)
    again = open_again(graph)
    assert "secret" not in again.catalog.nodes["Maker"].properties
    assert makers(again, "age") == rows
    again.cleanup(keep_versions=1, min_age=timedelta())
    assert not files_with(again, "doormat")


def test_a_hard_drop_stands_although_the_data_cannot_be_removed_yet(graph):
    before = graph.head()
    with armed("schema_apply.before_removal", FailStorage()):
        assert graph.apply_schema(WITHOUT_SCORE, allow_data_loss=True).applied
    assert makers(graph, "score", at=before)[0] == ["ada", 9.5]
    graph.cleanup(keep_versions=1, min_age=timedelta())
    with pytest.raises(HistoryRemoved):
        makers(open_again(graph), "score", at=before)


@pytest.mark.acceptance("L-056", "S-115")
def test_a_dropped_type_is_there_at_earlier_commits(graph):
    before = graph.head()
    text = WORKSHOP.replace("edge Borrows: Maker -> Tool { note: String? }\n", "")
    steps = [step.to_json() for step in graph.apply_schema(text).plan.steps]
    assert [(s["kind"], s["type_kind"], s["mode"]) for s in steps] == [
        ("drop_type", "edge", "soft")
    ]
    assert "edge:Borrows" not in graph.snapshot().entries
    query = "query q() { match { $m: Maker  $m borrows $t } return { $m.handle, $t.code } }"
    with pytest.raises(TypeCheckError):
        graph.query(query)
    assert graph.query(query, at=before).to_dicts()
    graph.mutate('query q() { delete Maker where handle = "ada" }')


def test_a_hard_dropped_type_is_gone_for_good(graph):
    before = graph.head()
    text = WORKSHOP.replace("edge Borrows: Maker -> Tool { note: String? }\n", "")
    graph.apply_schema(text, allow_data_loss=True)
    query = "query q() { match { $m: Maker  $m borrows $t } return { $m.handle } }"
    with pytest.raises(HistoryRemoved):
        open_again(graph).query(query, at=before)
    assert makers(graph, "score", at=before)[0] == ["ada", 9.5]


@pytest.mark.acceptance("S-119")
def test_a_type_that_comes_back_starts_anew_in_a_place_of_its_own(graph):
    before = graph.head()
    without = WORKSHOP.replace("edge Borrows: Maker -> Tool { note: String? }\n", "")
    old = graph.snapshot().entry("edge:Borrows")
    graph.apply_schema(without)
    graph.apply_schema(WORKSHOP)
    new = graph.snapshot().entry("edge:Borrows")
    assert new.location == f"{old.location}-{graph.catalog.edges['Borrows'].type_id}"
    assert (old.row_count > 0, new.row_count) == (True, 0)
    query = "query q() { match { $m: Maker  $m borrows $t } return { $m.handle, $t.code } }"
    assert graph.query(query).to_dicts() == []
    assert graph.query(query, at=before).to_dicts()
    graph.load('{"edge":"Borrows","from":"ada","to":"sa-1","data":{"note":"n"}}', "append")
    assert graph.query(query).to_dicts() == [{"m.handle": "ada", "t.code": "sa-1"}]


@pytest.mark.acceptance("S-181")
def test_a_property_that_comes_back_is_empty_and_has_a_new_number(graph):
    before = graph.head()
    first = graph.catalog.nodes["Maker"].properties["score"].prop_id
    graph.apply_schema(WITHOUT_SCORE)
    low = graph.catalog.ir.next_id
    graph.apply_schema(WORKSHOP)
    again = graph.catalog.nodes["Maker"].properties["score"]
    assert again.prop_id >= low > first
    assert again.column == f"score__{again.prop_id}"
    assert [row[1] for row in makers(graph, "score")] == [None] * 4
    assert makers(graph, "score", at=before)[0] == ["ada", 9.5]
    assert graph.catalog.ir.next_id > low
