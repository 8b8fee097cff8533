"""Properties of a type that stays: additions, changes of type, annotations."""

from __future__ import annotations

import pytest

from omnigraph.catalog.migrate.report import step_text
from omnigraph.catalog.migrate.steps import MigrationCode
from tests.unit.catalog.migrate.workshop import plan_text, refusals_of, steps_of


def texts(before: str, after: str) -> list[str]:
    return [step_text(step) for step in plan_text(node(before), node(after)).steps]


def node(members: str, header: str = "node N") -> str:
    return f"{header} {{ a: String  {members} }}"


@pytest.mark.parametrize(
    ("added", "backfill"),
    [
        ("p: I32 @backfill(7)", "7"),
        ('p: I32 @backfill("-7")', "-7"),
        ("p: Bool @backfill(true)", "true"),
        ("p: enum(x, y) @backfill(x)", "x"),
        ('p: [I32] @backfill("[]")', "[]"),
        ('p: String @backfill("")', ""),
        ('p: Vector(2)? @backfill("[0, 1]")', "[0, 1]"),
    ],
)
def test_the_backfill_travels_as_written(added, backfill):
    (step,) = steps_of(node(""), node(added))
    assert step["backfill"] == backfill


def test_a_required_blob_can_only_be_made_optional():
    (refusal,) = refusals_of(node(""), node("p: Blob"))
    assert refusal.code is MigrationCode.REQUIRED_WITHOUT_BACKFILL
    assert "requires a backfill" in refusal.reason
    assert refusal.reason.endswith("make the property optional")


@pytest.mark.parametrize("mark", ["", "?"])
def test_a_computed_vector_needs_no_backfill(mark):
    (step,) = steps_of(node(""), node(f"v: Vector(2){mark} @embed(a)"))
    assert step["kind"] == "add_property"
    assert "backfill" not in step


def test_an_edge_property_follows_the_same_rules():
    before = "node N { a: String }  edge E: N -> N"
    after = "node N { a: String }  edge E: N -> N { x: I32?  y: I32 @backfill(1)  z: I32 }"
    first, second, third = plan_text(before, after).steps
    assert (first.kind, second.kind) == ("add_property", "add_property")
    assert step_text(third).startswith("unsupported change on edge:E.z [OG-MF-103, validated]: ")


def test_an_index_may_come_with_a_new_property():
    assert texts("", "p: I32? @index") == [
        "add property 'N.p' (I32?) on node 'N'",
        "add constraint @index(p) on node 'N'",
    ]


def test_a_property_is_renamed_and_its_enum_extended_in_one_plan():
    assert texts("s: enum(x)", 's2: enum(y, x, w) @rename_from("s")') == [
        "rename property 'N.s' -> 'N.s2' on node 'N'",
        "extend enum 'N.s2' with w, y",
    ]


def test_a_renamed_property_may_not_change_its_type():
    rename, refusal = plan_text(node("p: I32?"), node('q: F64? @rename_from("p")')).steps
    assert rename.kind == "rename_property"
    assert step_text(refusal).startswith("unsupported change on node:N.q [OG-MF-106, destructive]")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("s: enum(x, y)", "s: enum(y, z)"),
        ("s: enum(x, y)?", "s: enum(y)"),
        ("s: String", "s: enum(x)"),
        ("s: enum(x)", "s: String"),
        ("v: Vector(2)", "v: Vector(3)"),
        ("n: I64", "n: I32"),
        ("n: F64", "n: F32"),
        ("n: I32", "n: F64"),
        ("n: U32", "n: U64"),
        ("n: U32", "n: I64"),
        ("n: I32", "n: [I64]"),
        ("n: Date", "n: DateTime"),
    ],
)
def test_a_type_that_stored_values_may_not_fit_is_refused(before, after):
    (refusal,) = refusals_of(node(before), node(after))
    assert refusal.code is MigrationCode.PROPERTY_TYPE_CHANGE


VALIDATED = " (all rows are validated first)"


@pytest.mark.parametrize(
    ("before", "after", "note"),
    [
        ("I32", "I64", ""),
        ("F32?", "F64?", ""),
        ("[I32]", "[I64]", ""),
        ("I32", "I64?", ""),
        ("Vector(2)", "Vector(2)?", ""),
        ("String?", "String", VALIDATED),
        ("F32?", "F64", VALIDATED),
        ("Blob?", "Blob", VALIDATED),
    ],
)
def test_numbers_get_wider_and_values_optional_or_required(before, after, note):
    assert texts(f"p: {before}", f"p: {after}") == [
        f"change type of 'N.p' from {before} to {after} on node 'N'{note}"
    ]


def test_an_enum_grows_and_becomes_optional_in_two_steps():
    assert texts("s: enum(x)", "s: enum(x, y)?") == [
        "extend enum 'N.s' with y",
        "change type of 'N.s' from enum(x, y) to enum(x, y)? on node 'N'",
    ]


def test_no_row_is_validated_for_an_interface():
    before, after = "interface I { p: I32? }", "interface I { p: I32 }"
    (step,) = steps_of(before, after)
    assert (step["kind"], step["type_kind"]) == ("change_property_type", "interface")
    assert "validates" not in step


@pytest.mark.parametrize(("before", "after"), [("F32", "F64")])
def test_a_key_of_floats_stays_as_wide_as_it_is(before, after):
    *_, refusal = plan_text(f"node N {{ k: {before} @key }}", f"node N {{ k: {after} @key }}").steps
    assert "'N.k' is part of the ids and cannot become F64" in step_text(refusal)
    assert plan_text("node N { k: I32 @key }", "node N { k: I64 @key }").supported


def test_an_enum_may_grow_while_other_properties_change():
    assert texts("s: enum(x)  p: I32?", "s: enum(x, y)  q: I32?") == [
        "add property 'N.q' (I32?) on node 'N'",
        "extend enum 'N.s' with y",
        "drop property 'N.p' of node 'N' (soft mode)",
    ]


@pytest.mark.parametrize(
    ("before", "after", "annotations"),
    [
        ("p: I32?", 'p: I32? @description("x")', [{"name": "description", "value": "x"}]),
        (
            'p: I32? @description("x")',
            'p: I32? @description("y")',
            [{"name": "description", "value": "y"}],
        ),
        ('p: I32? @description("x")', "p: I32?", []),
    ],
    ids=["added", "changed", "removed"],
)
def test_a_property_description_is_metadata(before, after, annotations):
    assert steps_of(node(before), node(after)) == [
        {
            "kind": "update_property_metadata",
            "type_kind": "node",
            "type_name": "N",
            "property_name": "p",
            "annotations": annotations,
        }
    ]


def test_a_type_s_metadata_step_carries_both_texts():
    before = node("", 'node N @description("d") @instruction("old")')
    after = node("", 'node N @instruction("new") @description("d")')
    (step,) = steps_of(before, after)
    assert step["annotations"] == [
        {"name": "description", "value": "d"},
        {"name": "instruction", "value": "new"},
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("p: I32? @hue(warm)", "p: I32?"),
        ("p: I32?", "p: I32? @hue(warm)"),
        ("p: I32? @hue(warm)", "p: I32? @hue(cold)"),
        ("p: I32? @hue", "p: I32? @hue @hue"),
        ("v: Vector(2)?", "v: Vector(2)? @embed(a)"),
        ("v: Vector(2)? @embed(a)", "v: Vector(2)?"),
        ("b: String?  v: Vector(2)? @embed(a)", "b: String?  v: Vector(2)? @embed(b)"),
    ],
)
def test_no_other_annotation_may_change(before, after):
    (refusal,) = refusals_of(node(before), node(after))
    assert "changing annotations beyond @description/@instruction" in refusal.reason
    assert refusal.code is None


def test_no_other_annotation_of_a_type_may_change():
    (refusal,) = refusals_of(node(""), node("", "node N @shelf"))
    assert "changing annotations beyond @description/@instruction" in refusal.reason
    assert str(refusal.entity) == "node:N"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("p: I32?", 'p: I32? @rename_from("old")'),
        ("p: I32? @backfill(1)", "p: I32? @backfill(2)"),
        ("p: I32? @backfill(1)", "p: I32?"),
        ("p: I32? @index", "p: I32?  @index(p)"),
        ("p: I32 @unique  @key(p)", "p: I32 @key  @unique(p)"),
        ("p: I32? @hue(warm)", 'p: I32? @hue("warm")'),
    ],
)
def test_hints_and_spellings_of_constraints_are_no_change(before, after):
    assert texts(before, after) == []


def test_an_embed_source_follows_the_rename_of_its_property():
    before = "body: String?  v: Vector(2)? @embed(body)"
    after = 'text: String? @rename_from("body")  v: Vector(2)? @embed(text)'
    assert texts(before, after) == ["rename property 'N.body' -> 'N.text' on node 'N'"]


def test_an_embed_source_and_its_vector_are_renamed_together():
    before = "body: String?  v: Vector(2)? @embed(body)"
    after = 'text: String? @rename_from("body")  w: Vector(2)? @embed(text) @rename_from("v")'
    assert texts(before, after) == [
        "rename property 'N.body' -> 'N.text' on node 'N'",
        "rename property 'N.v' -> 'N.w' on node 'N'",
    ]


def test_an_embed_source_cannot_move_to_a_new_property():
    before = "body: String?  v: Vector(2)? @embed(body)"
    after = "text: String?  v: Vector(2)? @embed(text)"
    (refusal,) = refusals_of(node(before), node(after))
    assert str(refusal.entity) == "node:N.v"


def test_other_annotations_do_not_follow_a_rename():
    before, after = "p: I32? @hue(q)  q: I32?", 'p: I32? @hue(r)  r: I32? @rename_from("q")'
    (refusal,) = refusals_of(node(before), node(after))
    assert str(refusal.entity) == "node:N.p"


def test_an_interface_may_leave_the_embed_source_to_its_nodes():
    before = """\
interface Searchable { v: Vector(2)? @embed(body) }
node N implements Searchable { body: String? }
"""
    after = """\
interface Searchable { v: Vector(2)? @embed(text) }
node N implements Searchable { text: String? @rename_from("body") }
"""
    assert [step_text(s) for s in plan_text(before, after).steps] == [
        "rename property 'N.body' -> 'N.text' on node 'N'"
    ]
    moved = after.replace(' @rename_from("body")', "")
    (refusal,) = refusals_of(before, moved)
    assert str(refusal.entity) == "node:N.v"


def test_a_required_interface_property_needs_a_backfill_too():
    before = "interface I { x: I32? }"
    (refusal,) = refusals_of(before, "interface I { x: I32?  y: I32 }")
    assert str(refusal.entity) == "interface:I.y"
    assert steps_of(before, "interface I { x: I32?  y: I32 @backfill(1) }")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("@embed(a)", '@embed(a, model="openai/x")'),
        ('@embed(a, model="openai/x")', '@embed("a", model="gemini/y")'),
        ('@embed(a, model="openai/x")', "@embed(a)"),
    ],
)
def test_the_model_of_a_vector_may_change(before, after):
    (step,) = steps_of(node(f"v: Vector(2)? {before}"), node(f"v: Vector(2)? {after}"))
    assert step["kind"] == "update_property_metadata"


def test_the_source_of_a_vector_may_not_change_with_its_model():
    before = node('b: String?  v: Vector(2)? @embed(a, model="x/y")')
    (refusal,) = refusals_of(before, node('b: String?  v: Vector(2)? @embed(b, model="x/z")'))
    assert "@embed on 'N.v'" in str(refusal)
