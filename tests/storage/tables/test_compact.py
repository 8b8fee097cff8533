"""Folding keeps content and identities, and leaves few fragments that the indexes cover."""

from __future__ import annotations

import pyarrow as pa
import pytest
from lance.optimize import Compaction

from omnigraph.errors import TableConflict
from omnigraph.storage import scan
from omnigraph.storage.compact import compact, extend_indexes, fold, small_fragments
from omnigraph.storage.delta import stage_delta
from omnigraph.storage.indexes import stage_btree_index, uncovered_fragments
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
def test_folding_keeps_rows_ids_and_versions(store, branch):
    table = many_fragments(store, branch)
    columns = ["id", "age", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    before = table.read(columns, order_by="id")
    folded = fold(table)
    assert folded.read(columns, order_by="id") == before
    assert (len(table.fragments()), len(folded.fragments())) == (7, 1)
    assert uncovered_fragments(folded, "id") == frozenset()
    assert store.open(table.path, branch).version == folded.version


def test_folding_twice_does_nothing_the_second_time(store):
    folded = fold(many_fragments(store))
    assert fold(folded) is folded


def test_folding_an_empty_table_does_nothing(store):
    table = store.create("nodes/people", PEOPLE)
    assert fold(table) is table


def test_every_version_folding_makes_can_be_recognised(store):
    table = many_fragments(store)
    folded = fold(table)
    operations = [folded.record(v).operation for v in range(table.version + 1, folded.version + 1)]
    assert operations == ["create_index", "unnamed", "rewrite"]
    assert folded.record().operation_id is None


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
    folded = fold(table)
    assert content(folded) == content(store.open("nodes/people"))
    assert content(folded)["late"] == 9
    assert row_ids(folded)["late"] == 8


def test_folding_a_branch_keeps_the_indexes_it_inherited_usable(store, monkeypatch):
    monkeypatch.setattr(scan, "ROWS_SCANNED_PER_LOOKUP", 0)
    table = make(store, ada=1)
    table = commit(table, stage_append(table, people(bo=2)))
    table = commit(table, stage_btree_index(table, "id"))
    branched = store.create_branch(
        table.path, "b", source_branch=None, source_version=table.version
    )
    folded = fold(branched)
    assert folded.lookup(pa.array(["bo"]), ["id"]).column("id").to_pylist() == ["bo"]
