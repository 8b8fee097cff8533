"""What a query file may look like, and where the grammar says no."""

from __future__ import annotations

import pytest

from omnigraph.language.query import ast
from omnigraph.language.query.parse import parse_queries
from omnigraph.language.syntax import Name, Source
from tests.unit.language.places import raises, refusal, table
from tests.unit.language.schemas import read_query as read


def parse(text: str) -> ast.Query:
    """The only query of a text."""
    (query,) = parse_queries(Source("<query>", text)).queries
    return query


def clauses(match: str) -> tuple[ast.Clause, ...]:
    body = parse(read(match)).body
    assert isinstance(body, ast.ReadBody)
    return body.clauses


SYNTAX = "Q001"

# fmt: off
# One row per line.
REFUSED = table(
    (SYNTAX, read("$m: Maker { «}»"), "property", "L-071"),
    (SYNTAX, "query «Find»() { match { $m: Maker } return { $m } }", "name", "L-072"),
    (SYNTAX, read("$m: Maker  $m «BORROWS» $t"), "", "L-144"),
    (SYNTAX, read("$m: Maker  $m.age = 1«.»"), ""),
    (SYNTAX, read("$m: Maker  $m.score = 1«e5» $m.age = 1"), ""),
    (SYNTAX, read("$m: Maker  $m mentors{2«}» $x"), ""),
    (SYNTAX, read("$m: Maker  $m mentors{«,»2} $x"), ""),
    (SYNTAX, read("$m: Maker  «or» { $m.age = 1 }"), ""),
    (SYNTAX, read("$m: Maker  not { «}»"), ""),
    (SYNTAX, "query q() { match { «}» return { $m } }", ""),
    (SYNTAX, "query q() { match { $m: Maker } return { «}» }", ""),
    (SYNTAX, "query q() { match { $m: Maker } «}»", "return"),
    (SYNTAX, "query q() { «}»", ""),
    (SYNTAX, "query q() { match { $m: Maker } return { $m } «insert» Shed { slug: 1 } }", ""),
    (SYNTAX, read("$m: Maker", tail="limit 3 «order» { $m.age }"), ""),
    (SYNTAX, read("$m: Maker", tail="limit «-»1"), ""),
    (SYNTAX, read("$m: Maker", tail="order { $m.age, «}»"), ""),
    (SYNTAX, read("$m: Maker", tail="order { $m.age «$m».score }"), ""),
    (SYNTAX, read("$m: Maker", tail="order { $m.age «ascending» }"), ""),
    (SYNTAX, read("$m: Maker", "count(«*»)"), ""),
    (SYNTAX, read("$m: Maker", "$m as «N»"), ""),
    (SYNTAX, read("$m: Maker", "$m,«,» $m"), ""),
    (SYNTAX, read("$m: Maker { age: 1 «handle»: 2 }"), ""),
    (SYNTAX, read("$m: Maker { age: 1,«,» }"), ""),
    (SYNTAX, read("$m: Maker", params="$a: I32 «$b»: I32"), ""),
    (SYNTAX, "query q($a: I32,«)» { insert Shed { slug: 1 } }", ""),
    (SYNTAX, read("$m: Maker", params="«a»: I32"), ""),
    (SYNTAX, read("$m: Maker", params="$a: «enum»(x)"), ""),
    (SYNTAX, read("$m: Maker", params="$a: [«Vector»(3)]"), ""),
    (SYNTAX, read("$m: «maker»"), ""),
    (SYNTAX, read("«$»M: Maker"), ""),
    (SYNTAX, read("$m: Maker  nearest($m«,» [1.0]) < 1.0"), ""),
    (SYNTAX, read("$m: Maker", "rrf(«search»($m.handle, 1), bm25($m.handle, 1))"), ""),
    (SYNTAX, read("$m: Maker", "date(«3»)"), ""),
    (SYNTAX, read("$m: Maker", "[1,«]»"), ""),
    (SYNTAX, read("$m: Maker", "now(«3»)"), ""),
    (SYNTAX, "query q() @«hue»(\"x\") { insert Shed { slug: 1 } }", ""),
    (SYNTAX, "query q() @description(«x») { insert Shed { slug: 1 } }", ""),
    (SYNTAX, "«@»description(\"x\") query q() { insert Shed { slug: 1 } }", ""),
    (SYNTAX, "query q() { insert Shed { slug: 1 } «@»description(\"x\") }", ""),
    (SYNTAX, "query q() { insert Shed { «}» }", ""),
    (SYNTAX, "query q() { update Maker set { age: 1 } «}»", "where"),
    (SYNTAX, "query q() { delete Maker «}»", "where"),
    (SYNTAX, "«queryq»() { insert Shed { slug: 1 } }", ""),
    (SYNTAX, "query q() { insert Shed { slug: 1 }«»", "the end of the file"),
    (SYNTAX, "«#» x", ""),
    ("Q002", r'query q() { insert Shed { slug: "a«\d»" } }', r"unsupported escape sequence: \d"),
    ("Q007", read("$m: Maker  $m.age > «9223372036854775808»"), "invalid integer"),
    ("Q007", read("$m: Maker", f"«{'9' * 5000}»"), "invalid integer"),
    ("Q007", read("$m: Maker  $m mentors{1,«9223372036854775808»} $x"), "invalid integer"),
    ("Q007", read(f"$m: Maker  $m mentors{{«{'9' * 50}»,}} $x"), "invalid integer"),
    ("Q007", read("$m: Maker", f"«{'9' * 400}.0»"), "invalid float"),
    ("Q008", read("$m: Maker", tail="limit «18446744073709551616»"), "invalid limit"),
    ("Q008", read("$m: Maker", tail=f"limit «{'9' * 5000}»"), "invalid limit"),
    ("Q006", 'query q() @description("a") «@description("b")» { insert Shed { slug: 1 } }', "duplicate @description", "L-074"),
    ("Q006", 'query q() @instruction("a") @description("a") «@instruction("b")» { insert Shed { slug: 1 } }', "duplicate @instruction"),
    ("Q003", "query q() { insert Shed { slug: 1 } } query «q»() { insert Shed { slug: 1 } }", "duplicate query 'q'", "L-113"),
    ("Q004", read("$m: Maker", params="$a: I32, «$a»: I32"), "duplicate parameter '$a'", "L-113"),
    ("Q005", read("$m: Maker", "$m.age as x, $m as «x»"), "duplicate alias 'x'"),
)
# fmt: on


@pytest.mark.parametrize(("code", "text", "fragment"), REFUSED)
def test_text_outside_the_grammar_is_refused_where_it_leaves_it(code, text, fragment):
    raises("parse", code, fragment, refusal(parse_queries, text))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("// nothing", id="no query at all"),
        pytest.param("query _a(){match{$m:Maker}return{$m}}", id="no white space"),
        pytest.param(read("$m : Maker { age : 1 , }"), id="trailing comma of a binding"),
        pytest.param(read("$m: Maker", "$m.age $m.score as s, $m,"), id="commas of projections"),
        pytest.param("query q() { insert A { a: 1 b: 2, c: 3, } }", id="commas of assignments"),
        pytest.param(read("$m: Maker  $m mentors { 1 , 3 } $x"), id="white space in hops"),
        pytest.param(read("$m: Maker  $m mentors{2,} $x"), id="open hops, for the checker"),
        pytest.param(read("$m: Maker  $m borrOWS $t"), id="capitals inside an edge word"),
        pytest.param(read("$m . age >= 1 $m.age<=2 $m.age!=3"), id="operators"),
        pytest.param(read("$m: Maker", "9223372036854775807"), id="largest integer"),
        pytest.param(read("$m: Maker", tail="limit 18446744073709551615"), id="largest limit"),
        pytest.param(read("$m: Maker", tail="limit 0"), id="limit of nothing"),
        pytest.param(read("$m: Maker", params="$a: [String] ?, $b: Vector ( 3 )"), id="types"),
        pytest.param(read("$m: Maker", params="$a: [Blob]?, $b: Vector(0)"), id="odd types"),
        pytest.param('query q() @instruction("i") @description("d") { delete A where a = 1 }'),
        pytest.param(read("$not: Maker $not nothing $limit"), id="words starting like keywords"),
        pytest.param(
            "query match() { update A set { set: 1 where: 2 } where where = $set }", id="keywords"
        ),
        pytest.param(
            read("$m: Maker", "count($m) as count", "order { count desc }"), id="call as alias"
        ),
        pytest.param(
            read("$m: Maker", "$m as asc $m.a as as", "order { asc asc, as }"), id="order words"
        ),
        pytest.param(read("$m: Maker", "$m as date", "order { date }"), id="literal word as alias"),
    ],
)
def test_the_grammar_is_generous_where_it_says_so(text):
    parse_queries(Source("<query>", text))


@pytest.mark.parametrize("word", ["contains", "starts_with"])
def test_a_bare_variable_before_an_operator_word_reads_as_a_traversal(word):
    (clause,) = clauses(f"$a {word} $b")
    assert isinstance(clause, ast.Traversal)
    assert clause.edges.only == ast.EdgeName(word)


@pytest.mark.parametrize("word", ["contains", "starts_with"])
def test_a_bare_variable_before_an_operator_word_and_a_literal_is_a_filter(word):
    (clause,) = clauses(f'$a {word} "x"')
    assert isinstance(clause, ast.Filter)


def test_clauses_need_no_separators():
    kinds = [
        type(c).__name__
        for c in clauses(
            '$m: Maker $m.age > $a $m mentors $x search($m.handle, "x") not { $m.age = 1 }'
            ' search($m.handle, "x") = true $x: Maker'
        )
    ]
    assert kinds == [
        "Binding",
        "Filter",
        "Traversal",
        "Filter",
        "Negation",
        "Filter",
        "Binding",
    ]


@pytest.mark.parametrize("word", ["trueish", "falsehood"])
def test_an_alias_may_begin_like_a_boolean(word):
    body = parse(read("$m: Maker", f"$m.age as {word}", f"order {{ {word} }}")).body
    assert isinstance(body, ast.ReadBody)
    assert body.result.order[0].expression == ast.AliasReference(Name(word))


def test_statements_of_all_kinds_mix():
    body = parse(
        "query q() { insert A { a: 1 } delete A where a = 1 update A set { a: 2 } where a < 3 }"
    ).body
    assert isinstance(body, ast.MutationBody)
    assert [type(s).__name__ for s in body.statements] == ["Insert", "Delete", "Update"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            read("$m: Maker " + "not { " * 10_000 + "$m.age = 1" + " }" * 10_000), id="not"
        ),
        pytest.param(read("$m: Maker", "[" * 10_000 + "]" * 10_000), id="lists"),
        pytest.param(read("$m: Maker", "count(" * 10_000 + "$m" + ")" * 10_000), id="calls"),
    ],
)
def test_ten_thousand_levels_of_nesting_are_an_error_with_a_place(text):
    diagnostic = refusal(parse_queries, text, marked=False)
    assert "nest" in diagnostic.message
    assert len(diagnostic.render()) < 1_000
