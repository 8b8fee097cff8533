"""Branches that a power loss left half made: nobody sees them, and nothing is in their way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omnigraph.errors import ForkInUse, StoreCallFailed
from omnigraph.storage.refs import StoredBranch
from omnigraph.storage.stage import stage_append
from tests.storage.tables.rows import commit, content, make, people

PATH = "nodes/people"
TEARS = ["an empty ref", "half a ref", "no version", "an empty version", "a version of zeros"]


@pytest.fixture
def table(store):
    return make(store, ada=1)


def fork(store, name, source=None, version=1):
    return store.create_branch(PATH, name, source_branch=source, source_version=version)


def tear(root, name, how):
    folder = Path(root.uri) / PATH
    ref = folder / "_refs" / "branches" / f"{name.replace('/', '%2F')}.json"
    (version,) = (folder / "tree" / name / "_versions").glob("*.manifest")
    match how:
        case "an empty ref":
            ref.write_bytes(b"")
        case "half a ref":
            ref.write_bytes(ref.read_bytes()[:40])
        case "no version":
            version.unlink()
        case "an empty version":
            version.write_bytes(b"")
        case "a version of zeros":
            version.write_bytes(bytes(version.stat().st_size))


@pytest.mark.parametrize("how", TEARS)
@pytest.mark.parametrize("name", ["b", "a/b"])
def test_a_half_made_branch_is_not_listed(store, table, root, name, how):
    fork(store, "whole")
    fork(store, name)
    tear(root, name, how)
    assert store.torn_branches(PATH) == {name}
    assert store.list_branches(PATH) == {"whole": StoredBranch(None, 1, {})}


@pytest.mark.parametrize("how", TEARS)
def test_a_half_made_branch_can_be_removed_and_made_again(store, table, objects, root, how):
    fork(store, "b")
    tear(root, "b", how)
    store.reclaim_branch(PATH, "b", objects)
    assert (store.torn_branches(PATH), store.has_branch_files(PATH, "b")) == (set(), False)
    assert content(fork(store, "b")) == {"ada": 1}
    assert set(store.list_branches(PATH)) == {"b"}


@pytest.mark.parametrize("how", TEARS)
def test_of_two_half_made_branches_either_can_be_removed(store, table, objects, root, how):
    for name in ("b", "c"):
        fork(store, name)
        tear(root, name, how)
    store.reclaim_branch(PATH, "c", objects)
    assert store.torn_branches(PATH) == {"b"}
    store.reclaim_branch(PATH, "b", objects)
    assert store.torn_branches(PATH) == set()


def test_whole_branches_beside_a_half_made_one_are_guarded_as_ever(store, table, objects, root):
    fork(store, "b")
    fork(store, "c", "b")
    fork(store, "torn")
    tear(root, "torn", "an empty ref")
    with pytest.raises(ForkInUse):
        store.reclaim_branch(PATH, "b", objects)
    store.reclaim_branch(PATH, "c", objects)
    store.reclaim_branch(PATH, "b", objects)
    assert store.list_branches(PATH) == {}
    assert content(store.open(PATH)) == {"ada": 1}


def test_a_branch_that_was_written_to_is_never_taken_for_half_made(store, table, root):
    branch = fork(store, "b")
    commit(branch, stage_append(branch, people(bo=2)))
    ref = Path(root.uri) / PATH / "_refs" / "branches" / "b.json"
    ref.write_bytes(b"")
    assert store.torn_branches(PATH) == set()
    with pytest.raises(StoreCallFailed, match="list the branches"):
        store.list_branches(PATH)


def test_a_branch_without_its_first_version_is_whole_as_long_as_it_has_a_later_one(
    store, table, root
):
    branch = fork(store, "b")
    commit(branch, stage_append(branch, people(bo=2)))
    versions = Path(root.uri) / PATH / "tree" / "b" / "_versions"
    max(versions.glob("*.manifest")).unlink()
    assert store.torn_branches(PATH) == set()
    assert content(store.open(PATH, "b")) == {"ada": 1, "bo": 2}
    assert set(store.list_branches(PATH)) == {"b"}


def test_describing_a_branch_keeps_the_rest_of_its_ref(store, table, objects, root):
    fork(store, "b")
    ref = Path(root.uri) / PATH / "_refs" / "branches" / "b.json"
    before = json.loads(ref.read_text())
    store.describe_branch(PATH, "b", {"named": "B"}, objects)
    assert json.loads(ref.read_text()) == {**before, "metadata": {"named": "B"}}
    assert store.list_branches(PATH) == {"b": StoredBranch(None, 1, {"named": "B"})}
