"""BackgroundCompactor keeps content and identities, and leaves few fragments that the indexes cover."""

from __future__ import annotations

import pyarrow as pa
import pytest
from lance.optimize import Compaction

from omnigraph.errors import TableConflict
from omnigraph.storage import scan
from omnigraph.storage.compact import compact, compact_with_indexes, extend_indexes, small_fragments
from omnigraph.storage.delta import stage_delta
from omnigraph.storage.indexes import list_indexes, stage_btree_index, uncovered_fragments
from omnigraph.storage.stage import stage_append
from tests.storage.tables.rows import PEOPLE, commit, content, make, people, row_ids


def many_fragments(store, branch=None):
    table = make(store, ada=1, bo=2, cy=3)
    table = commit(table, stage_btree_index(table, "id"))
    if branch is not None:
        table = store.create_branch(
            table.path, branch, source_branch=None, source_version=table.version
        )
    for number in range(5):
        table = commit(table, stage_append(table, people(**{f"p{number}": number})))
    return commit(table, stage_delta(table, people(bo=20), ["ada"]))


@pytest.mark.parametrize("branch", [None, "b"])
def test_compaction_keeps_rows_ids_and_versions(store, branch):
    table = many_fragments(store, branch)
    columns = ["id", "age", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    before = table.read(columns, order_by="id")
    compacted = compact_with_indexes(table)
    assert compacted.read(columns, order_by="id") == before
    assert (len(table.fragments()), len(compacted.fragments())) == (7, 1)
    assert uncovered_fragments(compacted, "id") == frozenset()
    assert store.open(table.path, branch).version == compacted.version


def test_an_index_that_misses_few_rows_is_left_as_it_is(store, monkeypatch):
    monkeypatch.setattr(scan, "ROWS_SCANNED_PER_LOOKUP", 0)
    table = many_fragments(store)
    before = table.read(["id", "age", "_rowid"], order_by="id")
    compacted = compact_with_indexes(table, index_lag=6)
    operations = [
        compacted.record(v).operation for v in range(table.version + 1, compacted.version + 1)
    ]
    assert operations == ["unnamed", "rewrite"]
    assert compacted.read(["id", "age", "_rowid"], order_by="id") == before
    covered, uncovered = compacted.fragments()
    assert uncovered_fragments(compacted, "id") == frozenset({uncovered.id})
    assert (covered.rows, uncovered.rows) == (1, 6)
    found = compacted.lookup(pa.array(["cy", "p3", "bo", "ada"]), ["id"])
    assert sorted(found.column("id").to_pylist()) == ["bo", "cy", "p3"]
    assert len(compact_with_indexes(compacted, index_lag=5).fragments()) == 1


def test_a_branch_gets_indexes_of_its_own_before_its_fragments_are_merged(store, monkeypatch):
    monkeypatch.setattr(scan, "ROWS_SCANNED_PER_LOOKUP", 0)
    table = many_fragments(store, "b")
    assert [index.is_borrowed for index in list_indexes(table)] == [True]
    compacted = compact_with_indexes(table, index_lag=100)
    assert [index.is_borrowed for index in list_indexes(compacted)] == [False]
    assert compacted.lookup(pa.array(["p3"]), ["id"]).num_rows == 1
    more = commit(compacted, stage_append(compacted, people(x=1)))
    more = compact_with_indexes(commit(more, stage_append(more, people(y=1))), index_lag=100)
    assert (len(more.fragments()), len(uncovered_fragments(more, "id") or ())) == (2, 1)
    assert sorted(more.lookup(pa.array(["p3", "y"]), ["id"]).column("id").to_pylist()) == [
        "p3",
        "y",
    ]


def test_compacting_twice_does_nothing_the_second_time(store):
    compacted = compact_with_indexes(many_fragments(store))
    assert compact_with_indexes(compacted) is compacted


def test_compacting_an_empty_table_does_nothing(store):
    table = store.create("nodes/people", PEOPLE)
    assert compact_with_indexes(table) is table


def test_every_version_compaction_makes_can_be_recognised(store):
    table = many_fragments(store)
    compacted = compact_with_indexes(table)
    operations = [
        compacted.record(v).operation for v in range(table.version + 1, compacted.version + 1)
    ]
    assert operations == ["create_index", "unnamed", "rewrite"]
    assert compacted.record().operation_id is None


def test_small_fragments_are_counted_by_their_live_rows(store):
    table = many_fragments(store)
    assert small_fragments(table, 2) == 7
    assert small_fragments(table, 1) == 0


def test_an_index_is_extended_without_moving_rows(store):
    table = many_fragments(store)
    extended = extend_indexes(table)
    assert uncovered_fragments(extended, "id") == frozenset()
    assert len(extended.fragments()) == len(table.fragments())
    assert extend_indexes(extended) is extended


def test_a_concurrent_delete_is_a_conflict(store, monkeypatch):
    table = many_fragments(store)

    class DeletedAfterPlanning:
        commit = Compaction.commit

        @staticmethod
        def plan(*arguments):
            planned = Compaction.plan(*arguments)
            commit(table, stage_delta(table, PEOPLE.empty_table(), ["p1"]))
            return planned

    monkeypatch.setattr("omnigraph.storage.compact.Compaction", DeletedAfterPlanning)
    with pytest.raises(TableConflict):
        compact(table)
    assert "p1" not in content(store.open("nodes/people"))


def test_rows_appended_meanwhile_survive(store):
    table = many_fragments(store)
    commit(table, stage_append(table, people(late=9)))
    compacted = compact_with_indexes(table)
    assert content(compacted) == content(store.open("nodes/people"))
    assert content(compacted)["late"] == 9
    assert row_ids(compacted)["late"] == 8


def test_compacting_a_branch_keeps_the_indexes_it_inherited_usable(store, monkeypatch):
    monkeypatch.setattr(scan, "ROWS_SCANNED_PER_LOOKUP", 0)
    table = make(store, ada=1)
    table = commit(table, stage_append(table, people(bo=2)))
    table = commit(table, stage_btree_index(table, "id"))
    branched = store.create_branch(
        table.path, "b", source_branch=None, source_version=table.version
    )
    compacted = compact_with_indexes(branched)
    assert compacted.lookup(pa.array(["bo"]), ["id"]).column("id").to_pylist() == ["bo"]
