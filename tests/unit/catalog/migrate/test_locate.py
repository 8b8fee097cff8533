"""Refusals that point into the desired schema's text."""

from __future__ import annotations

import pickle

import pytest

from omnigraph.catalog.compile import build_declared
from omnigraph.catalog.migrate import MigrationPlan, plan_migration, refuse_unsupported
from omnigraph.errors import UnsupportedMigration
from omnigraph.language.syntax import Source
from tests.support.workshop import WORKSHOP
from tests.unit.catalog.migrate.workshop import accepted, change, workshop


def refusal(before: str, after: str) -> UnsupportedMigration:
    source = Source("w.pg", after)
    plan = plan_migration(accepted(before), build_declared(source))
    with pytest.raises(UnsupportedMigration) as caught:
        refuse_unsupported(plan, source)
    return caught.value


def test_a_type_change_points_at_the_new_type():
    error = refusal(WORKSHOP, workshop(("age: I32?", "age: U32?")))
    assert str(error) == (
        "w.pg:5:10: migration error: [OG-MF-106] changing property type for 'Maker.age' "
        "from I32? to U32? is not supported\n"
        "    5 |     age: U32?\n"
        "      |          ^^^^"
    )
    assert error.diagnostic is not None
    assert error.diagnostic.code == "OG-MF-106"


def test_a_missing_backfill_points_at_the_property():
    error = refusal(WORKSHOP, workshop(("age: I32?", "age: I32?\n    nick: String")))
    assert str(error).startswith("w.pg:6:5: migration error: [OG-MF-103] ")
    assert str(error).endswith("    6 |     nick: String\n      |     ^^^^")


def test_an_edge_header_points_at_the_edge():
    error = refusal(WORKSHOP, workshop(("Tool -> Shed", "Shed -> Tool")))
    assert str(error).startswith(
        "w.pg:25:6: migration error: changing edge endpoints of 'StoredIn'"
    )
    assert error.diagnostic is not None
    assert error.diagnostic.code == UnsupportedMigration.code


def test_something_removed_points_at_the_type_that_lost_it():
    error = refusal(WORKSHOP, workshop(("    code: String @key\n", "    code: String\n")))
    assert str(error).startswith("w.pg:11:6: migration error: removing constraints from 'Tool'")


def test_an_inherited_property_points_into_its_interface():
    before = "interface Tagged { tag: String }\nnode Bin implements Tagged { }"
    after = change(before, ("tag: String", "tag: String  kind: String"))
    assert str(refusal(before, after)).startswith("w.pg:1:33: migration error: [OG-MF-103]")
    source = Source("w.pg", after)
    steps = plan_migration(accepted(before), build_declared(source)).steps
    with pytest.raises(UnsupportedMigration, match=r"w\.pg:1:33: .*'Bin\.kind'"):
        refuse_unsupported(MigrationPlan(steps[1:]), source)


def test_a_removed_interface_has_no_place():
    error = refusal("interface I { x: I32? }\nnode N { a: I32? }", "node N { a: I32? }")
    assert str(error) == "removing interface 'I' is not supported"
    assert error.diagnostic is None


def test_without_a_text_only_the_message_is_given():
    before, after = accepted(WORKSHOP), accepted(workshop(("age: I32?", "age: U32?")))
    with pytest.raises(UnsupportedMigration) as caught:
        refuse_unsupported(plan_migration(before, after), None)
    assert str(caught.value).startswith("[OG-MF-106] changing property type for 'Maker.age'")
    assert caught.value.diagnostic is None


def test_the_first_unsupported_change_is_the_one_reported():
    after = workshop(("age: I32?", "age: U32?"), ("Tool -> Shed", "Shed -> Tool"))
    assert "'Maker.age'" in str(refusal(WORKSHOP, after))


def test_a_supported_plan_is_let_through():
    refuse_unsupported(MigrationPlan(), Source("w.pg", WORKSHOP))
    refuse_unsupported(MigrationPlan(), None)


def test_the_error_crosses_processes():
    error = refusal(WORKSHOP, workshop(("age: I32?", "age: U32?")))
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert copy.diagnostic == error.diagnostic
