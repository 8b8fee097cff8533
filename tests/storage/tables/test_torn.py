"""A newest version that a power loss left incomplete is recognised, whatever is left of its files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from omnigraph.errors import StoreCallFailed, TornVersion
from omnigraph.storage.commit_sync import added_files
from omnigraph.storage.compact import compact_with_indexes
from omnigraph.storage.delta import insert_exclusively, stage_delta
from omnigraph.storage.durability import Durability
from omnigraph.storage.indexes import stage_btree_index
from omnigraph.storage.lineage import version_file, version_of_file
from omnigraph.storage.stage import stage_append
from omnigraph.storage.tables import TableStore
from omnigraph.storage.versions import read_transaction
from tests.storage.tables.rows import KEYED, commit, content, make, numbered, people

PATH = "nodes/people"


def damage(path: str, how: str) -> None:
    file = Path(path)
    whole = file.read_bytes()
    match how:
        case "missing":
            file.unlink()
        case "empty":
            file.write_bytes(b"")
        case "half":
            file.write_bytes(whole[: len(whole) // 2])
        case "zeros":
            file.write_bytes(bytes(len(whole)))
        case "garbage":
            file.write_bytes(whole[-1:-17:-1] + whole[16:-16] + bytes(16))


@pytest.mark.parametrize("branch", [None, "b"])
@pytest.mark.parametrize("how", ["empty", "half", "zeros", "garbage"])
def test_a_torn_version_file_is_recognised_and_removed(store, root, objects, branch, how):
    table = make(store, ada=1)
    if branch:
        table = store.create_branch(PATH, branch, source_branch=None, source_version=1)
    table = commit(table, stage_append(table, people(bo=2)))
    damage(table.lineage.file(version_file(2)), how)
    fresh = TableStore(root, Durability.NONE)
    with pytest.raises(TornVersion) as caught:
        fresh.open(PATH, branch)
    assert (caught.value.version, caught.value.previous) == (2, 1)
    assert content(fresh.open(PATH, branch, caught.value.previous)) == {"ada": 1}
    torn = fresh.find_torn(PATH, branch)
    assert torn is not None
    fresh.remove_torn(torn, objects)
    table = fresh.open(PATH, branch)
    assert (table.version, content(table)) == (1, {"ada": 1})
    table = commit(table, stage_append(table, people(cy=3)))
    assert (table.version, content(table)) == (2, {"ada": 1, "cy": 3})


def changes(store):
    """Tables whose newest version was made in every way there is."""
    table = make(store, ada=1, bo=2)
    yield table
    table = commit(table, stage_append(table, people(cy=3)))
    yield table
    table = commit(table, stage_btree_index(table, "id"))
    yield table
    table = commit(table, stage_delta(table, people(ada=10, dee=4), ["bo"]))
    yield table
    yield compact_with_indexes(table)
    keyed = store.create("keyed", KEYED, rows=numbered({"start": 0}, KEYED))
    yield insert_exclusively(keyed, numbered({"a": 1}, KEYED))


@pytest.mark.parametrize("how", ["missing", "empty", "half", "zeros"])
def test_torn_files_of_the_newest_version_are_recognised(store, root, how):
    seen = 0
    for table in changes(store):
        assert TableStore(root, Durability.NONE).find_torn(table.path) is None
        transaction = read_transaction(table.dataset, table.version)
        added = []
        if transaction:
            # An index is built again, whatever is left of it.
            added = added_files(table.lineage, transaction, with_indexes=False)
        for file in added:
            if how in ("half", "zeros") and file.size is None:
                continue  # deletions are on the disk before a version can name them
            whole = Path(file.path).read_bytes()
            damage(file.path, how)
            torn = TableStore(root, Durability.NONE).find_torn(table.path)
            assert torn is not None
            assert (torn.version, os.path.basename(file.path) in torn.cause) == (
                table.version,
                True,
            )
            Path(file.path).write_bytes(whole)
            seen += 1
    assert seen >= 3


def test_an_older_damaged_version_is_an_error_and_not_torn(store, root):
    table = make(store, ada=1)
    table = commit(table, stage_append(table, people(bo=2)))
    for version in (1, 2):
        damage(table.lineage.file(version_file(version)), "empty")
    fresh = TableStore(root, Durability.NONE)
    assert fresh.find_torn(PATH) is None
    with pytest.raises(StoreCallFailed) as caught:
        fresh.open(PATH)
    assert not isinstance(caught.value, TornVersion)


@pytest.mark.parametrize("branch", [None, "b"])
@pytest.mark.parametrize("how", ["empty", "half", "zeros"])
def test_both_versions_of_a_compaction_may_be_torn(store, root, objects, branch, how):
    table = make(store, ada=1)
    if branch:
        table = store.create_branch(PATH, branch, source_branch=None, source_version=1)
    table = commit(table, stage_append(table, people(bo=2)))
    compacted = compact_with_indexes(table)
    assert compacted.version == table.version + 2
    for version in (table.version + 1, compacted.version):
        damage(table.lineage.file(version_file(version)), how)
    fresh = TableStore(root, Durability.NONE)
    with pytest.raises(TornVersion) as caught:
        fresh.open(PATH, branch)
    assert (caught.value.version, caught.value.previous) == (compacted.version, table.version)
    torn = fresh.find_torn(PATH, branch)
    assert torn is not None
    fresh.remove_torn(torn, objects)
    again = fresh.open(PATH, branch)
    assert (again.version, content(again)) == (table.version, {"ada": 1, "bo": 2})
    assert content(compact_with_indexes(again)) == {"ada": 1, "bo": 2}


def test_a_whole_version_is_not_taken_away_with_a_torn_one(store, root):
    """A lost data file is no sign of a power loss where something was built on it."""
    table = make(store, ada=1)
    second = commit(table, stage_append(table, people(bo=2)))
    third = commit(second, stage_append(second, people(cy=3)))
    transaction = read_transaction(second.dataset, second.version)
    assert transaction is not None
    damage(added_files(second.lineage, transaction)[0].path, "missing")
    damage(third.lineage.file(version_file(third.version)), "empty")
    assert TableStore(root, Durability.NONE).find_torn(PATH) is None


def test_a_healthy_table_is_not_torn(anywhere):
    store = TableStore(anywhere, Durability.NONE)
    make(store, ada=1)
    assert store.find_torn(PATH) is None


def test_version_files_are_named_backwards():
    assert version_file(1) == "_versions/18446744073709551614.manifest"
    assert version_of_file(version_file(77)) == 77
    assert version_of_file("_versions/latest_version_hint.json") is None
