"""Following a branch: each commit once, in order, from a place that the follower keeps."""

from __future__ import annotations

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.errors import ChangeFeedGap, CommitNotFound, InputError, TableMissing
from omnigraph.storage.tables import TableStore
from tests.behaviour.graphs import PERSON, SCHEMA
from tests.behaviour.merging import add, ages, lines, person, remove, set_age


@pytest.fixture
def graph(memory_uri: str) -> Graph:
    graph = init(memory_uri, SCHEMA)
    graph.load(lines(person("Alice", age=30), person("Bob", age=40)), "append")
    return graph


def feed(graph: Graph, since: str | None = None, **wanted) -> list[tuple[str, list[str]]]:
    return [
        (
            commit.commit.operation,
            [f"{c['op']} {c['id']}" for c in commit.changes.documents()],
        )
        for commit in graph.changes(since, **wanted)
    ]


def test_every_commit_is_told_from_the_beginning(graph):
    add(graph, "main", "Dan")
    assert feed(graph) == [
        ("init", []),
        ("load", ["insert Alice", "insert Bob"]),
        ("mutate", ["insert Dan"]),
    ]
    assert [commit.at_head for commit in graph.changes()] == [False, False, True]


def test_a_cursor_leads_to_exactly_what_came_after_it(graph):
    cursor = list(graph.changes())[-1].cursor
    assert feed(graph, cursor) == []
    set_age(graph, "main", "Bob", 41)
    remove(graph, "main", "Alice")
    assert feed(graph, cursor) == [("mutate", ["update Bob"]), ("mutate", ["delete Alice"])]
    first = next(iter(graph.changes(cursor)))
    assert feed(graph, first.cursor) == [("mutate", ["delete Alice"])]
    assert feed(graph, first.commit.id) == [("mutate", ["delete Alice"])]


def test_a_merge_is_told_as_what_it_changed_on_its_branch(graph):
    graph.branches.create("feature")
    set_age(graph, "feature", "Bob", 41)
    set_age(graph, "feature", "Bob", 42)
    cursor = list(graph.changes())[-1].cursor
    graph.merge("feature")
    assert feed(graph, cursor) == [("merge", ["update Bob"])]
    assert feed(graph, branch="feature")[-2:] == [("mutate", ["update Bob"])] * 2


def test_commits_without_rows_are_told_too(graph):
    cursor = list(graph.changes())[-1].cursor
    graph.load(b"", "append")
    assert feed(graph, cursor) == [("load", [])]


def test_only_wanted_changes_are_told_but_every_commit(graph):
    cursor = list(graph.changes())[-1].cursor
    graph.load(b'{"type": "Company", "data": {"name": "Acme"}}', "merge")
    add(graph, "main", "Dan")
    assert feed(graph, cursor, types=["Company"]) == [("load", ["insert Acme"]), ("mutate", [])]
    with pytest.raises(InputError, match="there is no type 'Robot'"):
        graph.changes(types=["Robot"])


def test_a_follower_that_applies_the_changes_holds_what_the_branch_holds(graph):
    for number in range(35):
        add(graph, "main", f"p{number}")
        set_age(graph, "main", f"p{number // 2}", number)
    remove(graph, "main", "Alice")
    copy: dict[str, int | None] = {}
    cursor = None
    while True:
        for commit in list(graph.changes(cursor))[:30]:
            for change in commit.changes.documents(rows=True):
                if change["after"] is None:
                    del copy[change["id"]]
                else:
                    copy[change["id"]] = change["after"]["age"]
            cursor = commit.cursor
        if commit.at_head:
            break
    assert copy == ages(graph)


def test_invalid_cursors_are_refused(graph):
    with pytest.raises(CommitNotFound):
        list(graph.changes("01ARZ3NDEKTSV4RRFFQ69G5FAV"))
    with pytest.raises(InputError, match="not a valid change-feed cursor"):
        list(graph.changes("c1.nonsense"))


def test_the_cursor_of_a_deleted_and_recreated_branch_is_refused(graph):
    graph.branches.create("feature")
    add(graph, "feature", "Dan")
    cursor = list(graph.changes(branch="feature"))[-1].cursor
    graph.branches.delete("feature")
    graph.branches.create("feature")
    add(graph, "feature", "Eve")
    with pytest.raises(ChangeFeedGap, match="not part of its history"):
        list(graph.changes(cursor, branch="feature"))


def test_changes_whose_rows_were_removed_cannot_be_told(graph, monkeypatch):
    cursor = list(graph.changes())[1].cursor
    set_age(graph, "main", "Bob", 41)
    set_age(graph, "main", "Bob", 42)
    entry = graph._snapshot().entry(PERSON)
    kept = TableStore.open

    def cleaned(store, path, branch=None, version=None):
        if path == entry.location and version is not None and version < entry.version:
            raise TableMissing("open", path, "it was removed")
        return kept(store, path, branch, version)

    monkeypatch.setattr(TableStore, "open", cleaned)
    graph._core._last_snapshots.clear()
    with pytest.raises(ChangeFeedGap) as gap:
        list(graph.changes(cursor))
    assert gap.value.code == "OG-N-010"
