"""Every rule a read must keep: its message, its code, its place, and the order of checks."""

from __future__ import annotations

import pytest

from omnigraph.errors import TypeCheckError
from omnigraph.language.query.parse import parse_queries
from omnigraph.language.syntax import Source
from omnigraph.plan.check_read import check_read
from omnigraph.plan.compile import compile_query
from tests.unit.language.places import raises, refusal, table
from tests.unit.language.schemas import read_query as q
from tests.unit.plan.compiling import ODDS, O, P, W, against, catalog, read

V3 = "[1.0, 0.0, 0.0]"
NEAR = f"nearest($p.vec, {V3})"
FUSED = f'rrf({NEAR}, bm25($p.title, "x"))'

# fmt: off
# One row per line.
WORKSHOP_RULES = table(
    ("T1", q("$x: «Gadget»"), "T1: unknown node type", "L-075"),
    ("T1", q("$x: «Mentors»"), "T1: unknown node type"),
    ("T2", q('$m: Maker { «colour»: "red" }'), "T2: type `Maker` has no property", "L-076"),
    ("T2", q('$m: Maker { «id»: "ada" }'), "T2: type `Maker` has no property"),
    ("T3", q('$m: Maker { age: «"old"» }'), "T3: property `age` has type I32? but got String", "L-077"),
    ("T3", q('$m: Maker { handle: «3» }'), "T3: property `handle` has type String but got I64"),
    ("T3", q('$m: Maker { level: «"guru"» }'), "T3: property `level` expects one of [master, novice, skilled], got 'guru'", "L-078"),
    ("T3", q('$m: Maker { joined: «"2020-02-01"» }'), "T3: property `joined` has type Date? but got String", "L-080"),
    ("T3", q('$m: Maker { joined: «datetime("2020-02-01")» }'), "T3: property `joined` has type Date? but got DateTime"),
    ("T3", q('$m: Maker { skills: «["lathe"]» }'), "list equality is not supported", "L-081"),
    ("T3", q("$m: Maker { skills: «3» }"), "but membership match got"),
    ("T3", q("$m: Maker { handle: «[1]» }"), "T3: property `handle` has type String but got [I64]"),
    ("T4", q("$m: Maker  $m «likes» $x"), "T4: unknown edge type", "L-082"),
    ("T4", q("$m: Maker  $m «contains» $x"), "T4: unknown edge type"),
    ("T4", q("$t: Tool  $t «stored_in» $x"), "T4: unknown edge type"),
    ("T5", q("$s: Shed  «$s» mentors $x"), "which is not an endpoint of edge", "L-083"),
    ("T5", q("$s: Shed  $x mentors «$s»"), "which is not an endpoint of edge"),
    ("T5", q("$m: Maker  $t: Tool  $m mentors «$t»"), "T5: variable `$t` has type `Tool` but edge `Mentors` expects `Maker`"),
    ("T5", q("$m: Maker  $t: Tool  $t borrows «$t»"), "T5: variable `$t` has type `Tool` but edge `Borrows` expects `Maker`"),
    ("T6", q("$m: Maker", "$m.«id»"), "T6: type `Maker` has no property", "L-084"),
    ("T6", q("$m: Maker  $m.«agee» = 1"), "T6: type `Maker` has no property `agee`"),
    ("T6", q("$m: Maker", "«$x».age"), "T6: variable `$x` is not bound"),
    ("T6", q("$m: Maker  «$x».age = 1  $x: Maker"), "T6: variable `$x` is not bound"),
    ("T6", q("$m: Maker  not { $m mentors $x }", "«$x».age"), "T6: variable `$x` is not bound", "L-109"),
    ("T6", q('$m: Maker  not { $m mentors $x  «$t».code = "a" }  $t: Tool'), "T6: variable `$t` is not bound"),
    ("T6", q("$m: Maker  $m mentors $_", "«$_».age"), "T6: variable `$_` is not bound"),
    ("T6", q("$m: Maker", "$m.handle", "order { «points» }"), "T6: unknown alias `points`", "L-114"),
    ("T6", q("$m: Maker", "«a», $m.age as a"), "T6: unknown alias `a`"),
    ("T7", q("$m: Maker  «$m.age = $m.handle»"), "T7: cannot compare I32? with String", "L-085"),
    ("T7", q('$m: Maker  «$m.joined = "2020-01-01"»'), "T7: cannot compare Date? with String"),
    ("T7", q('$m: Maker  «$m.joined = datetime("2020-01-01")»'), "T7: cannot compare Date? with DateTime"),
    ("T7", q("$m: Maker  «$m.active > 1»"), "T7: cannot compare Bool? with I64"),
    ("T7", q("$m: Maker  «$m.age = $p»", params="$p: String"), "T7: cannot compare I32? with String"),
    ("T7", q("$m: Maker  «$m.age» contains 4"), "T7: contains requires a list or String", "L-086"),
    ("T7", q('$m: Maker  «$m» = "ada"'), "T7: filter comparisons require scalar operands", "L-087"),
    ("T7", q('$m: Maker  "ada" = «$m»'), "T7: filter comparisons require scalar operands"),
    ("T7", q("$m: Maker  «count($m)» > 1"), "T7: filter comparisons require scalar operands"),
    ("T7", q("$m: Maker  «points» > 1"), "T7: filter comparisons require scalar operands"),
    ("T7", q("$m: Maker  «$m.skills» = $m.skills"), "T7: list comparisons in filters are not supported"),
    ("T7", q('$m: Maker  "a" = «["a"]»'), "T7: list comparisons in filters are not supported"),
    ("T7", q("$m: Maker  $m.handle contains «3»"), "T7: cannot test substring"),
    ("T7", q("$m: Maker  $m.level contains «$m.age»"), "T7: cannot test substring"),
    ("T7", q('$m: Maker  «$m.age» starts_with "4"'), "T7: starts_with requires a String", "L-112"),
    ("T7", q("$m: Maker  $m.handle starts_with «4»"), "T7: starts_with requires a String"),
    ("T7", q('$m: Maker  «$m.skills» starts_with "a"'), "T7: starts_with requires a String"),
    ("T7", q('$m: Maker  $m.skills contains «["a"]»'), "T7: contains requires a scalar right operand"),
    ("T7", q("$m: Maker  «$m.skills contains 3»"), "T7: cannot test membership of I64 in"),
    ("T7", q("$m: Maker", "$m", "order { «$m.skills» }"), "T7: cannot order by", "L-116"),
    ("T7", q("$m: Maker", "$m.skills as s", "order { «s» }"), "T7: cannot order by"),
    ("T7", q("$m: Maker", "$m", "order { «[1]» }"), "T7: cannot order by"),
    ("T7", q("$m: Maker { age: «$p» }", params="$p: String"), "T7: cannot assign/compare String with I32? for property `age`"),
    ("T7", q("$m: Maker { joined: «$p» }", params="$p: DateTime"), "T7: cannot assign/compare DateTime with Date? for property `joined`"),
    ("T7", q("$m: Maker { skills: «$p» }", params="$p: [String]"), "list equality is not supported"),
    ("T7", q("$m: Maker { skills: «$p» }", params="$p: I32"), "T7: cannot compare I32 membership against [String]?"),
    ("T7", q("$m: Maker { joined: «now()» }"), "cannot assign/compare DateTime with Date?"),
    ("T7", q("$m: Maker { handle: «now()» }"), "cannot assign/compare DateTime with String"),
    ("T8", q("$m: Maker", "sum(«$m.handle»)"), "T8: sum requires numeric type", "L-088"),
    ("T8", q("$m: Maker", "avg(«$m.active»)"), "T8: avg requires numeric type"),
    ("T8", q("$m: Maker", "sum(«$m»)"), "T8: sum requires numeric type"),
    ("T8", q("$m: Maker", "min(«$m»)"), "T8: min requires numbers, text, Bool or dates"),
    ("T8", q("$m: Maker", "max(«$m.skills»)"), "T8: max requires numbers, text, Bool or dates"),
    ("T9", q("$m: Maker  «not { $x: Tool }»"), "T9: negation block must reference", "L-090"),
    ("T9", q("$m: Maker  «not { $t: Tool  not { $m borrows $t } }»"), "T9: negation block must reference"),
    ("T9", q("$m: Maker  «not { $t: Tool { code: $p } }»", params="$p: String"), "T9: negation block must reference"),
    ("T9", q("$m: Maker  «not { $x mentors $y }»  $x: Maker"), "T9: negation block must reference"),
    ("T9", q("$m: Maker", "«$m.*» as o, count($m)"), "T9: a whole entity beside an aggregate"),
    ("T64", q("$m: Maker", "$m.age", "limit «$n»", params="$n: String"), "T64: `$n` must be an integer parameter"),
    ("T65", q("$m: Maker", "$m.age", "order { «$m.*» }"), "T65: $m.* is an object"),
    ("T65", q("$m: Maker", "count(«$m.*»)"), "T65: $m.* is an object"),
    ("T65", q("$m: Maker", "collect(distinct «$m.*»)"), "T65: $m.* is an object"),
    ("T9", q("$m: Maker", "$m.level, count($m) as n", "order { «$m.age» }"), "T9: order key", "L-115"),
    ("T9", q("$m: Maker", "$m.level", "order { «count($m)» }"), "T9: order key"),
    ("T9", q("$m: Maker", "count($m)", "order { «$m.age» }"), "T9: order key"),
    ("T9", q("$m: Maker", "«count($m) + $m.age»"), "T9: a value beside an aggregate"),
    ("T8", q("$m: Maker", "collect(«$m.skills»)"), "T8: collect takes scalars and objects"),
    ("T14", q("$m: Maker { handle: «$who» }"), "T14: match variable", "L-110"),
    ("T14", q("$m: Maker  $x: Maker { handle: «$m» }"), "T14: match variable"),
    ("T15", q("$m mentors«{1,}» $x"), "unbounded traversal is disabled", "L-092"),
    ("T15", q("$m mentors«{0,2}» $x"), "min hop bound must be >= 1", "L-093"),
    ("T15", q("$m mentors«{3,2}» $x"), "invalid traversal bounds {3,2}", "L-093"),
)

ODD_RULES = table(
    ("T3", q('$m: Odd { «pic»: "base64:" }'), "cannot be used in match patterns"),
    ("T3", q("$m: Odd { required: «[1.0]» }"), "T3: property `required` has type Vector(2) but got vector literal with 1 element"),
    ("T3", q('$m: Odd { flags: «"x"» }'), "but membership match got"),
    ("T7", q("$m: Odd  «$m.pic» = $m.pic"), "blob comparisons"),
    ("T7", q("$m: Odd  «$m.required» = $m.required"), "vector comparisons"),
    ("T7", q("$m: Odd  «$m.required» contains 1.0"), "vector membership filters are not supported"),
    ("T7", q("$m: Odd", "$m", "order { «$m.required» }"), "T7: cannot order by"),
    ("T7", q("$m: Odd", "$m", "order { «$m.pic» }"), "T7: cannot order by"),
    ("T7", q("$m: Odd { moments: «now()» }"), "cannot assign/compare DateTime with [DateTime]?"),
    ("T8", q("$m: Odd", "sum(«$m.numbers»)"), "T8: sum requires numeric type"),
)

PAGE_RULES = table(
    ("T3", q("$p: Page { vec: «[1.0]» }"), "T3: property `vec` has type Vector(3) but got vector literal with 1 element"),
    ("T15", q("$p: Page", "$p.slug", "order { nearest($p.vec, «[1.0, 0.0]») } limit 1"), "nearest vector dimension mismatch", "L-103"),
    ("T15", q("$p: Page", "nearest($p.vec, «$v») as d", params="$v: Vector(2)"), "nearest vector dimension mismatch"),
    ("T15", q("$p: Page", "nearest($p.vec, «3») as d"), "nearest query must be Vector(n) or String"),
    ("T15", q("$p: Page", "nearest($p.vec, «$v») as d", params="$v: [F32]"), "nearest query must be Vector(n) or String"),
    ("T15", q("$p: Page", 'nearest($p.vec, «["a", "b", "c"]») as d'), "nearest query must be Vector(n) or String"),
    ("T15", q("$p: Page", "nearest($p.vec, «$p.title») as d"), "nearest query must be a literal or parameter"),
    ("T15", q("$p: Page", "nearest($p.vec, «max($p.title)») as d"), "nearest query must be a literal or parameter"),
    ("T15", q("$p: Page", "nearest(«$p.title», [1.0]) as d"), "T15: nearest requires a Vector property"),
    ("T15", q("$p: Page", "nearest($p.«vek», [1.0]) as d"), "T15: "),
    ("T15", q("$p: Page", "nearest(«$x».vec, [1.0]) as d"), "T15: "),
    ("T17", q("$p: Page", "$p.slug", f"order {{ {NEAR} }}").replace("query q(", "query «q»("), "T17", "L-102"),
    ("T17", q("$p: Page", f"$p.slug, {NEAR} as d", "order { $p.slug, d desc }").replace("query q(", "query «q»("), "T17"),
    ("T19", q("$p: Page  search(«$p.vec», \"x\")"), "T19: search field must be String", "L-104"),
    ("T19", q("$p: Page  search($p.title, «5»)"), "T19: search query must be String"),
    ("T19", q("$p: Page  fuzzy(«$p.vec», \"x\")"), "T19: fuzzy field must be String"),
    ("T19", q("$p: Page  fuzzy($p.title, «true»)"), "T19: fuzzy query must be String"),
    ("T19", q("$p: Page  search(«$p», \"x\")"), "T19: search field must be String"),
    ("T19", q("$p: Page  search($p.title, «$t»)", params="$t: [String]"), "T19: search query must be String"),
    ("T19", q('$p: Page  fuzzy($p.title, "x", «3»)'), "fuzzy edits must be between 0 and 2", "L-117"),
    ("T19", q('$p: Page  fuzzy($p.title, "x", «1.0»)'), "T19: fuzzy"),
    ("T19", q('$p: Page  fuzzy($p.title, "x", «$n»)', params="$n: F64"), "T19: fuzzy"),
    ("T20", q("$p: Page", "bm25($p.title, «5») as s"), "T20: bm25 query must be String", "L-105"),
    ("T20", q("$p: Page", "bm25($p.title, «max($p.title)») as s"), "T20: bm25 query must be String"),
    ("T20", q("$p: Page", 'bm25(«$p.vec», "x") as s'), "T20: bm25 field must be String"),
    ("T20", q('$p: Page  match_text(«$p.vec», "x")'), "T20: match_text field must be String"),
    ("T20", q("$p: Page  match_text($p.title, «5»)"), "T20: match_text query must be String"),
    ("T21", q("$p: Page", "$p.slug", "order { rrf(nearest($p.vec, $v), bm25($p.title, $t)) }", "$v: Vector(3), $t: String").replace("query q(", "query «q»("), "T21: rrf ordering requires a limit", "L-106"),
    ("T21", q("$p: Page", f"{FUSED} as s", "order { s }").replace("query q(", "query «q»("), "T21: rrf ordering requires a limit"),
    ("T21", q("$p: Page", f'rrf({NEAR}, {NEAR}, «"x"») as s'), "rrf k must be an integer scalar"),
    ("T21", q("$p: Page", f"rrf({NEAR}, {NEAR}, «1.5») as s"), "rrf k must be an integer scalar"),
    ("T21", q("$p: Page", f"rrf({NEAR}, {NEAR}, «0») as s"), "rrf k must be greater than 0"),
)

# Rules whose messages carry no code.
PLAIN_RULES = table(
    ("", q("$m: Maker", params="«$__nanograph_now»: DateTime"), "is reserved for runtime timestamp injection", "L-107"),
    ("", q("$m: Maker", params="$v: «Vector(0)»"), "unknown parameter type"),
    ("", q("$m: Maker", params="$v: «Vector(2147483648)?»"), "unknown parameter type"),
    ("", q("$m: Maker", "«$x»"), "variable `$x` is not bound"),
    ("", q("$m: Maker  $m.age = «$x»"), "variable `$x` is not bound"),
    ("", q("$m: Maker", "$m", "order { «$x» }"), "variable `$x` is not bound"),
    ("", q("$m: Maker  $m mentors $_", "«$_»"), "variable `$_` is not bound"),
    ("", q("$m: Maker  «$m»: Tool"), "already bound to type", "L-108"),
    ("", q("$m borrows $t  «$t»: Shed"), "already bound to type"),
    ("", q("$m: Maker  not { «$m»: Tool }"), "already bound to type"),
    ("", q("$m: Maker", "[1, «\"a\"»]"), "list literal elements must share a compatible scalar type"),
    ("", q("$m: Maker", "[1, «[2]»]"), "nested list literals are not supported"),
    ("", q('$m: Maker { joined: «date("soon")» }'), "invalid Date literal 'soon'", "L-178"),
    ("", q('$m: Maker  $m.joined > «date("2020-02-30")»'), "invalid Date literal '2020-02-30'"),
    ("", q("$m: Maker", '«datetime("10:00")»'), "invalid DateTime literal '10:00'"),
)
# fmt: on


@pytest.mark.parametrize(("code", "text", "fragment"), WORKSHOP_RULES)
def test_a_broken_rule_is_named_where_it_is_broken(code, text, fragment):
    diagnostic = refusal(against(W), text)
    raises("type", code, fragment, diagnostic)
    assert diagnostic.message.startswith(f"{code}: ")


@pytest.mark.parametrize(("code", "text", "fragment"), ODD_RULES)
def test_a_rule_about_blobs_vectors_and_lists_is_named_where_it_is_broken(code, text, fragment):
    diagnostic = refusal(against(O), text)
    raises("type", code, fragment, diagnostic)
    assert diagnostic.message.startswith(f"{code}: ")


@pytest.mark.parametrize(("code", "text", "fragment"), PAGE_RULES)
def test_a_rule_about_search_is_named_where_it_is_broken(code, text, fragment):
    diagnostic = refusal(against(P), text)
    raises("type", code, fragment, diagnostic)
    assert diagnostic.message.startswith(f"{code}: ")


@pytest.mark.parametrize(("code", "text", "fragment"), PLAIN_RULES)
def test_a_rule_without_a_code_is_named_where_it_is_broken(code, text, fragment):
    diagnostic = refusal(against(W), text)
    assert fragment in diagnostic.message
    assert diagnostic.category == "type"


def test_a_mutation_is_no_read():
    source = Source("<query>", "query q() { delete Maker where age = 1 }")
    (query,) = parse_queries(source).queries
    with pytest.raises(
        TypeCheckError, match="mutation query cannot be typechecked with read-query API"
    ):
        check_read(source, W, query)


@pytest.mark.parametrize(
    ("first", "text"),
    [
        pytest.param("T6", q("$p: Page", "$p.nope", "order { $p.vec }"), id="projections first"),
        pytest.param(
            "T7", q("$p: Page", "$p", f"order {{ {FUSED}, $p.vec }}"), id="order keys before T21"
        ),
        pytest.param(
            "T21", q("$p: Page", "$p", f"order {{ {NEAR}, {FUSED} }}"), id="T21 before T17"
        ),
        pytest.param(
            "T17", q("$p: Page", "$p, count($p), 3", f"order {{ {NEAR} }}"), id="T17 before T9"
        ),
        pytest.param(
            "T21", q("$p: Page", "$p, count($p), 3", f"order {{ {FUSED} }}"), id="T21 before T9"
        ),
        pytest.param("T4", q("$p: Page  $p likes $x  $q: Nope"), id="clauses from top to bottom"),
        pytest.param("T1", q("$q: Nope", "$x.a"), id="clauses before projections"),
        pytest.param("T2", q('$p: Page { nope: date("soon") }'), id="name before value"),
    ],
)
def test_checks_run_in_their_order(first, text):
    assert refusal(against(P), text, marked=False).code == first


# -- what is allowed ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("match", "params"),
    [
        pytest.param('$m: Maker  $m.level = "guru"', "", id="any text against an enum in a filter"),
        pytest.param("$m: Maker { age: 29.5, score: 3 }", "", id="numbers of another kind"),
        pytest.param("$m: Maker { level: $p }", "$p: String", id="text for an enum"),
        pytest.param("$m: Maker { age: $p }", "$p: U64?", id="any number, null too"),
        pytest.param('$m: Maker { skills: "lathe" }', "", id="membership"),
        pytest.param("$m: Maker { skills: $p }", "$p: String", id="membership of a parameter"),
        pytest.param("$m: Maker  $m.age >= $m.score", "", id="two properties"),
        pytest.param("$m: Maker  $m.skills contains $m.handle", "", id="list contains a property"),
        pytest.param('$m: Maker  ["a", "b"] contains $m.handle', "", id="literal list"),
        pytest.param("$m: Maker  [] contains $m.handle", "", id="the empty list holds texts"),
        pytest.param("$m: Maker  [1, 2.5] contains $m.age", "", id="list of numbers"),
        pytest.param('$m: Maker  $m.level contains "a"', "", id="substring of an enum"),
        pytest.param('$m: Maker  $p starts_with "a"', "$p: String", id="prefix of a parameter"),
        pytest.param("$s: Shed { openedAt: now() }  $m: Maker", "", id="now in a binding"),
        pytest.param("$s: Shed  $s.openedAt < now()  $m: Maker", "", id="now in a filter"),
        pytest.param('$m: Maker  bm25($m.handle, "x") > 1.5', "", id="score in a filter"),
        pytest.param("$m: Maker  search($m.level, $p) = false", "$p: String?", id="text function"),
        pytest.param('$m: Maker  fuzzy($m.handle, "x", $n)', "$n: U32", id="edits as parameter"),
        pytest.param('$m: Maker  fuzzy($m.handle, "x", 2)', "", id="most edits"),
        pytest.param("$m: Maker", "$v: Vector(1), $w: Vector(2147483647)?", id="vector sizes"),
        pytest.param("$m: Maker  $m borrOWS $t", "", id="capitals inside the edge word"),
        pytest.param("$m: Maker { active: true }  $m: Maker { age: 29 }", "", id="bound again"),
        pytest.param("$m: Maker  not { not { $m.age = 1 }  $m.score = 1.0 }", "", id="nested not"),
        pytest.param('$m: Maker  not { search($m.handle, "x") }', "", id="text clause in not"),
        pytest.param("$m: Maker  not { $m: Maker { age: 3 } }", "", id="outer name bound again"),
        pytest.param("$m: Maker  not { $m mentors $x }  $x: Tool", "", id="inner name free later"),
        pytest.param("$m: Maker  $m mentors{1,1} $_  $_ mentors $m", "", id="anonymous twice"),
        pytest.param("$m: Maker  $t: Tool  $t borrows $m", "", id="direction by type"),
        pytest.param("$m mentors $x", "", id="no binding at all"),
    ],
)
def test_a_match_that_breaks_no_rule_is_accepted(match, params):
    read(match, params=params)


@pytest.mark.acceptance("L-144")
def test_an_edge_is_found_whatever_its_capitals_behind_the_first():
    (edge,) = read("$m: Maker  $m borrOWS $t").pattern.edges
    assert edge.edge_types == ("Borrows",)
    assert refusal(against(W), q("$m: Maker  $m «BORROWS» $t")).category == "parse"


def test_an_enum_may_be_compared_with_any_text():
    read('$m: Maker  $m.level = "guru"')


@pytest.mark.acceptance("L-119")
def test_a_distance_may_be_returned_without_order_and_limit():
    read("$p: Page", f"{NEAR} as d", schema=P)


@pytest.mark.parametrize(
    ("returned", "tail"),
    [
        pytest.param("$p", f"order {{ {NEAR} desc }} limit 0", id="nearest with any limit"),
        pytest.param("$p", 'order { bm25($p.title, "x") }', id="bm25 needs no limit"),
        pytest.param("$p", f"order {{ {FUSED} }} limit 3", id="nearest inside rrf is no T17"),
        pytest.param(f"{FUSED}, {NEAR}", "", id="scores only returned"),
        pytest.param("nearest($p.vec, $t)", "", id="text to embed"),
        pytest.param("nearest($p.vec, $v)", "", id="vector parameter"),
        pytest.param("nearest($p.vec, [1, 0, 2.5])", "", id="integers in a vector"),
        pytest.param(f"rrf({NEAR}, {NEAR}, $k)", "", id="k as parameter"),
        pytest.param("count($p), $p.slug, $p", "", id="group by property and variable"),
        pytest.param('max(bm25($p.title, "x")), search($p.title, "y")', "", id="scores in groups"),
        pytest.param("$p.slug as n, count($p)", "order { $p.slug, n, count($p) }", id="structural"),
        pytest.param("count($p) as n", "order { n desc }", id="alias of an aggregate"),
        pytest.param("$p.slug as a, a as b, count(b)", "", id="alias of an alias"),
        pytest.param("$p", "order { $p, $p.title desc, 3, $t, now() }", id="scalars of any kind"),
        pytest.param("$p", 'order { search($p.title, "x") }', id="order by a match"),
        pytest.param("$p.vec, [1, 2], $v", "", id="lists and vectors are returned"),
    ],
)
def test_a_result_that_breaks_no_rule_is_accepted(returned, tail):
    read("$p: Page", returned, tail, "$v: Vector(3), $t: String, $k: I32", P)


def test_a_parameter_hides_a_variable_of_its_name():
    plan = read("$m: Maker", "$m, $m.age", params="$m: [String]")
    assert [c.expression.type.display for c in plan.columns] == ["[String]", "I32?"]


def test_types_of_result_columns():
    plan = read(
        "$p: Page",
        f'{NEAR}, bm25($p.title, "x"), {FUSED}, search($p.title, "x"), $p, now(), [], [1.5]',
        schema=P,
    )
    assert [c.expression.type.display for c in plan.columns] == [
        *("F64?", "F64?", "F64?", "Bool", "String", "DateTime", "[String]", "[F64]"),
    ]


@pytest.mark.parametrize(
    ("call", "type"),
    [
        ("count($m.age)", "I64"),
        ("count($m)", "I64"),
        ("sum($m.age)", "F64?"),
        ("avg($m.score)", "F64?"),
        ("min($m.age)", "I32?"),
        ("max($m.handle)", "String?"),
    ],
)
def test_types_of_aggregates(call, type):
    (column,) = read("$m: Maker", call).columns
    assert column.is_aggregate
    assert column.expression.type.display == type


def test_an_interface_is_no_node_type():
    schema = catalog("interface I { a: I32 } node N implements I { }")
    assert refusal(lambda s: compile_query(s, schema), q("$m: «I»")).code == "T1"


def test_the_schema_of_odd_types_is_read_as_written():
    assert catalog(ODDS).hash == O.hash
