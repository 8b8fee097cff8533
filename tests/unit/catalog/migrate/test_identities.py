"""Identities across a migration."""

from __future__ import annotations

import pytest

from omnigraph.catalog.ir import schema_from_json
from omnigraph.catalog.migrate import MigrationPlan, carry_identities, plan_migration
from omnigraph.catalog.migrate.steps import AddProperty, AddType, RenameType
from omnigraph.catalog.model import Catalog
from omnigraph.errors import UnsupportedMigration
from omnigraph.language.types import PropType, Scalar
from tests.support.workshop import WORKSHOP
from tests.unit.catalog.migrate.workshop import (
    accepted,
    change,
    desired,
    migrate,
    property_of,
    type_of,
    workshop,
)


def test_an_empty_plan_carries_every_identity():
    schema = accepted(WORKSHOP)
    assert carry_identities(schema, desired(WORKSHOP), MigrationPlan()) == schema


def test_hints_that_are_no_change_still_reach_the_schema():
    schema = accepted(WORKSHOP)
    text = workshop(("score: F64?", 'score: F64? @rename_from("points")'))
    result = migrate(schema, text)
    assert result.hash == desired(text).hash != schema.hash
    assert result.next_id == schema.next_id


def test_new_things_are_numbered_in_the_order_of_the_steps():
    schema = accepted("interface I { x: I32? }  node N implements I { a: I32? }  edge E: N -> N")
    result = migrate(
        schema,
        """\
interface I { x: I32?  y: I32? }
interface A { z: I32? }
node N implements I { a: I32?  b: I32? }
node B { d: I32?  c: I32? }
edge E: N -> N { e: I32? }
edge D: B -> N
""",
    )
    first = schema.next_id
    numbers = [
        type_of(result, "A").type_id,
        property_of(result, "A.z").prop_id,
        property_of(result, "I.y").prop_id,
        type_of(result, "B").type_id,
        property_of(result, "B.c").prop_id,
        property_of(result, "B.d").prop_id,
        property_of(result, "N.b").prop_id,
        property_of(result, "N.y").prop_id,
        type_of(result, "D").type_id,
        property_of(result, "E.e").prop_id,
    ]
    assert numbers == list(range(first, first + len(numbers)))
    assert result.next_id == first + len(numbers)


def test_a_dropped_number_is_never_used_again():
    schema = accepted("node N { a: I32? }  node M { a: I32? }")
    dropped = migrate(schema, "node N { a: I32? }")
    assert dropped.next_id == schema.next_id
    again = migrate(dropped, "node N { a: I32? }  node M { a: I32? }")
    assert type_of(again, "M").type_id == schema.next_id
    assert property_of(again, "M.a").column == "a"


def test_a_column_of_any_version_of_the_table_is_not_used_again():
    schema = accepted("node N { a: I32? }")
    type_id = type_of(schema, "N").type_id
    text = "node N { a: I32?  b: I32? }"
    assert property_of(migrate(schema, text), "N.b").column == "b"
    assert property_of(migrate(schema, text, {type_id: {"b"}}), "N.b").column == "b__3"
    # Another table's history does not matter.
    assert property_of(migrate(schema, text, {type_id + 1: {"b"}}), "N.b").column == "b"


def test_a_suffixed_column_that_is_taken_is_avoided():
    schema = migrate(accepted("node N { a: I32? }"), 'node N { b: I32? @rename_from("a") }')
    # The next number is 3, and a property may well be called `a__3`.
    schema = migrate(schema, "node N { b: I32?  a__4: I32? }")
    assert property_of(schema, "N.a__4").prop_id == 3
    result = migrate(schema, "node N { b: I32?  a__4: I32?  a: I32? }")
    assert property_of(result, "N.a").prop_id == 4
    assert property_of(result, "N.a").column == "a__4__4"


def test_new_columns_of_one_plan_differ():
    schema = migrate(accepted("node N { a: I32? }"), 'node N { b: I32? @rename_from("a") }')
    result = migrate(schema, "node N { b: I32?  a: I32?  a__3: I32? }")
    columns = {p.name: p.column for p in type_of(result, "N").properties}
    assert columns == {"b": "a", "a": "a__3", "a__3": "a__3__4"}


def test_renaming_a_key_property_keeps_the_identity_order():
    schema = accepted("node N { a: String  b: String  @key(a, b) }")
    text = 'node N { z: String @rename_from("a")  b: String  @key(b, z) }'
    assert Catalog.from_ir(schema).nodes["N"].key == ("a", "b")
    assert Catalog.from_ir(migrate(schema, text)).nodes["N"].key == ("z", "b")


def test_a_name_comes_back_to_its_property_by_two_renames():
    schema = accepted("node N { a: I32? }")
    there = migrate(schema, 'node N { b: I32? @rename_from("a") }')
    back = migrate(there, 'node N { a: I32? @rename_from("b") }')
    assert property_of(back, "N.a").prop_id == property_of(schema, "N.a").prop_id
    assert property_of(back, "N.a").column == "a"


def test_schemas_survive_storage():
    text = workshop(
        ("node Shed", 'node Barn @rename_from("Shed")'),
        ("Tool -> Shed", "Tool -> Barn"),
        ("age: I32?", "age: I32?  nick: String?"),
    )
    before, after = accepted(WORKSHOP), desired(text)
    plan = plan_migration(before, after)
    result = carry_identities(
        schema_from_json(before.to_json()),
        schema_from_json(after.to_json()),
        plan,
    )
    assert result == carry_identities(before, after, plan)
    assert result.hash == after.hash


def test_an_unsupported_plan_is_not_carried_out():
    before, after = accepted(WORKSHOP), desired(workshop(("age: I32?", "age: U32?")))
    with pytest.raises(UnsupportedMigration, match=r"\[OG-MF-106\] changing property type for"):
        carry_identities(before, after, plan_migration(before, after))


@pytest.mark.parametrize(
    "steps",
    [
        (),
        (AddType("node", "Maker"),),
        (AddType("node", "Elsewhere"),),
        (RenameType("node", "Nobody", "Maker"),),
        (AddProperty("node", "Maker", "score", PropType(Scalar.F64, nullable=True)),),
    ],
    ids=["missing step", "known type", "unknown type", "unknown origin", "known property"],
)
def test_a_plan_made_for_other_schemas_is_refused(steps):
    text = WORKSHOP if steps else change(WORKSHOP, ("age: I32?", "age: I32?  nick: String?"))
    with pytest.raises(ValueError, match="the plan was made for other schemas"):
        carry_identities(accepted(WORKSHOP), desired(text), MigrationPlan(steps))


def test_a_plan_cannot_add_a_type_that_is_there():
    text = "node Empty { }"
    with pytest.raises(ValueError, match="does not account for node:Empty"):
        carry_identities(accepted(text), desired(text), MigrationPlan((AddType("node", "Empty"),)))
