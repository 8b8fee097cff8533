"""Removing versions of a table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from omnigraph.errors import TableMissing
from omnigraph.storage.cleanup import RemovedFiles, remove_versions, stored_versions
from omnigraph.storage.durability import Durability
from omnigraph.storage.objects import open_store
from omnigraph.storage.stage import stage_append, stage_overwrite
from omnigraph.storage.tables import TableStore
from tests.storage.tables.rows import commit, content, make, people

PATH = "nodes/people"


def grown(store: TableStore):
    table = make(store, ada=1)
    table = commit(table, stage_append(table, people(bo=2)))
    return commit(table, stage_overwrite(table, people(cy=3)))


def test_versions_tell_when_they_were_made(anywhere):
    table = grown(TableStore(anywhere, Durability.NONE))
    found = stored_versions(table)
    assert [version.number for version in found] == [1, 2, 3]
    now = datetime.now(UTC)
    assert all(now - timedelta(minutes=5) < v.written_at <= now for v in found)


def test_a_removed_version_and_its_files_are_gone(anywhere):
    store = TableStore(anywhere, Durability.NONE)
    table = grown(store)
    planned = remove_versions(table, [1, 2], dry_run=True)
    assert [v.number for v in stored_versions(table)] == [1, 2, 3]
    removed = remove_versions(table, [1, 2])
    assert removed == planned
    assert (removed.versions, removed.bytes > 0) == (2, True)
    assert [v.number for v in stored_versions(store.open(PATH))] == [3]
    with pytest.raises(TableMissing):
        TableStore(anywhere, Durability.NONE).open(PATH, version=1)
    assert content(store.open(PATH)) == {"cy": 3}


def test_what_branches_were_made_from_stays(store):
    table = grown(store)
    store.create_branch(PATH, "b", source_branch=None, source_version=2)
    remove_versions(table, [1, 2, 3])
    assert [v.number for v in stored_versions(store.open(PATH))] == [2, 3]
    assert content(store.open(PATH, "b")) == {"ada": 1, "bo": 2}


def test_a_note_that_is_behind_does_not_bring_an_old_version_back(store, root):
    table = grown(store)
    for number in range(3):
        table = commit(table, stage_append(table, people(**{f"p{number}": number})))
    store.create_branch(PATH, "b", source_branch=None, source_version=2)
    note = Path(root.uri, PATH, "_versions", "latest_version_hint.json")
    note.write_text('{"version": 2}')
    assert store.open(PATH).version == 6
    remove_versions(store.open(PATH), [1, 2, 3, 4, 5])
    assert [v.number for v in stored_versions(store.open(PATH))] == [2, 6]
    assert TableStore(root, Durability.NONE).open(PATH).version == 6


def test_nothing_asked_for_is_nothing_removed(store):
    assert remove_versions(grown(store), []) == RemovedFiles()


def test_a_table_is_removed_with_everything_it_has(anywhere):
    store, objects = TableStore(anywhere, Durability.NONE), open_store(anywhere, Durability.NONE)
    grown(store)
    store.create_branch(PATH, "b", source_branch=None, source_version=2)
    assert store.exists(PATH)
    store.remove(PATH, objects)
    fresh = TableStore(anywhere, Durability.NONE)
    assert not fresh.exists(PATH)
    assert content(make(fresh, dee=4)) == {"dee": 4}
