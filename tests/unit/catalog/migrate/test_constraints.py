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
    "constraint",
    ["@key(a)", "@unique(a, b)", "@range(b, 0..9)", "@range(c, ..1.5)", '@check(a, "^\\\\d\\"$")'],
)
def test_no_constraint_but_an_index_can_be_added(constraint):
    (refusal,) = refusals_of(NODE.format(""), NODE.format(constraint))
    assert refusal.reason == f"adding constraint '{constraint}' to 'N' is not supported"
    assert str(refusal.entity) == "node:N"
    assert refusal.code is None


@pytest.mark.parametrize(
    "constraint", ["@key(a)", "@unique(a)", "@index(a)", "@range(b, 0..9)", '@check(a, "x")']
)
def test_no_constraint_can_be_removed(constraint):
    (refusal,) = refusals_of(NODE.format(constraint), NODE.format(""))
    assert refusal.reason == f"removing constraints from 'N' is not supported: {constraint}"


def test_all_removed_constraints_of_a_type_are_one_change():
    (refusal,) = refusals_of(NODE.format("@unique(b) @index(a) @key(a)"), NODE.format(""))
    assert refusal.reason.endswith(": @index(a), @key(a), @unique(b)")


def test_a_changed_constraint_is_removed_and_added():
    removed, added = refusals_of(NODE.format("@range(b, 0..9)"), NODE.format("@range(b, 0..10)"))
    assert "removing constraints from 'N'" in removed.reason
    assert "adding constraint '@range(b, 0..10)' to 'N'" in added.reason


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
    (refusal,) = refusals_of(before, after)
    assert "removing constraints from 'N' is not supported: @index(b)" in refusal.reason


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
        "unsupported change on edge:E: removing constraints from 'E' is not supported: @index(to)",
        "add constraint @index(dst) on edge 'E'",
    ]


def test_on_a_node_src_is_a_property_like_any_other():
    before = "node N { src: String  @key(src) }"
    after = 'node N { origin: String @rename_from("src")  @key(origin) }'
    assert [s.kind for s in plan_text(before, after).steps] == ["rename_property"]


def test_an_edge_s_identity_cannot_be_added():
    (refusal,) = refusals_of(EDGE.format("w: I32?"), EDGE.format("w: I32?  @unique(dst, src)"))
    assert "adding constraint '@unique(dst, src)' to 'E'" in refusal.reason


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
