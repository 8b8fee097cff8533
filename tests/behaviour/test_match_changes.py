"""Changes of what a pattern matches: what they return, see and read, and when they are refused."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import (
    DifferentValues,
    HeadMoved,
    MutationError,
    QueryBudgetExceeded,
    TypeCheckError,
)
from omnigraph.language.syntax import Source
from omnigraph.mutation import MutationIds, prepare_mutation
from omnigraph.mutation.match_reader import MatchReader
from omnigraph.plan.compile import compile_query
from omnigraph.providers.documents import DocumentVectors
from omnigraph.read.budget import QueryBudget
from omnigraph.read.view import ReadView
from omnigraph.storage.filters import Comparison

CASES = Path(__file__).parents[1] / "cases"


@pytest.fixture
def roads(tmp_path) -> Graph:
    graph = init(tmp_path / "g", (CASES / "roads.pg").read_text())
    graph.load((CASES / "roads.jsonl").read_bytes(), "append")
    return graph


def change(graph: Graph, text: str):
    return graph.mutate(f"query q() {{ {text} }}")


def affected(graph: Graph, text: str) -> tuple[int, int]:
    done = change(graph, text)
    return done.affected_nodes, done.affected_edges


def prepare(graph: Graph, text: str, budget: QueryBudget | None = None):
    snapshot = graph._snapshot()
    plan = compile_query(Source("<query>", f"query q() {{ {text} }}"), snapshot.catalog)
    matches = MatchReader(graph._core.tables, graph._core.reader, budget=budget)
    return prepare_mutation(
        plan.mutation_plan(),
        {},
        snapshot,
        graph._core.tables,
        MutationIds(),
        DocumentVectors(),
        matches=matches,
    )


# -- return -------------------------------------------------------------------------------------


@pytest.mark.acceptance("L-387")
def test_a_matched_delete_returns_its_rows_and_the_match(roads):
    text = 'match { $a: Town { name: "dun" } $a $e: road $b } delete $e return { @id, $b.name as to_town }'
    done = change(roads, text)
    assert done.returned[0].to_dicts() == [
        {"@id": "r6", "to_town": "dun"},
        {"@id": "r7", "to_town": "ash"},
    ]


def test_every_action_returns_under_its_own_number(roads):
    text = """
        insert Firm { code: "f0", title: "T" }
        match { $f basedIn $t } do {
            update $t { pop: $t.pop * 2 } return { name, pop, $t.pop as before }
            insert $n: Town { name: "at " + $t.name }
            insert Rail { from: $n, to: $t } return { @src, to, $n as made, $t.pop + 1 as more }
        }
        update Town set { pop: 1 } where name = "elm" return { pop + 1 as p }
    """
    found = [(r.statement, r.to_dicts()) for r in change(roads, text).returned]
    assert found[0] == (
        2,
        [{"name": "ash", "pop": 1800, "before": 900}, {"name": "bex", "pop": 600, "before": 300}],
    )
    ash = {"@src": "at ash", "to": "ash", "made": "at ash", "more": 901}
    bex = {"@src": "at bex", "to": "bex", "made": "at bex", "more": 301}
    assert found[1] == (4, [ash, bex, ash])
    assert found[2] == (5, [{"p": 2}])


def test_rows_of_one_entity_have_to_agree_in_what_is_returned(roads):
    text = "match { $f basedIn $t } update $t { pop: 1 } return { name, $f.title }"
    with pytest.raises(DifferentValues, match=r"Town 'ash'.*what `return` shows"):
        change(roads, text)


def test_entities_of_several_types_return_what_they_share(roads):
    text = "match { $f $e: basedIn $t } delete $e, $f return { @id, @type }"
    done = change(roads, text)
    assert (done.affected_nodes, done.affected_edges) == (2, 3)
    assert done.returned[0].to_dicts() == [
        {"@id": "b1", "@type": "BasedIn"},
        {"@id": "b2", "@type": "BasedIn"},
        {"@id": "b3", "@type": "BasedIn"},
        {"@id": "f1", "@type": "Firm"},
        {"@id": "f2", "@type": "Firm"},
    ]
    with pytest.raises(TypeCheckError, match="T68"):
        change(roads, "match { $f $e: basedIn $t } delete $e, $f return { title }")


def test_no_row_returns_no_row(roads):
    done = change(roads, 'match { $t: Town { name: "z" } } delete $t return { @id, $t.pop }')
    assert (done.returned[0].columns, done.returned[0].to_dicts()) == (["@id", "t.pop"], [])
    assert done.receipt.commit_id is None


# -- values -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", ["tags: $t.tags", "seen: $t.seen", "since: $t.since", "note: $t.note", "pop: $t.pop"]
)
def test_values_of_all_kinds_are_compared_and_kept(roads, value):
    same = f'match {{ $f basedIn $t  $t.name = "ash"  $x: Town {{ name: "cob" }} }} update $x {{ {value} }}'
    assert affected(roads, same) == (1, 0)
    name = value.split(":")[0]
    text = f'query q() {{ match {{ $t: Town  $t.name in ["ash", "cob"] }} return {{ $t.{name} as v }} }}'
    first, second = roads.query(text).to_dicts()
    assert first == second
    differing = f'match {{ $t: Town  $x: Town {{ name: "elm" }} }} update $x {{ {value} }}'
    with pytest.raises(DifferentValues, match=f"Town 'elm'.*property '{name}'"):
        change(roads, differing)


def test_the_first_broken_rule_leaves_everything_as_it_was(roads):
    before = roads.head().commit_id
    text = 'match { $t: Town } do { delete $t  insert Road { from: $t, to: "ash" } }'
    with pytest.raises(MutationError, match="ash"):
        change(roads, text)
    assert roads.head().commit_id == before
    assert roads.at("main").counts["Town"] == 5


def test_a_key_is_not_updated(roads):
    with pytest.raises(MutationError, match="cannot update @key property 'name' of Town"):
        change(roads, 'match { $t: Town } update $t { name: $t.name + "!" }')


# -- what a match sees and reads ----------------------------------------------------------------


def test_a_match_sees_edges_that_were_deleted_and_updated_before(roads):
    text = """
        delete Road where toll = true
        update Road set { km: 0.5 } where @id = "r2"
        match { $a $e: road $b  $e.km < 4.5 } update $b { pop: 1 } return { name }
        match { $a: Town  not { $a road $b } } delete $a return { name }
    """
    first, second = change(roads, text).returned
    assert [row["name"] for row in first.to_dicts()] == ["bex", "cob", "dun"]
    assert [row["name"] for row in second.to_dicts()] == ["elm"]


def test_tables_that_a_match_reads_join_the_read_set(roads):
    prepared = prepare(roads, "match { $f basedIn $t } update $t { pop: 1 }")
    assert [write.table_key for write in prepared.change.writes] == ["node:Town"]
    assert prepared.change.reads == {"edge:BasedIn", "node:Firm"}
    assert "node:Town" not in prepared.change.looked_up
    counted = 'match { $t: Town { name: "ash" } } update $t { pop: count { $t <rail> $_ } }'
    assert prepare(roads, counted).change.reads == {"edge:Rail"}


def test_a_commit_to_a_table_of_the_match_prepares_the_change_again(roads, monkeypatch):
    from omnigraph.mutation import run

    other, real, calls = open_graph(roads.uri), prepare_mutation, []

    def interrupted(*args, **kwargs):
        prepared = real(*args, **kwargs)
        calls.append(prepared.affected_nodes)
        if len(calls) == 1:
            monkeypatch.undo()
            monkeypatch.setattr(run, "prepare_mutation", recorded)
            change(other, 'insert BasedIn { from: "f3", to: "cob" }')
        return prepared

    def recorded(*args, **kwargs):
        prepared = real(*args, **kwargs)
        calls.append(prepared.affected_nodes)
        return prepared

    monkeypatch.setattr(run, "prepare_mutation", interrupted)
    done = change(roads, "match { $f basedIn $t } update $t { pop: 1 }")
    assert done.affected_nodes == 3
    assert (calls[0], calls[-1]) == (2, 3)


def test_an_expected_head_is_refused_when_the_branch_is_elsewhere(roads):
    before = roads.head().commit_id
    text = "query q() { match { $f basedIn $t } update $t { pop: 1 } }"
    roads.mutate(text, expected_head=before)
    with pytest.raises(HeadMoved):
        roads.mutate(text, expected_head=before)


def test_a_match_keeps_to_the_budget(roads):
    text = "match { $a: Town  $b: Town  $c: Town } update $a { pop: 1 }"
    with pytest.raises(QueryBudgetExceeded):
        prepare(roads, text, QueryBudget(max_rows=100))
    assert prepare(roads, text, QueryBudget(max_rows=125)).affected_nodes == 5


# -- views --------------------------------------------------------------------------------------


def seen_by(graph: Graph, view: ReadView) -> Graph:
    return open_graph(graph.uri, view=view)


def test_only_what_the_view_shows_is_matched(roads):
    small = seen_by(roads, ReadView(rows={"Town": Comparison("pop", "<", 500)}))
    assert affected(small, 'match { $t: Town } update $t { note: "small" }') == (3, 0)
    assert affected(small, "match { $a $e: road $b } delete $e") == (0, 1)
    text = 'insert Town { name: "big", pop: 1000 }  match { $t: Town } update $t { note: "seen" }'
    assert affected(small, text) == (4, 0)


def test_a_cascade_removes_edges_that_the_view_hides_without_counting_them(roads):
    small = seen_by(roads, ReadView(rows={"Town": Comparison("pop", "<", 500)}))
    assert affected(small, 'match { $t: Town { name: "bex" } } delete $t') == (1, 2)
    counts = roads.at("main").counts
    assert (counts["Road"], counts["Rail"], counts["BasedIn"]) == (4, 1, 2)


def test_hidden_types_and_properties_do_not_exist_for_a_match(roads):
    view = ReadView(frozenset({"Rail"}), frozenset({("Town", "note")}))
    limited = seen_by(roads, view)
    with pytest.raises(TypeCheckError):
        change(limited, "match { $a rail $b } delete $a")
    with pytest.raises(TypeCheckError):
        change(limited, "match { $t: Town } delete $t return { $t.note }")
    assert affected(limited, 'match { $t: Town { name: "ash" } } delete $t') == (1, 6)
    assert roads.at("main").counts["Rail"] == 0


# -- threads ------------------------------------------------------------------------------------


def test_writers_that_match_lose_no_update(roads):
    def count_up() -> None:
        graph = open_graph(roads.uri)
        for _ in range(3):
            change(graph, "match { $f basedIn $t } update $t { pop: $t.pop + 1 }")

    threads = [threading.Thread(target=count_up) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    text = 'query q() { match { $t: Town { name: "ash" } } return { $t.pop } }'
    assert roads.query(text).to_dicts() == [{"t.pop": 906}]
