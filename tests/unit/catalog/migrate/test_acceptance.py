"""The promised plans, row by row, over the workshop schema.

Applying is shown as far as it goes without a store: identities, columns and the next plan.
"""

from __future__ import annotations

import json

import pytest

from omnigraph.catalog.migrate import plan_migration
from omnigraph.catalog.migrate.steps import MigrationCode
from tests.support.workshop import WORKSHOP
from tests.unit.catalog.migrate.workshop import (
    accepted,
    change,
    desired,
    migrate,
    plan_text,
    property_of,
    refusals_of,
    steps_of,
    type_of,
    workshop,
)

RENAMED_SCORE = workshop(("score: F64?", 'rating: F64? @rename_from("score")'))
WITH_NICK = workshop(("age: I32?", 'age: I32?\n    nick: String @backfill("none")'))
RENAMED_MAKER = workshop(
    ("node Maker", 'node Artisan @rename_from("Maker")'),
    ("Maker -> Maker", "Artisan -> Artisan"),
    ("Maker -> Tool", "Artisan -> Tool"),
)


@pytest.mark.acceptance("L-044")
def test_an_optional_property_is_added():
    document = plan_text(WORKSHOP, workshop(("age: I32?", "age: I32?  nick: String?"))).to_json()
    assert json.dumps(document, separators=(",", ":")) == (
        '{"supported":true,"steps":[{"kind":"add_property","type_kind":"node",'
        '"type_name":"Maker","property_name":"nick","property_type":'
        '{"scalar":"String","nullable":true,"list":false,"enum_values":null}}]}'
    )


@pytest.mark.acceptance("L-045")
def test_a_required_property_needs_a_backfill():
    (refusal,) = refusals_of(WORKSHOP, workshop(("age: I32?", "age: I32?  nick: String")))
    assert refusal.code is MigrationCode.REQUIRED_WITHOUT_BACKFILL
    assert str(refusal.entity) == "node:Maker.nick"
    assert "requires a backfill" in refusal.reason
    assert refusal.reason.endswith("add @backfill(<value>) to the property")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("age: I32?", "age: U32?", id="unsigned"),
        pytest.param("skills: [String]?", "skills: String?", id="no list"),
        pytest.param("joined: Date?", "joined: DateTime?", id="other scalar"),
    ],
)
def test_any_other_type_change_is_refused(before, after):
    (refusal,) = refusals_of(WORKSHOP, workshop((before, after)))
    assert refusal.code is MigrationCode.PROPERTY_TYPE_CHANGE
    assert f"changing property type for '{refusal.entity.label}'" in refusal.reason


@pytest.mark.parametrize(
    ("before", "after", "validates"),
    [
        pytest.param("age: I32?", "age: I64?", False, marks=pytest.mark.acceptance("L-046")),
        pytest.param("age: I32?", "age: I32", True, marks=pytest.mark.acceptance("L-047")),
        pytest.param("label: String", "label: String?", False),
    ],
)
def test_a_wider_or_optional_or_required_property_is_one_step(before, after, validates):
    (step,) = steps_of(WORKSHOP, workshop((before, after)))
    assert step["kind"] == "change_property_type"
    assert step.get("validates", False) == validates


def test_a_type_rename_is_one_step_and_keeps_every_number():
    assert steps_of(WORKSHOP, RENAMED_MAKER) == [
        {"kind": "rename_type", "type_kind": "node", "from": "Maker", "to": "Artisan"}
    ]
    before = accepted(WORKSHOP)
    after = migrate(before, RENAMED_MAKER)
    assert type_of(after, "Artisan").type_id == type_of(before, "Maker").type_id
    assert after.next_id == before.next_id
    for prop in type_of(before, "Maker").properties:
        kept = property_of(after, f"Artisan.{prop.name}")
        assert (kept.prop_id, kept.column) == (prop.prop_id, prop.column)


def test_a_property_rename_is_one_step_and_keeps_number_and_column():
    assert steps_of(WORKSHOP, RENAMED_SCORE) == [
        {
            "kind": "rename_property",
            "type_kind": "node",
            "type_name": "Maker",
            "from": "score",
            "to": "rating",
        }
    ]
    before = accepted(WORKSHOP)
    after = migrate(before, RENAMED_SCORE)
    rating = property_of(after, "Maker.rating")
    assert rating.prop_id == property_of(before, "Maker.score").prop_id
    assert rating.column == "score"


def test_an_applied_rename_plans_to_nothing():
    applied = migrate(accepted(WORKSHOP), RENAMED_SCORE)
    plan = plan_migration(applied, desired(RENAMED_SCORE))
    assert plan.to_json() == {"supported": True, "steps": []}


@pytest.mark.acceptance("L-051")
def test_renaming_from_an_unknown_property_is_refused():
    after = workshop(("age: I32?", 'age: I32?  nick: String? @rename_from("nope")'))
    (refusal,) = refusals_of(WORKSHOP, after)
    assert 'declares @rename_from("nope") but no accepted property' in refusal.reason
    assert str(refusal.entity) == "node:Maker.nick"


@pytest.mark.acceptance("L-052")
@pytest.mark.parametrize(("allow_data_loss", "mode"), [(False, "soft"), (True, "hard")])
def test_a_property_is_dropped_softly_or_hard(allow_data_loss, mode):
    after = workshop(("score: F64?", ""))
    plan = plan_text(WORKSHOP, after, allow_data_loss=allow_data_loss)
    assert plan.to_json() == {
        "supported": True,
        "steps": [
            {
                "kind": "drop_property",
                "type_kind": "node",
                "type_name": "Maker",
                "property_name": "score",
                "mode": mode,
            }
        ],
    }


@pytest.mark.acceptance("L-053")
def test_a_property_is_dropped_with_its_constraints():
    assert [
        step["kind"] for step in steps_of(WORKSHOP, workshop(("serial: String? @unique", "")))
    ] == [
        "drop_property",
        "drop_constraint",
    ]


@pytest.mark.acceptance("L-054")
def test_an_index_is_added():
    after = workshop(("master)?", "master)? @index"))
    assert steps_of(WORKSHOP, after) == [
        {
            "kind": "add_constraint",
            "type_kind": "node",
            "type_name": "Maker",
            "constraint": {"Index": ["level"]},
        }
    ]


@pytest.mark.acceptance("L-055")
def test_added_uniqueness_is_validated():
    after = workshop(("joined: Date?", "joined: Date? @unique"))
    assert steps_of(WORKSHOP, after) == [
        {
            "kind": "add_constraint",
            "type_kind": "node",
            "type_name": "Maker",
            "constraint": {"Unique": ["joined"]},
            "validates": True,
        }
    ]


@pytest.mark.acceptance("L-056")
@pytest.mark.parametrize(("allow_data_loss", "mode"), [(False, "soft"), (True, "hard")])
def test_an_edge_type_is_dropped(allow_data_loss, mode):
    after = workshop(("edge Borrows: Maker -> Tool { note: String? }", ""))
    plan = plan_text(WORKSHOP, after, allow_data_loss=allow_data_loss)
    assert plan.to_json()["steps"] == [
        {"kind": "drop_type", "type_kind": "edge", "name": "Borrows", "mode": mode}
    ]


@pytest.mark.acceptance("L-057")
def test_a_wider_cardinality_is_one_step():
    assert steps_of(WORKSHOP, workshop(("@card(0..1)", "@card(0..2)"))) == [
        {
            "kind": "change_cardinality",
            "type_name": "StoredIn",
            "from": {"min": 0, "max": 1},
            "to": {"min": 0, "max": 2},
        }
    ]


@pytest.mark.acceptance("L-058")
def test_a_description_is_metadata():
    after = workshop(("node Maker", 'node Maker @description("people")'))
    assert steps_of(WORKSHOP, after) == [
        {
            "kind": "update_type_metadata",
            "type_kind": "node",
            "name": "Maker",
            "annotations": [{"name": "description", "value": "people"}],
        }
    ]


@pytest.mark.acceptance("L-059")
def test_the_order_of_enum_values_is_no_change():
    after = workshop(("novice, skilled, master", "master, novice, skilled"))
    assert steps_of(WORKSHOP, after) == []


def test_an_enum_gains_a_value():
    after = workshop(("skilled, master", "legend, skilled, master"))
    assert steps_of(WORKSHOP, after) == [
        {
            "kind": "extend_enum",
            "type_kind": "node",
            "type_name": "Maker",
            "property_name": "level",
            "added_values": ["legend"],
        }
    ]
    before = accepted(WORKSHOP)
    level = property_of(migrate(before, after), "Maker.level")
    assert level.prop_id == property_of(before, "Maker.level").prop_id
    assert level.type.enum_values == ("legend", "master", "novice", "skilled")


def test_planning_knows_no_branches():
    assert plan_text(WORKSHOP, workshop(("age: I32?", "age: I32?  nick: String?"))).supported


def test_a_dropped_property_is_gone_and_its_number_is_not_used_again():
    before = accepted(WORKSHOP)
    dropped = migrate(before, workshop(("score: F64?", "")))
    assert "score" not in {p.name for p in type_of(dropped, "Maker").properties}
    again = migrate(dropped, WORKSHOP, {type_of(before, "Maker").type_id: {"score"}})
    score = property_of(again, "Maker.score")
    assert score.prop_id == before.next_id
    assert score.column == f"score__{score.prop_id}"


@pytest.mark.acceptance("L-063")
@pytest.mark.parametrize(
    "after",
    ["enum(skilled, master)?", "enum(apprentice, skilled, master)?", "String?"],
    ids=["removed", "replaced", "String"],
)
def test_an_enum_cannot_lose_a_value_or_become_a_string(after):
    (refusal,) = refusals_of(WORKSHOP, workshop(("enum(novice, skilled, master)?", after)))
    assert refusal.code is MigrationCode.PROPERTY_TYPE_CHANGE
    assert str(refusal.entity) == "node:Maker.level"


def test_a_required_property_is_added_with_a_backfill():
    assert steps_of(WORKSHOP, WITH_NICK) == [
        {
            "kind": "add_property",
            "type_kind": "node",
            "type_name": "Maker",
            "property_name": "nick",
            "property_type": {
                "scalar": "String",
                "nullable": False,
                "list": False,
                "enum_values": None,
            },
            "backfill": "none",
        }
    ]
    before = accepted(WORKSHOP)
    nick = property_of(migrate(before, WITH_NICK), "Maker.nick")
    assert (nick.prop_id, nick.column) == (before.next_id, "nick")


def test_an_applied_backfill_plans_to_nothing_with_and_without_the_hint():
    applied = migrate(accepted(WORKSHOP), WITH_NICK)
    without = change(WITH_NICK, (' @backfill("none")', ""))
    assert plan_migration(applied, desired(WITH_NICK)).steps == ()
    assert plan_migration(applied, desired(without)).steps == ()


def test_an_optional_property_may_have_a_backfill():
    after = workshop(("age: I32?", 'age: I32?  rank: I32? @backfill("-1")'))
    (step,) = steps_of(WORKSHOP, after)
    assert (step["kind"], step["backfill"]) == ("add_property", "-1")


@pytest.mark.acceptance("L-067")
def test_a_backfilled_property_brings_a_range_that_is_validated():
    after = workshop(
        ("weight: F32?", "weight: F32?  size: I32 @backfill(900)\n    @range(size, 0..10)")
    )
    added, constraint = steps_of(WORKSHOP, after)
    assert (added["kind"], constraint["kind"]) == ("add_property", "add_constraint")
    assert constraint["validates"]


@pytest.mark.acceptance("L-068")
def test_one_property_cannot_be_renamed_to_two():
    renamed = 'rating: F64? @rename_from("score")  points: F64? @rename_from("score")'
    refusals = refusals_of(WORKSHOP, workshop(("score: F64?", renamed)))
    assert [str(r.entity) for r in refusals] == ["node:Maker.points", "node:Maker.rating"]
    for refusal in refusals:
        assert "is claimed by more than one" in refusal.reason


def test_a_type_is_renamed_and_its_enum_extended_in_one_plan():
    after = change(RENAMED_MAKER, ("skilled, master", "skilled, master, legend"))
    first, second = steps_of(WORKSHOP, after)
    assert first["kind"] == "rename_type"
    assert (second["kind"], second["type_name"]) == ("extend_enum", "Artisan")


def test_an_old_name_is_free_after_a_rename():
    renamed = migrate(accepted(WORKSHOP), RENAMED_SCORE)
    both = change(RENAMED_SCORE, ("age: I32?", "age: I32?  score: F64?"))
    (step,) = plan_migration(renamed, desired(both)).steps
    assert step.kind == "add_property"
    after = migrate(renamed, both)
    score = property_of(after, "Maker.score")
    assert score.prop_id == renamed.next_id
    assert score.column == f"score__{score.prop_id}"
    assert property_of(after, "Maker.rating") == property_of(renamed, "Maker.rating")


LIBRARY = """\
node Author { slug: String @key  born: I32? }
node Book { isbn: String @key  title: String }
edge Wrote: Author -> Book { year: I32? }
edge Cites: Book -> Book
"""


def test_the_plan_document_counts_its_steps():
    plan = plan_text(LIBRARY, change(LIBRARY, ("born: I32?", "born: I32?  nickname: String?")))
    document = plan.document("library.omni")
    assert list(document) == ["uri", "supported", "step_count", "steps"]
    assert (document["uri"], document["supported"]) == ("library.omni", True)
    (step,) = document["steps"]
    assert document["step_count"] == 1
    assert (step["kind"], step["property_name"]) == ("add_property", "nickname")


def test_the_plan_document_shows_an_unsupported_change():
    after = change(LIBRARY, ("born: I32?", "born: U32?"))
    document = plan_text(LIBRARY, after).document("library.omni")
    assert document["supported"] is False
    (step,) = document["steps"]
    assert step["kind"] == "unsupported_change"
    assert step["entity"] == "node:Author.born"


@pytest.mark.parametrize(("allow_data_loss", "mode"), [(False, "soft"), (True, "hard")])
def test_the_plan_document_shows_how_a_property_is_dropped(allow_data_loss, mode):
    after = change(LIBRARY, ("born: I32?", ""))
    plan = plan_text(LIBRARY, after, allow_data_loss=allow_data_loss)
    (step,) = plan.document("g")["steps"]
    assert (step["kind"], step["property_name"], step["mode"]) == ("drop_property", "born", mode)


@pytest.mark.parametrize(
    ("after", "kind"),
    [
        (workshop(("skilled, master", "skilled, master, legend")), "extend_enum"),
        (RENAMED_MAKER, "rename_type"),
        (WITH_NICK, "add_property"),
    ],
    ids=["enum value", "renamed type", "backfill"],
)
def test_each_of_the_new_changes_is_one_supported_step(after, kind):
    (step,) = plan_text(WORKSHOP, after).document("g")["steps"]
    assert step["kind"] == kind


def test_a_missing_backfill_is_named_in_the_document():
    after = change(WITH_NICK, (' @backfill("none")', ""))
    (step,) = plan_text(WORKSHOP, after).document("g")["steps"]
    assert step["code"] == "OG-MF-103"
    assert "@backfill" in step["reason"]
