"""Handles that see a part of a graph: what they are told, and what they may change."""

from __future__ import annotations

import io
import json

import pytest

import omnigraph as og
from omnigraph.errors import (
    InputError,
    LoadError,
    MergeConflicts,
    MutationError,
    ReadsRestricted,
    TypeCheckError,
)
from omnigraph.read.view import ReadView
from omnigraph.storage.filters import Comparison
from tests.behaviour.merging import lines

SCHEMA = """\
// Salaries are secret.
interface Named { name: String }
node Person implements Named {
    slug: String @key
    salary: I64?
    pay: I64
    @index(salary)
}
node Secret { slug: String @key text: String? }
edge Knows: Person -> Person { since: I32? }
edge Keeps: Person -> Secret
"""


def person(slug: str, **more: object) -> dict[str, object]:
    return {"type": "Person", "data": {"slug": slug, "name": slug, "pay": 1, **more}}


def edge(kind: str, source: str, target: str, id: str) -> dict[str, object]:
    return {"edge": kind, "from": source, "to": target, "data": {"id": id}}


@pytest.fixture
def whole(memory_uri):
    graph = og.init(memory_uri, SCHEMA)
    rows = [
        person("ada", salary=90),
        person("bo", salary=20),
        person("cy"),
        {"type": "Secret", "data": {"slug": "s1", "text": "hush"}},
        edge("Knows", "ada", "bo", "k1"),
        edge("Knows", "bo", "cy", "k2"),
        edge("Keeps", "ada", "s1", "p1"),
    ]
    graph.load("\n".join(map(json.dumps, rows)).encode(), "append")
    return graph


NO_SECRETS = ReadView(frozenset({"Secret"}), frozenset({("Person", "salary")}))
NOT_ADA = ReadView(rows={"Person": Comparison("slug", "!=", "ada")})


def under(graph, view, **more):
    return og.open(graph.uri, view=view, **more)


def exported(graph, **more):
    out = io.BytesIO()
    count = graph.export(out, **more)
    rows = [json.loads(line) for line in out.getvalue().splitlines()]
    assert count == len(rows)
    return rows


def test_an_export_has_what_the_view_shows(whole):
    named = exported(under(whole, NO_SECRETS))
    assert {row.get("type") or row["edge"] for row in named} == {"Person", "Knows"}
    assert {*named[-1]["data"]} == {"id", "slug", "name", "pay"}
    some = exported(under(whole, NOT_ADA))
    assert [row["data"]["id"] for row in some] == ["k2", "s1", "bo", "cy"] or [
        row["data"]["id"] for row in some
    ] == ["k2", "bo", "cy", "s1"]
    assert exported(under(whole, NOT_ADA), types=["Knows"])[0]["data"]["id"] == "k2"


def test_an_export_to_parquet_has_what_the_view_shows(whole, tmp_path):
    assert under(whole, NOT_ADA).export(tmp_path / "out", format="parquet") == 4


def test_the_history_of_an_entity_is_that_of_what_was_visible(whole):
    whole.mutate('query q() { update Person set { salary: 5 } where slug = "bo" }')
    seen = under(whole, NO_SECRETS)
    assert [change.op.value for change in seen.history("Person", "bo")] == ["insert"]
    assert "salary" not in next(iter(seen.history("Person", "bo"))).after
    assert [change.op.value for change in whole.history("Person", "bo")] == ["insert", "update"]
    with pytest.raises(InputError, match="no type 'Secret'"):
        list(seen.history("Secret", "s1"))
    poor = ReadView(rows={"Person": Comparison("salary", "<", 10)})
    assert [c.op.value for c in under(whole, poor).history("Person", "bo")] == ["insert"]
    assert list(under(whole, poor).history("Person", "ada")) == []
    # An edge comes and goes with its ends.
    rich = ReadView(rows={"Person": Comparison("salary", ">", 10)})
    changes = [c.op.value for c in under(whole, rich).history("Knows", "k1")]
    assert changes == ["insert", "delete"]


def test_the_schema_is_shown_without_what_is_hidden(whole):
    schema = under(whole, NO_SECRETS).schema
    assert schema.source == (
        "node Person {\n    slug: String @key\n    pay: I64\n    name: String\n}\n\n"
        "edge Knows: Person -> Person {\n    since: I32?\n}\n"
    )
    stored = json.dumps(schema.catalog.ir.to_json())
    assert "salary" not in stored
    assert "Secret" not in stored
    assert whole.schema.source == SCHEMA
    assert under(whole, NOT_ADA).schema.source == SCHEMA


def test_counts_are_of_what_is_visible(whole):
    seen = under(whole, NO_SECRETS)
    assert set(seen.head().counts) == {"node:Person", "edge:Knows"}
    assert {t["table_key"] for t in seen.at("main").to_json()["tables"]} == set(seen.head().counts)
    assert {t.table_key for t in seen.maintenance.status().tables} == set(seen.head().counts)
    some = under(whole, NOT_ADA)
    assert set(some.log()[0].counts) == {"node:Secret"}
    tables = {t["table_key"]: t["row_count"] for t in some.at("main").to_json()["tables"]}
    assert tables == {"edge:Keeps": 0, "edge:Knows": 1, "node:Person": 2, "node:Secret": 1}
    done = some.mutate('query q() { update Person set { pay: 2 } where slug = "bo" }')
    assert (done.affected_nodes, dict(done.receipt.counts)) == (1, {})


def test_conditions_of_changes_see_what_the_view_shows(whole):
    some = under(whole, NOT_ADA)
    done = some.mutate("query q() { update Person set { pay: 7 } where pay = 1 }")
    assert done.affected_nodes == 2
    assert whole.get("Person", "ada")["pay"] == 1
    assert some.mutate('query q() { delete Knows where from = "ada" }').affected_edges == 0
    assert some.mutate('query q() { delete Person where slug = "ada" }').affected_nodes == 0
    assert some.mutate('query q() { delete Person where slug = "bo" }').affected_nodes == 1
    assert whole.get("Knows", "k1") is None


def test_hidden_names_are_unknown_to_changes(whole):
    seen = under(whole, NO_SECRETS)
    for text in (
        'insert Secret { slug: "x" }',
        "update Person set { salary: 3 } where pay = 1",
        "delete Person where salary = 3",
        'insert Keeps { from: "ada", to: "s1" }',
    ):
        with pytest.raises(TypeCheckError) as caught:
            seen.mutate(f"query q() {{ {text} }}")
        assert "did you mean" not in str(caught.value)
    seen.mutate("query q() { update Person set { pay: 3 } where pay = 1 }")
    assert whole.get("Person", "ada")["salary"] == 90


def test_rules_about_hidden_properties_do_not_name_them(whole):
    seen = under(whole, ReadView(hidden_properties=frozenset({("Person", "pay")})))
    with pytest.raises(MutationError, match="hidden from you") as caught:
        seen.mutate('query q() { insert Person { slug: "x", name: "x" } }')
    assert "'pay'" not in str(caught.value)


def test_loads_go_into_types_that_are_wholly_visible(whole):
    seen = under(whole, NO_SECRETS)
    with pytest.raises(LoadError, match="unknown node type 'Secret'") as caught:
        seen.load(b'{"type": "Secret", "data": {"slug": "x"}}', "append")
    assert "did you mean" not in str(caught.value)
    with pytest.raises(ReadsRestricted):
        seen.insert("Person", [{"slug": "x", "name": "x", "pay": 1}])
    with pytest.raises(ReadsRestricted):
        seen.load(json.dumps(person("x", salary="no")).encode(), "merge")
    assert seen.insert("Knows", [{"from": "ada", "to": "cy"}]).rows_loaded == {"edge:Knows": 1}
    with pytest.raises(ReadsRestricted, match="replace all rows"):
        seen.load({"Knows": []}, "overwrite")
    some = under(whole, NOT_ADA)
    assert some.upsert("Person", [{"slug": "bo", "pay": 9}]).rows_loaded == {"node:Person": 1}


def test_what_concerns_the_whole_graph_needs_one_who_sees_it(whole):
    seen = under(whole, NOT_ADA)
    calls = [
        lambda: seen.schema.plan(SCHEMA),
        lambda: seen.schema.apply(SCHEMA),
        lambda: seen.embed(dry_run=True),
        seen.maintenance.verify,
        seen.maintenance.optimize,
        seen.maintenance.repair,
        seen.maintenance.ensure_indexes,
        seen.maintenance.recoveries,
        lambda: seen.maintenance.cleanup(keep_versions=1),
    ]
    for call in calls:
        with pytest.raises(ReadsRestricted, match="ask an actor who sees all of it"):
            call()


def test_merges_tell_of_the_conflicts_that_are_visible(whole):
    draft = whole.branches.create("draft")
    for graph, value in ((whole, 1), (draft, 2)):
        graph.load(
            lines(
                json.dumps(person("ada", salary=value)),
                json.dumps(person("bo", salary=value)),
                json.dumps({"type": "Secret", "data": {"slug": "s1", "text": str(value)}}),
            ),
            "patch",
        )
    with pytest.raises(MergeConflicts) as caught:
        whole.merge("draft")
    assert caught.value.total == 3
    seen = under(whole, NO_SECRETS)
    with pytest.raises(MergeConflicts, match="and others in what is hidden from you") as caught:
        seen.merge("draft")
    assert {c.row_id for c in caught.value.conflicts} == {"ada", "bo"}
    assert "salary" not in json.dumps([c.to_json() for c in caught.value.conflicts])
    assert "Secret" not in str(caught.value)
    tried = under(whole, NOT_ADA).merge("draft", dry_run=True)
    assert tried.outcome.value == "conflicts"
    assert [c.row_id for c in tried.conflicts] == ["bo", "s1"]
    with pytest.raises(InputError, match="unknown type 'Secret'"):
        seen.merge("draft", strategy={"Secret": "ours"})
    merged = seen.merge("draft", strategy="theirs")
    assert "node:Secret" not in merged.receipt.counts
    assert whole.get("Secret", "s1")["text"] == "2"


def test_views_meet(whole):
    both = NO_SECRETS.within(NOT_ADA)
    assert {p["slug"] for p in under(whole, both).scan("Person").read_all().to_pylist()} == {
        "bo",
        "cy",
    }
    assert NO_SECRETS.within(ReadView.ALL) is NO_SECRETS
    assert ReadView.ALL.within(NO_SECRETS) is NO_SECRETS
    known = ReadView(known=frozenset({("Person", ""), ("Person", "slug")}))
    seen = under(whole, known)
    assert seen.scan("Person").read_all().column_names == ["id", "slug"]
    assert list(seen.schema.catalog.edges) == []
