"""Expressions at their edges: statements of a text, settings, scans, and counts that all writers add to."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import (
    BranchNotFound,
    LanguageError,
    OmnigraphError,
    ParameterOutOfRange,
    QueryBudgetExceeded,
    QuerySelectionError,
    TypeCheckError,
)

ROADS = Path(__file__).parents[1] / "cases"
TOWNS = "match { $t: Town } return { $t.name }"
COUNT = 'update Town set { pop: coalesce(pop, 0) + 1 } where name = "dun"'
WRITERS = 8
EACH = 4


@pytest.fixture
def roads(tmp_path):
    graph = og.init(tmp_path / "roads.omni", schema=ROADS / "roads.pg")
    graph.load(ROADS / "roads.jsonl", mode="overwrite")
    return graph


@pytest.mark.acceptance("L-389")
def test_explain_as_a_statement_shows_steps_and_reads_nothing(roads):
    found = roads.query("explain query q() { match { $t: Town } return { $t.name } }")
    assert found.columns == ["tree", "depth", "node", "detail"]
    rows = found.to_dicts()
    assert rows[0]["node"] == "scan"
    assert '"Town"' in rows[0]["detail"] or "Town" in rows[0]["detail"]
    assert {row["tree"] for row in rows} == {"plan"}


@pytest.mark.acceptance("L-391")
def test_settings_hold_for_their_text(roads):
    assert len(roads.query("set engine = v2; query q() { " + TOWNS + " }")) == 5
    with pytest.raises(QueryBudgetExceeded):
        roads.query("set max_rows = 2; query q() { " + TOWNS + " }")
    with pytest.raises(LanguageError, match="unknown setting `pace`; there are exact, "):
        roads.query("set pace = 3; query q() { " + TOWNS + " }")
    shown = roads.query("set max_rows = 2; show all;")
    assert shown.columns == ["name", "value", "default", "source", "scope"]
    assert {"name": "max_rows", "value": "2", "source": "text"}.items() <= next(
        row for row in shown.to_dicts() if row["name"] == "max_rows"
    ).items()


@pytest.mark.acceptance("L-392")
def test_a_statement_stands_alone(roads):
    for text in (
        "branch list query q() { " + TOWNS + " }",
        "explain query q() { delete Town where pop = 1 }",
    ):
        with pytest.raises(LanguageError) as caught:
            roads.query(text)
        assert caught.value.diagnostic.code == "Q009"
    with pytest.raises(QuerySelectionError):
        roads.query("show all;", name="q")


def test_a_pattern_that_is_none_is_refused_when_it_is_given(roads):
    query = "match { $t: Town  matches($t.name, $re) } return { $t.name }"
    with pytest.raises(ParameterOutOfRange, match="'re' has invalid regex"):
        roads.query(query, {"re": "("})


@pytest.mark.parametrize("pattern", ["(?=a)", r"(a)\\1", "(", "a++"])
def test_a_literal_pattern_of_another_dialect_is_refused_before_anything_runs(roads, pattern):
    query = f'match {{ $t: Town  matches($t.name, "{pattern}") }} return {{ $t.name }}'
    with pytest.raises(TypeCheckError, match="T61: matches has invalid regex") as caught:
        roads.query(query)
    assert caught.value.diagnostic.position.column == 36


@pytest.mark.parametrize("pattern", [r"^\\p{Ll}lm$", "(?i)^ELM$", "^[[:alpha:]]lm$"])
def test_a_pattern_has_the_dialect_of_check_rules(roads, pattern):
    query = f'match {{ $t: Town  matches($t.name, "{pattern}") }} return {{ $t.name }}'
    assert roads.query(query).to_dicts() == [{"t.name": "elm"}]


def test_whole_numbers_among_fractions_of_a_list_are_fractions(roads):
    query = 'match { $t: Town { name: "elm" } } return { [1, 2.5] as l, 2.5 in [1, 2.5] as found }'
    assert roads.query(query).to_dicts() == [{"l": [1.0, 2.5], "found": True}]
    with pytest.raises(TypeCheckError, match=r"T66: default of `\$l` has type \[F64\]"):
        roads.query("query q($l: [I64] = [1, 2.5]) { " + TOWNS + " }")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            "update Road set { km: km * 1000.0 } where km is not null",
            "km': value out of range for F64",
        ),
        ("match { $a $e: road $b  $e.km > 0.0 } update $e { km: $e.km * 1000.0 }", "out of range"),
        ('update Town set { pop: 3 / 2 } where name = "elm"', "pop': cannot convert 1.5 to I64"),
        ("update Town set { pop: pop + 9223372036854775807 } where pop > 0", "integer overflow"),
    ],
)
def test_a_computed_value_that_a_property_cannot_hold_is_refused(roads, change, problem):
    far = '{"edge": "Road", "from": "elm", "to": "ash", "data": {"km": 1e308}}'
    roads.load(far.encode(), mode="append")
    before = roads.head().id
    with pytest.raises(OmnigraphError, match=problem):
        roads.mutate(change)
    assert roads.head().id == before


def test_a_scan_takes_the_same_conditions(roads):
    where = 'lower(name) in $names or (pop > 100 and not (tags contains "old"))'
    found = roads.scan("Town", columns=["name"], where=where, params={"names": ["elm"]})
    assert sorted(found.read_all()["name"].to_pylist()) == ["cob", "elm"]
    far = roads.scan("Road", columns=["km"], where='@src = "ash" and km * 2 > 10.0')
    assert sorted(far.read_all()["km"].to_pylist()) == [6.0, 9.0]


def _count(uri):
    graph = og.open(uri)
    for _ in range(EACH):
        graph.mutate(COUNT)


@pytest.mark.parametrize("where", ["threads", "processes"])
def test_every_increment_of_many_writers_counts(tmp_path, where):
    uri = str(tmp_path / "roads.omni")
    graph = og.init(uri, schema=ROADS / "roads.pg")
    graph.load(ROADS / "roads.jsonl", mode="overwrite")
    if where == "threads":
        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(lambda _: graph.mutate(COUNT), range(WRITERS * EACH)))
    else:
        with get_context("spawn").Pool(WRITERS) as pool:
            pool.map(_count, [uri] * WRITERS)
    (row,) = graph.query('match { $t: Town { name: "dun" } } return { $t.pop as n }').to_dicts()
    assert row["n"] == WRITERS * EACH


@pytest.mark.acceptance("L-390")
def test_branch_statements_do_what_the_calls_of_their_names_do(roads):
    made = roads.mutate('branch create "review/x" from main')
    assert (made.query_name, made.branch, made.commit_id) == ("branch create", "review/x", None)
    assert made.receipt.parent_commit_id == roads.head().id
    assert roads.query("// all\nbranch list;").to_dicts() == [
        {"name": "main"},
        {"name": "review/x"},
    ]
    inserted = roads.mutate('insert Town { name: "fir" }', branch="review/x")
    merged = roads.mutate('branch merge "review/x"')
    assert (merged.branch, merged.affected_nodes) == ("main", 0)
    assert roads.head().parents[-1] == inserted.commit_id or roads.head().id == merged.commit_id
    assert roads.query('match { $t: Town { name: "fir" } } return { $t }').row_count == 1
    gone = roads.mutate('branch delete "review/x"')
    assert (gone.query_name, list(roads.branches)) == ("branch delete", ["main"])
    with pytest.raises(BranchNotFound):
        roads.mutate("branch delete nope")
    for run, text, problem in (
        (roads.query, "branch create x", "is a mutation; run it with `mutate`"),
        (roads.mutate, "branch list", "is a read; run it with `query`"),
        (roads.at("main").query, "branch list", "branch statements"),
    ):
        with pytest.raises(QuerySelectionError, match=problem):
            run(text)
    with pytest.raises(QuerySelectionError, match="takes no name"):
        roads.mutate("branch create x", name="q")
    with pytest.raises(QuerySelectionError, match="takes no name"):
        roads.mutate("branch create x", {"a": 1})
    assert list(roads.branches) == ["main"]


def test_a_text_may_choose_how_edges_are_followed(roads):
    query = 'match { $t: Town { name: "ash" }  $t road $u } return { $u.name } order { $u.name }'
    for mode in ("auto", "csr", "indexed"):
        found = roads.query(f"set traversal_mode = {mode}; {query}").to_dicts()
        assert [row["u.name"] for row in found] == ["bex", "cob"]
    with pytest.raises(LanguageError, match="`traversal_mode` takes auto or csr or indexed"):
        roads.query(f"set traversal_mode = quick; {query}")
