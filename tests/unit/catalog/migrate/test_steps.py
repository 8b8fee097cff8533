"""Steps as data: the JSON of every kind, reading it back, and the line people see."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from omnigraph.catalog.ir import AnnotationIR, CardinalityIR, IndexIR, RangeIR, UniqueIR
from omnigraph.catalog.migrate.report import plan_lines, step_lines, step_text
from omnigraph.catalog.migrate.steps import (
    AddConstraint,
    AddProperty,
    AddType,
    ChangeCardinality,
    ChangePropertyType,
    ChangeRange,
    DropConstraint,
    DropProperty,
    DropType,
    Entity,
    ExtendEnum,
    MigrationCode,
    MigrationPlan,
    RenameProperty,
    RenameType,
    Step,
    UnsupportedChange,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
)
from omnigraph.language.types import PropType, Scalar

DESCRIBED = (AnnotationIR("description", "people"),)
FIRST_STEPS: list[tuple[Step, str, str]] = [
    (
        AddType("interface", "Tagged"),
        '{"kind":"add_type","type_kind":"interface","name":"Tagged"}',
        "add interface type 'Tagged'",
    ),
    (
        RenameType("node", "Maker", "Artisan"),
        '{"kind":"rename_type","type_kind":"node","from":"Maker","to":"Artisan"}',
        "rename node type 'Maker' -> 'Artisan'",
    ),
    (
        AddProperty("node", "Maker", "vec", PropType(Scalar.VECTOR, dimension=3)),
        '{"kind":"add_property","type_kind":"node","type_name":"Maker","property_name":"vec",'
        '"property_type":{"scalar":{"Vector":3},"nullable":false,"list":false,"enum_values":null}}',
        "add property 'Maker.vec' (Vector(3)) on node 'Maker'",
    ),
    (
        AddProperty(
            "edge", "Borrows", "state", PropType(Scalar.STRING, True, enum_values=("a", "b")), "a"
        ),
        '{"kind":"add_property","type_kind":"edge","type_name":"Borrows","property_name":"state",'
        '"property_type":{"scalar":"String","nullable":true,"list":false,"enum_values":["a","b"]},'
        '"backfill":"a"}',
        "add property 'Borrows.state' (enum(a, b)?) on edge 'Borrows' backfill a",
    ),
    (
        RenameProperty("node", "Maker", "score", "rating"),
        '{"kind":"rename_property","type_kind":"node","type_name":"Maker",'
        '"from":"score","to":"rating"}',
        "rename property 'Maker.score' -> 'Maker.rating' on node 'Maker'",
    ),
    (
        ExtendEnum("node", "Maker", "level", ("legend", "rookie")),
        '{"kind":"extend_enum","type_kind":"node","type_name":"Maker","property_name":"level",'
        '"added_values":["legend","rookie"]}',
        "extend enum 'Maker.level' with legend, rookie",
    ),
    (
        AddConstraint("node", "Maker", IndexIR(("level",))),
        '{"kind":"add_constraint","type_kind":"node","type_name":"Maker",'
        '"constraint":{"Index":["level"]}}',
        "add constraint @index(level) on node 'Maker'",
    ),
    (
        UpdateTypeMetadata("node", "Maker", DESCRIBED),
        '{"kind":"update_type_metadata","type_kind":"node","name":"Maker",'
        '"annotations":[{"name":"description","value":"people"}]}',
        "update metadata on node 'Maker'",
    ),
    (
        UpdatePropertyMetadata("edge", "Borrows", "note", ()),
        '{"kind":"update_property_metadata","type_kind":"edge","type_name":"Borrows",'
        '"property_name":"note","annotations":[]}',
        "update metadata on property 'Borrows.note' of edge 'Borrows'",
    ),
    (
        DropType("edge", "Borrows", "soft"),
        '{"kind":"drop_type","type_kind":"edge","name":"Borrows","mode":"soft"}',
        "drop edge type 'Borrows' (soft mode)",
    ),
    (
        DropProperty("node", "Maker", "score", "hard"),
        '{"kind":"drop_property","type_kind":"node","type_name":"Maker",'
        '"property_name":"score","mode":"hard"}',
        "drop property 'Maker.score' of node 'Maker' (hard mode)",
    ),
    (
        UnsupportedChange(Entity("edge", "StoredIn"), "changing cardinality"),
        '{"kind":"unsupported_change","entity":"edge:StoredIn","reason":"changing cardinality"}',
        "unsupported change on edge:StoredIn: changing cardinality",
    ),
    (
        UnsupportedChange(Entity("node", "Maker", "age"), "no", MigrationCode.PROPERTY_TYPE_CHANGE),
        '{"kind":"unsupported_change","entity":"node:Maker.age","reason":"no","code":"OG-MF-106"}',
        "unsupported change on node:Maker.age [OG-MF-106, destructive]: no",
    ),
]
WIDENING_STEPS: list[tuple[Step, str, str]] = [
    (
        AddConstraint("node", "Maker", UniqueIR(("level",)), validates=True),
        '{"kind":"add_constraint","type_kind":"node","type_name":"Maker",'
        '"constraint":{"Unique":["level"]},"validates":true}',
        "add constraint @unique(level) on node 'Maker' (all rows are validated first)",
    ),
    (
        ChangePropertyType(
            "node", "Maker", "age", PropType(Scalar.I32, True), PropType(Scalar.I64), validates=True
        ),
        '{"kind":"change_property_type","type_kind":"node","type_name":"Maker",'
        '"property_name":"age",'
        '"from":{"scalar":"I32","nullable":true,"list":false,"enum_values":null},'
        '"to":{"scalar":"I64","nullable":false,"list":false,"enum_values":null},'
        '"validates":true}',
        "change type of 'Maker.age' from I32? to I64 on node 'Maker' (all rows are validated first)",
    ),
    (
        DropConstraint("edge", "Borrows", UniqueIR(("dst",))),
        '{"kind":"drop_constraint","type_kind":"edge","type_name":"Borrows",'
        '"constraint":{"Unique":["dst"]}}',
        "drop constraint @unique(dst) on edge 'Borrows'",
    ),
    (
        ChangeRange("node", "Maker", RangeIR("age", 0, 9), RangeIR("age", None, 9.5)),
        '{"kind":"change_range","type_kind":"node","type_name":"Maker",'
        '"from":{"Range":{"property":"age","min":{"Integer":0},"max":{"Integer":9}}},'
        '"to":{"Range":{"property":"age","min":null,"max":{"Float":9.5}}}}',
        "change constraint @range(age, 0..9) to @range(age, ..9.5) on node 'Maker'",
    ),
    (
        ChangeCardinality("Borrows", CardinalityIR(0, None), CardinalityIR(0, 2), validates=True),
        '{"kind":"change_cardinality","type_name":"Borrows",'
        '"from":{"min":0,"max":null},"to":{"min":0,"max":2},"validates":true}',
        "change cardinality of edge 'Borrows' from 0.. to 0..2 (all rows are validated first)",
    ),
]
EVERY_STEP = [*FIRST_STEPS, *WIDENING_STEPS]

steps = pytest.mark.parametrize(
    ("step", "document", "line"), EVERY_STEP, ids=[s.kind for s, _, _ in EVERY_STEP]
)


def test_every_kind_of_step_is_shown_here():
    assert {type(step) for step, _, _ in EVERY_STEP} == set(get_args(Step))


@steps
def test_a_step_serialises_with_its_fields_in_order(step, document, line):
    assert json.dumps(step.to_json(), separators=(",", ":")) == document


@steps
def test_a_step_is_one_line_for_people(step, document, line):
    assert step_text(step) == line


def test_a_backfill_that_would_break_the_line_is_quoted():
    step = AddProperty("node", "N", "p", PropType(Scalar.STRING), "two\nlines")
    assert step_text(step) == "add property 'N.p' (String) on node 'N' backfill \"two\\nlines\""


def test_an_enum_grows_by_sorted_distinct_values():
    for added in ((), ("b", "a"), ("a", "a")):
        with pytest.raises(ValueError, match="at least one value"):
            ExtendEnum("node", "N", "p", added)


def test_a_plan_is_supported_when_every_step_is():
    add = AddType("node", "N")
    first, second = (UnsupportedChange(Entity("node", "M"), r) for r in ("one", "two"))
    assert MigrationPlan((add,)).supported
    assert MigrationPlan((add,)).first_unsupported is None
    assert not MigrationPlan((add, first, second)).supported
    assert MigrationPlan((add, first, second)).first_unsupported is first


def test_an_unsupported_change_leads_with_its_code():
    entity = Entity("node", "Maker", "age")
    assert UnsupportedChange(entity, "no").message == "no"
    coded = UnsupportedChange(entity, "no", MigrationCode.PROPERTY_TYPE_CHANGE)
    assert coded.message == "[OG-MF-106] no"


def test_the_lines_of_a_plan():
    assert plan_lines(MigrationPlan()) == ["supported: yes", "no schema changes"]
    refused = MigrationPlan(
        (AddType("node", "N"), UnsupportedChange(Entity("node", "M"), "no way"))
    )
    assert plan_lines(refused) == [
        "supported: no",
        "- add node type 'N'",
        "- unsupported change on node:M: no way",
    ]
    assert step_lines(refused) == plan_lines(refused)[1:]


def test_the_surface_document_of_an_empty_plan():
    assert MigrationPlan().document("g") == {
        "uri": "g",
        "supported": True,
        "step_count": 0,
        "steps": [],
    }
