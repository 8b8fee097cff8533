"""Whole types: their order in a plan, interfaces, endpoints, cardinality."""

from __future__ import annotations

import pytest

from omnigraph.catalog.migrate.report import step_text
from tests.unit.catalog.migrate.workshop import change, plan_text, refusals_of

TAGGED = """\
interface Tagged { tag: String }
interface Dated { on: Date? }
node Bin implements Tagged { size: I32? }
node Box implements Tagged, Dated { }
edge Holds: Box -> Bin @card(0..3)
"""


def texts(before: str, after: str, *, allow_data_loss: bool = False) -> list[str]:
    plan = plan_text(before, after, allow_data_loss=allow_data_loss)
    return [step_text(step) for step in plan.steps]


def test_types_are_added_and_dropped_kind_by_kind():
    before = "node B { x: I32? }  node A { x: I32? }  edge Y: A -> B  edge X: B -> A"
    after = (
        "edge V: D -> C  edge W: C -> D  node D { x: I32? }  node C { x: I32? }  interface I { }"
    )
    assert texts(before, after, allow_data_loss=True) == [
        "add interface type 'I'",
        "add node type 'C'",
        "add node type 'D'",
        "drop node type 'A' (hard mode)",
        "drop node type 'B' (hard mode)",
        "add edge type 'V'",
        "add edge type 'W'",
        "drop edge type 'X' (hard mode)",
        "drop edge type 'Y' (hard mode)",
    ]


def test_the_steps_of_one_type_come_in_a_fixed_order():
    before = """\
interface I { i: I32? }
node N @shelf(top) implements I { gone: I32?  grown: enum(a)?  was: I32?  wide: I32?  @index(gone) }
"""
    after = """\
interface I { i: I32? }
node M @description("d") @rename_from("N") {
    now: I32? @rename_from("was") @description("d")
    i: I32?  wide: I64?  grown: enum(a, b)?  fresh: I32? @unique
    @index(now) @index(fresh)
}
"""
    assert texts(before, after) == [
        "rename node type 'N' -> 'M'",
        "unsupported change on node:M: changing implemented interfaces of 'M' from I to none "
        "is not supported",
        "update metadata on node 'M'",
        "unsupported change on node:M: changing annotations beyond @description/@instruction "
        "is not supported (@shelf on 'M')",
        "add property 'M.fresh' (I32?) on node 'M'",
        "extend enum 'M.grown' with b",
        "rename property 'M.was' -> 'M.now' on node 'M'",
        "update metadata on property 'M.now' of node 'M'",
        "change type of 'M.wide' from I32? to I64? on node 'M'",
        "drop property 'M.gone' of node 'M' (soft mode)",
        "drop constraint @index(gone) on node 'M'",
        "add constraint @index(fresh) on node 'M'",
        "add constraint @index(now) on node 'M'",
        "add constraint @unique(fresh) on node 'M' (all rows are validated first)",
    ]


def test_the_steps_of_an_edge_start_with_its_header():
    before = "node A { x: I32? }  edge E: A -> A"
    after = """\
node A { x: I32? }  node B { x: I32? }
edge F: A -> B @card(1..) @instruction("i") @rename_from("E")
"""
    assert texts(before, after) == [
        "add node type 'B'",
        "rename edge type 'E' -> 'F'",
        "unsupported change on edge:F: changing edge endpoints of 'F' from A -> A to A -> B "
        "is not supported",
        "change cardinality of edge 'F' from 0.. to 1..",
        "update metadata on edge 'F'",
    ]


def test_a_removed_interface_is_refused_even_when_unused():
    after = change(TAGGED, ("interface Dated { on: Date? }\n", ""), ("Tagged, Dated", "Tagged"))
    removed, changed, *_ = refusals_of(TAGGED, after)
    assert "removing interface 'Dated'" in removed.reason
    assert str(removed.entity) == "interface:Dated"
    assert "changing implemented interfaces" in changed.reason
    unused = TAGGED + "interface Idle { x: I32? }"
    (refusal,) = refusals_of(unused, TAGGED)
    assert "removing interface" in refusal.reason


def test_an_interface_cannot_be_renamed():
    before = "interface Tagged { tag: String? }"
    after = "interface Labelled { tag: String? }"
    assert texts(before, after) == [
        "add interface type 'Labelled'",
        "unsupported change on interface:Tagged: removing interface 'Tagged' is not supported",
    ]


def test_the_order_of_implemented_interfaces_is_no_change():
    assert texts(TAGGED, change(TAGGED, ("Tagged, Dated", "Dated, Tagged"))) == []


def test_an_interface_property_is_planned_for_the_interface_and_each_node():
    after = change(TAGGED, ("tag: String", "tag: String  note: String?"))
    assert texts(TAGGED, after) == [
        "add property 'Tagged.note' (String?) on interface 'Tagged'",
        "add property 'Bin.note' (String?) on node 'Bin'",
        "add property 'Box.note' (String?) on node 'Box'",
    ]


def test_a_rename_in_an_interface_reaches_the_nodes_that_inherit_it():
    after = change(TAGGED, ("tag: String", 'label: String @rename_from("tag")'))
    assert texts(TAGGED, after) == [
        "rename property 'Tagged.tag' -> 'Tagged.label' on interface 'Tagged'",
        "rename property 'Bin.tag' -> 'Bin.label' on node 'Bin'",
        "rename property 'Box.tag' -> 'Box.label' on node 'Box'",
    ]


def test_an_enum_of_an_interface_grows_with_its_nodes():
    before = "interface I { s: enum(a)? }  node N implements I { }"
    assert texts(before, change(before, ("enum(a)", "enum(b, a)"))) == [
        "extend enum 'I.s' with b",
        "extend enum 'N.s' with b",
    ]


def test_taking_over_an_inherited_property_is_no_change():
    after = change(TAGGED, ("size: I32?", "size: I32?  tag: String"))
    assert texts(TAGGED, after) == []


def test_a_key_on_an_inherited_property_is_an_added_constraint_of_the_node():
    after = change(TAGGED, ("tag: String", "tag: String @key"))
    refusals = refusals_of(TAGGED, after)
    assert [str(r.entity) for r in refusals] == ["node:Bin", "node:Box"]


def test_endpoints_follow_renamed_nodes():
    after = change(
        TAGGED,
        ("node Box", 'node Crate @rename_from("Box")'),
        ("Box -> Bin", "Crate -> Bin"),
    )
    assert texts(TAGGED, after) == ["rename node type 'Box' -> 'Crate'"]


def test_an_edge_that_stays_behind_a_renamed_node_cannot_move_to_another():
    after = change(
        TAGGED,
        ("node Box", 'node Crate @rename_from("Box")'),
        ("Box -> Bin", "Bin -> Bin"),
    )
    (refusal,) = refusals_of(TAGGED, after)
    assert "changing edge endpoints of 'Holds' from Crate -> Bin to Bin -> Bin" in refusal.reason


@pytest.mark.parametrize(
    ("card", "wider"),
    [
        ("@card(0..)", True),
        ("", True),
        ("@card(0..4)", True),
        ("@card(1..3)", True),
        ("@card(1..)", True),
        ("@card(0..2)", False),
        ("@card(2..3)", False),
        ("@card(2..)", False),
    ],
)
def test_edges_are_counted_unless_every_number_is_still_allowed(card, wider):
    # A source without edges is allowed by every cardinality, so 1 as the lower bound adds nothing.
    (text,) = texts(TAGGED, change(TAGGED, ("@card(0..3)", card)))
    assert text.startswith("change cardinality of edge 'Holds' from 0..3 to ")
    assert text.endswith(" (all rows are validated first)") != wider


def test_the_default_cardinality_may_be_written_out():
    bare = change(TAGGED, (" @card(0..3)", ""))
    assert texts(bare, change(TAGGED, ("@card(0..3)", "@card(0..)"))) == []


def test_a_node_and_an_edge_of_one_name_are_different_things():
    before = "node A { x: I32? }  edge A: A -> A"
    assert texts(before, "node A { x: I32? }") == ["drop edge type 'A' (soft mode)"]
