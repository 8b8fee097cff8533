"""The newest version of a table is found without listing all of them, whatever the note beside them says."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

from omnigraph.storage.compact import compact_with_indexes
from omnigraph.storage.delta import insert_exclusively
from omnigraph.storage.durability import Durability
from omnigraph.storage.stage import stage_append
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uris import normalise_root
from omnigraph.storage.versions import newest_version
from tests.storage.tables.rows import KEYED, commit, content, make, numbered, people


def grown(store, versions):
    table = make(store, ada=0)
    for number in range(1, versions):
        table = commit(table, stage_append(table, people(**{f"p{number}": number})))
    return table


def note(table) -> Path:
    return Path(table.lineage.file("_versions/latest_version_hint.json"))


def test_every_commit_leaves_a_note_of_its_version(store):
    table = grown(store, 1)
    for number in range(3):
        assert json.loads(note(table).read_text()) == {"version": table.version}
        assert newest_version(table.lineage) == table.version
        table = commit(table, stage_append(table, people(**{f"q{number}": 1})))


def test_inserts_and_compactions_leave_it_too(store):
    table = store.create("keyed", KEYED, rows=numbered({"start": 0}, KEYED))
    for number in range(3):
        table = insert_exclusively(table, numbered({f"k{number}": number}, KEYED))
        assert newest_version(table.lineage) == table.version
    compacted = compact_with_indexes(table)
    assert newest_version(table.lineage) == compacted.version > table.version


@pytest.mark.parametrize("behind", [1, 2, 3])
def test_a_note_that_is_behind_is_followed_to_the_newest(store, behind):
    table = grown(store, 4)
    note(table).write_text(json.dumps({"version": table.version - behind}))
    assert newest_version(table.lineage) == table.version
    assert store.open(table.path).version == table.version


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"version": null}', '{"version": 99}', '{"other": 1}', "\0" * 16]
)
def test_a_note_that_is_no_use_is_passed_over(store, text):
    table = grown(store, 3)
    note(table).write_text(text)
    assert newest_version(table.lineage) is None
    assert content(store.open(table.path)) == content(table)


def test_a_missing_note_is_no_problem(store):
    table = grown(store, 3)
    note(table).unlink()
    assert newest_version(table.lineage) is None
    assert store.open(table.path).version == 3


def test_a_note_far_behind_is_not_followed_step_by_step(store, monkeypatch):
    monkeypatch.setattr("omnigraph.storage.versions._NUMBERS_TRIED", 2)
    table = grown(store, 5)
    note(table).write_text('{"version": 1}')
    assert newest_version(table.lineage) is None
    assert store.open(table.path).version == 5


def test_a_branch_has_a_note_of_its_own(store):
    table = grown(store, 2)
    branch = store.create_branch(table.path, "b", source_branch=None, source_version=2)
    branch = commit(branch, stage_append(branch, people(zoe=9)))
    assert newest_version(branch.lineage) == branch.version == 3
    assert newest_version(table.lineage) == 2


def test_a_branch_made_again_is_not_taken_for_the_old_one(store, objects):
    table = grown(store, 2)
    for age in (1, 2):
        branch = store.create_branch(table.path, "b", source_branch=None, source_version=2)
        commit(branch, stage_append(branch, people(zoe=age)))
        assert content(store.open(table.path, "b"))["zoe"] == age
        store.reclaim_branch(table.path, "b", objects)


def test_a_version_is_watched_until_the_next_one_comes(store):
    table = grown(store, 2)
    watch = table.watch()
    assert watch is not None
    assert watch.is_newest()
    commit(table, stage_append(table, people(zoe=1)))
    assert not watch.is_newest()


def test_a_version_that_is_gone_or_made_again_is_not_the_one_that_was_watched(store, objects):
    table = grown(store, 2)
    branch = store.create_branch(table.path, "b", source_branch=None, source_version=2)
    branch = commit(branch, stage_append(branch, people(zoe=1)))
    watch = branch.watch()
    assert watch is not None
    store.reclaim_branch(table.path, "b", objects)
    assert not watch.is_newest()
    again = store.create_branch(table.path, "b", source_branch=None, source_version=2)
    again = commit(again, stage_append(again, people(zoe=2)))
    assert again.version == branch.version
    assert not watch.is_newest()


def test_versions_that_are_no_files_are_not_watched():
    store = TableStore(normalise_root(f"memory://{uuid.uuid4().hex}"), Durability.NONE)
    assert grown(store, 1).watch() is None
