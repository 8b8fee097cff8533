"""From clauses to the pattern: variables, edges between them, conditions and negated blocks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from omnigraph.language.types import PropType, Scalar
from omnigraph.plan.ir import Block, Constant, Param, Pattern
from tests.unit.plan.compiling import P, pattern, read


def case(id: str, match: str, *lines: str):
    return pytest.param(match, list(lines), id=id)


@pytest.mark.parametrize(
    ("match", "lines"),
    [
        case("a binding introduces a variable", "$m: Maker", "m: Maker"),
        case(
            "property matches are conditions",
            '$m: Maker { handle: "ada", age: 29.5, skills: "lathe" }',
            "m: Maker",
            'm where m.handle = "ada" and m.age = 29.5 and m.skills contains "lathe"',
        ),
        case(
            "a repeated binding adds conditions",
            "$m: Maker { active: true }  $m: Maker { age: 29 }",
            *("m: Maker", "m where m.active = true and m.age = 29"),
        ),
        case(
            "variables come in the order of the text",
            "$t: Tool  $t.weight > 1.0  $m: Maker  $s: Shed",
            *("t: Tool", "m: Maker", "s: Shed", "t where t.weight > 1.0"),
        ),
        case(
            "a traversal introduces the variable that is new",
            "$m: Maker  $m mentors{1,3} $x",
            *("m: Maker", "x: Maker", "m -Mentors{1,3}-> x"),
        ),
        case(
            "only the right endpoint bound: the edge stays as written",
            "$t: Tool  $m borrows $t",
            *("t: Tool", "m: Maker", "m -Borrows-> t"),
        ),
        case(
            "direction by type, left endpoint",
            "$t: Tool  $t borrows $m",
            *("t: Tool", "m: Maker", "t <-Borrows- m"),
        ),
        case(
            "direction by type, right endpoint",
            "$m: Maker  $t borrows $m",
            *("m: Maker", "t: Tool", "t <-Borrows- m"),
        ),
        case(
            "a self-typed edge is read as written, from either endpoint",
            "$x: Maker  $m mentors{2,4} $x",
            *("x: Maker", "m: Maker", "m -Mentors{2,4}-> x"),
        ),
        case(
            "a later binding gives a reached variable its conditions",
            '$m: Maker  $m borrows $t  $t storedIn $s  $s: Shed { slug: "north" }',
            *("m: Maker", "t: Tool", "s: Shed", "m -Borrows-> t", "t -StoredIn-> s"),
            's where s.slug = "north"',
        ),
        case(
            "a binding behind a traversal introduces nothing",
            '$m borrows $t  $t: Tool  $m: Maker { handle: "a" }',
            *("m: Maker", "t: Tool", "m -Borrows-> t", 'm where m.handle = "a"'),
        ),
        case(
            "conditions of several bindings of a reached variable come together",
            "$m: Maker  $x: Maker { age: 1 }  $m mentors $x  $x: Maker { active: true }",
            *("m: Maker", "x: Maker", "m -Mentors-> x", "x where x.age = 1 and x.active = true"),
        ),
        case(
            "a cycle is an edge between two known variables",
            "$a: Maker  $a mentors $b  $b mentors{1,2} $a",
            *("a: Maker", "b: Maker", "a -Mentors-> b", "b -Mentors{1,2}-> a"),
        ),
        case(
            "parallel edges stay apart",
            "$a: Maker  $b: Maker  $a mentors $b  $b mentors $a  $a mentors{2,2} $b",
            *("a: Maker", "b: Maker"),
            *("a -Mentors-> b", "b -Mentors-> a", "a -Mentors{2,2}-> b"),
        ),
        case(
            "a variable may point at itself",
            "$a: Maker  $a mentors $a",
            *("a: Maker", "a -Mentors-> a"),
        ),
        case(
            "a cycle closes against the direction of the types too",
            "$m: Maker  $m borrows $t  $t borrows $m",
            *("m: Maker", "t: Tool", "m -Borrows-> t", "t <-Borrows- m"),
        ),
        case(
            "without a binding traversals introduce both endpoints",
            "$x mentors $y  $m borrows $t  $t storedIn $s",
            *("x: Maker", "y: Maker", "m: Maker", "t: Tool", "s: Shed"),
            *("x -Mentors-> y", "m -Borrows-> t", "t -StoredIn-> s"),
        ),
        case(
            "filters on one variable are its conditions, others stand alone",
            '$m: Maker  $m.age > 3  search($m.handle, "a")  $m mentors $x  $x.age < $m.age  1 < 2',
            *("m: Maker", "x: Maker", "m -Mentors-> x"),
            'm where m.age > 3 and search(m.handle, "a")',
            *("where x.age < m.age", "where 1 < 2"),
        ),
    ],
)
def test_clauses_become(match, lines):
    assert pattern(read(match, "now()")) == lines


@pytest.mark.parametrize(
    ("match", "lines"),
    [
        case(
            "what a block holds is about outer variables",
            '$m: Maker  not { $m borrows $t  $t.code = "sa-1" }',
            *("m: Maker", "not about m", "  t: Tool", "  m -Borrows-> t"),
            '  t where t.code = "sa-1"',
        ),
        case(
            "blocks stay apart",
            "$m: Maker  not { $m.age = 1 }  $m mentors $x  not { $x.age = 2 }  $m.score > 1.0",
            *("m: Maker", "x: Maker", "m -Mentors-> x", "m where m.score > 1.0"),
            *("not about m", "  m where m.age = 1", "not about x", "  x where x.age = 2"),
        ),
        case(
            "direction inside is as outside",
            "$s: Shed  not { $s storedIn $t }  not { $u storedIn $s }",
            *("s: Shed", "not about s", "  t: Tool", "  s <-StoredIn- t"),
            *("not about s", "  u: Tool", "  u -StoredIn-> s"),
        ),
        case(
            "bounds hold inside",
            "$m: Maker  not { $m mentors{2,2} $x }",
            *("m: Maker", "not about m", "  x: Maker", "  m -Mentors{2,2}-> x"),
        ),
        case(
            "blocks nest",
            '$m: Maker  not { $m borrows $t  not { $t.code = "sa-1"  $t.label = $m.handle } }',
            *("m: Maker", "not about m", "  t: Tool", "  m -Borrows-> t", "  not about m, t"),
            *('    t where t.code = "sa-1"', "    where t.label = m.handle"),
        ),
        case(
            "a block is about the outer variables of the blocks in it",
            "$a: Maker  $b: Maker  not { $a mentors $x  not { $x mentors $b } }",
            *("a: Maker", "b: Maker", "not about a, b", "  x: Maker", "  a -Mentors-> x"),
            *("  not about b, x", "    x -Mentors-> b"),
        ),
        case(
            "both endpoints may come from outside",
            "$a: Maker  $b: Maker  not { $a mentors $b }",
            *("a: Maker", "b: Maker", "not about a, b", "  a -Mentors-> b"),
        ),
        case(
            "a part of a block need not be connected to the outside",
            '$m: Maker  not { $m.age = 1  $t: Tool { code: "a" } }',
            *("m: Maker", "not about m", "  t: Tool", "  m where m.age = 1"),
            '  t where t.code = "a"',
        ),
        case(
            "an outer variable bound again inside gets conditions",
            '$m: Maker  not { $m: Maker { active: true, skills: "lathe" } }',
            *("m: Maker", "not about m"),
            '  m where m.active = true and m.skills contains "lathe"',
        ),
    ],
)
def test_negations_become(match, lines):
    assert pattern(read(match, "now()")) == lines


def test_now_is_the_reserved_parameter():
    match = "$s: Shed { openedAt: now() }  $s.openedAt < now()"
    early, late = read(match, "$s").pattern.conditions["s"]
    now = Param("__nanograph_now", PropType(Scalar.DATETIME))
    assert [shown.comparison and shown.comparison.right for shown in (early, late)] == [now, now]


def test_dates_are_days_and_datetimes_milliseconds():
    match = (
        '$m: Maker { joined: date("1970-01-03") }  $s: Shed  $s.openedAt > datetime("1970-01-02")'
    )
    conditions = read(match).pattern.conditions
    days, moment = conditions["m"][0].comparison, conditions["s"][0].comparison
    assert days is not None
    assert moment is not None
    assert days.right == Constant(2, PropType(Scalar.DATE))
    assert moment.right == Constant(86_400_000, PropType(Scalar.DATETIME))


def test_a_text_clause_on_an_outer_variable_is_a_condition_inside():
    plan = read('$p: Page  not { fuzzy($p.title, "x", 1) }', "$p", schema=P)
    assert pattern(plan) == [
        *("p: Page", "not about p"),
        '  p where fuzzy(p.title, "x", 1)',
    ]


def introduced(found: Pattern) -> Iterator[str]:
    """Every variable that a pattern introduces, those of its negations too."""
    yield from found.types
    for negation in found.negations:
        yield from introduced(negation.inner)


def test_anonymous_nodes_are_independent():
    plan = read("$m: Maker  $m mentors $_  $m borrows $_  $_ mentors $m  not { $m borrows $_ }")
    names = list(introduced(plan.pattern))
    assert len(names) == len(set(names)) == 5
    assert [(edge.edge_types[0], edge.left == "m") for edge in plan.pattern.edges] == [
        *(("Mentors", True), ("Borrows", True), ("Mentors", False)),
    ]


def test_an_anonymous_node_does_not_connect_two_traversals():
    plan = read("$m: Maker  $m borrows $_  $_ storedIn $s", "$s")
    first, second = plan.pattern.edges
    assert first.right != second.left


def test_a_name_introduced_inside_stays_apart_from_one_bound_later_outside():
    plan = read("$m: Maker  not { $m mentors $x }  $x: Tool", "$x")
    assert pattern(plan) == [
        *("m: Maker", "x: Tool", "not about m", "  x#: Maker", "  m -Mentors-> x#"),
    ]


def test_a_name_used_again_on_three_levels_means_three_nodes():
    plan = read("$m: Maker  not { $m mentors $a  not { $a mentors $x }  $x: Tool }  $x: Shed")
    assert pattern(plan) == [
        *("m: Maker", "x: Shed", "not about m", "  a: Maker", "  x#: Tool", "  m -Mentors-> a"),
        *("  not about a", "    x##: Maker", "    a -Mentors-> x##"),
    ]


def test_two_blocks_may_use_one_name_for_different_types():
    plan = read("$m: Maker  not { $m mentors $x }  not { $m borrows $x }")
    assert pattern(plan)[1:] == [
        *("not about m", "  x: Maker", "  m -Mentors-> x"),
        *("not about m", "  x: Tool", "  m -Borrows-> x"),
    ]


def test_a_block_that_only_repeats_an_outer_binding_holds_nothing():
    (block,) = read("$m: Maker  not { $m: Maker }").pattern.negations
    assert block == Block((), Pattern({}, {}, (), ()))


def test_the_plan_lists_the_variables_of_its_rows_by_name():
    plan = read("$t: Tool  $m borrows $t  $m mentors $_  $m mentors $m  not { $m mentors $x }")
    assert plan.variables == (("m", "Maker"), ("t", "Tool"))
