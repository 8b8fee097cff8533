"""Full text, vectors and fused ranks in queries, with indexes and without."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import EmbeddingNotConfigured, TypeCheckError
from omnigraph.providers.clients import MockProvider, Task
from tests.support.workshop import WORKSHOP, WORKSHOP_ROWS

PAGES = """
node Page {
    slug: String @key
    title: String @index
    vec: Vector(3)? @index
}
"""
ROWS: list[dict[str, object]] = [
    {"slug": "p1", "title": "copper kettle repair", "vec": [1, 0, 0]},
    {"slug": "p2", "title": "kettle descaling notes", "vec": [0, 1, 0]},
    {"slug": "p3", "title": "garden hose", "vec": [0.9, 0.1, 0]},
    {"slug": "p4", "title": "copper wire", "vec": None},
]


def _records(rows: Sequence[Mapping[str, object]]) -> bytes:
    return "\n".join(json.dumps({"type": "Page", "data": row}) for row in rows).encode()


@pytest.fixture(
    scope="module",
    params=["loaded", "several writes", "indexed", "indexed in between", "indexed, then compacted"],
)
def pages(request, tmp_path_factory) -> Graph:
    """The same pages, from one load or from several writes, without indexes, with new or old ones.

    Where there are indexes, the graph is reopened to use the stored ones.
    """
    path = tmp_path_factory.mktemp("search") / "graph"
    graph = init(path, PAGES)
    if request.param in ("loaded", "indexed"):
        graph.load(_records(ROWS), "append")
    else:
        other = {"slug": "p0", "title": "copper copper copper", "vec": [1, 1, 1]}
        graph.load(
            _records([other, {**ROWS[0], "title": "kettle", "vec": None}, ROWS[2]]), "append"
        )
        assert _slugs(graph, 'search($p.title, "copper")') == ["p0"]
        if request.param != "several writes":
            graph.maintenance.ensure_indexes()
        graph.load(_records([ROWS[0]]), "merge")
        assert _slugs(graph, 'search($p.title, "copper")') == ["p0", "p1"]
        graph.load(_records(ROWS), "merge")
        with pytest.MonkeyPatch.context() as patch:
            if request.param == "indexed, then compacted":
                patch.setattr("omnigraph.commit.background.MAX_SMALL_FRAGMENTS", 0)
                patch.setattr("omnigraph.commit.background.INDEX_LAG_ROWS", 0)
            graph.mutate('query d() { delete Page where slug = "p0" }')
            graph.maintenance.wait()
    if request.param == "indexed":
        assert graph.maintenance.ensure_indexes().receipt.graph_commit_id is not None
    return graph if "indexed" not in request.param else open_graph(path)


def _ask(graph: Graph, match: str, shown: str, rest: str = "", **parameters: Any) -> list[Any]:
    declared = ", ".join(
        f"${name}: {'String' if isinstance(value, str) else 'Vector(3)'}"
        for name, value in parameters.items()
    )
    query = f"query q({declared}) {{ match {{ {match} }} return {{ {shown} }} {rest} }}"
    rows = [tuple(row.values()) for row in graph.query(query, parameters)]
    return [row[0] if len(row) == 1 else row for row in rows]


def _slugs(graph: Graph, clauses: str, **parameters: Any) -> list[str]:
    return sorted(_ask(graph, f"$p: Page {clauses}", "$p.slug", **parameters))


def _ordered(graph: Graph, rest: str, **parameters: Any) -> list[str]:
    return _ask(graph, "$p: Page", "$p.slug", rest, **parameters)


# -- vectors ------------------------------------------------------------------------------------


@pytest.mark.acceptance("L-310")
def test_a_vector_may_have_negative_numbers_and_text_is_not_added_to_numbers(pages):
    nearest = "nearest($p.vec, [-1.0, 0.0, 0.0])"
    assert _ordered(pages, f"order {{ {nearest} }} limit 1") == ["p2"]
    with pytest.raises(TypeCheckError, match="T60: cannot compute String"):
        _ask(pages, "$p: Page", "$p.title + 1")


@pytest.mark.acceptance("L-179", "L-180", "L-202")
@pytest.mark.parametrize(("limit", "found"), [(2, ["p1", "p3"]), (10, ["p1", "p3", "p2"])])
def test_nearest_first_and_never_those_without_a_vector(pages, limit, found):
    rest = f"order {{ nearest($p.vec, [1.0, 0.0, 0.0]) }} limit {limit}"
    assert _ordered(pages, rest) == found


@pytest.mark.acceptance("L-188")
def test_matches_come_before_nearness(pages):
    rest = "order { nearest($p.vec, [1.0, 0.0, 0.0]) } limit 1"
    assert _ask(pages, '$p: Page { slug: "p2" }', "$p.slug", rest) == ["p2"]


@pytest.mark.acceptance("L-189", "L-190")
def test_distances_are_cosine_and_can_be_returned(pages):
    shown = "$p.slug, nearest($p.vec, [2.0, 0.0, 0.0]) as d"
    found = _ask(pages, "$p: Page", shown, "order { d } limit 3")
    assert [slug for slug, _ in found] == ["p1", "p3", "p2"]
    assert [d for _, d in found] == pytest.approx([0.0, 0.006116, 1.0], abs=1e-6)
    farthest = _ask(pages, "$p: Page", shown, "order { d desc } limit 2")
    assert [slug for slug, _ in farthest] == ["p2", "p3"]


def test_a_vector_without_length_is_near_to_nothing(pages):
    shown = "$p.slug, nearest($p.vec, $q) as d"
    assert {d for _, d in _ask(pages, "$p: Page", shown, q=[0, 0, 0])} == {None}
    assert _ordered(pages, "order { nearest($p.vec, $q) } limit 5", q=[0, 0, 0]) == []


def test_the_nearest_of_many_are_those_of_all(tmp_path, monkeypatch):
    chance = random.Random(5)
    rows = [
        {"slug": f"p{i}", "title": "x", "vec": [chance.choice([0, 1, -1, 2]) for _ in range(3)]}
        for i in range(3000)
    ]
    graph = init(tmp_path / "graph", PAGES)
    graph.load(_records(rows), "append")
    rest = "order { nearest($p.vec, $q) } limit 40"
    quick = _ordered(graph, rest, q=[1, 2, -1])
    monkeypatch.setattr("omnigraph.read.project.MAX_UNPRUNED_ROWS", 10_000)
    assert quick == _ordered(graph, rest, q=[1, 2, -1])
    assert len(quick) == 40
    assert _ordered(graph, rest, q=[0, 0, 0]) == []


def test_the_nearest_of_rows_that_were_joined(tmp_path, monkeypatch):
    """As many rows as there are pages, and none of them where its page is."""
    monkeypatch.setattr("omnigraph.read.project.MAX_UNPRUNED_ROWS", 10)
    graph = init(tmp_path / "graph", f"{PAGES} edge Links: Page -> Page")
    count = 60
    rows = [{"slug": f"p{i:02}", "title": "x", "vec": [i, count - i, 1]} for i in range(count)]
    links = [
        {"edge": "Links", "from": f"p{i:02}", "to": f"p{(i * 7 + 3) % count:02}"}
        for i in range(count)
    ]
    graph.load(
        _records(rows) + "".join(f"\n{json.dumps(link)}" for link in links).encode(), "append"
    )
    rest = "order { nearest($p.vec, $q) } limit 3"
    found = _ask(graph, "$from: Page $from links $p", "$p.slug", rest, q=[0, 1, 0])
    assert found == ["p00", "p01", "p02"]


@pytest.mark.acceptance("L-186")
def test_a_text_needs_a_provider_and_the_error_names_its_setting(pages, monkeypatch):
    for name in ("GEMINI_API_KEY", "OMNIGRAPH_EMBEDDINGS_MOCK", "OMNIGRAPH_EMBED_PROVIDER"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(EmbeddingNotConfigured, match="GEMINI_API_KEY"):
        _ordered(pages, 'order { nearest($p.vec, "copper") } limit 1')


@pytest.mark.acceptance("U-133")
def test_a_text_is_embedded_when_it_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    texts = ["alpha", "beta", "gamma"]
    vectors = MockProvider().embed(texts, Task.DOCUMENT, 3)
    graph = init(tmp_path / "graph", PAGES)
    rows = [
        {"slug": text, "title": text, "vec": vector.tolist()}
        for text, vector in zip(texts, vectors, strict=True)
    ]
    graph.load(_records(rows), "append")
    for text in texts:
        found = _ordered(graph, "order { nearest($p.vec, $q) } limit 3", q=text)
        assert found[0] == text


# -- texts --------------------------------------------------------------------------------------


@pytest.mark.acceptance("L-181", "L-182", "L-202")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("kettle", ["p1", "p2"]),
        ("Copper KETTLES", ["p1", "p2", "p4"]),
        ("the", []),
        ("", []),
        ("teapot", []),
    ],
)
def test_any_word_of_a_search_will_do(pages, query, found):
    assert _slugs(pages, f'search($p.title, "{query}")') == found
    assert _slugs(pages, "search($p.title, $q)", q=query) == found


@pytest.mark.acceptance("L-183")
@pytest.mark.parametrize(
    ("query", "found"),
    [("kettle copper", []), ("Copper kettles", ["p1"]), ("copper repair", []), ("", [])],
)
def test_a_phrase_has_its_words_in_order(pages, query, found):
    assert _slugs(pages, f'match_text($p.title, "{query}")') == found


@pytest.mark.acceptance("L-195")
@pytest.mark.parametrize(
    ("call", "found"),
    [
        ('fuzzy($p.title, "kettel")', ["p1", "p2"]),
        ('fuzzy($p.title, "coper")', ["p1", "p4"]),
        ('fuzzy($p.title, "coper", 0)', []),
        ('fuzzy($p.title, "wirre hsoe")', ["p4"]),
    ],
)
def test_misspelt_words_are_found(pages, call, found):
    assert _slugs(pages, call) == found


@pytest.mark.acceptance("L-196")
def test_several_text_clauses_must_all_hold(pages):
    both = 'search($p.title, "kettle") match_text($p.title, "descaling notes")'
    assert _slugs(pages, both) == ["p2"]


@pytest.mark.acceptance("L-197")
def test_texts_that_do_not_match(pages):
    assert _slugs(pages, 'not { search($p.title, "kettle") }') == ["p3", "p4"]


def test_whether_a_text_matches_can_be_returned(pages):
    found = _ask(pages, "$p: Page", '$p.slug, search($p.title, "kettle") as s', "order { $p.slug }")
    assert found == [("p1", True), ("p2", True), ("p3", False), ("p4", False)]


def test_a_query_may_be_another_page_s_title(pages):
    clauses = '$p: Page { slug: "p4" } $o: Page search($o.title, $p.title)'
    assert sorted(_ask(pages, clauses, "$o.slug")) == ["p1", "p4"]


# -- scores -------------------------------------------------------------------------------------


@pytest.mark.acceptance("L-184", "L-202")
def test_shorter_texts_score_higher(pages):
    assert _ordered(pages, 'order { bm25($p.title, "copper") } limit 5') == ["p4", "p1"]


@pytest.mark.acceptance("L-191")
def test_a_score_that_is_only_returned_removes_nothing(pages):
    found = dict(_ask(pages, "$p: Page", '$p.slug, bm25($p.title, "copper")'))
    assert {slug for slug, score in found.items() if score is None} == {"p2", "p3"}
    # ln(1 + 2.5 / 2.5) = 0.693147; titles of 3, 3, 2 and 2 words.
    assert found["p1"] == pytest.approx(0.640724, abs=1e-5)
    assert found["p4"] == pytest.approx(0.754913, abs=1e-5)
    query = 'query q() { match { $p: Page } return { bm25($p.title, "copper") } }'
    assert pages.query(query).columns == ["bm25"]


@pytest.mark.acceptance("L-192")
@pytest.mark.parametrize(
    ("key", "found"), [("s desc", ["p4", "p1"]), ("s", ["p4", "p1"]), ("s asc", ["p1", "p4"])]
)
def test_scores_are_ordered_best_first_unless_told_otherwise(pages, key, found):
    shown = '$p.slug, bm25($p.title, "copper") as s'
    rows = _ask(pages, "$p: Page", shown, f"order {{ {key} }}")
    assert [slug for slug, _ in rows] == found


@pytest.mark.acceptance("L-193")
def test_a_later_key_removes_nothing_and_leaves_the_unscored_last(pages):
    rest = 'order { $p.slug desc, bm25($p.title, "copper") }'
    assert _ordered(pages, rest) == ["p4", "p3", "p2", "p1"]
    first = 'order { search($p.title, "wire"), bm25($p.title, "copper") asc }'
    assert _ordered(pages, first) == ["p1", "p2", "p3", "p4"]


@pytest.mark.acceptance("L-198")
def test_scores_can_be_compared(pages):
    assert _slugs(pages, 'bm25($p.title, "copper") > 0.0') == ["p1", "p4"]


@pytest.mark.acceptance("L-199")
def test_scores_can_be_aggregated(pages):
    shown = 'count($p) as n, max(bm25($p.title, "copper")) as best'
    [(count, best)] = _ask(pages, "$p: Page", shown)
    assert (count, best) == (4, pytest.approx(0.754913, abs=1e-5))


RRF = 'rrf(nearest($p.vec, $v), bm25($p.title, "copper"))'


@pytest.mark.acceptance("L-185", "L-194", "L-202")
def test_fused_ranks(pages):
    rest = f"order {{ {RRF} }} limit 3"
    assert _ordered(pages, rest, v=[1, 0, 0]) == ["p1", "p4", "p3"]
    shown = f"$p.slug, {RRF} as s"
    found = _ask(pages, "$p: Page", shown, "order { s } limit 3", v=[1, 0, 0])
    assert [slug for slug, _ in found] == ["p1", "p4", "p3"]
    assert [s for _, s in found] == pytest.approx([0.032522, 0.016393, 0.016129], abs=1e-6)


@pytest.mark.acceptance("L-365")
def test_the_best_fused_ranks_can_be_skipped(pages):
    assert _ordered(pages, f"order {{ {RRF} }} offset 1 limit 2", v=[1, 0, 0]) == ["p4", "p3"]


def test_a_fused_rank_with_its_own_constant(pages):
    shown = f"$p.slug, {RRF[:-1]}, 1) as s"
    found = dict(_ask(pages, "$p: Page", shown, v=[1, 0, 0]))
    assert found == pytest.approx({"p1": 1 / 2 + 1 / 3, "p3": 1 / 3, "p2": 1 / 4, "p4": 1 / 2})


def test_equal_fused_ranks_are_ordered_by_the_first_arm(pages):
    """Both arms rank one page first and the other second."""
    arms = 'rrf(bm25($p.title, "wire"), bm25($p.title, "garden"))'
    assert _ordered(pages, f"order {{ {arms} }} limit 2") == ["p4", "p3"]


# -- other variables ----------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["loaded", "indexed"])
def workshop(request, tmp_path_factory) -> Graph:
    graph = init(tmp_path_factory.mktemp("search") / "workshop", WORKSHOP)
    graph.load(WORKSHOP_ROWS.encode(), "append")
    if request.param == "indexed":
        graph.maintenance.ensure_indexes()
    return graph


@pytest.mark.acceptance("L-200")
def test_a_text_clause_on_a_node_that_was_reached(workshop):
    clauses = '$m: Maker { handle: "bo" } $m borrows $t search($t.label, "saw")'
    assert _ask(workshop, clauses, "$t.code") == ["sa-1"]


@pytest.mark.acceptance("L-201")
def test_a_score_of_a_node_that_was_reached(workshop):
    rest = 'order { bm25($t.label, "chisel") }'
    assert _ask(workshop, "$m: Maker $m borrows $t", "$m.handle", rest) == ["dee"]


def test_a_limit_of_none_ranks_nothing(pages, tmp_path):
    assert _ask(pages, "$p: Page", "$p.slug", f"order {{ {RRF} }} limit 0", v=[1, 0, 0]) == []
    graph = init(tmp_path / "graph", PAGES)
    rows = [{"slug": f"q{n}", "title": "copper", "vec": [n, 1, 0]} for n in range(1200)]
    graph.load(_records(rows), "append")
    assert _ordered(graph, "order { nearest($p.vec, $v) } limit 0", v=[1, 0, 0]) == []


def test_groups_ordered_by_a_rank_hold_only_ranked_rows(pages):
    score = 'bm25($p.title, "copper")'
    found = _ask(pages, "$p: Page", f"{score} as s, count($p) as n", "order { s }")
    assert [count for _, count in found] == [1, 1]
    later = _ask(pages, "$p: Page", f"{score} as s, count($p) as n", "order { n, s }")
    assert (None, 2) in later


def test_groups_of_equal_fused_ranks_are_ordered_by_the_first_arm(pages):
    arms = 'rrf(bm25($p.title, "wire"), bm25($p.title, "garden"))'
    shown = f"$p.slug as slug, {arms} as s, count($p) as n"
    found = _ask(pages, "$p: Page", shown, "order { s } limit 2")
    assert [slug for slug, _, _ in found] == ["p4", "p3"]


def test_fused_ranks_of_many_that_score_alike(tmp_path):
    """Half of the pages score alike in one ranking, all in the other; ids decide between them."""
    graph = init(tmp_path / "graph", PAGES)
    rows = [{"slug": f"q{n:03}", "title": "copper" if n % 2 else "wire"} for n in range(400)]
    graph.load(_records(random.Random(1).sample(rows, len(rows))), "append")
    words = 'rrf(bm25($p.title, "copper"), bm25($p.title, "copper wire"))'

    def best(limit: int) -> list[Any]:
        shown = f"$p.slug, {words} as s"
        return _ask(graph, "$p: Page", shown, f"order {{ s }} limit {limit}")

    everything = best(400)
    assert everything[:5] == [
        (f"q{2 * n - 1:03}", pytest.approx(1 / (60 + n) + 1 / (60 + 2 * n))) for n in range(1, 6)
    ]
    assert everything[-1] == ("q398", pytest.approx(1 / (60 + 399)))
    for limit in (1, 7, 60, 250):
        assert best(limit) == everything[:limit]
