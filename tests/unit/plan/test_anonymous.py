"""Queries without a header: what their parameters are, and when a declaration is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.catalog.compile import compile_schema
from omnigraph.errors import ParameterError, TypeCheckError
from omnigraph.language.syntax import Source
from omnigraph.plan.compile import compile_query
from omnigraph.plan.params import bind_host_values

ROADS = compile_schema(
    Source("<schema>", (Path(__file__).parents[2] / "cases" / "roads.pg").read_text())
)


def parameters(text):
    found = compile_query(Source("<query>", text), ROADS).plan.parameters
    return {one.name: one.type.display for one in found}


@pytest.mark.parametrize(
    ("match", "found"),
    [
        ("$t.pop > $x", {"x": "I64?"}),
        ("$x < $t.since", {"x": "Date?"}),
        ("$t.pop + 1 > $x * 2", {"x": "I64?"}),
        ("$t.name in $x", {"x": "[String]?"}),
        ("$t.tags contains $x", {"x": "String?"}),
        ("contains_any($t.tags, $x)", {"x": "[String]?"}),
        ("coalesce($t.pop, $x) > 3", {"x": "I64?"}),
        ("case when $b then $t.pop else $x end > 3", {"b": "Bool?", "x": "I64?"}),
        ("search($t.note, $x)", {"x": "String?"}),
        ("fuzzy($t.note, $x, 1)", {"x": "String?"}),
        ("lower($x) = $t.name", {"x": "String?"}),
        ('date_add($t.since, $n, "day") > $d', {"n": "I64?", "d": "Date?"}),
        ('date_diff($d, $t.since, "day") > $n', {"d": "Date?", "n": "I64?"}),
        ("matches($t.name, $re)", {"re": "String?"}),
        ("count { $t road $_ } > $n", {"n": "I64?"}),
        ("exists { $t road $u  $u.pop > $n }", {"n": "I64?"}),
        ("optional { $t $e: road $u  $e.km > $n }", {"n": "F64?"}),
    ],
)
def test_a_parameter_has_the_type_of_what_it_is_used_with(match, found):
    assert parameters(f"match {{ $t: Town  {match} }} return {{ $t }}") == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("match { $t: Town { name: $x } } return { $t }", {"x": "String?"}),
        (
            "match { $t: Town } return { $t.pop, count($t) as n } having { n > $n } limit $l offset $o",
            {"n": "I64?", "l": "I64?", "o": "I64?"},
        ),
        ("insert Town { name: $n, pop: $p }", {"n": "String?", "p": "I64?"}),
        ("update Town set { pop: pop + $d } where name = $n", {"d": "I64?", "n": "String?"}),
        ("delete Road where km > $k or from = $f", {"k": "F64?", "f": "String?"}),
        ("upsert Town { name: $n, pop: coalesce(pop, $p) + 1 }", {"n": "String?", "p": "I64?"}),
        (
            "insert $a: Town { name: $n } insert Road { from: $a, to: $to, km: $k }",
            {"n": "String?", "to": "String?", "k": "F64?"},
        ),
        (
            "match { $t: Town { name: $n } } do { insert $u: Town { name: $m }"
            " insert Road { from: $t, to: $u, km: $k } }",
            {"n": "String?", "m": "String?", "k": "F64?"},
        ),
    ],
)
def test_the_same_in_results_and_changes(text, found):
    assert parameters(text) == found


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("match { $t: Town } return { $x as y }", "its use does not tell which type"),
        ("match { $t: Town  coalesce($x, $y) > 3 } return { $t }", "its use does not tell"),
        ("match { $t: Town  $t.pop > $x  $t.name = $x } return { $t }", "T7"),
        ("update Town set { pop: $x } where name = $x", "T7"),
        ("delete Town where length(name) + 1 = $x and coalesce($y, $z) = 1", "does not tell"),
    ],
)
def test_a_use_that_does_not_tell_or_contradicts_asks_for_a_declaration(text, problem):
    with pytest.raises(TypeCheckError, match=problem) as caught:
        parameters(text)
    assert "declare it" in (caught.value.diagnostics[0].hint or "")


def test_a_parameter_that_no_text_declares_has_to_be_given():
    plan = compile_query(
        Source("<query>", "match { $t: Town  $t.pop > $x } return { $t }"), ROADS
    ).plan
    with pytest.raises(ParameterError, match="'x' not provided"):
        bind_host_values(plan.parameters, {})
    assert bind_host_values(plan.parameters, {"x": None}) == {"x": None}


def test_explain_takes_a_body_too():
    from omnigraph.language.query.parse import parse_text

    found = parse_text(Source("<query>", "explain match { $t: Town } return { $t }")).statement
    assert type(found).__name__ == "Explain"
