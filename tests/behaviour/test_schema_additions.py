"""New properties, types and indexes in a graph that has rows."""

from __future__ import annotations

import pytest

from omnigraph.api.graph import Graph
from omnigraph.errors import (
    EmbeddingNotConfigured,
    TypeCheckError,
)
from omnigraph.read.entities import read_entity
from omnigraph.storage.indexes import list_indexes
from tests.behaviour.reshaping import NICK, makers, table_versions
from tests.support.workshop import WORKSHOP

MAKER = "node:Maker"


@pytest.fixture
def graph(workshop_graph: Graph) -> Graph:
    """The workshop, in place of the small graph of the other tests."""
    return workshop_graph


@pytest.mark.acceptance("L-044")
def test_a_new_optional_property_is_null_in_rows_that_are_there(graph):
    result = graph.schema.apply(WORKSHOP.replace("score: F64?", "score: F64?\n    nick: String?"))
    assert result.applied
    assert [step.to_json() for step in result.plan.steps] == [
        {
            "kind": "add_property",
            "type_kind": "node",
            "type_name": "Maker",
            "property_name": "nick",
            "property_type": {
                "scalar": "String",
                "nullable": True,
                "list": False,
                "enum_values": None,
            },
        }
    ]
    assert makers(graph, "nick") == [["ada", None], ["bo", None], ["cy", None], ["dee", None]]
    graph.mutate('query q() { update Maker set { nick: "a" } where handle = "ada" }')
    assert makers(graph, "nick")[0] == ["ada", "a"]


@pytest.mark.acceptance("L-064")
def test_a_required_property_gets_its_backfill_once(graph):
    steps = graph.schema.apply(NICK).plan.steps
    assert [step.to_json()["backfill"] for step in steps] == ["none"]
    assert [row[1] for row in makers(graph, "nick")] == ["none"] * 4
    with pytest.raises(TypeCheckError, match="T12"):
        graph.mutate('query q() { insert Maker { handle: "eve" } }')
    graph.mutate('query q() { insert Maker { handle: "eve", nick: "e" } }')
    assert makers(graph, "nick")[-1] == ["eve", "e"]


@pytest.mark.acceptance("L-065")
def test_a_backfill_that_stays_or_goes_is_no_change(graph):
    graph.schema.apply(NICK)
    before = graph.head().id
    for text in (NICK, NICK.replace(' @backfill("none")', "")):
        assert graph.schema.plan(text).steps == ()
        assert not graph.schema.apply(text).applied
    assert graph.head().id == before


@pytest.mark.acceptance("L-066")
@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ('I32? @backfill("-1")', -1),
        ("Bool @backfill(true)", True),
        ('Date @backfill("2024-05-01")', 19844),
        ('DateTime @backfill("2024-05-01T10:00:00Z")', "2024-05-01T10:00:00"),
        ('[I32] @backfill("[1, null]")', [1, None]),
        ('Vector(2) @backfill("[0.5, 1]")', [0.5, 1.0]),
        ("enum(low, high) @backfill(low)", "low"),
        ('U64 @backfill("18446744073709551615")', 2**64 - 1),
    ],
)
def test_backfills_of_every_type(graph, declared, expected):
    graph.schema.apply(WORKSHOP.replace("score: F64?", f"score: F64?\n    extra: {declared}"))
    entity = read_entity(graph._snapshot(), graph._core.tables, MAKER, "ada")
    assert entity is not None
    assert entity["extra"] == expected
    assert entity["score"] == 9.5


def test_rows_keep_their_identity_and_older_commits_their_columns(graph):
    before = graph.head().id
    entry = graph._snapshot().entry(MAKER)
    ids = graph._snapshot().open(graph._core.tables, MAKER).read(["id"], with_row_ids=True)
    graph.schema.apply(NICK)
    now = graph._snapshot().entry(MAKER)
    found = graph._snapshot().open(graph._core.tables, MAKER).read(["id"], with_row_ids=True)
    assert found.sort_by("id") == ids.sort_by("id")
    assert now.version == entry.version + 1
    assert [row[1] for row in makers(graph, "nick", at=before)] == [None] * 4


@pytest.mark.acceptance("L-054")
def test_an_index_is_built_for_rows_that_are_there(graph):
    text = WORKSHOP.replace("    age: I32?", "    age: I32? @index")
    steps = graph.schema.apply(text).plan.steps
    assert [step.to_json()["constraint"] for step in steps] == [{"Index": ["age"]}]
    table = graph._snapshot().open(graph._core.tables, MAKER)
    assert ("age",) in [index.columns for index in list_indexes(table)]


@pytest.mark.acceptance("S-136")
def test_an_index_of_two_columns_moves_no_table(graph):
    before = table_versions(graph)
    text = WORKSHOP.replace("    age: I32?", "    age: I32?\n    @index(age, score)")
    assert graph.schema.apply(text).applied
    assert table_versions(graph) == before


def test_new_types_can_be_used_at_once(graph):
    new = "node Guild {\n    name: String @key\n}\nedge MemberOf: Maker -> Guild\n"
    graph.schema.apply(WORKSHOP + new)
    graph.load(
        b'{"type":"Guild","data":{"name":"smiths"}}\n{"edge":"MemberOf","from":"ada","to":"smiths"}',
        "merge",
    )
    query = "query q() { match { $m: Maker  $m memberOf $g } return { $m.handle, $g.name } }"
    assert graph.query(query).to_dicts() == [{"m.handle": "ada", "g.name": "smiths"}]


def test_required_vectors_are_computed_or_nothing_happens(graph, monkeypatch):
    text = WORKSHOP.replace(
        "    label: String @index", '    label: String @index\n    sense: Vector(4) @embed("label")'
    )
    before = graph.head().id
    for name in ("OMNIGRAPH_EMBEDDINGS_MOCK", "GEMINI_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(EmbeddingNotConfigured):
        graph.schema.apply(text)
    assert graph.head().id == before
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    graph.schema.apply(text)
    query = "query q() { match { $t: Tool } return { $t.code, $t.sense } }"
    assert all(len(row["t.sense"]) == 4 for row in graph.query(query).to_dicts())
    assert all(not prop.startswith("__") for prop in graph.schema.catalog.nodes["Tool"].properties)
