"""What holds for any two schemas, and for any history of one."""

from __future__ import annotations

import json
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.catalog.ir import SchemaIR, TypeIR, type_kind
from omnigraph.catalog.migrate import carry_identities, plan_migration
from omnigraph.catalog.migrate.report import plan_lines
from tests.unit.catalog.migrate.random_schemas import (
    Decl,
    Prop,
    Schema,
    all_props,
    evolutions,
    schema_text,
    schemas,
)
from tests.unit.catalog.migrate.workshop import accepted, desired, types_of

# Whole schemas are slow to make up; half the usual number of examples finds the same mistakes.
few = settings(max_examples=50)


def identities(schema: SchemaIR) -> list[int]:
    return [n for t in types_of(schema) for n in (t.type_id, *(p.prop_id for p in t.properties))]


@few
@given(schemas())
def test_a_schema_planned_against_itself_has_no_steps(schema: Schema):
    text = schema_text(schema)
    assert plan_migration(accepted(text), desired(text)).steps == ()


@few
@given(schemas(), schemas(), st.booleans())
def test_any_two_schemas_have_a_plan_that_is_data(before: Schema, after: Schema, loss: bool):
    first, second = accepted(schema_text(before)), desired(schema_text(after))
    plan = plan_migration(first, second, allow_data_loss=loss)
    assert [s["kind"] for s in json.loads(json.dumps(plan.to_json()))["steps"]] == [
        step.kind for step in plan.steps
    ]
    assert len(plan_lines(plan)) == 1 + max(1, len(plan.steps))


@few
@given(schemas(), schemas(), st.integers(), st.integers())
def test_a_plan_does_not_depend_on_the_order_of_the_sources(
    before: Schema, after: Schema, seed: int, other_seed: int
):
    def plan(order: Random):
        return plan_migration(
            accepted(schema_text(before, order)), desired(schema_text(after, order))
        )

    assert plan(Random(seed)) == plan(Random(other_seed))


@few
@given(evolutions())
def test_possible_changes_are_supported_and_leave_nothing_to_plan(pair: tuple[Schema, Schema]):
    before, after = accepted(schema_text(pair[0])), desired(schema_text(pair[1]))
    plan = plan_migration(before, after)
    assert plan.supported, plan.first_unsupported
    result = carry_identities(before, after, plan)
    assert result.hash == after.hash
    assert plan_migration(result, after).steps == ()


@few
@given(evolutions())
def test_identities_are_distinct_and_below_the_counter(pair: tuple[Schema, Schema]):
    before, after = accepted(schema_text(pair[0])), desired(schema_text(pair[1]))
    result = carry_identities(before, after, plan_migration(before, after))
    numbers = identities(result)
    assert len(set(numbers)) == len(numbers)
    assert all(0 < n < result.next_id for n in numbers)
    assert result.next_id >= before.next_id
    assert {n for n in numbers if n < before.next_id} <= set(identities(before))


@few
@given(evolutions())
def test_what_comes_from_somewhere_keeps_its_number_and_column(pair: tuple[Schema, Schema]):
    before, after = accepted(schema_text(pair[0])), desired(schema_text(pair[1]))
    result = carry_identities(before, after, plan_migration(before, after))
    old_types: dict[tuple[str, str], TypeIR] = {(type_kind(t), t.name): t for t in types_of(before)}
    new_types: dict[tuple[str, str], TypeIR] = {(type_kind(t), t.name): t for t in types_of(result)}
    for decl in pair[1]:
        found = new_types[decl.kind, decl.name]
        if decl.origin is None:
            assert found.type_id >= before.next_id
            assert all(p.column == p.name for p in found.properties)
            continue
        origin = old_types[decl.kind, decl.origin]
        assert found.type_id == origin.type_id
        old = {p.name: p for p in origin.properties}
        new = {p.name: p for p in found.properties}
        for prop in all_props(pair[1], decl):
            carried = new[prop.name]
            if prop.origin is None:
                assert carried.prop_id >= before.next_id
                assert carried.column not in {p.column for p in old.values()}
            else:
                kept = old[prop.origin]
                assert (carried.prop_id, carried.column) == (kept.prop_id, kept.column)
        columns = [p.column for p in found.properties]
        assert len(set(columns)) == len(columns)


NAMES = ("a", "b", "c")


@given(st.lists(st.dictionaries(st.sampled_from(NAMES), st.sampled_from((None, *NAMES)))))
def test_no_column_ever_belongs_to_two_properties(history: list[dict[str, str | None]]):
    schema = accepted("node N { }")
    (node,) = schema.nodes
    owners: dict[str, int] = {}
    for version in history:
        props = tuple(Prop(name, "I32?", origin) for name, origin in version.items())
        target = desired(schema_text((Decl("node", "N", props),)))
        plan = plan_migration(schema, target)
        if not plan.supported:
            continue
        schema = carry_identities(schema, target, plan, {node.type_id: set(owners)})
        for prop in schema.nodes[0].properties:
            assert owners.setdefault(prop.column, prop.prop_id) == prop.prop_id
