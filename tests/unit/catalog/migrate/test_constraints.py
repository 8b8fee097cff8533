"""Constraints of a type that stays."""

from __future__ import annotations

import pytest

from omnigraph.catalog.ir import CheckIR, IndexIR, KeyIR, RangeIR, UniqueIR
from omnigraph.catalog.migrate.members import constraint_text
from omnigraph.catalog.migrate.report import step_text
from tests.unit.catalog.migrate.workshop import plan_text, refusals_of

NODE = "node N {{ a: String  b: I32  c: F64?  {} }}"
EDGE = "node N {{ a: String }}  edge E: N -> N {{ {} }}"


def texts(template: str, before: str, after: str) -> list[str]:
    plan = plan_text(template.format(before), template.format(after))
    return [step_text(step) for step in plan.steps]


@pytest.mark.parametrize(
    ("constraint", "validated"),
    [
        ("@index(a)", False),
        ("@unique(a, b)", True),
        ("@range(b, 0..9)", True),
        ("@range(c, ..1.5)", True),
        ('@check(a, "^\\\\d\\"$")', True),
    ],
)
def test_a_constraint_comes_and_goes(constraint, validated):
    note = " (all rows are validated first)" if validated else ""
    assert texts(NODE, "", constraint) == [f"add constraint {constraint} on node 'N'{note}"]
    assert texts(NODE, constraint, "") == [f"drop constraint {constraint} on node 'N'"]


def test_a_key_can_neither_be_added_nor_removed():
    (refusal,) = refusals_of(NODE.format(""), NODE.format("@key(a)"))
    assert refusal.reason == "adding constraint '@key(a)' to 'N' is not supported"
    assert str(refusal.entity) == "node:N"
    assert refusal.code is None
    (refusal,) = refusals_of(NODE.format("@key(a)"), NODE.format(""))
    assert refusal.reason == "removing constraints from 'N' is not supported: @key(a)"


@pytest.mark.parametrize(
    ("before", "after", "wider"),
    [
        ("0..9", "0..10", True),
        ("0..9", "-1..9", True),
        ("0..9", "..9", True),
        ("0..9", "0..", True),
        ("0..9", "1..9", False),
        ("0..9", "0..8", False),
        ("0..9", "-5..8", False),
        ("0..", "0..9", False),
        ("..9", "0..9", False),
    ],
)
def test_wider_bounds_are_not_validated(before, after, wider):
    note = "" if wider else " (all rows are validated first)"
    assert texts(NODE, f"@range(b, {before})", f"@range(b, {after})") == [
        f"change constraint @range(b, {before}) to @range(b, {after}) on node 'N'{note}"
    ]


def test_another_pattern_is_another_constraint():
    assert texts(NODE, '@check(a, "x")', '@check(a, "y")') == [
        "drop constraint @check(a, \"x\") on node 'N'",
        "add constraint @check(a, \"y\") on node 'N' (all rows are validated first)",
    ]


def test_indexes_are_added_in_order():
    assert texts(NODE, "", "@index(c) @index(b, a) @index(b)") == [
        "add constraint @index(a, b) on node 'N'",
        "add constraint @index(b) on node 'N'",
        "add constraint @index(c) on node 'N'",
    ]


def test_the_order_of_columns_and_constraints_is_no_change():
    assert texts(NODE, "@unique(a, b) @key(b, a)", "@key(a, b) @unique(b, a)") == []


def test_a_bound_may_be_written_as_integer_or_float():
    assert texts(NODE, "@range(c, 0..9)", "@range(c, 0.0..9.0)") == []


def test_constraints_follow_renamed_properties():
    before = """\
node N {
    a: String
    b: I32
    @key(a) @unique(a, b) @range(b, 0..9) @check(a, "x") @index(b)
}
"""
    after = """\
node N {
    z: String @rename_from("a")
    y: I32 @rename_from("b")
    @key(z) @unique(y, z) @range(y, 0..9) @check(z, "x") @index(y)
}
"""
    assert [step_text(s) for s in plan_text(before, after).steps] == [
        "rename property 'N.b' -> 'N.y' on node 'N'",
        "rename property 'N.a' -> 'N.z' on node 'N'",
    ]


def test_an_index_named_after_the_old_property_is_not_the_old_one():
    before = "node N { a: String  @index(a) }"
    after = 'node N { b: String @rename_from("a") }'
    assert [step_text(step) for step in plan_text(before, after).steps] == [
        "rename property 'N.a' -> 'N.b' on node 'N'",
        "drop constraint @index(b) on node 'N'",
    ]


def test_the_ends_of_an_edge_are_never_renamed():
    before = "src: String?  w: I32?  @unique(src, dst)"
    after = 'origin: String? @rename_from("src")  w: I32?  @unique(src, dst)'
    assert texts(EDGE, before, after) == [
        "rename property 'E.src' -> 'E.origin' on edge 'E'",
    ]


def test_a_property_renamed_to_an_end_does_not_become_it():
    before = "to: String?  @index(to)"
    after = 'dst: String? @rename_from("to")  @index(dst)'
    assert texts(EDGE, before, after) == [
        "rename property 'E.to' -> 'E.dst' on edge 'E'",
        "drop constraint @index(to) on edge 'E'",
        "add constraint @index(dst) on edge 'E'",
    ]


def test_on_a_node_src_is_a_property_like_any_other():
    before = "node N { src: String  @key(src) }"
    after = 'node N { origin: String @rename_from("src")  @key(origin) }'
    assert [s.kind for s in plan_text(before, after).steps] == ["rename_property"]


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ("", "@unique(dst, src)", "from none to (src, dst)"),
        ("@unique(src, dst)", "", "from (src, dst) to none"),
        ("@unique(src, dst, w)", "@unique(src, dst)", "from (src, dst, w) to (src, dst)"),
        ("@unique(src, dst)", "@unique(src, dst, w)", "from (src, dst) to (src, dst, w)"),
    ],
)
def test_an_edge_s_identity_cannot_change(before, after, change):
    (refusal,) = refusals_of(EDGE.format(f"w: I32? {before}"), EDGE.format(f"w: I32? {after}"))
    assert f"changing the identity of 'E' {change} is not supported" in refusal.reason


def test_uniqueness_beside_the_identity_comes_and_goes():
    identity, more = "w: I32?  @unique(src, dst)", "@unique(src, dst, w) @unique(dst)"
    assert plan_text(EDGE.format(identity), EDGE.format(f"{identity} {more}")).supported
    assert plan_text(EDGE.format(f"{identity} {more}"), EDGE.format(identity)).supported


@pytest.mark.parametrize(
    ("constraint", "text"),
    [
        (KeyIR(("a", "b")), "@key(a, b)"),
        (UniqueIR(("a",)), "@unique(a)"),
        (IndexIR(("a",)), "@index(a)"),
        (RangeIR("w", 0, None), "@range(w, 0..)"),
        (RangeIR("w", None, 0.5), "@range(w, ..0.5)"),
        (RangeIR("w", -1, 1), "@range(w, -1..1)"),
        (CheckIR("c", 'a\\d"\n\t\r'), '@check(c, "a\\\\d\\"\\n\\t\\r")'),
    ],
)
def test_a_constraint_reads_as_it_is_written(constraint, text):
    assert constraint_text(constraint) == text
