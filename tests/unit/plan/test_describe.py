"""Expressions of a plan as text, in query syntax."""

import pytest

from omnigraph.plan.describe import describe_expression
from tests.unit.plan.compiling import O, P, W, columns, order, pattern, read

RANK = "rrf(nearest(p.vec, $v), bm25(p.title, $t), 60)"


def test_ranks_are_projected_and_ordered_by():
    plan = read(
        "$p: Page",
        "$p.slug, nearest($p.vec, $v) as d, rrf(nearest($p.vec, $v), bm25($p.title, $t), 60) as s",
        "order { s desc, nearest($p.vec, $v) } limit 3",
        "$v: Vector(3), $t: String",
        P,
    )
    assert columns(plan) == {"p.slug": "p.slug", "d": "nearest(p.vec, $v)", "s": RANK}
    assert order(plan) == [f"{RANK} desc", "nearest(p.vec, $v) asc"]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("now()", "now()"),
        ("$m", "id(m)"),
        ("$m.age", "m.age"),
        ("count($m)", "count(id(m))"),
        ('max(bm25($m.handle, "x"))', 'max(bm25(m.handle, "x"))'),
        ('fuzzy($m.handle, "gr", 1)', 'fuzzy(m.handle, "gr", 1)'),
        ('"d\\"é"', '"d\\"é"'),
        ("0.25", "0.25"),
        ("true", "true"),
        ('["a", "b"]', '["a", "b"]'),
        ("[]", "[]"),
        ('date("2020-02-29")', "2020-02-29"),
        ('[date("2020-01-01")]', "[2020-01-01]"),
        ('datetime("2020-01-01")', "2020-01-01T00:00:00.000Z"),
        ('[datetime("2020-01-01")]', "[2020-01-01T00:00:00.000Z]"),
    ],
)
def test_an_expression_reads_as_it_is_written(written, shown):
    (column,) = read("$m: Maker", f"{written} as c", schema=W).columns
    assert describe_expression(column.expression) == shown


def test_a_vector_is_shown_as_its_numbers():
    assert pattern(read("$m: Odd { required: [1, 2.5] }", schema=O)) == [
        *("m: Odd", "m where m.required = [1.0, 2.5]"),
    ]
