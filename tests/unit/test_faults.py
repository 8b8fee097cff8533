"""Declaring fault points and what an unarmed one costs. Arming is tested with the testing kit."""

from __future__ import annotations

import pytest

from omnigraph.faults import FaultPoints


def test_points_are_listed_by_name_with_their_step():
    points = FaultPoints()
    points.declare("publish.before", "before the insert")
    points.declare("mutation.after", "after a table commit")
    assert [(p.name, p.description) for p in points.all()] == [
        ("mutation.after", "after a table commit"),
        ("publish.before", "before the insert"),
    ]


def test_a_name_is_given_once():
    points = FaultPoints()
    points.declare("publish.before", "before the insert")
    with pytest.raises(ValueError, match="declared twice"):
        points.declare("publish.before", "somewhere else")


@pytest.mark.parametrize("name", ["", "publish", "Publish.before", "publish.", "a b.c", "a.b\n"])
def test_a_name_has_an_area_and_a_step(name):
    with pytest.raises(ValueError, match=r"area\.step"):
        FaultPoints().declare(name, "some step")


def test_a_point_says_which_step_it_is():
    with pytest.raises(ValueError, match="which step"):
        FaultPoints().declare("publish.before", " ")


def test_an_undeclared_point_is_an_error():
    with pytest.raises(KeyError, match=r"publish\.before"):
        FaultPoints()["publish.before"]


def test_an_unarmed_point_does_nothing():
    point = FaultPoints().declare("publish.before", "before the insert")
    point.hit(table="node:Maker")


def test_traps_are_called_in_the_order_they_were_set():
    point = FaultPoints().declare("publish.before", "before the insert")
    seen = []

    def first(point, context):
        seen.append(("first", point.name, context))

    def second(point, context):
        seen.append(("second", point.name, context))

    point.set_trap(first)
    point.set_trap(second)
    point.hit(path="a")
    point.remove_trap(first)
    point.hit()
    assert seen == [
        ("first", "publish.before", {"path": "a"}),
        ("second", "publish.before", {"path": "a"}),
        ("second", "publish.before", {}),
    ]
