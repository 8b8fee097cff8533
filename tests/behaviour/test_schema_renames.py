"""Renames and longer enums: rows, indexes and history stay as they are."""

from __future__ import annotations

import json

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.errors import (
    UnsupportedMigration,
)
from tests.behaviour.reshaping import RATING, exported, makers, table_versions
from tests.support.workshop import WORKSHOP


@pytest.fixture
def graph(workshop_graph: Graph) -> Graph:
    """The workshop, in place of the small graph of the other tests."""
    return workshop_graph


@pytest.mark.acceptance("L-048", "S-179")
def test_renames_touch_no_table_and_keep_rows_index_and_history(graph):
    before, versions = graph.head().id, table_versions(graph)
    ids = {n.name: n.type_id for n in graph.schema.catalog.nodes.values()}
    text = RATING.replace("node Maker", 'node Artisan @rename_from("Maker")')
    text = text.replace("Maker ->", "Artisan ->").replace("-> Maker", "-> Artisan")
    result = graph.schema.apply(text)
    assert [step.kind for step in result.plan.steps] == ["rename_type", "rename_property"]
    assert table_versions(graph) == versions
    assert graph.schema.catalog.nodes["Artisan"].type_id == ids["Maker"]
    assert graph.schema.catalog.nodes["Artisan"].properties["rating"].column == "score"
    query = "query q() { match { $a: Artisan  $a mentors $b } return { $a.handle, $b.rating } }"
    now = graph.query(query).to_dicts()
    assert now
    assert graph.query(query, at=before).to_dicts() == now
    assert len(graph.log(reverse=True)) == 3


@pytest.mark.acceptance("L-049", "L-050")
def test_a_renamed_property_is_read_under_its_new_name_at_earlier_commits(graph):
    before, versions = graph.head().id, table_versions(graph)
    prop = graph.schema.catalog.nodes["Maker"].properties["score"]
    graph.schema.apply(RATING)
    assert table_versions(graph) == versions
    renamed = graph.schema.catalog.nodes["Maker"].properties["rating"]
    assert (renamed.prop_id, renamed.column) == (prop.prop_id, prop.column)
    assert makers(graph, "rating", at=before)[0] == ["ada", 9.5]
    assert graph.schema.plan(RATING).steps == ()


@pytest.mark.acceptance("L-070", "S-180")
def test_a_name_that_is_free_again_goes_to_a_new_property(graph):
    graph.schema.apply(RATING)
    both = RATING.replace("    rating:", "    score: F64?\n    rating:")
    graph.schema.apply(both)
    score = graph.schema.catalog.nodes["Maker"].properties["score"]
    assert score.column == f"score__{score.prop_id}"
    assert makers(graph, "rating", "score")[0] == ["ada", 9.5, None]
    graph.mutate('query q() { update Maker set { score: 1.0 } where handle = "ada" }')
    assert makers(graph, "rating", "score")[0] == ["ada", 9.5, 1.0]


def test_two_properties_change_names_while_a_reader_has_them_in_memory(graph):
    graph.schema.apply(WORKSHOP.replace("score: F64?", "score: F64?\n    rank: F64?"))
    graph.mutate('query q() { update Maker set { rank: 1.0 } where handle = "ada" }')
    assert makers(graph, "score", "rank")[0] == ["ada", 9.5, 1.0]
    through = 'tmp: F64? @rename_from("score")\n    rank: F64?'
    graph.schema.apply(WORKSHOP.replace("score: F64?", through))
    swapped = 'rank: F64? @rename_from("tmp")\n    score: F64? @rename_from("rank")'
    with pytest.raises(UnsupportedMigration):
        graph.schema.apply(WORKSHOP.replace("score: F64?", swapped))
    first = 'tmp: F64?\n    score: F64? @rename_from("rank")'
    graph.schema.apply(WORKSHOP.replace("score: F64?", first))
    graph.schema.apply(
        WORKSHOP.replace("score: F64?", 'rank: F64? @rename_from("tmp")\n    score: F64?')
    )
    assert makers(graph, "score", "rank")[0] == ["ada", 1.0, 9.5]


@pytest.mark.acceptance("L-060", "L-069")
def test_a_longer_enum_and_a_rename_touch_no_table(graph):
    versions = table_versions(graph)
    text = WORKSHOP.replace("skilled, master)", "skilled, master, legend)")
    text = text.replace("node Maker", 'node Artisan @rename_from("Maker")')
    text = text.replace("Maker ->", "Artisan ->").replace("-> Maker", "-> Artisan")
    steps = [step.to_json() for step in graph.schema.apply(text).plan.steps]
    assert [step["kind"] for step in steps] == ["rename_type", "extend_enum"]
    assert steps[1]["type_name"] == "Artisan"
    assert table_versions(graph) == versions
    graph.load(b'{"type":"Artisan","data":{"handle":"eve","level":"legend"}}', "merge")
    assert graph.at("main").get("Artisan", "eve")["level"] == "legend"


@pytest.mark.acceptance("S-154")
def test_edges_with_identity_keep_it_when_a_property_of_it_is_renamed(local_uri):
    schema = (
        "node P { name: String @key }\nedge K: P -> P { kind: String\n @unique(src, dst, kind) }\n"
    )
    graph = init(local_uri, schema)
    nodes = b'{"type":"P","data":{"name":"a"}}\n{"type":"P","data":{"name":"b"}}\n'
    graph.load(nodes + b'{"edge":"K","from":"a","to":"b","data":{"kind":"x"}}', "merge")
    ids = [json.loads(line)["data"]["id"] for line in exported(graph, "K")]
    renamed = schema.replace("kind: String", 'sort: String @rename_from("kind")')
    graph.schema.apply(renamed.replace("dst, kind", "dst, sort"))
    graph.load(b'{"edge":"K","from":"a","to":"b","data":{"sort":"x"}}', "merge")
    assert [json.loads(line)["data"]["id"] for line in exported(graph, "K")] == ids
