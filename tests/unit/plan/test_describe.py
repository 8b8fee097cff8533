"""Plans as text: every operation and statement has a readable line."""

from omnigraph.catalog.compile import compile_schema
from omnigraph.language.query.parse import parse_queries
from omnigraph.language.span import Source
from omnigraph.plan.compile import compile_checked
from omnigraph.plan.describe import describe_plan
from tests.unit.language.sources import QUERIES, SCHEMA


def described(name, text=QUERIES):
    catalog = compile_schema(Source("library.pg", SCHEMA))
    source = Source("library.gq", text)
    query = next(q for q in parse_queries(source).queries if q.name.text == name)
    return describe_plan(compile_checked(source, catalog, query).plan)


def test_a_read_with_every_kind_of_clause():
    assert described("busy").splitlines() == [
        "read busy($n: I32?, $words: [String], $v: Vector(3))",
        '  scan a: Author where mood = "calm" and tags contains "x"',
        "  expand a -Wrote-> b: Book",
        "  expand a -Knows{1,3}-> f: Author",
        '  filter b.title contains "graph"',
        '  filter b.title starts_with "A"',
        "  filter a.seen < now()",
        "  filter a.seen >= 2024-01-31T10:00:00.000Z",
        '  filter search(a.bio, "cat") = true',
        '  filter fuzzy(b.title, "grph", 1) = true',
        "  filter b.price >= 0.25",
        "  keep rows of a, f without",
        "    expand f -Wrote-> _#1: Book",
        "    keep rows of a, f without",
        "      filter f.born = a.born",
        '  group who = a.slug, books = count(id(b)), best = max(bm25(a.bio, "cat"))',
        "  order count(id(b)) desc, a.slug asc",
        "  limit 10",
    ]


def test_ranks_are_projected_and_ordered_by():
    rank = "rrf(nearest(a.vec, $v), bm25(a.bio, $q), 60)"
    assert described("near").splitlines()[1:] == [
        "  scan a: Author",
        f"  project a.slug = a.slug, d = nearest(a.vec, $v), s = {rank}",
        f"  order {rank} desc, nearest(a.vec, $v) asc",
        "  limit 3",
    ]


def test_a_mutation_with_every_kind_of_statement():
    assert described("add").splitlines() == [
        "mutation add($slug: String, $born: I32?)",
        '  insert Author (slug: $slug, name: "n", born: $born, tags: ["a", "b"], '
        "vec: [1.0, 0.0, 2.5])",
        '  insert Wrote $slug -> "b1"',
        '  update Author (seen: now(), mood: "wild-ish") where born >= 1900',
        '  delete Book where isbn != "b1"',
    ]


def test_an_edge_followed_backwards_and_dates_in_lists():
    text = """query q() {
        match { $b: Book  $b wrote $a  $a.seen > datetime("2020-01-01") }
        return { $a, date("2020-02-29") as d, [date("2020-01-01")] as l }
    }"""
    assert described("q", text).splitlines()[1:] == [
        "  scan b: Book",
        "  expand b <-Wrote- a: Author",
        "  filter a.seen > 2020-01-01T00:00:00.000Z",
        "  project a = id(a), d = 2020-02-29, l = [2020-01-01]",
    ]


def test_edges_are_deleted_by_their_ends_and_inserted_with_properties():
    text = """query q() {
        insert Knows { from: "a", to: "b", since: date("2020-01-01") }
        delete Wrote where from = "a"
    }"""
    assert described("q", text).splitlines()[1:] == [
        '  insert Knows "a" -> "b" (since: 2020-01-01)',
        '  delete Wrote where src = "a"',
    ]
