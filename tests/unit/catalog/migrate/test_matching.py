"""Which accepted thing a desired one continues, and when nobody can tell."""

from __future__ import annotations

import pytest

from omnigraph.catalog.migrate import plan_migration
from omnigraph.catalog.migrate.report import step_text
from tests.unit.catalog.migrate.workshop import (
    accepted,
    change,
    desired,
    plan_text,
    refusals_of,
)

LAMP = """\
node Lamp { code: String @key  watt: I32? }
node Room { name: String @key }
edge Lights: Lamp -> Room { since: Date? }
"""


def texts(before: str, after: str) -> list[str]:
    plan = plan_text(before, after)
    assert plan.supported, plan.first_unsupported
    return [step_text(step) for step in plan.steps]


def test_a_node_and_an_edge_are_renamed_together():
    after = change(
        LAMP,
        ("node Lamp", 'node Bulb @rename_from("Lamp")'),
        ("edge Lights: Lamp -> Room", 'edge Shines: Bulb -> Room @rename_from("Lights")'),
    )
    assert texts(LAMP, after) == [
        "rename node type 'Lamp' -> 'Bulb'",
        "rename edge type 'Lights' -> 'Shines'",
    ]


def test_a_renamed_type_may_rename_and_drop_properties():
    after = change(
        LAMP,
        ("node Lamp", 'node Bulb @rename_from("Lamp")'),
        ("Lamp -> Room { since: Date? }", "Bulb -> Room"),
        ("watt: I32?", 'power: I32? @rename_from("watt")'),
    )
    assert texts(LAMP, after) == [
        "rename node type 'Lamp' -> 'Bulb'",
        "rename property 'Bulb.watt' -> 'Bulb.power' on node 'Bulb'",
        "drop property 'Lights.since' of edge 'Lights' (soft mode)",
    ]


def test_only_the_capitals_of_an_edge_are_renamed():
    after = change(LAMP, ("Lights: Lamp -> Room", 'LIGHTS: Lamp -> Room @rename_from("Lights")'))
    assert texts(LAMP, after) == ["rename edge type 'Lights' -> 'LIGHTS'"]


def test_a_hint_is_ignored_once_the_name_matches():
    after = change(LAMP, ("node Lamp", 'node Lamp @rename_from("Candle")'))
    assert texts(LAMP, after) == []
    # Even when it names something that exists.
    assert texts(LAMP, change(LAMP, ("node Lamp", 'node Lamp @rename_from("Room")'))) == []


def test_two_things_that_name_each_other_are_not_swapped():
    before = "node L { a: I32?  b: I32? }"
    after = 'node L { a: I32? @rename_from("b")  b: I32? @rename_from("a") }'
    assert texts(before, after) == []


def test_a_chain_of_renames_is_refused():
    before = "node L { a: I32?  b: I32? }"
    after = 'node L { b: I32? @rename_from("a")  c: I32? @rename_from("b") }'
    (refusal,) = refusals_of(before, after)
    assert str(refusal.entity) == "node:L.c"
    assert refusal.reason == (
        "accepted property 'b' is claimed by more than one property: 'b', 'c'"
    )


def test_an_old_type_name_cannot_be_taken_again_in_the_same_plan():
    after = change(LAMP, ("node Room", 'node Bulb @rename_from("Lamp") { x: I32? }  node Room'))
    (refusal,) = refusals_of(LAMP, after)
    assert str(refusal.entity) == "node:Bulb"
    assert "accepted node type 'Lamp' is claimed by more than one node type" in refusal.reason


def test_an_old_property_name_cannot_be_taken_again_in_the_same_plan():
    after = change(LAMP, ("watt: I32?", 'watt: I32?  power: I32? @rename_from("watt")'))
    (refusal,) = refusals_of(LAMP, after)
    assert "is claimed by more than one" in refusal.reason


def test_what_is_claimed_twice_is_not_dropped():
    after = change(
        LAMP, ("watt: I32?", 'a: I32? @rename_from("watt")  b: I32? @rename_from("watt")')
    )
    assert {step.kind for step in plan_text(LAMP, after).steps} == {"unsupported_change"}


def test_two_types_cannot_continue_one():
    after = change(
        LAMP,
        (
            "node Lamp",
            'node Torch @rename_from("Lamp") { x: I32? }  node Bulb @rename_from("Lamp")',
        ),
        ("Lamp -> Room", "Bulb -> Room"),
    )
    refusals = refusals_of(LAMP, after)
    assert [str(r.entity) for r in refusals] == ["node:Bulb", "node:Torch"]
    assert all("is claimed by more than one" in r.reason for r in refusals)


@pytest.mark.parametrize(
    ("before", "after", "noun"),
    [
        ("node Room", 'node Sun @rename_from("Star") { x: I32? }  node Room', "node type"),
        ("edge Lights", 'edge Warms: Lamp -> Room @rename_from("Heats")  edge Lights', "edge type"),
        ("watt: I32?", 'watt: I32?  lux: I32? @rename_from("lumen")', "property"),
        ("since: Date?", 'since: Date?  till: Date? @rename_from("end")', "property"),
    ],
)
def test_renaming_from_something_unknown_is_refused(before, after, noun):
    (refusal,) = refusals_of(LAMP, change(LAMP, (before, after)))
    assert "declares @rename_from(" in refusal.reason
    assert f"but no accepted {noun} has that name" in refusal.reason


def test_a_misspelt_old_name_gets_a_suggestion():
    after = change(LAMP, ("watt: I32?", 'power: I32? @rename_from("wat")'))
    assert refusals_of(LAMP, after)[0].reason.endswith("; did you mean `watt`?")


@pytest.mark.parametrize(
    "hint", ["@rename_from", '@rename_from("watt") @rename_from("volt")'], ids=["none", "two"]
)
def test_a_rename_names_exactly_one_old_name(hint):
    (refusal,) = refusals_of(LAMP, change(LAMP, ("watt: I32?", f"watt: I32?  power: I32? {hint}")))
    assert refusal.reason == "'power' needs exactly one old name in @rename_from"


def test_hints_on_the_properties_of_a_new_type_are_ignored():
    after = change(LAMP, ("node Room", 'node Fan { rpm: I32? @rename_from("speed") }  node Room'))
    assert texts(LAMP, after) == ["add node type 'Fan'"]


def test_a_name_is_only_looked_for_among_its_own_kind():
    before = "interface Lit { on: Bool? }  node Lamp { a: I32? }"
    after = 'interface Lit { on: Bool? }  node Bulb @rename_from("Lit") { a: I32? }'
    (refusal,) = refusals_of(before, after)
    assert 'declares @rename_from("Lit") but no accepted node type' in refusal.reason


def test_an_unclaimed_old_name_beside_a_matched_new_one_is_dropped():
    before = "node L { a: I32?  b: I32? }"
    after = 'node L { b: I32? @rename_from("a") }'
    assert texts(before, after) == ["drop property 'L.a' of node 'L' (soft mode)"]


def test_a_plan_ignores_the_identities_of_the_desired_schema():
    after = change(LAMP, ("watt: I32?", 'power: I32? @rename_from("watt")'))
    assert plan_migration(accepted(LAMP), accepted(after)) == plan_migration(
        accepted(LAMP), desired(after)
    )
