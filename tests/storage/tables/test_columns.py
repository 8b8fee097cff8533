"""Other columns for a table: what goes, what comes, and what stays as it was."""

from __future__ import annotations

import pyarrow as pa
import pytest

from omnigraph.errors import InputError
from omnigraph.storage.blobs import read_blob_cells
from omnigraph.storage.columns import NewValues, stage_columns
from omnigraph.storage.compact import compact
from omnigraph.storage.delta import stage_delta
from omnigraph.storage.durability import Durability
from omnigraph.storage.indexes import list_indexes, stage_btree_index
from omnigraph.storage.stage import stage_append
from omnigraph.storage.tables import TableStore
from tests.storage.tables.rows import commit, make, people, row_ids

PATH = "nodes/people"
NICK = pa.field("nick", pa.utf8(), nullable=False)
NONE = NewValues(
    pa.schema([NICK]),
    ("id",),
    lambda batch: pa.record_batch([pa.array(["none"] * batch.num_rows)], schema=pa.schema([NICK])),
)


def test_columns_come_and_go_in_one_commit(anywhere):
    table = make(TableStore(anywhere, Durability.FSYNC), ada=1, bo=2)
    table = commit(table, stage_append(table, people(cy=3)))
    table = commit(table, stage_delta(table, people(bo=20), ["ada"]))
    before = row_ids(table)
    empty = [
        pa.field("born", pa.date32()),
        pa.field("tags", pa.list_(pa.field("item", pa.utf8()))),
        pa.field("photo", pa.large_binary()),
    ]
    changed = commit(table, stage_columns(table, drop=["age"], empty=empty, filled=NONE))
    assert changed.version == table.version + 1
    assert changed.record().operation == "merge"
    assert changed.schema.names == ["id", "nick", "born", "tags", "photo"]
    assert not changed.schema.field("nick").nullable
    assert changed.schema.metadata == {b"made by": b"a test"}
    rows = changed.read(["id", "nick", "born", "tags"]).sort_by("id").to_pylist()
    assert rows == [
        {"id": name, "nick": "none", "born": None, "tags": None} for name in ("bo", "cy")
    ]
    assert row_ids(changed) == before


def test_earlier_versions_keep_their_columns(store):
    table = make(store, ada=1)
    commit(table, stage_columns(table, drop=["age"], filled=NONE))
    assert store.open(PATH, version=1).read().to_pylist() == [{"id": "ada", "age": 1}]


def test_a_table_without_rows_gets_columns(store):
    table = make(store)
    changed = commit(table, stage_columns(table, drop=["age"], filled=NONE))
    assert changed.schema.names == ["id", "nick"]
    row = pa.table({"id": ["ada"], "nick": ["a"]}, schema=changed.schema)
    changed = commit(changed, stage_append(changed, row))
    assert changed.read().to_pylist() == [{"id": "ada", "nick": "a"}]


def test_no_number_of_a_column_is_given_twice(store):
    table = make(store, ada=1)
    for name in ("a", "b", "c"):
        table = commit(table, stage_columns(table, empty=[pa.field(name, pa.int32())]))
        table = commit(table, stage_columns(table, drop=[name]))
    back = commit(table, stage_columns(table, empty=[pa.field("a", pa.int32())]))
    assert compact(back).read().to_pylist() == [{"id": "ada", "age": 1, "a": None}]


def test_indexes_of_columns_that_stay_are_kept(store):
    table = make(store, ada=1, bo=2)
    for column in ("id", "age"):
        table = commit(table, stage_btree_index(table, column))
    changed = commit(table, stage_columns(table, drop=["age"], filled=NONE))
    assert [index.columns for index in list_indexes(changed)] == [("id",)]
    assert changed.lookup(pa.array(["bo"]), ["id", "nick"]).to_pylist() == [
        {"id": "bo", "nick": "none"}
    ]


def test_rows_with_blobs_keep_them(store):
    schema = pa.schema([pa.field("id", pa.utf8(), nullable=False), ("photo", pa.large_binary())])
    table = store.create(PATH, schema, rows=pa.table({"id": ["a"], "photo": [b"x"]}, schema=schema))
    changed = compact(commit(table, stage_columns(table, filled=NONE)))
    ids = changed.read(["id"], with_row_ids=True).column("_rowid").combine_chunks()
    assert read_blob_cells(changed, "photo", ids).to_pylist()[0]["data"] == b"x"


def test_an_error_while_values_are_made_is_raised_as_it_is(store):
    def refuse(_batch):
        raise InputError("no")

    with pytest.raises(InputError, match=r"^no$"):
        stage_columns(make(store, ada=1), filled=NewValues(NONE.schema, ("id",), refuse))
    assert store.open(PATH).version == 1
