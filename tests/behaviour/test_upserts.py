"""`upsert`, variables for inserted entities, and `return` of a change."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.errors import MutationError, TypeCheckError

CASES = Path(__file__).parents[1] / "cases"
RIVERS = "edge River: Town -> Town { km: F64?  note: String?  @unique(src, dst) }"


@pytest.fixture
def roads(tmp_path) -> Graph:
    graph = init(tmp_path / "g", (CASES / "roads.pg").read_text() + RIVERS)
    graph.load((CASES / "roads.jsonl").read_bytes(), "append")
    return graph


def town(graph: Graph, name: str) -> dict[str, object]:
    text = "query q($n: String) { match { $t: Town { name: $n } } return { $t.* as t } }"
    (row,) = graph.query(text, {"n": name}).json_dicts()
    found: dict[str, object] = row["t"]
    return found


@pytest.mark.acceptance("L-375")
def test_an_upsert_of_a_row_that_is_there_changes_only_what_it_assigns(roads):
    done = roads.mutate('query q() { upsert Town { name: "ash", note: "x" } }')
    assert (done.affected_nodes, done.affected_edges) == (1, 0)
    assert town(roads, "ash") == {
        "@id": "ash",
        "name": "ash",
        "note": "x",
        "pop": 900,
        "seen": "2024-03-31T23:15:00.000Z",
        "since": "1990-05-10",
        "tags": ["port", "old"],
    }
    (found,) = roads.diff("main~1", "main").to_arrow().to_pylist()
    assert found["op"] == "update"


def test_an_upsert_of_a_new_row_inserts_it(roads):
    text = 'query q() { upsert Town { name: "fir", pop: 1 } }'
    assert roads.mutate(text).affected_nodes == 1
    assert town(roads, "fir")["pop"] == 1
    roads.mutate('query q($p: I64?) { upsert Town { name: "fir", pop: $p } }', {"p": None})
    assert town(roads, "fir")["pop"] is None


@pytest.mark.acceptance("L-376")
def test_values_of_an_upsert_read_the_row_that_is_there(roads):
    text = 'query q() { upsert Town { name: "fir", pop: coalesce(pop, 0) + 1 } return { pop } }'
    found = [roads.mutate(text).returned[0].to_dicts() for _ in range(2)]
    assert found == [[{"pop": 1}], [{"pop": 2}]]
    count = "query q() { match { $t: Town } return { count($t) as n } }"
    assert roads.query(count).to_dicts() == [{"n": 6}]


@pytest.mark.acceptance("L-386")
def test_an_update_returns_what_it_computed(roads):
    text = "query q() { update Town set { pop: pop * 2 } where pop = 300 return { name, pop } }"
    assert roads.mutate(text).returned[0].to_dicts() == [
        {"name": "bex", "pop": 600},
        {"name": "cob", "pop": 600},
    ]


def test_an_edge_is_upserted_by_its_identity(roads):
    text = 'query q($k: F64) { upsert River { from: "ash", to: "elm", km: $k } return { @id, km, note } }'
    first = roads.mutate(text, {"k": 1.0})
    note = 'query q() { upsert River { from: "ash", to: "elm", note: "n" } }'
    assert roads.mutate(note).affected_edges == 1
    second = roads.mutate(text, {"k": 2.0})
    (before,), (after,) = (done.returned[0].to_dicts() for done in (first, second))
    assert (before["@id"], before["note"]) == (after["@id"], None)
    assert (after["km"], after["note"]) == (2.0, "n")
    with pytest.raises(MutationError, match="not found in Town"):
        roads.mutate('query q() { upsert River { from: "ash", to: "nowhere" } }')


def test_an_upsert_sees_what_statements_before_it_wrote(roads):
    done = roads.mutate(
        """query q() {
            insert Town { name: "new", pop: 1, note: "a" }
            upsert Town { name: "new", pop: 2 } return { pop, note }
            delete Town where name = "new"
            upsert Town { name: "new" } return { pop, note }
        }"""
    )
    assert [(r.statement, r.to_dicts()) for r in done.returned] == [
        (2, [{"pop": 2, "note": "a"}]),
        (4, [{"pop": None, "note": None}]),
    ]


@pytest.mark.acceptance("L-377")
@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('upsert Road { from: "ash", to: "elm" }', "T67"),
        ("upsert Town { pop: 3 }", "T67"),
        ('upsert Firm { code: "f9" }', "T12"),
        ('upsert River { from: "ash" }', "T67"),
        ("upsert Town { name: upper(note) }", "T45"),
    ],
)
def test_an_upsert_needs_what_identifies_the_row(roads, text, code):
    with pytest.raises(TypeCheckError, match=code):
        roads.mutate(f"query q() {{ {text} }}")


@pytest.mark.acceptance("L-384")
def test_an_inserted_entity_has_a_name_in_later_statements(roads):
    text = """query q() {
        insert $n: Town { name: "hay" }
        insert Road { from: $n, to: "ash", km: 1.5 } return { @src, to, km }
    }"""
    done = roads.mutate(text)
    assert (done.affected_nodes, done.affected_edges) == (1, 1)
    assert done.returned[0].to_dicts() == [{"@src": "hay", "to": "ash", "km": 1.5}]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('insert $n: Firm { code: "g", title: "t" }  insert Road { from: $n, to: "ash" }', "T5"),
        ('insert Road { from: $n, to: "ash" }  insert $n: Town { name: "hay" }', "T14"),
        ('insert $n: Town { name: "a" }  insert $n: Town { name: "b" }', "already a parameter"),
    ],
)
def test_a_name_stands_for_one_entity_of_its_type(roads, text, code):
    with pytest.raises(TypeCheckError, match=code):
        roads.mutate(f"query q() {{ {text} }}")


@pytest.mark.acceptance("L-385")
def test_an_insert_returns_the_row_as_it_was_written(roads):
    done = roads.mutate('query q() { insert Town { name: "gum" } return { @id, pop } }')
    assert done.to_json()["returned"] == [
        {"statement": 1, "columns": ["@id", "pop"], "rows": [{"@id": "gum", "pop": None}]}
    ]
    assert "returned" not in roads.mutate('query q() { insert Town { name: "h" } }').to_json()


def test_an_update_returns_new_values_and_a_delete_old_ones(roads):
    update = "query q() { update Town set { pop: 7 } where pop = 300 return { name, pop as p } }"
    assert roads.mutate(update).returned[0].to_dicts() == [
        {"name": "bex", "p": 7},
        {"name": "cob", "p": 7},
    ]
    delete = "query q() { delete Town where pop = 7 return distinct { pop, @type } }"
    assert roads.mutate(delete).returned[0].to_dicts() == [{"pop": 7, "@type": "Town"}]
    none = roads.mutate("query q() { delete Road where km = 77.0 return distinct { @id, from } }")
    assert (none.returned[0].to_dicts(), none.returned[0].columns) == ([], ["@id", "from"])


@pytest.mark.acceptance("L-388")
@pytest.mark.parametrize(
    ("shown", "message"),
    [
        ("nme", "T68.*nme(.|\n)*name"),
        ("@src", "T68"),
        ("count(pop)", "T68"),
        ("$t.pop", "T68"),
    ],
)
def test_a_change_returns_only_what_its_row_has(roads, shown, message):
    with pytest.raises(TypeCheckError, match=message):
        roads.mutate(f"query q() {{ delete Town where pop = 50 return {{ {shown} }} }}")
