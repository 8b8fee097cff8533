"""Dropped properties and types: what earlier commits still show, and what comes back empty."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from omnigraph.api.graph import Graph
from omnigraph.errors import (
    HistoryRemoved,
    TypeCheckError,
)
from tests.behaviour.reshaping import SCORES, WITHOUT_SCORE, makers, open_again
from tests.support.faults import Fail, FailStorage, InjectedFault, armed
from tests.support.workshop import WORKSHOP


@pytest.fixture
def graph(workshop_graph: Graph) -> Graph:
    """The workshop, in place of the small graph of the other tests."""
    return workshop_graph


@pytest.mark.acceptance("L-052", "L-062", "S-191")
def test_a_dropped_property_is_there_at_earlier_commits(graph):
    before = graph.head().id
    steps = [step.to_json() for step in graph.schema.apply(WITHOUT_SCORE).plan.steps]
    assert [(step["kind"], step["mode"]) for step in steps] == [("drop_property", "soft")]
    with pytest.raises(TypeCheckError, match="score"):
        graph.query(SCORES)
    assert makers(graph, "score", at=before)[0] == ["ada", 9.5]
    assert makers(open_again(graph), "score", at=before)[0] == ["ada", 9.5]
    graph.mutate('query q() { update Maker set { age: 42 } where handle = "ada" }')
    assert makers(graph, "age")[0] == ["ada", 42]


@pytest.mark.acceptance("S-116")
def test_a_hard_drop_cannot_be_undone_by_going_back(graph):
    before = graph.head().id
    graph.load(b'{"type":"Maker","data":{"handle":"eve","score":1}}', "merge")
    result = graph.schema.apply(WITHOUT_SCORE, allow_data_loss=True)
    assert [step.to_json()["mode"] for step in result.plan.steps] == ["hard"]
    for target in (before, result.receipt.parent_commit_id):
        with pytest.raises(HistoryRemoved, match="Maker"):
            makers(open_again(graph), "score", at=target)
    assert len(makers(graph, "age")) == 5
    assert graph.commit(before).id == before
    graph.mutate('query q() { delete Maker where handle = "eve" }')


def files_with(graph: Graph, word: str) -> list[Path]:
    """The files of a graph's rows that a word can be found in."""
    data = Path(graph.uri).glob("nodes/*/data/*")
    return [path for path in data if path.is_file() and word.encode() in path.read_bytes()]


WITH_SECRET = WORKSHOP.replace("    score: F64?", "    score: F64?\n    secret: String?")


def tell_secrets(graph: Graph) -> None:
    graph.schema.apply(WITH_SECRET)
    graph.load(b'{"type":"Maker","data":{"handle":"eve","secret":"under the doormat"}}', "merge")
    graph.maintenance.optimize()


def test_what_a_hard_drop_dropped_is_in_no_file_any_more(graph):
    tell_secrets(graph)
    assert files_with(graph, "doormat")
    rows = makers(graph, "age", "score")
    applied = graph.as_actor("ada").schema.apply(WORKSHOP, allow_data_loss=True).receipt
    assert not files_with(graph, "doormat")
    assert makers(open_again(graph), "age", "score") == rows
    rewritten = graph.commit(graph.head().id)
    assert rewritten.parents == (applied.graph_commit_id,)
    assert (rewritten.operation, rewritten.actor) == ("optimize", "ada")
    assert not graph.maintenance.optimize().receipt.graph_commit_id


def test_what_a_soft_drop_dropped_leaves_the_disk_with_optimize_and_cleanup(graph):
    tell_secrets(graph)
    before = graph.head().id
    graph.schema.apply(WORKSHOP)
    assert makers(graph, "secret", at=before)[-1] == ["eve", "under the doormat"]
    optimized = {table.table_key: table for table in graph.maintenance.optimize().tables}
    assert optimized["node:Maker"].committed
    assert makers(open_again(graph), "secret", at=before)[-1] == ["eve", "under the doormat"]
    graph.maintenance.cleanup(keep_versions=1, min_age=timedelta())
    assert not files_with(graph, "doormat")
    assert makers(open_again(graph), "score")[0] == ["ada", 9.5]


def test_a_hard_drop_that_dies_while_rows_are_rewritten_is_finished_by_the_next_opener(graph):
    tell_secrets(graph)
    rows = makers(graph, "age")
    point = "optimize.post_phase_b_pre_manifest_commit"
    with armed(point, Fail()), pytest.raises(InjectedFault):
        graph.schema.apply(WORKSHOP, allow_data_loss=True)
    again = open_again(graph)
    assert "secret" not in again.schema.catalog.nodes["Maker"].properties
    assert makers(again, "age") == rows
    again.maintenance.cleanup(keep_versions=1, min_age=timedelta())
    assert not files_with(again, "doormat")


def test_a_hard_drop_stands_although_the_data_cannot_be_removed_yet(graph):
    before = graph.head().id
    with armed("schema_apply.before_removal", FailStorage()):
        assert graph.schema.apply(WITHOUT_SCORE, allow_data_loss=True).applied
    assert makers(graph, "score", at=before)[0] == ["ada", 9.5]
    graph.maintenance.cleanup(keep_versions=1, min_age=timedelta())
    with pytest.raises(HistoryRemoved):
        makers(open_again(graph), "score", at=before)


@pytest.mark.acceptance("L-056", "S-115")
def test_a_dropped_type_is_there_at_earlier_commits(graph):
    before = graph.head().id
    text = WORKSHOP.replace("edge Borrows: Maker -> Tool { note: String? }\n", "")
    steps = [step.to_json() for step in graph.schema.apply(text).plan.steps]
    assert [(s["kind"], s["type_kind"], s["mode"]) for s in steps] == [
        ("drop_type", "edge", "soft")
    ]
    assert "edge:Borrows" not in graph._snapshot().entries
    query = "query q() { match { $m: Maker  $m borrows $t } return { $m.handle, $t.code } }"
    with pytest.raises(TypeCheckError):
        graph.query(query)
    assert graph.query(query, at=before).to_dicts()
    graph.mutate('query q() { delete Maker where handle = "ada" }')


def test_a_hard_dropped_type_is_gone_for_good(graph):
    before = graph.head().id
    text = WORKSHOP.replace("edge Borrows: Maker -> Tool { note: String? }\n", "")
    graph.schema.apply(text, allow_data_loss=True)
    query = "query q() { match { $m: Maker  $m borrows $t } return { $m.handle } }"
    with pytest.raises(HistoryRemoved):
        open_again(graph).query(query, at=before)
    assert makers(graph, "score", at=before)[0] == ["ada", 9.5]


@pytest.mark.acceptance("S-119")
def test_a_type_that_is_added_again_gets_an_empty_table_at_another_location(graph):
    before = graph.head().id
    without = WORKSHOP.replace("edge Borrows: Maker -> Tool { note: String? }\n", "")
    old = graph._snapshot().entry("edge:Borrows")
    graph.schema.apply(without)
    graph.schema.apply(WORKSHOP)
    new = graph._snapshot().entry("edge:Borrows")
    assert new.location == f"{old.location}-{graph.schema.catalog.edges['Borrows'].type_id}"
    assert (old.row_count > 0, new.row_count) == (True, 0)
    query = "query q() { match { $m: Maker  $m borrows $t } return { $m.handle, $t.code } }"
    assert graph.query(query).to_dicts() == []
    assert graph.query(query, at=before).to_dicts()
    graph.load(b'{"edge":"Borrows","from":"ada","to":"sa-1","data":{"note":"n"}}', "append")
    assert graph.query(query).to_dicts() == [{"m.handle": "ada", "t.code": "sa-1"}]


@pytest.mark.acceptance("S-181")
def test_a_property_that_comes_back_is_empty_and_has_a_new_number(graph):
    before = graph.head().id
    first = graph.schema.catalog.nodes["Maker"].properties["score"].prop_id
    graph.schema.apply(WITHOUT_SCORE)
    low = graph.schema.catalog.ir.next_id
    graph.schema.apply(WORKSHOP)
    again = graph.schema.catalog.nodes["Maker"].properties["score"]
    assert again.prop_id >= low > first
    assert again.column == f"score__{again.prop_id}"
    assert [row[1] for row in makers(graph, "score")] == [None] * 4
    assert makers(graph, "score", at=before)[0] == ["ada", 9.5]
    assert graph.schema.catalog.ir.next_id > low
