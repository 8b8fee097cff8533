"""Arranging a read: where to start, which way to go, and what is only counted."""

from __future__ import annotations

import pytest

from omnigraph.catalog.compile import compile_schema
from omnigraph.language.syntax import Source
from omnigraph.plan.arrange import arrange
from omnigraph.plan.compile import compile_query
from omnigraph.plan.cost import Sizes
from omnigraph.plan.describe import step_lines
from omnigraph.plan.steps import Arrangement

CATALOG = compile_schema(
    Source(
        "schema.pg",
        """
        node Person { name: String @key  age: I32?  gender: String? }
        node City { name: String @key }
        node Country { name: String @key }
        edge Follows: Person -> Person
        edge LivesIn: Person -> City
        edge LiesIn: City -> Country
        """,
    )
)
SIZES = Sizes(
    {
        "node:Person": 100_000,
        "node:City": 7_000,
        "node:Country": 3,
        "edge:Follows": 2_400_000,
        "edge:LivesIn": 100_000,
        "edge:LiesIn": 7_000,
    },
    CATALOG,
)


def steps(match: str, returned: str, tail: str = "") -> list[str]:
    text = f"query q($n: String) {{ match {{ {match} }} return {{ {returned} }} {tail} }}"
    plan = compile_query(Source("q.gq", text), CATALOG).read_plan()
    return [line.indented for line in step_lines(arrange(plan, SIZES).steps)]


def test_a_key_is_where_a_search_starts():
    assert steps("$a: Person  $a follows $b  $b: Person { name: $n }", "$a.name") == [
        "scan b: Person where b.name = $n",
        "follow b <-Follows- a: Person",
    ]


def test_paths_that_are_only_counted_are_counted_on_degrees():
    assert steps("$a: Person  $a follows $b  $b follows $c", "count($a) as n") == [
        "scan b: Person",
        "count b <-Follows- Person",
        "count b -Follows-> Person",
    ]


def test_conditions_on_counted_ends_stay_with_them():
    assert steps(
        "$a: Person  $a follows $b  $b follows $c  $b.age < 50  $c.age > 25", "count($a) as n"
    ) == [
        "scan b: Person where b.age < 50",
        "count b <-Follows- Person",
        "count b -Follows-> Person where c.age > 25",
    ]


def test_what_is_returned_is_spelled_out():
    assert steps("$a: Person  $a follows $b", "$b.name, count($a) as n") == [
        "scan b: Person",
        "count b <-Follows- Person",
    ]
    assert steps("$a: Person  $a follows $b", "$a.name, $b.name")[1].startswith("follow ")


def test_an_order_needs_every_variable_for_its_ties():
    assert steps("$a: Person { name: $n }  $a follows $b", "$b.age", "order { $b.age }") == [
        "scan a: Person where a.name = $n",
        "follow a -Follows-> b: Person",
    ]


def test_a_rare_end_is_a_better_start_than_a_whole_type():
    found = steps("$p: Person  $p livesIn $c  $c: City { name: $n }", "count($p) as n")
    assert found[0] == "scan c: City where c.name = $n"
    assert found[1] == "count c <-LivesIn- Person"


def test_a_tree_that_hangs_on_one_variable_is_one_count():
    found = steps("$p: Person  $p follows $q  $q livesIn $c  $c.name != $n", "avg($p.age) as a")
    assert found == [
        "scan p: Person",
        "count p -Follows-> Person (-LivesIn-> City where c.name != $n)",
    ]


def test_a_cycle_is_closed_by_a_look_not_by_a_join():
    found = steps("$a: Person  $a follows $b  $b follows $c  $c follows $a", "count($a) as n")
    assert len(found) == 4
    assert found[-1].startswith("keep joined")


def test_a_negation_about_one_variable_is_a_look_at_its_edges():
    assert steps("$p: Person  not { $p follows $_ }", "$p.name") == [
        "scan p: Person",
        "keep without p -Follows-> Person",
    ]


@pytest.mark.parametrize(
    "inner",
    ["$p follows $q  $q.age = $p.age", "$p.age = 3", "$p follows $q  not { $q follows $p }"],
)
def test_other_negations_run_their_own_steps(inner):
    found = steps(f"$p: Person  not {{ {inner} }}", "$p.name")
    assert found[1] == "keep rows of p without"
    assert len(found) > 2
    assert all(line.startswith("  ") for line in found[2:])


def test_parts_that_are_not_connected_are_multiplied_smallest_first():
    assert steps("$p: Person  $k: Country", "$p.name, $k.name") == [
        "scan k: Country",
        "scan p: Person",
    ]


def test_comparisons_run_as_soon_as_they_can():
    found = steps(
        "$a: Person { name: $n }  $a follows $b  $b follows $c  $a.age < $b.age", "$a, $b, $c"
    )
    assert found == [
        "scan a: Person where a.name = $n",
        "follow a -Follows-> b: Person",
        "keep a.age < b.age",
        "follow b -Follows-> c: Person",
    ]


# -- equality joins ------------------------------------------------------------------------------


def test_an_equality_of_two_patterns_is_a_join_on_it():
    found = steps("$a: Person { name: $n }  $b: Person  $b.age = $a.age", "$b.name")
    assert found == [
        "scan a: Person where a.name = $n",
        "join b: Person on a.age = b.age",
    ]


def test_the_most_telling_equality_is_joined_on_and_the_others_are_checked():
    found = steps("$a: Person  $c: City  $a.gender = $c.name  $c.name = $a.name", "$a.age")
    assert found[:2] == ["scan c: City", "join a: Person on c.name = a.name"]
    assert found[2] == "keep a.gender = c.name"


def test_conditions_and_edges_of_a_joined_variable_go_with_it():
    found = steps(
        "$a: Person { name: $n }  $b: Person  $b.age = $a.age  $b.gender = $n  $b livesIn $c",
        "$c.name",
    )
    assert found[1] == "join b: Person on a.age = b.age where b.gender = $n"
    assert found[2] == "follow b -LivesIn-> c: City"


def test_a_rare_start_is_better_than_a_join_that_finds_many():
    found = steps(
        "$a: Person { name: $n }  $b: Person  $b.age = $a.age  $b livesIn $c  $c.name = $n",
        "$b.name",
    )
    assert found == [
        "scan a: Person where a.name = $n",
        "scan c: City where c.name = $n",
        "follow c <-LivesIn- b: Person",
        "keep b.age = a.age",
    ]


@pytest.mark.parametrize("comparison", ["$b.age < $a.age", "$b.age != $a.age"])
def test_other_comparisons_are_checked_on_all_pairs(comparison):
    found = steps(f"$a: Person {{ name: $n }}  $b: Person  {comparison}", "$b.name")
    assert found[1] == "scan b: Person"
    assert found[2].startswith("keep ")


def test_an_equality_in_a_negation_asks_only_whether():
    assert steps("$p: Person  not { $c: City  $c.name = $p.name }", "$p.age") == [
        "scan p: Person",
        "keep rows of p without",
        "  keep with c: City on p.name = c.name",
    ]


# -- whether, how often, and how many ------------------------------------------------------------


def test_extremes_do_not_depend_on_how_often_a_row_is_found():
    assert steps("$p: Person  $p follows $q", "max($p.age) as oldest") == [
        "scan p: Person",
        "keep with p -Follows-> Person",
    ]
    counted = steps("$p: Person  $p follows $q", "max($p.age) as oldest, count($q) as n")
    assert counted[1] == "count p -Follows-> Person"


def test_subpatterns_inside_a_negation_ask_only_whether():
    found = steps("$p: Person  not { $p follows $q  $q.age = $p.age  $q livesIn $_ }", "$p.name")
    assert "  keep with q -LivesIn-> City" in found


def arranged(match: str, returned: str, tail: str) -> Arrangement:
    text = f"query q($n: String) {{ match {{ {match} }} return {{ {returned} }} {tail} }}"
    return arrange(compile_query(Source("q.gq", text), CATALOG).read_plan(), SIZES)


@pytest.mark.parametrize(
    ("returned", "tail", "enough"),
    [
        ("$p.name", "limit 5", 5),
        ("$p.name", "", None),
        ("$p.name", "order { $p.name } limit 5", None),
        ("$p.age, count($p) as n", "limit 5", None),
    ],
)
def test_a_limit_stops_the_search_only_where_any_rows_will_do(returned, tail, enough):
    assert arranged("$p: Person  $p follows $q", returned, tail).enough == enough


def test_a_limit_reaches_a_scan_that_is_all_there_is():
    assert steps("$p: Person  $p.age > 3", "$p.name", "limit 5") == [
        "scan p: Person where p.age > 3, 5 of them"
    ]
    assert steps("$p: Person  $p follows $q", "$q.name", "limit 5")[0] == "scan q: Person"
