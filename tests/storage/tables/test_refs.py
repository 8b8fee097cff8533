"""Branches of a table: made, listed with their parents, and reclaimed whatever is left of them."""

from __future__ import annotations

import pytest

from omnigraph.errors import ForkExists, ForkInUse, TableMissing
from omnigraph.storage.durability import Durability
from omnigraph.storage.objects import open_store
from omnigraph.storage.refs import StoredBranch
from omnigraph.storage.stage import stage_append
from omnigraph.storage.tables import TableStore
from tests.storage.tables.rows import commit, content, make, people

PATH = "nodes/people"


def fork(store, name, source=None, version=1):
    return store.create_branch(PATH, name, source_branch=source, source_version=version)


def test_a_branch_starts_at_its_source_and_goes_its_own_way(store):
    table = make(store, ada=1)
    branch = fork(store, "b")
    assert (branch.branch, branch.version, content(branch)) == ("b", 1, {"ada": 1})
    branch = commit(branch, stage_append(branch, people(bo=2)))
    table = commit(table, stage_append(table, people(cy=3)))
    assert content(store.open(PATH, "b")) == {"ada": 1, "bo": 2}
    assert content(store.open(PATH)) == {"ada": 1, "cy": 3}
    assert branch.record(1).operation == "clone"


def test_branches_are_listed_with_their_parents(store):
    make(store, ada=1)
    b = fork(store, "b")
    commit(b, stage_append(b, people(bo=2)))
    fork(store, "c", "b", 2)
    assert store.list_branches(PATH) == {
        "b": StoredBranch(None, 1, {}),
        "c": StoredBranch("b", 2, {}),
    }


def test_a_taken_name_is_refused(store):
    make(store, ada=1)
    fork(store, "b")
    with pytest.raises(ForkExists):
        fork(store, "b")


def test_a_missing_source_is_named(store):
    make(store, ada=1)
    with pytest.raises(TableMissing):
        fork(store, "b", version=9)
    with pytest.raises(TableMissing):
        fork(store, "b", source="gone")
    assert store.list_branches(PATH) == {}


@pytest.mark.parametrize("name", ["", "main", "a//b", "/a", "a/..", "..", ".", "a b", "a\\b", "ä"])
def test_names_that_could_leave_the_folder_are_refused(store, objects, name):
    make(store, ada=1)
    with pytest.raises(ValueError, match="is not a valid table branch name"):
        fork(store, name)
    with pytest.raises(ValueError, match="is not a valid table branch name"):
        store.reclaim_branch(PATH, name, objects)
    assert content(store.open(PATH)) == {"ada": 1}


def test_reclaiming_removes_a_branch_and_frees_its_name(anywhere):
    store, objects = TableStore(anywhere, Durability.NONE), open_store(anywhere, Durability.NONE)
    make(store, ada=1)
    branch = fork(store, "b")
    commit(branch, stage_append(branch, people(bo=2)))
    store.reclaim_branch(PATH, "b", objects)
    assert store.list_branches(PATH) == {}
    again = fork(store, "b")
    assert content(again) == {"ada": 1}
    again = commit(again, stage_append(again, people(cy=3)))
    assert content(store.open(PATH, "b", 2)) == {"ada": 1, "cy": 3}


def test_reclaiming_what_is_not_there_is_fine(store, objects):
    store.reclaim_branch("nodes/nobody", "b", objects)
    make(store, ada=1)
    store.reclaim_branch(PATH, "b", objects)
    assert content(store.open(PATH)) == {"ada": 1}


def test_a_branch_with_children_stays(store, objects):
    make(store, ada=1)
    fork(store, "b")
    fork(store, "c", "b")
    with pytest.raises(ForkInUse):
        store.reclaim_branch(PATH, "b", objects)
    assert content(store.open(PATH, "b")) == {"ada": 1}
    store.reclaim_branch(PATH, "c", objects)
    store.reclaim_branch(PATH, "b", objects)
    assert store.list_branches(PATH) == {}


def test_names_that_begin_alike_are_kept_apart(store, objects):
    make(store, ada=1)
    fork(store, "b")
    fork(store, "b_s1")
    store.reclaim_branch(PATH, "b", objects)
    assert list(store.list_branches(PATH)) == ["b_s1"]
    assert content(store.open(PATH, "b_s1")) == {"ada": 1}


def test_what_a_late_writer_brings_back_is_seen_and_reclaimed(anywhere):
    store, objects = TableStore(anywhere, Durability.NONE), open_store(anywhere, Durability.NONE)
    make(store, ada=1)
    stale = fork(store, "b")
    store.reclaim_branch(PATH, "b", objects)
    assert not store.has_branch_files(PATH, "b")
    commit(stale, stage_append(stale, people(bo=2)))
    assert store.list_branches(PATH) == {}
    assert store.zombie_branches(PATH) == {"b"}
    assert store.has_branch_files(PATH, "b")
    with pytest.raises(ForkExists):
        fork(store, "b")
    store.reclaim_branch(PATH, "b", objects)
    assert store.zombie_branches(PATH) == set()
    assert content(fork(store, "b")) == {"ada": 1}


def test_a_branch_beside_those_in_its_folder_is_reclaimed_without_them(anywhere):
    store, objects = TableStore(anywhere, Durability.NONE), open_store(anywhere, Durability.NONE)
    make(store, ada=1)
    fork(store, "a")
    inner = fork(store, "a/b")
    commit(inner, stage_append(inner, people(bo=2)))
    assert store.zombie_branches(PATH) == set()
    store.reclaim_branch(PATH, "a", objects)
    assert list(store.list_branches(PATH)) == ["a/b"]
    assert store.zombie_branches(PATH) == set()
    assert content(store.open(PATH, "a/b")) == {"ada": 1, "bo": 2}
    store.reclaim_branch(PATH, "a/b", objects)
    assert store.list_branches(PATH) == {}
    assert not store.has_branch_files(PATH, "a/b")
