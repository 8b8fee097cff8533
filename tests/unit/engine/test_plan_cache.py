"""Queries are planned once, and again after their tables grew."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.api.graph import init
from omnigraph.plan.steps import Arrangement, Scan
from omnigraph.read.reader import PhysicalPlanCache
from omnigraph.read.view import ReadView

SCHEMA = "node A { k: String @key }  node B { k: String @key }  edge E: A -> B"
TEXT = "query q() { match { $a: A  $a e $b } return { $a.k, $b.k } }"


def sized(snapshot, **rows):
    entries = {
        key: replace(entry, row_count=rows.get(key.partition(":")[2], entry.row_count))
        for key, entry in snapshot.entries.items()
    }
    return replace(snapshot, entries=entries)


def start_of(arrangement: Arrangement) -> str:
    first = arrangement.steps[0]
    assert isinstance(first, Scan)
    return first.variable


def test_a_query_is_arranged_again_only_when_sizes_have_changed_a_lot():
    graph = init("memory://arrangements", SCHEMA)
    snapshot = graph._snapshot()
    plan = graph._core.reader.compile(TEXT, None, snapshot.catalog, ReadView.ALL)
    assert graph._core.reader.compile(TEXT, None, snapshot.catalog, ReadView.ALL) is plan
    plans = PhysicalPlanCache()
    first = plans.get(plan, sized(snapshot, A=1000, B=10, E=1000))
    assert plans.get(plan, sized(snapshot, A=1010, B=11, E=1020)) is first
    other = plans.get(plan, sized(snapshot, A=10, B=1000, E=1000))
    assert other is not first
    assert start_of(first) == "b"
    assert start_of(other) == "a"


def test_readers_who_see_the_same_share_what_is_compiled():
    graph = init("memory://restricted", SCHEMA)
    catalog = graph._snapshot().catalog
    without_b = ReadView(hidden_types=frozenset({"B"}))
    text = "query q() { match { $a: A } return { $a.k } }"
    plan = graph._core.reader.compile(text, None, catalog, without_b)
    same = ReadView(hidden_types=frozenset({"B"}))
    assert graph._core.reader.compile(text, None, catalog, same) is plan
    assert graph._core.reader.compile(text, None, catalog, ReadView.ALL) is not plan


def test_no_more_plans_are_kept_than_there_is_room_for():
    graph = init("memory://room", SCHEMA)
    snapshot = graph._snapshot()
    cache = PhysicalPlanCache(capacity=1)
    plans = [
        graph._core.reader.compile(
            TEXT.replace("q()", f"q{n}()"), None, snapshot.catalog, ReadView.ALL
        )
        for n in range(2)
    ]
    first = cache.get(plans[0], snapshot)
    cache.get(plans[1], snapshot)
    assert cache.get(plans[0], snapshot) is not first
