"""From clauses to operations: where rows start, how they grow, what is checked when."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from omnigraph.language.types import PropType, Scalar
from omnigraph.plan.ir import (
    AntiJoin,
    Constant,
    Expand,
    Filter,
    NodeScan,
    Param,
    Pipeline,
)
from tests.unit.plan.compiling import P, pipeline, read


def case(id: str, match: str, *lines: str):
    return pytest.param(match, list(lines), id=id)


@pytest.mark.parametrize(
    ("match", "lines"),
    [
        case("a binding is a scan", "$m: Maker", "scan m: Maker"),
        case(
            "matches travel with the scan",
            '$m: Maker { handle: "ada", age: 29.5, skills: "lathe" }',
            'scan m: Maker where handle = "ada" and age = 29.5 and skills contains "lathe"',
        ),
        case(
            "a repeated binding adds conditions",
            "$m: Maker { active: true }  $m: Maker { age: 29 }",
            "scan m: Maker where active = true and age = 29",
        ),
        case(
            "scans come in the order of the bindings, before anything else",
            "$t: Tool  $t.weight > 1.0  $m: Maker  $s: Shed",
            *("scan t: Tool", "scan m: Maker", "scan s: Shed"),
            "filter t.weight > 1.0",
        ),
        case(
            "a traversal extends what is bound",
            "$m: Maker  $m mentors{1,3} $x",
            *("scan m: Maker", "expand m -Mentors{1,3}-> x: Maker"),
        ),
        case(
            "only the right end bound: the expansion is flipped",
            "$t: Tool  $m borrows $t",
            *("scan t: Tool", "expand t <-Borrows- m: Maker"),
        ),
        case(
            "direction by type, left end",
            "$t: Tool  $t borrows $m",
            *("scan t: Tool", "expand t <-Borrows- m: Maker"),
        ),
        case(
            "direction by type, right end",
            "$m: Maker  $t borrows $m",
            *("scan m: Maker", "expand m -Borrows-> t: Tool"),
        ),
        case(
            "a self-typed edge is read as written, from either end",
            "$x: Maker  $m mentors{2,4} $x",
            *("scan x: Maker", "expand x <-Mentors{2,4}- m: Maker"),
        ),
        case(
            "a deferred binding gives the expansion its matches",
            '$m: Maker  $m borrows $t  $t storedIn $s  $s: Shed { slug: "north" }',
            *("scan m: Maker", "expand m -Borrows-> t: Tool"),
            'expand t -StoredIn-> s: Shed where slug = "north"',
        ),
        case(
            "the order of traversals does not matter",
            '$m: Maker  $t storedIn $s  $m borrows $t  $s: Shed { slug: "north" }',
            *("scan m: Maker", "expand m -Borrows-> t: Tool"),
            'expand t -StoredIn-> s: Shed where slug = "north"',
        ),
        case(
            "the first declared binding is the root, not the first variable",
            '$m borrows $t  $t: Tool  $m: Maker { handle: "a" }',
            *("scan t: Tool", 'expand t <-Borrows- m: Maker where handle = "a"'),
        ),
        case(
            "a deferred binding may be repeated",
            "$m: Maker  $x: Maker { age: 1 }  $m mentors $x  $x: Maker { active: true }",
            "scan m: Maker",
            "expand m -Mentors-> x: Maker where age = 1 and active = true",
        ),
        case(
            "a cycle closes through a temporary",
            "$a: Maker  $a mentors $b  $b mentors{1,2} $a",
            *("scan a: Maker", "expand a -Mentors-> b: Maker"),
            *("expand b -Mentors{1,2}-> __temp_a_1: Maker", "filter id(__temp_a_1) = id(a)"),
        ),
        case(
            "every temporary is its own",
            "$a: Maker  $b: Maker  $a mentors $b  $b mentors $a  $a mentors{2,2} $b",
            *("scan a: Maker", "expand a -Mentors-> b: Maker"),
            *("expand b -Mentors-> __temp_a_1: Maker", "filter id(__temp_a_1) = id(a)"),
            *("expand a -Mentors{2,2}-> __temp_b_2: Maker", "filter id(__temp_b_2) = id(b)"),
        ),
        case(
            "a variable that points at itself is a cycle",
            "$a: Maker  $a mentors $a",
            *("scan a: Maker", "expand a -Mentors-> __temp_a_1: Maker"),
            "filter id(__temp_a_1) = id(a)",
        ),
        case(
            "a cycle closes against the direction of the types too",
            "$m: Maker  $m borrows $t  $t borrows $m",
            *("scan m: Maker", "expand m -Borrows-> t: Tool"),
            *("expand t <-Borrows- __temp_m_1: Maker", "filter id(__temp_m_1) = id(m)"),
        ),
        case(
            "without a binding all nodes of the first left end start",
            "$x mentors $y  $m borrows $t  $t storedIn $s",
            *("scan x: Maker", "expand x -Mentors-> y: Maker"),
            *("scan m: Maker", "expand m -Borrows-> t: Tool", "expand t -StoredIn-> s: Shed"),
        ),
        case(
            "filters follow all expansions, in their order",
            '$m: Maker  $m.age > 3  search($m.handle, "a")  $m mentors $x  $x.age < $m.age',
            *("scan m: Maker", "expand m -Mentors-> x: Maker", "filter m.age > 3"),
            'filter search(m.handle, "a") = true',
            "filter x.age < m.age",
        ),
    ],
)
def test_clauses_become(match, lines):
    assert pipeline(read(match, "now()")) == lines


@pytest.mark.parametrize(
    ("match", "lines"),
    [
        case(
            "what a block holds sees the outer row",
            '$m: Maker  not { $m borrows $t  $t.code = "sa-1" }',
            *("scan m: Maker", "keep rows of m without"),
            *("  expand m -Borrows-> t: Tool", '  filter t.code = "sa-1"'),
        ),
        case(
            "blocks come last, one after the other",
            "$m: Maker  not { $m.age = 1 }  $m mentors $x  not { $x.age = 2 }  $m.score > 1.0",
            *("scan m: Maker", "expand m -Mentors-> x: Maker", "filter m.score > 1.0"),
            *(
                "keep rows of m without",
                "  filter m.age = 1",
                "keep rows of x without",
                "  filter x.age = 2",
            ),
        ),
        case(
            "direction inside is as outside",
            "$s: Shed  not { $s storedIn $t }  not { $u storedIn $s }",
            *("scan s: Shed", "keep rows of s without", "  expand s <-StoredIn- t: Tool"),
            *("keep rows of s without", "  expand s <-StoredIn- u: Tool"),
        ),
        case(
            "bounds hold inside",
            "$m: Maker  not { $m mentors{2,2} $x }",
            *("scan m: Maker", "keep rows of m without", "  expand m -Mentors{2,2}-> x: Maker"),
        ),
        case(
            "blocks nest",
            '$m: Maker  not { $m borrows $t  not { $t.code = "sa-1"  $t.label = $m.handle } }',
            *(
                "scan m: Maker",
                "keep rows of m without",
                "  expand m -Borrows-> t: Tool",
                "  keep rows of m, t without",
            ),
            *('    filter t.code = "sa-1"', "    filter t.label = m.handle"),
        ),
        case(
            "both ends from outside close a cycle",
            "$a: Maker  $b: Maker  not { $a mentors $b }",
            *("scan a: Maker", "scan b: Maker", "keep rows of a, b without"),
            *("  expand a -Mentors-> __temp_b_1: Maker", "  filter id(__temp_b_1) = id(b)"),
        ),
        case(
            "a part of a block that is not connected to the outside is scanned",
            '$m: Maker  not { $m.age = 1  $t: Tool { code: "a" } }',
            *("scan m: Maker", "keep rows of m without", '  scan t: Tool where code = "a"'),
            "  filter m.age = 1",
        ),
        case(
            "a connected part of a block needs no scan of its own",
            "$m: Maker  not { $x: Maker { age: 3 }  $m mentors $x }",
            *(
                "scan m: Maker",
                "keep rows of m without",
                "  expand m -Mentors-> x: Maker where age = 3",
            ),
        ),
        case(
            "an outer variable bound again inside is filtered, not scanned",
            '$m: Maker  not { $m: Maker { active: true, skills: "lathe" } }',
            *("scan m: Maker", "keep rows of m without", "  filter m.active = true"),
            '  filter m.skills contains "lathe"',
        ),
    ],
)
def test_negations_become(match, lines):
    assert pipeline(read(match, "now()")) == lines


def test_now_is_the_reserved_parameter():
    scan, late = read("$s: Shed { openedAt: now() }  $s.openedAt < now()", "$s").pipeline
    now = Param("__nanograph_now", PropType(Scalar.DATETIME))
    assert isinstance(scan, NodeScan)
    assert isinstance(late, Filter)
    assert (scan.matches[0].value, late.right) == (now, now)


def test_dates_are_days_and_datetimes_milliseconds():
    match = (
        '$m: Maker { joined: date("1970-01-03") }  $s: Shed  $s.openedAt > datetime("1970-01-02")'
    )
    scan, _, late = read(match).pipeline
    assert isinstance(scan, NodeScan)
    assert isinstance(late, Filter)
    assert scan.matches[0].value == Constant(2, PropType(Scalar.DATE))
    assert late.right == Constant(86_400_000, PropType(Scalar.DATETIME))


def test_a_text_clause_on_an_outer_variable_is_a_filter_inside():
    plan = read('$p: Page  not { fuzzy($p.title, "x", 1) }', "$p", schema=P)
    assert pipeline(plan) == [
        *("scan p: Page", "keep rows of p without"),
        '  filter fuzzy(p.title, "x", 1) = true',
    ]


def bound(ops: Pipeline) -> Iterator[str]:
    """Every name a pipeline gives to nodes, inner ones too."""
    for op in ops:
        if isinstance(op, NodeScan):
            yield op.variable
        elif isinstance(op, Expand):
            yield op.target
        elif isinstance(op, AntiJoin):
            yield from bound(op.inner)


def test_anonymous_nodes_are_independent():
    plan = read("$m: Maker  $m mentors $_  $m borrows $_  $_ mentors $m  not { $m borrows $_ }")
    names = list(bound(plan.pipeline))
    assert len(names) == len(set(names)) == 5
    assert [line.split(" ")[:3] for line in pipeline(plan)[1:4]] == [
        ["expand", "m", "-Mentors->"],
        ["expand", "m", "-Borrows->"],
        ["expand", "m", "<-Mentors-"],
    ]


def test_an_anonymous_node_does_not_connect_two_traversals():
    plan = read("$m: Maker  $m borrows $_  $_ storedIn $s", "$s")
    assert [line.split(" ")[0] for line in pipeline(plan)] == ["scan", "expand", "scan", "expand"]


def test_a_name_introduced_inside_stays_apart_from_one_bound_later_outside():
    plan = read("$m: Maker  not { $m mentors $x }  $x: Tool", "$x")
    assert pipeline(plan) == [
        *(
            "scan m: Maker",
            "scan x: Tool",
            "keep rows of m without",
            "  expand m -Mentors-> x#: Maker",
        ),
    ]


def test_a_name_used_anew_on_three_levels_means_three_nodes():
    plan = read("$m: Maker  not { $m mentors $a  not { $a mentors $x }  $x: Tool }  $x: Shed")
    assert pipeline(plan) == [
        *("scan m: Maker", "scan x: Shed", "keep rows of m without"),
        *("  scan x#: Tool", "  expand m -Mentors-> a: Maker", "  keep rows of a without"),
        "    expand a -Mentors-> x##: Maker",
    ]


@pytest.mark.parametrize(
    "match",
    [
        pytest.param("$a: Maker  $a mentors $a  not { $a mentors{2,2} $a }", id="in a block"),
        pytest.param(
            "$a: Maker  not { $a mentors $a  not { $a mentors $a } }  not { $a mentors $a }",
            id="in nested and neighbouring blocks",
        ),
        pytest.param("$__temp_a_1: Maker  $a: Maker  $a mentors $a", id="beside a like name"),
        pytest.param(
            "$a: Maker  $a mentors $a  not { $a mentors $__temp_a_1 }", id="beside one in a block"
        ),
    ],
)
def test_a_temporary_is_no_other_variable_of_the_query(match):
    names = list(bound(read(match, "$a").pipeline))
    assert len(names) == len(set(names))


def test_two_blocks_may_use_one_name_for_different_types():
    plan = read("$m: Maker  not { $m mentors $x }  not { $m borrows $x }")
    assert pipeline(plan)[1:] == [
        *("keep rows of m without", "  expand m -Mentors-> x: Maker"),
        *("keep rows of m without", "  expand m -Borrows-> x: Tool"),
    ]


def test_a_block_that_only_repeats_an_outer_binding_holds_nothing():
    (_, block) = read("$m: Maker  not { $m: Maker }").pipeline
    assert block == AntiJoin((), ())


def test_a_triangle_closes_once_whatever_the_order_of_its_sides():
    for match in (
        "$a: Maker  $a mentors $b  $b mentors $c  $c mentors $a",
        "$a: Maker  $c mentors $a  $b mentors $c  $a mentors $b",
    ):
        plan = read(match, "$a")
        names = [line.split(" ")[0] for line in pipeline(plan)]
        assert names == ["scan", "expand", "expand", "expand", "filter"]
        assert sum("__temp_" in name for name in bound(plan.pipeline)) == 1


def test_the_plan_lists_the_variables_of_its_rows_by_name():
    plan = read("$t: Tool  $m borrows $t  $m mentors $_  $m mentors $m  not { $m mentors $x }")
    assert plan.variables == (("m", "Maker"), ("t", "Tool"))
