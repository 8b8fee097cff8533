"""What a read returns: column names, aliases, order keys and their directions, the limit."""

from __future__ import annotations

import pytest

from tests.unit.plan.compiling import P, columns, order, read

NEAR = "nearest($p.vec, $v)"
BM25 = "bm25($p.title, $t)"
RRF = f"rrf({NEAR}, {BM25})"


def pages(returned: str, tail: str = ""):
    params = "$v: Vector(3), $t: String, $k: I32"
    return read("$p: Page  $other: Page", returned, tail, params, P)


@pytest.mark.parametrize(
    ("returned", "names"),
    [
        ("$p.title", ["p.title"]),
        ("$p", ["p"]),
        ("$t", ["t"]),
        ("3", ["literal"]),
        ('"x", date("2020-01-01")', ["literal", "literal_2"]),
        ("now()", ["now"]),
        (f"{NEAR}, {BM25}, {RRF}", ["nearest", "bm25", "rrf"]),
        (
            'search($p.title, "x"), fuzzy($p.title, "x"), match_text($p.title, "x")',
            ["search", "fuzzy", "match_text"],
        ),
        ("count($p)", ["p"]),
        ("count($p.title)", ["p.title"]),
        (f"max({BM25})", ["bm25"]),
        ("count(3)", ["literal"]),
        ("$p.title as x", ["x"]),
        ("$p.title as x, x", ["x", "x_2"]),
        ("$p.title as x, x as y", ["x", "y"]),
        ("$p.title as x, count(x) as n", ["x", "n"]),
        ("$p.title, $p.title, $p.title", ["p.title", "p.title_2", "p.title_3"]),
        ("$p, $other, $p, $other", ["p", "other", "p_2", "other_2"]),
        ("$p, count($p)", ["p", "p_2"]),
        ("$p as count, count as c", ["count", "c"]),
    ],
)
def test_columns_are_called(returned, names):
    assert list(columns(pages(returned))) == names


@pytest.mark.parametrize(
    "returned",
    [
        pytest.param("$a, $a_2, $a", id="a natural name like a suffixed one"),
        pytest.param("$a, $a, $a_2", id="and the other way round"),
        pytest.param("$a.handle as a, $a, $a_2", id="an alias like a natural name"),
        pytest.param("$a, $a.handle as a_2, $a", id="an alias like a suffixed name"),
        pytest.param("$a, $a, $a.handle as a_2", id="an alias behind it"),
    ],
)
def test_no_two_columns_have_one_name(returned):
    plan = read("$a: Maker  $a_2: Maker", returned)
    names = [column.name for column in plan.columns]
    assert len(names) == len(set(names)) == 3


def test_an_alias_stands_for_its_expression():
    plan = pages("$p.title as a, a as b, b", "order { b desc, a }")
    assert columns(plan) == {"a": "p.title", "b": "p.title", "b_2": "p.title"}
    assert order(plan) == ["p.title desc", "p.title asc"]


def test_an_alias_stands_for_its_expression_inside_an_aggregate():
    plan = pages(f"{BM25} as s, max(s) as best", "order { best }")
    assert columns(plan)["best"] == "max(bm25(p.title, $t))"


def test_now_is_a_column_like_any_other():
    assert columns(pages("now() as a, a as b")) == {
        "a": "now()",
        "b": "now()",
    }


@pytest.mark.parametrize(
    ("keys", "directions"),
    [
        ("$p.title", "asc"),
        ("$p", "asc"),
        ("3", "asc"),
        (NEAR, "asc"),
        (BM25, "desc"),
        (RRF, "desc"),
        ('search($p.title, "x")', "asc"),
        ("d", "asc"),
        ("s", "desc"),
        ("f", "desc"),
        ("s2", "desc"),
        (f"{NEAR} desc", "desc"),
        (f"{BM25} asc", "asc"),
        ("s asc", "asc"),
        ("f desc", "desc"),
        ("$p.title desc, s, d", "desc desc asc"),
    ],
)
def test_without_a_word_the_best_comes_first(keys, directions):
    plan = pages(f"{NEAR} as d, {BM25} as s, {RRF} as f, s as s2", f"order {{ {keys} }} limit 3")
    assert " ".join(key.split(" ")[-1] for key in order(plan)) == directions


def test_an_aggregate_of_a_score_is_an_ordinary_key():
    plan = pages(f"$p.title, max({BM25}) as best", "order { best }")
    assert [(k.descending, k.is_rank) for k in plan.order] == [(False, False)]


@pytest.mark.parametrize(
    ("keys", "drops"),
    [(BM25, True), ("s", True), (f"$p.title, {BM25}", False), ("$p.title", False)],
)
def test_only_a_rank_as_first_key_drops_rows_without_a_score(keys, drops):
    assert pages(f"{BM25} as s", f"order {{ {keys} }}").drops_unscored is drops


def test_without_order_no_row_is_dropped():
    assert pages(BM25).drops_unscored is False


@pytest.mark.parametrize(
    ("tail", "limit"), [("", None), ("limit 0", 0), ("limit 18446744073709551615", 2**64 - 1)]
)
def test_the_limit_is_kept(tail, limit):
    assert pages("$p", tail).limit == limit


def test_aggregates_make_an_aggregate_query():
    assert pages("$p.title, count($p)").is_aggregate
    assert not pages("$p.title").is_aggregate
