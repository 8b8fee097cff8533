"""What the reference graph answers about the workshop, question by question."""

from __future__ import annotations

from collections import Counter

import pytest

from omnigraph.errors import ParameterError, ParseError, TypeCheckError
from omnigraph.language.values import parse_datetime
from tests.support.workshop import WORKSHOP, WORKSHOP_ROWS
from tests.unit.testing.reading import NOW, ask, image_of

W = image_of(WORKSHOP, WORKSHOP_ROWS)

ADA, BO = '$m: Maker { handle: "ada" }', '$m: Maker { handle: "bo" }'
MENTOR_CIRCLE = "$a: Maker  $a mentors $b  $b mentors $c  $c mentors $a"


def values(match, returned="$m.handle", tail="", **options):
    """The rows of an answer, those of a single column as bare values."""
    found = ask(W, match, returned, tail, **options)
    return [row[0] if len(found.columns) == 1 else row for row in found.rows]


@pytest.mark.parametrize(
    ("match", "returned", "rows"),
    [
        (ADA, "$m.handle, $m.age", [{"m.handle": "ada", "m.age": 41}]),
        (ADA, "$m, $m.score as s", [{"m": "ada", "s": 9.5}]),
        (
            "$t: Tool { weight: 0.4 }",
            "$t.code, $t.weight",
            [{"t.code": "ch-3", "t.weight": 0.4000000059604645}],
        ),
        (
            "$m: Maker",
            "count($m) as n, count($m.age) as a, sum($m.age) as s, avg($m.age) as v,"
            " min($m.handle) as f",
            [{"n": 4, "a": 3, "s": 99.0, "v": 33.0, "f": "ada"}],
        ),
        ('$m: Maker { handle: "zz" }', "count($m) as n, sum($m.age) as s", [{"n": 0, "s": None}]),
        ('$m: Maker { handle: "zz" }', "$m.level, count($m) as n", []),
        ('$m: Maker { handle: "zz" }', "count($m)", [{"m": 0}]),
        (ADA, "$m.age as a, a as b", [{"a": 41, "b": 41}]),
        (ADA, "$m.age, $m.age", [{"m.age": 41, "m.age_2": 41}]),
        (
            '$s: Shed { slug: "north" }',
            "$s.openedAt",
            [{"s.openedAt": parse_datetime("2019-05-01T08:00:00Z")}],
        ),
    ],
)
def test_columns_have_names_and_values(match, returned, rows):
    assert ask(W, match, returned).to_dicts() == rows


@pytest.mark.parametrize(
    ("match", "returned", "rows"),
    [
        ("$m: Maker  $m.age != 29", "$m.handle", {"ada"}),
        ("$m: Maker  not { $m.age = 29 }", "$m.handle", {"ada", "cy"}),
        ('$m: Maker  $m.skills contains "lathe"', "$m.handle", {"ada", "bo"}),
        ('$m: Maker { skills: "lathe" }', "$m.handle", {"ada", "bo"}),
        ('$m: Maker  $m.joined >= date("2021-01-01")', "$m.handle", {"bo", "dee"}),
        ("$m: Maker { age: 29.5 }", "$m.handle", set()),
        ("$m: Maker  $m.age = 29.5", "$m.handle", set()),
        ("$m: Maker  $m.age < 3000000000", "$m.handle", {"ada", "bo", "dee"}),
        ("$m: Maker  $m.age >= 28.5", "$m.handle", {"ada", "bo", "dee"}),
        ("$m: Maker { active: true }  $m: Maker { age: 29 }", "$m.handle", {"bo", "dee"}),
        ('$t: Tool  $t.label contains "saw"', "$t.code", {"sa-1"}),
        ('$t: Tool  $t.label contains "Saw"', "$t.code", set()),
        ('$t: Tool  $t.label contains ""', "$t.code", {"sa-1", "dr-2", "ch-3"}),
        ('$t: Tool  $t.label starts_with "wood"', "$t.code", {"ch-3"}),
        ('$t: Tool  $t.label starts_with "ood"', "$t.code", set()),
        ('$t: Tool  $t.serial contains ""', "$t.code", set()),
        (
            '$s: Shed { openedAt: datetime("2019-05-01T10:00:00+02:00") }',
            "$s.slug",
            {"north"},
        ),
        ("$s: Shed  $s.openedAt < now()", "$s.slug", {"north"}),
    ],
)
def test_conditions_keep_the_rows_for_which_they_are_true(match, returned, rows):
    found = values(match, returned)
    assert set(found) == rows
    assert len(found) == len(rows)


@pytest.mark.parametrize(
    ("match", "returned", "rows"),
    [
        (f"{ADA} $m mentors $x", "$x.handle", ["bo", "dee"]),
        (f"{ADA} $m mentors{{1,3}} $x", "$x.handle", ["bo", "dee", "cy"]),
        (f"{ADA} $m mentors{{2,2}} $x", "$x.handle", ["cy"]),
        (f"{ADA} $m mentors{{3,3}} $x", "$x.handle", []),
        (f"{BO} $m mentors{{2,3}} $x", "$x.handle", ["ada", "dee"]),
        (f"{BO} $m borrows $t", "$t.code", ["sa-1"]),
        ('$t: Tool { code: "sa-1" } $m borrows $t', "$m.handle", ["bo"]),
        ('$t: Tool { code: "sa-1" } $t borrows $m', "$m.handle", ["bo"]),
        (f"{BO} $m borrows{{1,4}} $t", "$t.code", ["sa-1"]),
        (f"{BO} $m borrows{{2,3}} $t", "$t.code", []),
        (f"{BO} $m borrOWS $t", "$t.code", ["sa-1"]),
        (
            '$m: Maker  $m borrows $t  $t storedIn $s  $s: Shed { slug: "north" }',
            "$m.handle, $t.code",
            [("bo", "sa-1"), ("ada", "dr-2")],
        ),
        (
            '$m: Maker  $t storedIn $s  $m borrows $t  $s: Shed { slug: "north" }',
            "$m.handle, $t.code",
            [("bo", "sa-1"), ("ada", "dr-2")],
        ),
        (
            MENTOR_CIRCLE,
            "$a, $b, $c",
            [("ada", "bo", "cy"), ("bo", "cy", "ada"), ("cy", "ada", "bo")],
        ),
        ("$m mentors $x", "$x.handle", ["bo", "dee", "cy", "ada"]),
    ],
)
def test_traversals_reach_each_node_once(match, returned, rows):
    assert Counter(values(match, returned)) == Counter(rows)


@pytest.mark.parametrize(
    ("match", "returned", "rows"),
    [
        ("$m: Maker  not { $m borrows $_ }", "$m.handle", {"cy"}),
        (
            '$m: Maker  not { $m borrows $t  $t.code = "sa-1" }',
            "$m.handle",
            {"ada", "cy", "dee"},
        ),
        (
            '$m: Maker  not { $m borrows $t  not { $t.code = "sa-1" } }',
            "$m.handle",
            {"bo", "cy"},
        ),
        ("$s: Shed  not { $t storedIn $s }", "$s.slug", {"south"}),
        ("$s: Shed  not { $s storedIn $t }", "$s.slug", {"south"}),
        ("$m: Maker  not { $m mentors{2,2} $x }", "$m.handle", {"dee"}),
    ],
)
def test_a_negation_drops_rows_with_a_solution(match, returned, rows):
    assert set(values(match, returned)) == rows


@pytest.mark.parametrize(
    ("match", "returned", "tail", "rows"),
    [
        ("$m: Maker", "$m.handle", "order { $m.age asc }", ["cy", "bo", "dee", "ada"]),
        ("$m: Maker", "$m.handle", "order { $m.age desc }", ["ada", "bo", "dee", "cy"]),
        ("$m: Maker", "$m.handle", "order { $m.age desc } limit 2", ["ada", "bo"]),
        (
            "$m: Maker",
            "$m.handle",
            "order { $m.active desc, $m.handle desc } limit 3",
            ["dee", "bo", "ada"],
        ),
        (
            "$m: Maker  $m mentors $x",
            "$m.handle, count($x) as n",
            "order { n desc }",
            [("ada", 2), ("bo", 1), ("cy", 1)],
        ),
        (
            "$m: Maker",
            "$m.level as l, count($m) as n",
            "order { $m.level desc, count($m) }",
            [("skilled", 1), ("novice", 1), ("master", 1), (None, 1)],
        ),
    ],
)
def test_an_order_is_exact(match, returned, tail, rows):
    assert ask(W, match, returned, tail).ordered
    assert values(match, returned, tail) == rows


def test_variables_without_a_connection_form_a_cross_product():
    assert len(values("$m: Maker  $s: Shed", "$m, $s")) == 8


def test_nulls_are_one_group():
    found = values("$m: Maker", "$m.age, count($m) as n")
    assert Counter(found) == Counter([(41, 1), (29, 2), (None, 1)])


def test_a_null_parameter_matches_nothing():
    assert values("$m: Maker { age: $a }", params="$a: I32?") == []


def test_a_parameter_may_be_text_of_a_number():
    found = ask(W, "$m: Maker  $m.age > $n", "$m, $n", params="$n: I32", given={"n": "30"})
    assert found.to_dicts() == [{"m": "ada", "n": 30}]


def test_now_is_the_time_it_was_given():
    assert values(ADA, "now()") == [NOW]


@pytest.mark.parametrize(
    ("match", "given", "message"),
    [
        ("$m: Maker { handle: $who }", {}, "parameter 'who' not provided"),
        ("$m: Maker { handle: $who }", {"who": None}, "null is not accepted"),
    ],
)
def test_a_parameter_that_is_missing_is_refused(match, given, message):
    with pytest.raises(ParameterError, match=message):
        ask(W, match, params="$who: String", given=given)


@pytest.mark.parametrize(
    ("match", "error", "message"),
    [
        ('$m: Maker { joined: date("soon") }', TypeCheckError, "invalid Date literal"),
        ("$m: Maker  $m BORROWS $t", ParseError, "expected"),
    ],
)
def test_a_query_that_is_wrong_is_refused(match, error, message):
    with pytest.raises(error, match=message):
        ask(W, match)


@pytest.mark.parametrize(
    ("match", "tail"),
    [
        ('$t: Tool  search($t.label, "saws")', ""),
        ("$t: Tool", 'order { bm25($t.label, "saw") }'),
        ('$t: Tool  fuzzy($t.label, "swa", 2)', "order { $t.code } limit 1"),
    ],
)
def test_texts_are_searched(match, tail):
    assert ask(W, match, "$t.code", tail).rows == (("sa-1",),)
