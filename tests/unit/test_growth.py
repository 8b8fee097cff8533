"""What it takes to compile, and to store a row, grows with the text and not with its square."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pytest

from omnigraph.catalog.compile import compile_schema
from omnigraph.catalog.migrate.identities import under_present_names
from omnigraph.catalog.migrate.plan import plan_migration
from omnigraph.language.format import format_queries, format_schema
from omnigraph.language.syntax import Source
from omnigraph.plan.arrange import arrange
from omnigraph.plan.compile import compile_query
from omnigraph.plan.cost import Sizes
from omnigraph.plan.lint import lint_queries
from omnigraph.versioning.snapshot_rows import property_columns, stored_rows

FEW, MORE = 150, 450
"""Three times the text: linear work triples, quadratic work takes nine times as much."""
MOST = 4.5

SCHEMA = "node P { k: String @key  i: I32?  s: String? }  edge Knows: P -> P  edge Likes: P -> P"
CATALOG = compile_schema(Source("<schema>", SCHEMA))
SIZES = Sizes({"node:P": 3, "edge:Knows": 3, "edge:Likes": 3}, CATALOG)


def lines(call: Callable[[], object]) -> int:
    """How many lines of Python a call executes; the rounds of a loop in one line count as well."""
    count = 0

    def trace(_frame, event, _argument):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def assert_linear(template: str, *calls: Callable[[Source], object]) -> None:
    for call in calls:
        few, more = (lines(partial(call, text_of(template, size))) for size in (FEW, MORE))
        assert more < MOST * few, f"{few} lines for {FEW}, {more} for {MORE}"


def text_of(template: str, size: int) -> Source:
    """A text in which every `<<part>>` is repeated: `#` is a number and `##` the next one.

    Behind a bar stands what separates the parts.
    """

    def repeated(found: re.Match[str]) -> str:
        part, _, separator = found[1].partition("|")
        parts = (part.replace("##", str(n + 1)).replace("#", str(n)) for n in range(size))
        return (separator or " ").join(parts)

    return Source("<text>", re.sub("<<(.*?)>>", repeated, template))


def planned(source):
    arrange(compile_query(source, CATALOG).read_plan(), SIZES)


READS = {
    "bindings": ("<<$a#: P>>", "$a0", ""),
    "bindings that are looked at": ('<<$a#: P { k: "x" }>>', "<<$a#.i|, >>", ""),
    "one binding again and again": ("<<$a0: P { i: # }>>", "$a0", ""),
    "equal columns": ("$a0: P", "<<$a0.i|, >>", ""),
    "aggregates": ("$a0: P", "$a0, <<count($a0.i) as c#|, >>", "order { <<c#|, >> }"),
    "order keys": ("$a0: P", "$a0", "order { <<$a0.i|, >> }"),
    "filters": ("$a0: P <<$a0.i != #>>", "$a0", ""),
    "filters on two variables": ("$a0: P $b: P <<$a0.i != $b.i>>", "$a0", ""),
    "equalities": ("$a0: P <<$a##: P  $a#.k = $a##.k>>", "$a0", ""),
    "negations": ("$a0: P <<not { $a0 knows $_ }>>", "$a0", ""),
    "bindings and negations": ("<<$a#: P  not { $a# knows $_  $a#.i = 1 }>>", "$a0", ""),
    "nested negations": (
        "$a0: P <<$b#: P  not { $a0 knows $x  not { $x knows $b#  $b#.i = $x.i } }>>",
        "$a0",
        "",
    ),
    "a chain": ("<<$a# knows $a##>>", "$a0", ""),
    "a chain that is looked at": ("<<$a# knows $a##>>", "<<$a#|, >>", ""),
    "a chain against its edges": ("$a0: P <<$a## knows $a#>>", "$a0", ""),
    "a chain in a negation": ("$a0: P not { <<$a# knows $a##>> }", "$a0", ""),
    "a star": ("$a0: P <<$a0 knows $b#>>", "$a0", ""),
    "a star that is looked at": ("$a0: P <<$a0 knows $a##>>", "<<$a#|, >>", ""),
    "one link again and again": ("<<$a0 knows $b>>", "$a0", ""),
    "bindings in a negation": ("$a0: P not { $a0 knows $b <<$c#: P>> }", "$a0", ""),
}


@pytest.mark.parametrize(("match", "back", "tail"), READS.values(), ids=READS)
def test_the_work_for_a_read_grows_with_its_length(match, back, tail):
    template = f"query q() {{ match {{ {match} }} return {{ {back} }} {tail} }}"
    assert_linear(template, planned)


def test_a_chain_written_from_its_end_is_planned_in_time():
    """Every link is reached from the one after it in the text."""

    def counted(size):
        links = " ".join(f"$a{n} knows $a{n + 1}" for n in reversed(range(size)))
        text = f"query q() {{ match {{ $a0: P  {links} }} return {{ $a0 }} }}"
        return lines(partial(planned, Source("<query>", text)))

    assert counted(MORE) < MOST * counted(FEW)


def test_variables_named_like_temporary_ones_do_not_get_in_the_way():
    taken = "<<$__temp_b_#: P  $__temp_a0_#: P>>"
    template = f"query q() {{ match {{ $a0 knows $b  $b likes $a0  {taken} }} return {{ $b }} }}"
    planned(text_of(template, 2_000))


SCHEMAS = {
    "enum values": "node P { k: String @key  e: enum(<<v#|, >>) }",
    "properties": "node P { k: String @key <<p#: I32?>> }",
    "indexed properties": "node P { k: String @key <<p#: I32? @index>> }",
    "unique groups": "node P { k: String @key <<p#: I32?  @unique(p#, k)>> }",
    "one wide group": "node P { <<p#: I32?>> @unique(<<p#|, >>) }",
    "node types": "<<node P# { k: String @key }>>",
    "edge types": "node P { k: String @key } <<edge E#: P -> P>>",
    "interfaces": ("<<interface I# { p#: I32? }>> node P implements <<I#|, >> { k: String @key }"),
    "types of one interface": (
        "interface I { p: I32? } <<node P# implements I { k: String @key }>>"
    ),
}


@pytest.mark.parametrize("template", SCHEMAS.values(), ids=SCHEMAS)
def test_the_work_for_a_schema_grows_with_its_length(template):
    small = compile_schema(text_of(template, 10)).ir

    def migrated(source):
        catalog = compile_schema(source)
        plan_migration(catalog.ir, catalog.ir)
        plan_migration(small, catalog.ir)
        under_present_names(catalog.ir, catalog.ir)

    assert_linear(template, migrated, format_schema)


RENAMED = {
    "properties": (
        "node P { k: String @key <<p#: I32?>> }",
        'node P { k: String @key <<q#: I32? @rename_from("p#")>> }',
    ),
    "types": (
        "<<node P# { k: String @key }>>",
        '<<node Q# @rename_from("P#") { k: String @key }>>',
    ),
}


@pytest.mark.parametrize(("old", "new"), RENAMED.values(), ids=RENAMED)
def test_the_work_for_renames_grows_with_their_number(old, new):
    def migrated(source):
        before = compile_schema(text_of(old, source.text.count("rename_from")))
        assert plan_migration(before.ir, compile_schema(source).ir).supported

    assert_linear(new, migrated)


QUERY_FILES = {
    "reads": "<<query q#($a: I32) { match { $p: P { i: $a } } return { $p } }>>",
    "wrong reads": "<<query q#($a: I32) { match { $p: Person } return { $p } }>>",
    "statements": 'query q() { <<insert P { k: "#" }>> }',
    "changes": 'query q() { <<update P set { i: # } where k = "#">> }',
    "parameters": ("query q(<<$p#: I32|, >>) { match { $a: P <<$a.i != $p#>> } return { $a } }"),
    "a list": "query q() { match { $a: P  [<<#|, >>] contains $a.i } return { $a } }",
}


@pytest.mark.parametrize("template", QUERY_FILES.values(), ids=QUERY_FILES)
def test_the_work_to_lint_and_format_grows_with_the_file(template):
    assert_linear(template, lambda source: lint_queries(source, CATALOG), format_queries)


def test_arranging_asks_between_decisions_whether_to_go_on():
    text = text_of("query q() { match { <<$a#: P>> } return { $a0 } }", 100)
    plan = compile_query(text, CATALOG).read_plan()
    calls = 0

    def check():
        nonlocal calls
        calls += 1
        if calls > 50:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        arrange(plan, SIZES, check)
    assert calls == 51


# -- columns ------------------------------------------------------------------------------------


def test_the_work_to_store_a_row_grows_with_its_properties():
    """Counted in CPU time, as Arrow does the work: eight times the properties, not 64 times."""

    def seconds(count: int) -> float:
        text = "node Wide { " + " ".join(f"c{n}: I32?" for n in range(count)) + " }"
        declared = compile_schema(Source("<schema>", text)).nodes["Wide"]
        stored = pa.schema([(p.column, pa.int32()) for p in declared.properties.values()])
        rows = pa.table({name: pa.array([1], pa.int32()) for name in declared.properties})
        spent = []
        for _ in range(3):
            start = time.thread_time()
            assert stored_rows(declared, rows, stored).num_columns == count
            assert len(property_columns(declared, stored)) == count
            spent.append(time.thread_time() - start)
        return min(spent)

    assert seconds(4_000) < 24 * seconds(500)
