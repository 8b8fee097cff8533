"""Changing what a table is: new columns in one commit, metadata, and what is known about old rows."""

from __future__ import annotations

import lance
import pyarrow as pa
import pytest

from omnigraph.errors import StoreCallFailed, TableConflict
from omnigraph.storage.columns import (
    INSERTED_AT,
    annotate_column,
    annotate_table,
    private_table,
    read_with_versions,
    stage_reshaped,
)
from omnigraph.storage.durability import Durability
from omnigraph.storage.filters import Comparison
from omnigraph.storage.stage import commit_staged, stage_append
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uris import normalise_root
from tests.storage.tables.rows import commit, content, make, people

PATH = "nodes/people"
NEW = pa.table(
    {"key": ["a", "b"], "n": [1, 2]},
    schema=pa.schema(
        [pa.field("key", pa.utf8(), nullable=False, metadata={"why": "id"}), ("n", pa.int64())],
        metadata={"format": "2"},
    ),
)


def test_columns_rows_and_metadata_change_in_one_commit(store):
    table = make(store, ada=1)
    branch = store.create_branch(PATH, "b", source_branch=None, source_version=1)
    for line in (branch, table):
        changed = commit(line, stage_reshaped(line, NEW))
        assert changed.version == 2
        assert changed.read().to_pylist() == NEW.to_pylist()
        assert changed.schema.metadata == {b"format": b"2"}
        assert changed.schema.field("key").metadata[b"why"] == b"id"
        assert changed.dataset.has_stable_row_ids
    assert content(store.open(PATH, version=1)) == {"ada": 1}


def test_of_two_such_changes_one_is_refused(store):
    table = make(store, ada=1)
    first, second = stage_reshaped(table, NEW), stage_reshaped(table, NEW)
    commit(table, first)
    with pytest.raises(TableConflict):
        commit_staged(table, second, operation_id="x", writer_kind="Test")
    assert store.open(PATH).version == 2


def test_rows_tell_the_version_that_inserted_them(store):
    table = make(store, ada=1)
    table = commit(table, stage_append(table, people(bo=2)))
    branch = store.create_branch(PATH, "b", source_branch=None, source_version=2)
    branch = commit(branch, stage_append(branch, people(cy=3)))
    found = read_with_versions(branch, ["id"]).to_pylist()
    assert {row["id"]: row[INSERTED_AT] for row in found} == {"ada": 1, "bo": 2, "cy": 3}


def test_a_table_that_does_not_know_when_rows_came_is_refused(tmp_path):
    lance.write_dataset(people(ada=1), str(tmp_path / PATH))
    store = TableStore(normalise_root(str(tmp_path)), Durability.NONE)
    with pytest.raises(StoreCallFailed, match="export the graph and load it into a new one"):
        read_with_versions(store.open(PATH), ["id"])


def test_metadata_is_added_to_what_is_there(store):
    table = make(store, ada=1)
    column = table.schema.names[0]
    table = annotate_column(table, column, {"a": "1"})
    table = annotate_column(table, column, {"b": "2"})
    table = annotate_table(table, {"stamp": "2"})
    newest = store.open(PATH)
    assert newest.version == table.version
    assert {b"a": b"1", b"b": b"2"}.items() <= newest.schema.field(column).metadata.items()
    assert newest.schema.metadata[b"stamp"] == b"2"
    assert content(newest) == {"ada": 1}


def test_a_private_table_is_read_like_another_and_hides_nothing_from_anybody():
    one, two = (private_table("__manifest", "a/b", NEW.slice(n, 1)) for n in range(2))
    assert (one.path, one.branch) == ("__manifest", "a/b")
    assert one.read(["key"], filter=Comparison("n", "=", 1)).to_pylist() == [{"key": "a"}]
    assert two.read(["key"]).to_pylist() == [{"key": "b"}]


def test_a_branch_is_described_in_its_ref(store, objects):
    make(store, ada=1)
    for name in ("b", "a/b"):
        store.create_branch(PATH, name, source_branch=None, source_version=1)
        store.describe_branch(PATH, name, {"named": name}, objects)
    refs = store.list_branches(PATH)
    assert {name: ref.metadata for name, ref in refs.items()} == {
        "b": {"named": "b"},
        "a/b": {"named": "a/b"},
    }
    assert content(store.open(PATH, "a/b")) == {"ada": 1}
