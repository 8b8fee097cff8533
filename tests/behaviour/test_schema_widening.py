"""Schema changes that rows must fit: wider types and rules, and narrower ones after validation."""

from __future__ import annotations

import json

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.errors import (
    AssignmentError,
    MutationError,
    SchemaViolated,
    TypeCheckError,
    UnsupportedMigration,
)
from omnigraph.storage.indexes import list_indexes
from tests.behaviour.reshaping import open_again, table_versions

SCHEMA = """
node Person {
    name: String @key
    age: I32? @index
    height: F32?
    team: String
    scores: [I32]?
    @range(age, 0..150)
    @check(team, "^[a-z]+$")
}
node Badge { code: String @key  owner: String? @unique }
edge Knows: Person -> Person @card(0..2) { weight: I32? }
"""
PEOPLE: list[dict[str, object]] = [
    {"name": "ada", "age": 41, "height": 1.5, "team": "red", "scores": [1, None, 3]},
    {"name": "bo", "age": None, "height": 0.1, "team": "red", "scores": None},
    {"name": "cy", "age": 7, "height": None, "team": "blue", "scores": []},
]


@pytest.fixture
def graph(tmp_path) -> Graph:
    found = init(tmp_path / "g", SCHEMA)
    lines = [{"type": "Person", "data": row} for row in PEOPLE]
    lines += [{"type": "Badge", "data": {"code": c, "owner": o}} for c, o in ("ax", "by")]
    lines += [{"edge": "Knows", "from": a, "to": b} for a, b in (("ada", "bo"), ("ada", "cy"))]
    lines += [{"edge": "Knows", "from": "bo", "to": "ada", "data": {"weight": 3}}]
    found.load("\n".join(map(json.dumps, lines)).encode(), "append")
    return found


def changed(*edits: tuple[str, str]) -> str:
    text = SCHEMA
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return text


def people(graph: Graph, name: str, at: str | None = None) -> list[object]:
    query = (
        f"query q() {{ match {{ $p: Person }} return {{ $p.{name} as x }} order {{ $p.name }} }}"
    )
    source = graph if at is None else graph.at(at)
    return [row["x"] for row in source.query(query).to_dicts()]


def stored(graph: Graph, key: str, column: str):
    return graph._snapshot().open(graph._core.tables, key).schema.field(column)


def refused(graph: Graph, text: str) -> SchemaViolated:
    """The error of an apply; nothing has changed."""
    before, versions = graph.head().id, table_versions(graph)
    with pytest.raises(SchemaViolated) as caught:
        graph.schema.apply(text)
    assert (graph.head().id, table_versions(graph)) == (before, versions)
    assert graph._core.recovery.status().pending == ()
    assert graph.schema.source == SCHEMA
    return caught.value


def test_wider_numbers_keep_their_rows_and_their_index(graph):
    before = graph.head().id
    text = changed(("age: I32?", "age: I64?"), ("height: F32?", "height: F64?"))
    result = graph.schema.apply(text.replace("scores: [I32]?", "scores: [I64]?"))
    assert [s.kind for s in result.plan.steps] == ["change_property_type"] * 3
    assert people(graph, "age") == [41, None, 7]
    assert people(graph, "height") == [1.5, pytest.approx(0.1), None]
    assert people(graph, "scores") == [[1, None, 3], None, []]
    graph.mutate('query q() { update Person set { age: 149 } where name = "cy" }')
    for row in PEOPLE:
        row = {**row, "name": f"{row['name']}2", "age": 2}
        graph.load(json.dumps({"type": "Person", "data": row}).encode(), "append")
    assert people(open_again(graph), "age") == [41, 2, None, 2, 149, 2]
    table = graph._snapshot().open(graph._core.tables, "node:Person")
    assert str(table.schema.field("age").type) == "int64"
    assert any(index.columns == ("age",) for index in list_indexes(table))
    found = graph.query("query q() { match { $p: Person { age: 149 } } return { $p.name } }")
    assert [row["p.name"] for row in found.to_dicts()] == ["cy"]
    assert people(graph, "age", at=before) == [41, None, 7]
    assert graph.maintenance.verify().ok


def test_values_beyond_the_old_type_are_accepted_afterwards(graph):
    insert = 'query q() { insert Knows { from: "cy", to: "bo", weight: 3000000000 } }'
    with pytest.raises(AssignmentError, match="weight"):
        graph.mutate(insert)
    graph.schema.apply(changed(("weight: I32?", "weight: I64?")))
    graph.mutate(insert)
    assert graph.maintenance.verify().ok


def test_earlier_commits_have_the_earlier_type(graph):
    before = graph.head().id
    graph.schema.apply(changed(("age: I32?", "age: I64?")))
    query = "query q() { match { $p: Person } return { $p.age } }"
    assert str(graph.at(before).query(query).to_arrow().schema.field(0).type) == "int32"
    assert str(graph.query(query).to_arrow().schema.field(0).type) == "int64"


def test_wider_numbers_are_no_change_of_rows(graph):
    before = graph.head().id
    graph.schema.apply(changed(("age: I32?", "age: I64?"), ("height: F32?", "height: F64?")))
    assert len(graph.diff(before, graph.head().id)) == 0
    graph.mutate('query q() { update Person set { age: 8 } where name = "cy" }')
    (row,) = graph.diff(before, graph.head().id).to_arrow().to_pylist()
    assert (row["op"], row["id"]) == ("update", "cy")


def test_a_required_property_becomes_optional_without_a_rewrite(graph):
    graph.schema.apply(changed(("team: String", "team: String?")))
    assert stored(graph, "node:Person", "team").nullable
    graph.mutate('query q() { insert Person { name: "dee" } }')
    assert people(graph, "team") == ["red", "red", "blue", None]
    assert people(open_again(graph), "team") == ["red", "red", "blue", None]
    assert graph.maintenance.verify().ok


def test_an_optional_property_becomes_required_if_every_row_has_a_value(graph):
    error = refused(graph, changed(("age: I32?", "age: I32")))
    assert error.problems_total == 1
    assert "non-nullable property 'age' has null value (id 'bo')" in error.problems[0]
    graph.mutate('query q() { update Person set { age: 30 } where name = "bo" }')
    graph.schema.apply(changed(("age: I32?", "age: I32")))
    assert not stored(graph, "node:Person", "age").nullable
    with pytest.raises(TypeCheckError, match="T12"):
        graph.mutate('query q() { insert Person { name: "eve", team: "red" } }')
    graph.mutate('query q() { insert Person { name: "eve", team: "red", age: 3 } }')
    assert people(open_again(graph), "age") == [41, 30, 7, 3]
    assert graph.maintenance.verify().ok


# -- rules --------------------------------------------------------------------------------------


@pytest.mark.acceptance("L-053", "L-057")
@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        ("    @range(age, 0..150)\n", "", ["drop_constraint"]),
        ('    @check(team, "^[a-z]+$")\n', "", ["drop_constraint"]),
        ("owner: String? @unique", "owner: String?", ["drop_constraint"]),
        ("@range(age, 0..150)", "@range(age, -5..)", ["change_range"]),
        ("@card(0..2)", "@card(0..3)", ["change_cardinality"]),
        (" @card(0..2)", "", ["change_cardinality"]),
    ],
)
def test_rules_that_hold_for_more_rows_change_no_table(graph, old, new, kinds):
    versions = table_versions(graph)
    plan = graph.schema.apply(changed((old, new))).plan
    assert [step.kind for step in plan.steps] == kinds
    assert all("validates" not in step.to_json() for step in plan.steps)
    assert table_versions(graph) == versions


def test_dropped_rules_hold_no_longer(graph):
    broken = [
        'insert Person { name: "eve", team: "RED" }',
        'update Person set { age: 151 } where name = "ada"',
        'insert Badge { code: "c", owner: "x" }',
        'insert Knows { from: "ada", to: "ada" }',
    ]
    for text in broken:
        with pytest.raises(MutationError):
            graph.mutate(f"query q() {{ {text} }}")
    graph.schema.apply(
        changed(
            ("    @range(age, 0..150)\n", ""),
            ('    @check(team, "^[a-z]+$")\n', ""),
            ("owner: String? @unique", "owner: String?"),
            (" @card(0..2)", ""),
        )
    )
    for text in broken:
        graph.mutate(f"query q() {{ {text} }}")
    assert graph.maintenance.verify().ok


@pytest.mark.acceptance("L-055", "L-057")
@pytest.mark.parametrize(
    ("old", "new", "problems"),
    [
        ("team: String", "team: String @unique", ["'red' appears in 'ada' and 'bo'"]),
        ("height: F32?", "height: F32?\n    @unique(team, age)", []),
        ("@range(age, 0..150)", "@range(age, 8..40)", ["41 > max 40", "7 < min 8"]),
        ("height: F32?", "height: F32?\n    @range(height, 0.5..1.5)", ["0.1"]),
        ('"^[a-z]+$"', '"^[a-z]{3}$"', ["'blue' does not match"]),
        ("@card(0..2)", "@card(2..2)", ["source 'bo' has 1 edge"]),
        ("@card(0..2)", "@card(0..1)", ["source 'ada' has 2 edges (max 1)"]),
        ("weight: I32?", "weight: I32", ["'weight' has null value", "'weight' has null value"]),
        ("weight: I32? }", "weight: I32?  @unique(src) }", ["'ada'"]),
    ],
)
def test_rules_that_fewer_rows_satisfy_are_validated_first(graph, old, new, problems):
    text = changed((old, new))
    assert any(step.to_json().get("validates") for step in graph.schema.plan(text).steps)
    if not problems:
        assert graph.schema.apply(text).applied
        assert graph.maintenance.verify().ok
        return
    error = refused(graph, text)
    assert error.problems_total == len(problems)
    for fragment, problem in zip(problems, sorted(error.problems), strict=True):
        assert fragment in problem


def test_all_violations_of_all_types_are_reported_at_once(graph):
    error = refused(
        graph,
        changed(
            ("age: I32?", "age: I32"),
            ("team: String", "team: String @unique"),
            ("@range(age, 0..150)", "@range(age, 0..40)"),
            ("@card(0..2)", "@card(0..1)"),
        ),
    )
    assert (error.problems_total, len(error.problems)) == (4, 4)
    assert str(error).startswith("schema apply: 4 violations of the new schema in stored rows\n")
    assert str(error).endswith("nothing was changed; change these rows first, or the schema")
    assert error.code == "OG-D-005"


def test_new_rules_hold_after_the_apply(graph):
    graph.mutate('query q() { delete Person where name = "bo" }')
    graph.schema.apply(changed(("team: String", "team: String @unique"), ("0..150", "0..50")))
    for text in ('name: "eve", team: "red"', 'name: "eve", team: "green", age: 51'):
        with pytest.raises(MutationError, match="violation"):
            graph.mutate(f"query q() {{ insert Person {{ {text} }} }}")
    assert graph.maintenance.verify().ok


@pytest.mark.acceptance("L-067")
def test_the_backfill_of_a_new_property_is_validated_too(graph):
    new = "height: F32?\n    size: I32 @backfill(900)\n    @range(size, 0..10)"
    error = refused(graph, changed(("height: F32?", new)))
    assert error.problems_total == 3
    assert "value 900 > max 10" in error.problems[0]
    same = "height: F32?\n    size: I32 @backfill(9) @unique\n    @range(size, 0..10)"
    assert refused(graph, changed(("height: F32?", same))).problems_total == 2
    graph.schema.apply(changed(("height: F32?", new.replace("900", "9"))))
    assert people(graph, "size") == [9, 9, 9]


# -- indexes and dropped properties -------------------------------------------------------------


def index_columns(graph: Graph, key: str) -> set[tuple[str, ...]]:
    table = graph._snapshot().open(graph._core.tables, key)
    return {index.columns for index in list_indexes(table)}


def test_an_index_that_is_not_declared_any_more_is_removed(graph):
    graph.maintenance.ensure_indexes()
    assert ("age",) in index_columns(graph, "node:Person")
    (step,) = graph.schema.apply(changed(("age: I32? @index", "age: I32?"))).plan.steps
    assert step.kind == "drop_constraint"
    assert ("age",) not in index_columns(graph, "node:Person")
    assert people(graph, "age") == [41, None, 7]
    graph.schema.apply(SCHEMA)
    assert ("age",) in index_columns(graph, "node:Person")


@pytest.mark.acceptance("L-053")
def test_a_property_is_dropped_with_its_rules_and_its_index(graph):
    graph.maintenance.ensure_indexes()
    before = graph.head().id
    text = changed(("    age: I32? @index\n", ""), ("    @range(age, 0..150)\n", ""))
    plan = graph.schema.apply(text.replace("owner: String? @unique", "")).plan
    assert [step.kind for step in plan.steps] == [
        "drop_property",
        "drop_constraint",
        "drop_property",
        "drop_constraint",
        "drop_constraint",
    ]
    graph.mutate('query q() { insert Person { name: "eve", team: "red" } }')
    assert people(graph, "age", at=before) == [41, None, 7]
    assert graph.maintenance.verify().ok
    graph.maintenance.optimize()
    assert people(graph, "team") == ["red", "red", "blue", "red"]


# -- identities ---------------------------------------------------------------------------------

EDGES = "node N { a: String }\nedge E: N -> N { w: F32?  v: I32?  %s }\n"


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("", "@unique(src, dst)", "changing the identity of 'E' from none to (src, dst)"),
        ("@unique(src, dst)", "", "changing the identity of 'E' from (src, dst) to none"),
        ("@unique(src, dst, v)", "@unique(src, dst)", "from (src, dst, v) to (src, dst)"),
        ("@unique(src, dst)", "@unique(src, dst) @unique(src, dst, v)", None),
        ("@unique(src, dst) @unique(dst)", "@unique(src, dst)", None),
    ],
)
def test_what_ids_derive_from_cannot_change(tmp_path, before, after, message):
    graph = init(tmp_path / "g", EDGES % before)
    plan = graph.schema.plan(EDGES % after)
    assert plan.supported == (message is None)
    if message is None:
        assert graph.schema.apply(EDGES % after).applied
    else:
        with pytest.raises(UnsupportedMigration) as caught:
            graph.schema.apply(EDGES % after)
        assert message in str(caught.value)


def test_a_number_that_ids_derive_from_gets_wider_only_if_its_text_stays(tmp_path):
    graph = init(tmp_path / "g", "node N { k: I32 @key }\nnode M { k: F32 @key }\n")
    graph.load(b'{"type":"N","data":{"k":7}}\n{"type":"M","data":{"k":0.1}}', "append")
    wider = "node N { k: I64 @key }\nnode M { k: F32 @key }\n"
    assert graph.schema.apply(wider).applied
    graph.load(b'{"type":"N","data":{"k":7}}', "merge")
    assert graph._snapshot().entry("node:N").row_count == 1
    with pytest.raises(UnsupportedMigration, match=r"'M\.k' is part of the ids"):
        graph.schema.apply(wider.replace("F32", "F64"))
