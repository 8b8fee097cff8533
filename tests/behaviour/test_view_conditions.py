"""Row conditions of views: any expression, wherever rows are read."""

from __future__ import annotations

import os
import pickle
import uuid
from pathlib import Path
from unittest.mock import patch

import pytest

from omnigraph.api.graph import init
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import ParameterError, ParseError, TypeCheckError
from omnigraph.read.view import ReadView

CASES = Path(__file__).parents[1] / "cases"
ROADS = (CASES / "roads.pg").read_text()
ROWS = (CASES / "roads.jsonl").read_text()

CONDITIONS = {
    'pop = 300 or name = "elm"': {"bex", "cob", "elm"},
    "not (pop > 300) or pop is null": {"bex", "cob", "dun", "elm"},
    "pop is null": {"dun"},
    "name in $names": {"ash", "elm"},
    "pop * 2 - 100 > 400": {"ash", "bex", "cob"},
    "coalesce(pop, 100) >= 100 and not (pop in $sizes)": {"ash", "bex", "cob"},
    'case when pop is null then true when pop > $least then false else name ends_with "m" end': {
        "dun",
        "elm",
    },
    'lower(trim(note)) = "mill"': {"cob"},
    'size(tags) = 2 and tags contains "old"': {"ash"},
    'contains_any(tags, ["mine", "old"]) and tags contains $word': {"ash", "dun"},
    'date_part(since, "year") < 2005': {"ash", "bex"},
    '@id = "dun" or @type = "Firm"': {"dun"},
    "pop / 0 > 1": set(),
    "pop + 9223372036854775807 > 0": set(),
    "seen < now()": {"ash"},
}
PARAMS = {
    "names": ["elm", "ash", "zz"],
    "least": 200,
    "sizes": [50, 51],
    "word": "port",
    "unused": object(),
}


@pytest.fixture(scope="module")
def roads():
    graph = init(f"memory://{uuid.uuid4().hex}", ROADS)
    graph.load(ROWS.encode(), "append")
    return graph


def towns(condition):
    return ReadView(rows={"Town": condition}, params=PARAMS)


def names(graph, match, variable="t", **more):
    text = f"match {{ {match} }} return {{ ${variable}.name as name }}"
    return {row["name"] for row in graph.query(text, **more).to_dicts()}


def scan(graph, type_name, view):
    return open_graph(graph.uri, view=view).scan(type_name).read_all()


def both_paths(graph):
    for mode in ("csr", "indexed"):
        with patch.dict(os.environ, {"OMNIGRAPH_TRAVERSAL_MODE": mode}):
            yield open_graph(graph.uri, read_only=True)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_of_a_view_shows_the_rows_for_which_it_is_true(roads, condition):
    view, shown = towns(condition), CONDITIONS[condition]
    assert names(roads, "$t: Town", view=view) == shown
    assert set(scan(roads, "Town", view).column("id").to_pylist()) == shown
    assert open_graph(roads.uri, view=view).at("main").counts["Town"] == len(shown)
    all_roads = roads.scan("Road", columns=["src", "dst"]).read_all().to_pylist()
    left = [edge for edge in all_roads if {edge["src"], edge["dst"]} <= shown]
    for handle in both_paths(roads):
        found = handle.query("match { $a $e: road $b } return { count($e) as n }", view=view)
        assert found.to_dicts() == [{"n": len(left)}]
        ends = {edge["dst"] for edge in left}
        assert names(handle, "$_ road $t", view=view) == ends
        lookup = '$a: Town { name: "ash" } $a road{1,4} $t'
        assert names(handle, lookup, view=view) <= shown
    assert scan(roads, "Road", view).num_rows == len(left)


EDGE_CONDITIONS = {
    "km > 3.5 or toll": {"r1", "r3", "r5"},
    "toll": {"r3", "r5"},
    "not toll": {"r1"},
    "from = to": {"r6"},
    '@src = "ash" and round(km / 2) >= 3': {"r5", "r3"},
    "coalesce(km, 0.0) = 0 or km = 1": {"r6", "r7"},
}


@pytest.mark.parametrize("condition", EDGE_CONDITIONS)
def test_a_condition_may_hide_edges(roads, condition):
    view = ReadView(rows={"Road": condition})
    shown = EDGE_CONDITIONS[condition]
    assert set(scan(roads, "Road", view).column("id").to_pylist()) == shown
    rows = {edge["id"]: edge for edge in roads.scan("Road").read_all().to_pylist()}
    pairs = {(rows[id]["src"], rows[id]["dst"]) for id in shown}
    for handle in both_paths(roads):
        text = "match { $a road $b } return { $a.name as a, $b.name as b }"
        found = handle.query(text, view=view).to_dicts()
        assert sorted((row["a"], row["b"]) for row in found) == sorted(pairs)
        text = "match { $a $e: road $b } return { $e }"
        assert {row["e"] for row in handle.query(text, view=view).to_dicts()} == shown


def test_a_condition_may_read_what_the_view_hides(roads):
    view = ReadView(
        hidden_properties=frozenset({("Town", "pop")}), rows={"Town": "pop % 200 = 100"}
    )
    assert names(roads, "$t: Town", view=view) == {"bex", "cob", "ash"}
    with pytest.raises(TypeCheckError, match="T6"):
        names(roads, "$t: Town  $t.pop > 1", view=view)


def test_search_counts_and_entities_of_a_view(roads):
    view = towns('length(name) = 3 and not (name starts_with "c")')
    seen = open_graph(roads.uri, view=view)
    assert names(seen, '$t: Town  search($t.note, "bay mill")') == {"ash"}
    assert seen.get("Town", "cob") is None
    assert (seen.get("Town", "ash") or {})["name"] == "ash"
    counts = seen.at("main").counts
    assert (counts["Town"], counts["Road"]) == (4, 4)


def test_a_row_enters_and_leaves_the_view_of_a_diff(tmp_path):
    graph = init(tmp_path / "g", ROADS)
    graph.load(ROWS.encode(), "append")
    before = graph.head().id
    graph.mutate('query q() { update Town set { pop: 2000 } where name = "elm" }')
    graph.mutate('query q() { update Town set { pop: 10 } where name = "bex" }')
    found = graph.diff(before, "main", view=towns("coalesce(pop, 0) * 2 >= 400"))
    changes = {(change["op"], change["id"]) for change in found.to_arrow().to_pylist()}
    assert changes == {("insert", "elm"), ("delete", "bex"), ("delete", "l2"), ("delete", "r1")} | {
        ("delete", "r2"),
        ("delete", "r5"),
        ("delete", "b2"),
    }


def test_a_reader_writes_only_what_its_condition_shows(tmp_path):
    graph = init(tmp_path / "g", ROADS)
    graph.load(ROWS.encode(), "append")
    seen = open_graph(graph.uri, view=towns("coalesce(pop, 0) + 1 < 400"))
    found = seen.mutate('query q() { match { $t: Town } update $t { note: "seen" } }')
    assert found.affected_nodes == 4
    noted = graph.query('match { $t: Town  $t.note = "seen" } return { $t.name }').to_dicts()
    assert {row["t.name"] for row in noted} == {"bex", "cob", "dun", "elm"}


def test_a_condition_that_cannot_be_right_is_refused(roads):
    with pytest.raises(ParseError, match="rows of Town"):
        ReadView(rows={"Town": "pop >"})
    for condition, code in {
        "popp > 1": "T11",
        "pop": "T41",
        "count(pop) > 1": "T44",
        'pop > "x"': "T3",
        "$x is null": "T14",
    }.items():
        with pytest.raises(TypeCheckError, match=code):
            names(roads, "$t: Town", view=ReadView(rows={"Town": condition}))
    with pytest.raises(ParameterError, match="least"):
        names(roads, "$t: Town", view=ReadView(rows={"Town": "pop > $least"}))


def test_a_view_can_be_pickled(roads):
    view = pickle.loads(pickle.dumps(ReadView(rows={"Town": "pop > $x"}, params={"x": 200})))
    assert names(roads, "$t: Town", view=view) == {"ash", "bex", "cob"}


def test_what_a_view_shows_follows_writes_and_compaction(tmp_path):
    graph = init(tmp_path / "g", ROADS)
    graph.load(ROWS.encode(), "append")
    view = ReadView(rows={"Town": "length(name) + coalesce(pop, 0) > 100", "Road": "km * 2 > 5"})
    text = "match { $a $e: road $b } return { $e }"
    assert {row["e"] for row in graph.query(text, view=view).to_dicts()} == {"r1", "r2", "r3", "r5"}
    graph.mutate('query q() { update Town set { pop: 500 } where name = "dun" }')
    graph.mutate('query q() { insert Road { from: "dun", to: "cob", km: 2.6 } }')
    graph.maintenance.optimize()
    for handle in (graph, *both_paths(graph)):
        pairs = handle.query("match { $a road $b } return { $a, $b }", view=view).to_dicts()
        assert sorted((row["a"], row["b"]) for row in pairs) == [
            ("ash", "bex"),
            ("ash", "cob"),
            ("bex", "cob"),
            ("dun", "cob"),
        ]


def test_rows_stay_what_they_are_when_memory_runs_out_of_where_they_are():
    """The cache evicts the numbering of a table whose rows were deleted, and keeps what was derived."""
    schema = "node P { k: String @key  open: Bool }\nedge L: P -> P"
    graph = init(f"memory://{uuid.uuid4().hex}", schema)
    rows = {"a": False, "b": True, "c": True, "d": False}
    graph.load(
        {
            "P": [{"k": key, "open": is_open} for key, is_open in rows.items()],
            "L": [{"from": key, "to": other} for key in rows for other in rows],
        },
        "append",
    )
    texts = [
        "$p: P } return { $p.k as k, $p.open as open } order { k",
        "$p $e: l $o } return { $p.k as k, $o.k as o } order { k, o",
        "$p: P  $p l $o } return { $p.k as k, count($o) as n } order { k",
    ]

    def answers(view):
        return [
            [
                list(row.values())
                for row in graph.query(f"query q() {{ match {{ {text} }} }}", view=view)
            ]
            for text in texts
        ]

    limited = ReadView(rows={"P": "open"})
    assert answers(limited)[2] == [["b", 2], ["c", 2]]
    assert len(answers(ReadView.ALL)[1]) == 16
    graph.mutate('query q() { delete P where k = "b"  insert P { k: "e", open: false } }')
    cache = graph._core.reader._cache
    for _ in range(2):
        assert answers(limited) == [[["c", True]], [["c", "c"]], [["c", 1]]]
        people, edges, counts = answers(ReadView.ALL)
        assert people == [["a", False], ["c", True], ["d", False], ["e", False]]
        assert edges == [[key, other] for key in "acd" for other in "acd"]
        assert counts == [["a", 3], ["c", 3], ["d", 3]]
        for key in [key for key in cache._entries if isinstance(key, tuple) and key[0] == "rows"]:
            cache._remove(key)
