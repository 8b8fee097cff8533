"""The lint document: results per query, findings about the file, and the counts."""

from __future__ import annotations

from typing import Any

import pytest

from omnigraph.catalog.model import Catalog
from omnigraph.language.syntax import Source
from omnigraph.plan.lint import lint_queries
from tests.unit.plan.compiling import E, W, catalog


def lint(text: str, schema: Catalog = W) -> dict[str, Any]:
    report = lint_queries(Source("q.gq", text), schema)
    document = report.to_json({"kind": "file", "path": "s.pg"}, "q.gq")
    assert list(document) == [
        *("status", "schema_source", "query_path", "queries_processed"),
        *("errors", "warnings", "infos", "results", "findings"),
    ]
    return document


def counts(document: dict[str, Any]) -> tuple[Any, ...]:
    names = ("status", "queries_processed", "errors", "warnings", "infos")
    return tuple(document[name] for name in names)


READ = "query all() { match { $m: Maker } return { $m } }\n"
SET_AGE = "query set_age($h: String, $a: I32) { update Maker set { age: $a } where handle = $h }\n"
UNSET = ["active", "joined", "level", "score", "skills"]


def test_a_clean_file():
    document = lint(READ + "query add($s: String) { insert Shed { slug: $s } }")
    assert counts(document) == ("ok", 2, 0, 0, 0)
    assert document["results"] == [
        {"name": "all", "kind": "read", "status": "ok"},
        {"name": "add", "kind": "mutation", "status": "ok"},
    ]
    assert document["findings"] == []
    assert document["schema_source"] == {"kind": "file", "path": "s.pg"}
    assert document["query_path"] == "q.gq"


def test_an_empty_file_is_clean():
    assert counts(lint("")) == ("ok", 0, 0, 0, 0)


@pytest.mark.acceptance("L-118")
def test_mixing_statements_is_no_finding():
    text = 'query q($s: String) { insert Shed { slug: "a" }  delete Shed where slug = "a" }'
    document = lint(text)
    assert counts(document) == ("ok", 1, 0, 0, 0)
    assert document["findings"] == []


def test_a_file_that_does_not_parse_is_one_finding():
    document = lint(f"{READ}\nquery Q() {{ }}")
    assert counts(document) == ("error", 0, 1, 0, 0)
    assert document["results"] == []
    (finding,) = document["findings"]
    assert list(finding) == ["severity", "code", "message", "position"]
    assert (finding["severity"], finding["code"]) == ("error", "Q000")
    assert finding["message"].startswith("parse error: expected a query name")
    assert finding["position"] == {
        "file": "q.gq",
        "line": 3,
        "column": 7,
        "end_line": 3,
        "end_column": 8,
    }


def test_duplicate_queries_do_not_parse_either():
    document = lint(READ + READ)
    assert counts(document) == ("error", 0, 1, 0, 0)
    assert "duplicate query 'all'" in document["findings"][0]["message"]


def test_each_type_error_is_one_error_with_position_and_hint():
    document = lint(f"{READ}query bad() {{\n  match {{ $m: Makr }} return {{ $m }} }}\n{SET_AGE}")
    assert counts(document)[:3] == ("error", 3, 1)
    good, bad, _ = document["results"]
    assert good["status"] == "ok"
    assert bad == {
        "name": "bad",
        "kind": "read",
        "status": "error",
        "error": "type error: T1: unknown node type `Makr`",
        "position": {"file": "q.gq", "line": 3, "column": 15, "end_line": 3, "end_column": 19},
        "hint": "did you mean `Maker`?",
    }


def test_every_query_is_checked_and_counted():
    bad = "query {} () {{ delete Nope where a = 1 }}\n"
    document = lint(bad.format("a") + READ + bad.format("b"))
    assert counts(document)[:3] == ("error", 3, 2)


def test_a_mutation_without_parameters_is_warned_about():
    document = lint(READ + 'query a() { insert Shed { slug: "a" } }')
    assert counts(document) == ("ok", 2, 0, 1, 0)
    assert document["results"][1] == {
        "name": "a",
        "kind": "mutation",
        "status": "ok",
        "warnings": ["mutation declares no params"],
    }
    assert document["findings"] == []


def test_properties_no_update_sets_are_found():
    document = lint(SET_AGE)
    assert counts(document) == ("ok", 1, 0, len(UNSET), 0)
    assert document["findings"] == [
        {
            "severity": "warning",
            "code": "L201",
            "message": f"Maker.{name} exists in schema but no update query sets it",
            "type_name": "Maker",
            "property": name,
            "query_names": ["set_age"],
        }
        for name in UNSET
    ]


def test_the_updates_of_a_file_count_together_and_are_named_in_order():
    text = (
        "query z($b: Bool) { update Maker set { active: $b, score: 1.0 } where active = $b }\n"
        "query y($t: DateTime) { update Shed set { openedAt: $t } where openedAt = $t }\n"
        f"{SET_AGE}"
        'query a($d: Date) { insert Shed { slug: "x" }  update Maker set { joined: $d } where joined = $d }\n'
    )
    findings = lint(text)["findings"]
    assert [(f["type_name"], f["property"]) for f in findings] == [
        ("Maker", "level"),
        ("Maker", "skills"),
    ]
    assert findings[0]["query_names"] == ["a", "set_age", "z"]


def test_findings_are_sorted_by_type_and_property():
    text = SET_AGE + "query tool($s: String) { update Tool set { label: $s } where code = $s }\n"
    findings = [f"{f['type_name']}.{f['property']}" for f in lint(text)["findings"]]
    assert findings == [*(f"Maker.{name}" for name in UNSET), "Tool.serial", "Tool.weight"]


def test_a_broken_update_counts_for_nothing():
    broken = "query bad($a: I32) { update Maker set { age: $a } where nope = $a }\n"
    assert lint(broken)["findings"] == []
    text = broken + "query ok($s: F64) { update Maker set { score: $s } where score = $s }\n"
    findings = lint(text)["findings"]
    assert [f["property"] for f in findings] == ["active", "age", "joined", "level", "skills"]
    assert findings[0]["query_names"] == ["ok"]


def test_required_key_and_computed_properties_need_no_update():
    text = "query q($s: String) { update Note set { slug: $s } where slug = $s }"
    assert [f["property"] for f in lint(text, E)["findings"]] == ["body"]
    schema = catalog("node L { a: I32 b: I32? c: I32? @key(a) @unique(b) }")
    text = "query q($x: I32) { update L set { c: $x } where a = $x }"
    assert [f["property"] for f in lint(text, schema)["findings"]] == ["b"]
    schema = catalog("node L { a: I32 b: I32? c: I32? }")
    assert [f["property"] for f in lint(text, schema)["findings"]] == ["b"]


def test_an_update_beside_a_delete_is_an_update_of_one_query():
    text = (
        "query q($a: I32) { update Maker set { age: $a } where age = $a"
        "  update Maker set { score: 1.0 } where age = $a }"
    )
    document = lint(text)
    assert [f["property"] for f in document["findings"]] == ["active", "joined", "level", "skills"]
    assert document["findings"][0]["query_names"] == ["q"]
