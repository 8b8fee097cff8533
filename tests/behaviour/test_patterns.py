"""Edges, blocks and paths of queries under views, at earlier commits, within budgets and in plans."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from omnigraph.api.graph import init
from omnigraph.errors import (
    QueryBudgetExceeded,
    QueryCancelled,
    TypeCheckError,
    UnusableWeight,
)
from omnigraph.read.budget import CancelToken, QueryBudget
from omnigraph.read.view import ReadView
from omnigraph.storage.filters import Comparison

CASES = Path(__file__).parents[1] / "cases"
ROADS = (CASES / "roads.pg").read_text()
ROWS = (CASES / "roads.jsonl").read_text()
WITHOUT_RAIL = "\n".join(line for line in ROADS.splitlines() if "edge Rail" not in line)


@pytest.fixture(scope="module")
def roads():
    graph = init(f"memory://{uuid.uuid4().hex}", ROADS)
    graph.load(ROWS.encode(), "append")
    return graph


def ask(graph, match, returned, tail="", **more):
    text = f"query q() {{ match {{ {match} }} return {{ {returned} }} {tail} }}"
    return graph.query(text, **more).to_dicts()


def names(graph, match, variable="b", **more):
    return {row[f"{variable}.name"] for row in ask(graph, match, f"${variable}.name", **more)}


@pytest.mark.acceptance("L-395")
def test_a_hidden_edge_type_is_no_member_of_a_star_and_no_name(roads):
    view = ReadView(hidden_types=frozenset({"Rail"}))
    star = '$a: Town { name: "ash" } $b: Town  $a * $b'
    assert names(roads, star) == {"bex", "cob", "dun"}
    assert names(roads, star, view=view) == {"bex", "cob"}
    with pytest.raises(TypeCheckError, match="T4"):
        names(roads, '$a: Town { name: "ash" } $a (road | rail) $b', view=view)


@pytest.mark.acceptance("L-396")
def test_a_hidden_property_is_not_among_all_properties_and_has_no_name(roads):
    view = ReadView(hidden_properties=frozenset({("Town", "pop")}))
    elm = '$t: Town { name: "elm" }'
    [seen], [all_seen] = ask(roads, elm, "$t.*", view=view), ask(roads, elm, "$t.*")
    assert all_seen.keys() - seen.keys() == {"t.pop"}
    assert seen == {name: value for name, value in all_seen.items() if name != "t.pop"}
    with pytest.raises(TypeCheckError, match="T6: type `Town` has no property `pop`"):
        ask(roads, elm, "coalesce($t.pop, 0) as n", view=view)


@pytest.mark.acceptance("L-327")
def test_an_edge_called_like_an_operator_joins_two_variables():
    graph = init(f"memory://{uuid.uuid4().hex}", f"{ROADS}\nedge In: Town -> Town\n")
    graph.load(ROWS.encode(), "append")
    graph.load(b'{"edge": "In", "from": "ash", "to": "elm"}\n', "append")
    assert ask(graph, "$a in $b", "$b.name") == [{"b.name": "elm"}]
    assert ask(graph, '$a "in" $b', "$b.name") == [{"b.name": "elm"}]
    text = "query q($names: [String]) { match { $a: Town  $a.name in $names } return { $a.name } }"
    found = graph.query(text, {"names": ["ash", "zz"]}).to_dicts()
    assert found == [{"a.name": "ash"}]


@pytest.mark.acceptance("L-394")
def test_words_of_operators_are_names_where_a_name_is_read(roads):
    shown = "$t.pop as or, or as b, $t.name as in"
    found = ask(roads, '$t: Town { name: "elm" }', shown)
    assert found == [{"or": 50, "b": 50, "in": "elm"}]
    graph = init(f"memory://{uuid.uuid4().hex}", "node Odd { k: String @key  not: I64? }")
    graph.load(b'{"type": "Odd", "data": {"k": "a", "not": 3}}\n', "append")
    assert graph.mutate("query m() { delete Odd where not = 3 }").affected_nodes == 1


@pytest.mark.acceptance("L-397")
def test_a_star_follows_the_edge_types_of_the_commit_read():
    graph = init(f"memory://{uuid.uuid4().hex}", WITHOUT_RAIL)
    lines = [line for line in ROWS.splitlines() if '"Rail"' not in line]
    before = graph.load("\n".join(lines).encode(), "append").receipt.graph_commit_id
    assert before is not None
    graph.schema.apply(ROADS)
    graph.load("\n".join(x for x in ROWS.splitlines() if '"Rail"' in x).encode(), "append")
    star = "$a: Town  $b: Town  $a * $b"
    assert ask(graph.at(before), star, "count($b) as n") == [{"n": 6}]
    assert ask(graph, star, "count($b) as n") == [{"n": 8}]


@pytest.mark.acceptance("L-398")
def test_a_hidden_node_is_on_no_path_and_no_edge_leads_to_it(roads):
    view = ReadView(rows={"Town": Comparison("name", "!=", "cob")})
    ends = '$a: Town { name: "ash" } $b: Town { name: "dun" } '
    for by in ("", "by km"):
        assert ask(roads, f"{ends} $a shortest road{{1,4}} $b {by}", "$b", view=view) == []
    counted = "count { $t road $_ } as n, count { $t $e: road $_ } as edges"
    found = ask(roads, '$t: Town { name: "ash" }', counted, view=view)
    assert found == [{"n": 1, "edges": 2}]
    edges = ReadView(rows={"Road": Comparison("toll", "=", True)})
    assert ask(roads, "$a $e: road $b", "$e", "order { $e }", view=edges) == [
        {"e": "r3"},
        {"e": "r5"},
    ]


@pytest.mark.parametrize("weight", ["-1.0"])
def test_a_negative_weight_is_refused_wherever_it_is(weight):
    graph = init(f"memory://{uuid.uuid4().hex}", ROADS)
    graph.load(ROWS.encode(), "append")
    graph.mutate(f'query m() {{ insert Road {{ from: "elm", to: "elm", km: {weight} }} }}')
    with pytest.raises(UnusableWeight, match="negative weight: `km` of an edge of type Road"):
        ask(graph, '$a: Town { name: "ash" } $a shortest road{1,2} $b by km', "$b")
    # An edge that the reader cannot see does not count.
    view = ReadView(rows={"Town": Comparison("name", "!=", "elm")})
    ask(graph, '$a: Town { name: "ash" } $a shortest road{1,2} $b by km', "$b", view=view)


@pytest.mark.parametrize(
    "match",
    [
        "$a <road> $b  $b <road> $c  $c <road> $d",
        "$a $e: road $b  $c $f: road $d",
        "$a $p: shortest <road>{1,4} $b",
        "$a $p: shortest <road>{1,4} $b by km",
        "$a: Town  optional { $a <road>{1,3} $b }",
        "$a: Town  $b: Town  $c: Town  $a (road | rail){1,3} $b  $b * $c  $c <*> $a",
        "$a: Town  $b: Town  exists { $a $e: <road> $b  $e.km > $a.pop }",
        "$a: Town  $b: Town  sum($e.km) { $a $e: road $c  $c road $b } > count { $b road $c }",
        "$a: Town  $b: Town  $a.pop = $b.pop or $a.name < $b.name",
    ],
)
def test_the_budget_counts_what_is_followed(roads, match):
    with pytest.raises(QueryBudgetExceeded):
        ask(roads, match, "$a, $b", budget=QueryBudget(max_rows=6))
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(QueryCancelled):
        ask(roads, match, "$a, $b", cancel=cancel)


@pytest.mark.parametrize(
    ("match", "returned", "steps"),
    [
        ("$a $e: road $b  $e.km > 2.0", "$e", ["scan a -e: Road where e.km > 2.0-> b"]),
        ("$t: Town  exists { $f basedIn $t }", "$t", ["keep with t <-BasedIn- Firm"]),
        (
            "$t: Town  count { $t road $_ } > 1",
            "$t",
            ["compute block#1 = count of t -Road-> Town", "keep with block#1 > 1"],
        ),
        ("$t: Town  optional { $f basedIn $t }", "$f", ["left join t with"]),
        (
            "$t: Town  optional { $f basedIn $t }",
            "$t, count($f)",
            ["left join t <-BasedIn- Firm, counted"],
        ),
        (
            '$a: Town { name: "ash" } $a $p: shortest road{1,3} $b by km',
            "$p.cost",
            ["route a -Road{1,3}-> b by km"],
        ),
        ("$t: Town", "count { $t road $_ } as n", ["compute block#1 = count of t -Road-> Town"]),
    ],
)
def test_a_plan_names_the_steps(roads, match, returned, steps):
    text = f"query q() {{ match {{ {match} }} return {{ {returned} }} }}"
    shown = [step.text for step in roads.explain(text, {}).steps]
    assert [step for step in steps if step not in shown] == [], shown


def test_edges_are_found_after_writes_and_on_the_same_handle():
    graph = init(f"memory://{uuid.uuid4().hex}", ROADS)
    graph.load(ROWS.encode(), "append")
    count = "count($e) as n, sum($e.km) as km"
    assert ask(graph, "$a $e: road $b", count) == [{"n": 7, "km": 25.0}]
    graph.mutate('query m() { insert Road { from: "elm", to: "ash", km: 2.5 } }')
    assert ask(graph, "$a $e: road $b", count) == [{"n": 8, "km": 27.5}]
    graph.mutate('query m() { delete Road where from = "elm" }')
    graph.mutate('query m() { delete Town where name = "cob" }')
    assert ask(graph, "$a $e: road $b", count) == [{"n": 4, "km": 11.0}]
    shortest = '$a: Town { name: "ash" } $a $p: shortest <road>{1,3} $b'
    found = ask(graph, shortest, "$b.name, $p.edges", "order { $b.name }")
    assert found == [
        {"b.name": "bex", "p.edges": ["r1"]},
        {"b.name": "dun", "p.edges": ["r7"]},
    ]
