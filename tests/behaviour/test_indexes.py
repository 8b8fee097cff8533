"""Making indexes: which there are, what they cover, and that a graph stays what it was."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.commit import background
from omnigraph.errors import BranchLocked, ReadOnlyHandle
from omnigraph.maintenance.indexes import IndexedTable, IndexReport
from omnigraph.storage.indexes import list_indexes
from tests.support.faults import Fail, InjectedFault, armed

SCHEMA = """
node Item {
    slug: String @key
    kind: enum(tool, part)? @index
    made: DateTime? @index
    size: I32? @index
    label: String? @index
    plain: I32?
    vec: Vector(2)? @index
}
node Bin { name: String @key }
edge In: Item -> Bin
"""
ITEM = "node:Item"
BEGUN = "ensure_indices.post_stage_pre_commit_btree"
COMMITTED = "ensure_indices.post_table_commit"
UNPUBLISHED = "ensure_indices.post_phase_b_pre_manifest_commit"


@pytest.fixture
def graph(uri) -> Graph:
    return init(uri, SCHEMA)


def items(*numbers: int, **fields: Any) -> bytes:
    rows = [
        {
            "slug": f"i{number}",
            "kind": "tool" if number % 2 else "part",
            "made": f"2024-01-{number % 28 + 1:02}T00:00:00Z",
            "size": number,
            "label": f"item number{number}",
            "vec": [number + 1, 1],
            **fields,
        }
        for number in numbers
    ]
    return records("Item", rows)


def records(node_type: str, rows: Sequence[Mapping[str, object]]) -> bytes:
    return "\n".join(json.dumps({"type": node_type, "data": row}) for row in rows).encode()


def table(report: IndexReport, key: str = ITEM) -> IndexedTable:
    return next(found for found in report.tables if found.table_key == key)


def kinds(states) -> dict[str, str]:
    return {state.column: state.kind.value for state in states}


def lacking(report: IndexReport) -> dict[str, int]:
    """The rows each index of items does not know."""
    return {state.column: state.unindexed_rows for state in table(report).existing}


def fragment_count(graph: Graph) -> int:
    return len(graph._snapshot().open(graph._core.tables, ITEM).fragments())


ALL = {
    "id": "btree",
    "slug": "text",
    "kind": "btree",
    "made": "btree",
    "size": "btree",
    "label": "text",
    "vec": "vector",
}


def test_what_is_missing_is_made_once(graph):
    graph.load(items(1, 2, 3) + b"\n" + records("Bin", [{"name": "b"}]), "append")
    before = graph._snapshot()
    report = graph.as_actor("ada").maintenance.ensure_indexes()
    made = table(report)
    assert (kinds(made.created), made.existing, made.pending) == (ALL, (), ())
    assert kinds(table(report, "node:Bin").created) == {"id": "btree", "name": "text"}
    assert [found.table_key for found in report.tables] == ["node:Bin", ITEM]
    commit = graph.commit(str(report.receipt.graph_commit_id))
    assert (commit.operation, commit.actor) == ("ensure_indices", "ada")
    assert commit.parents[0] == before.commit_id
    assert graph._core.recovery.status().pending == ()

    again = graph.maintenance.ensure_indexes()
    assert (table(again).created, kinds(table(again).existing)) == ((), ALL)
    assert set(lacking(again).values()) == {0}
    assert again.receipt.graph_commit_id is None
    assert graph.head().id == commit.id


def test_nothing_can_be_made_of_no_rows_and_no_vectors(graph):
    assert graph.maintenance.ensure_indexes().tables == ()
    graph.load(items(1, vec=None), "append")
    [waiting] = table(graph.maintenance.ensure_indexes()).pending
    assert (waiting.column, waiting.reason) == ("vec", "no row has a vector yet")
    graph.load(items(2), "append")
    assert kinds(table(graph.maintenance.ensure_indexes()).created) == {"vec": "vector"}


@pytest.mark.acceptance("S-121")
def test_a_load_of_many_rows_makes_the_indexes_that_are_quick_to_make(graph):
    graph.load(items(*range(1200)), "append")
    found = {index.columns[0]: index for index in list_indexes(_stored(graph))}
    current = {fragment.id for fragment in _stored(graph).fragments()}
    assert {column for column, index in found.items() if index.fragment_ids == current} == {
        *("id", "kind", "made", "size")
    }
    assert kinds(table(graph.maintenance.ensure_indexes()).created) == {
        column: kind for column, kind in ALL.items() if column in ("slug", "label", "vec")
    }


def _stored(graph: Graph):
    return graph._snapshot().open(graph._core.tables, ITEM)


def test_later_rows_are_not_covered_until_a_compaction_extends_the_indexes(graph, monkeypatch):
    graph.load(items(*range(10)), "append")
    graph.maintenance.ensure_indexes()
    graph.load(items(10, 11), "append")
    graph.load(items(3, label="changed", vec=[0, 1]), "merge")
    assert set(lacking(graph.maintenance.ensure_indexes()).values()) == {3}
    monkeypatch.setattr(background, "MAX_SMALL_FRAGMENTS", 0)
    monkeypatch.setattr(background, "INDEX_LAG_ROWS", 0)
    graph.load(items(12), "append")
    graph.maintenance.wait()
    assert fragment_count(graph) == 1
    assert set(lacking(graph.maintenance.ensure_indexes()).values()) == {0}


def test_a_branch_compacts_under_indexes_it_has_from_main(graph, monkeypatch):
    graph.load(items(*range(10)), "append")
    graph.maintenance.ensure_indexes()
    graph.branches.create("feature")
    graph.load(items(10, 11), "append", branch="feature")
    monkeypatch.setattr(background, "MAX_SMALL_FRAGMENTS", 0)
    monkeypatch.setattr(background, "INDEX_LAG_ROWS", 0)
    graph.load(items(3, label="changed", vec=[0, 1]), "merge", branch="feature")
    graph.maintenance.wait()
    report = graph.maintenance.ensure_indexes("feature")
    assert (table(report).created, set(lacking(report).values())) == ((), {0})
    near = "query q() { match { $i: Item } return { $i.slug } order { nearest($i.vec, [0.0, 1.0]) } limit 1 }"
    assert [row["i.slug"] for row in graph.query(near, branch="feature")] == ["i3"]
    assert [row["i.slug"] for row in graph.query(near)] == ["i0"]


def test_a_branch_indexes_what_it_has_written_and_nothing_it_reads_from_main(graph):
    graph.load(items(1, 2) + b"\n" + records("Bin", [{"name": "b"}]), "append")
    graph.branches.create("feature")
    assert graph.maintenance.ensure_indexes("feature").tables == ()
    graph.load(items(3), "append", branch="feature")
    report = graph.maintenance.ensure_indexes("feature")
    assert [found.table_key for found in report.tables] == [ITEM]
    assert kinds(table(report).created) == ALL
    assert report.receipt.branch == "feature"
    assert len(table(graph.maintenance.ensure_indexes()).created) == len(ALL)


def test_what_a_branch_has_from_another_branch_becomes_its_own(graph):
    graph.load(items(1, 2), "append")
    graph.branches.create("one")
    graph.load(items(3), "append", branch="one")
    graph.branches.create("two", "one")
    owned = graph._snapshot("two").entry(ITEM)
    assert kinds(table(graph.maintenance.ensure_indexes("two")).created) == ALL
    assert graph._snapshot("two").entry(ITEM).branch != owned.branch
    assert graph._snapshot("one").entry(ITEM) == owned
    assert len(list(graph.query(_EVERY, branch="two"))) == 3


_EVERY = "query q() { match { $i: Item } return { $i.slug, $i.label, $i.size } }"


def test_rows_written_while_indexes_are_built_are_indexed_too(graph, uri):
    """The build begins before the branch is locked, and another writer is quicker."""
    graph.load(items(1, 2), "append")
    other = open_graph(uri)
    written: list[str] = []

    class Writer:
        def stage(self, name: str, rows: int | None = None) -> None:
            if not written:
                written.append(name)
                other.load(items(3), "append")

        def advance(self, rows: int) -> None:
            pass

    graph.maintenance.ensure_indexes(progress=Writer())
    assert written == ["Item.id"]
    lacks = lacking(graph.maintenance.ensure_indexes())
    assert {lacks[column] for column, kind in ALL.items() if kind != "text"} == {0}
    assert {lacks["slug"], lacks["label"]} == {1}
    assert len(list(graph.query(_EVERY))) == 3


@pytest.mark.parametrize("point", [BEGUN, COMMITTED, UNPUBLISHED])
def test_an_interrupted_build_is_recovered_by_the_next_write(graph, uri, point):
    graph.load(items(1, 2) + b"\n" + records("Bin", [{"name": "b"}]), "append")
    with armed(point, Fail()), pytest.raises(InjectedFault):
        graph.maintenance.ensure_indexes()
    assert len(graph._core.recovery.status().pending) == 1
    graph.load(records("Bin", [{"name": "c"}]), "append")
    assert graph._core.recovery.status().pending == ()
    assert len(list(graph.query(_EVERY))) == 2
    report = graph.maintenance.ensure_indexes()
    assert kinds((*table(report).created, *table(report).existing)) == ALL
    assert (point == UNPUBLISHED) == (not table(report).created)


def test_a_handle_that_only_reads_makes_nothing(graph, uri):
    graph.load(items(1), "append")
    with pytest.raises(ReadOnlyHandle):
        open_graph(uri, read_only=True).maintenance.ensure_indexes()


def test_a_branch_that_is_being_written_is_waited_for(graph, uri, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_LOCK_WAIT_MS", "50")
    graph.load(items(1), "append")
    other = open_graph(uri)
    with graph._core.locks.hold(None, "test"), pytest.raises(BranchLocked):
        other.maintenance.ensure_indexes()
    assert kinds(table(other.maintenance.ensure_indexes()).created)["id"] == "btree"


def test_queries_see_the_same_before_and_after(graph):
    graph.load(items(*range(30)), "append")
    asked = [
        "$i.size = 7",
        "$i.size > 20",
        '$i.kind = "tool"',
        '$i.made < datetime("2024-01-05T00:00:00Z")',
        'search($i.label, "number7")',
        '$i.label contains "number2"',
        '$i.label starts_with "item number1"',
    ]

    def answers(found: Graph) -> list[list[str]]:
        queries = [f"query q() {{ match {{ $i: Item {c} }} return {{ $i.slug }} }}" for c in asked]
        return [sorted(row["i.slug"] for row in found.query(query)) for query in queries]

    before = answers(graph)
    graph.maintenance.ensure_indexes()
    assert answers(graph) == before
    assert answers(open_graph(graph.uri)) == before
    assert [len(found) for found in before] == [1, 9, 15, 6, 1, 11, 11]
