"""What look-ups are expected to cost: few nodes cost little, whatever the size of the graph."""

from __future__ import annotations

import pytest

from omnigraph.language.syntax import Source
from omnigraph.plan.arrange import arrange
from omnigraph.plan.compile import compile_query
from omnigraph.plan.cost import LookupCost, hops_of, lookup_cost, node_types
from omnigraph.plan.steps import Arrangement
from tests.unit.plan.test_arrange import CATALOG, SIZES

ALL_FOLLOWS = 2_400_000
KEYED = "$a: Person { name: $n }"


def arranged(match: str, returned: str = "$a.name", tail: str = "") -> Arrangement:
    text = f"query q($n: String) {{ match {{ {match} }} return {{ {returned} }} {tail} }}"
    return arrange(compile_query(Source("q.gq", text), CATALOG).read_plan(), SIZES)


def cost(match: str, returned: str = "$a.name", tail: str = "") -> LookupCost:
    return lookup_cost(arranged(match, returned, tail), SIZES)


@pytest.mark.parametrize(
    "match",
    [
        KEYED,
        f"{KEYED}  $a follows $b  $b.age > 3",
        f"{KEYED}  not {{ $a follows $b  $b livesIn $c }}",
        f"{KEYED}  $a follows $b  $b follows $c  $c follows $a",
        f"{KEYED}  not {{ $a follows $b  $b.age = $a.age }}",
    ],
)
def test_a_start_at_one_node_costs_little(match):
    found = cost(match)
    assert found.units < ALL_FOLLOWS / 3
    assert found.frontier < 1024


@pytest.mark.parametrize(
    "match", ["$a: Person  $a follows $b  $b.age > 3", f"{KEYED}  $a follows{{1,4}} $b"]
)
def test_a_start_that_spreads_costs_more_than_reading_everything(match):
    assert cost(match, "$a.name, $b.name").units > ALL_FOLLOWS


def test_a_limit_makes_a_scan_cheap():
    assert cost("$a: Person", tail="limit 10").units < cost("$a: Person").units / 10


def test_the_longest_hop_is_known():
    assert cost(f"{KEYED}  $a follows{{2,9}} $b").hops == 9


def test_tables_of_subpatterns_and_negations_are_known():
    steps = arranged("$a: Person  not { $a follows $b  not { $b livesIn $c } }").steps
    assert {edge for hop in hops_of(steps) for edge in hop.edge_types} == {"Follows", "LivesIn"}
    assert node_types(steps) == {"Person", "City"}
    joined = arranged(f"{KEYED}  $c: Country  $c.name = $a.gender").steps
    assert node_types(joined) == {"Person", "Country"}
