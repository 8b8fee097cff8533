"""Values of dropped columns leave the files of a table, and nothing else changes."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa

from omnigraph.storage.blobs import read_blob_cells
from omnigraph.storage.cleanup import remove_versions, stored_versions
from omnigraph.storage.columns import (
    NewValues,
    fragments_with_dropped,
    remove_dropped_columns,
    rewrite_fragment,
    stage_columns,
)
from omnigraph.storage.compact import commit_rewritten
from omnigraph.storage.delta import stage_delta
from omnigraph.storage.indexes import list_indexes, stage_btree_index
from omnigraph.storage.stage import stage_append
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from tests.storage.tables.rows import commit, make, people, row_ids

SECRET = pa.field("secret", pa.utf8(), nullable=False)
SECRETS = NewValues(
    pa.schema([SECRET]),
    ("id",),
    lambda batch: pa.record_batch(
        [pa.array(["hush"] * batch.num_rows)], schema=pa.schema([SECRET])
    ),
)


def files_with(table: Table, word: bytes) -> int:
    folder = Path(table.lineage.uri) / "data"
    return sum(word in path.read_bytes() for path in folder.iterdir() if path.is_file())


def three_fragments(store: TableStore) -> Table:
    table = make(store, ada=1, bo=2)
    table = commit(table, stage_append(table, people(cy=3)))
    table = commit(table, stage_delta(table, people(bo=20), ["ada"]))
    index = stage_btree_index(table, "id")
    assert index is not None
    return commit(table, index)


def test_rows_row_ids_and_indexes_stay_and_the_column_is_in_no_file(store):
    table = three_fragments(store)
    table = commit(table, stage_columns(table, filled=SECRETS))
    dropped = commit(table, stage_columns(table, drop=["age", "secret"]))
    assert fragments_with_dropped(dropped) == [f.id for f in dropped.fragments()]
    rewritten = remove_dropped_columns(dropped)
    assert fragments_with_dropped(rewritten) == []
    assert remove_dropped_columns(rewritten) is rewritten
    assert row_ids(rewritten) == row_ids(table)
    [index] = list_indexes(rewritten)
    assert index.fragment_ids == {f.id for f in rewritten.fragments()}
    assert files_with(rewritten, b"hush") == 2
    earlier = [v.number for v in stored_versions(rewritten)][:-1]
    remove_versions(rewritten, earlier)
    assert files_with(rewritten, b"hush") == 0
    assert rewritten.read(["id"]).sort_by("id").column("id").to_pylist() == ["bo", "cy"]


def test_one_full_fragment_without_deletions_is_rewritten_too(store):
    table = make(store, ada=1, bo=2)
    dropped = commit(table, stage_columns(table, drop=["age"]))
    assert fragments_with_dropped(remove_dropped_columns(dropped)) == []


def test_what_other_processes_rewrote_is_committed_here(store):
    table = three_fragments(store)
    dropped = commit(table, stage_columns(table, drop=["age"]))
    numbers = fragments_with_dropped(dropped)
    written = [pickle.loads(pickle.dumps(rewrite_fragment(dropped, n))) for n in numbers]
    rewritten = commit_rewritten(dropped, written)
    assert fragments_with_dropped(rewritten) == []
    assert row_ids(rewritten) == row_ids(table)


def test_blobs_and_lists_beside_a_dropped_column_stay(store):
    fields = [pa.field("photo", pa.large_binary()), pa.field("tags", pa.list_(pa.utf8()))]
    schema = pa.schema([pa.field("id", pa.utf8(), nullable=False), ("age", pa.int32()), *fields])
    table = store.create("nodes/x", schema)
    rows = {"id": ["a", "b"], "age": [1, 2], "photo": [b"one", None], "tags": [["x"], []]}
    table = commit(table, stage_append(table, pa.table(rows, schema=schema)))
    rewritten = remove_dropped_columns(commit(table, stage_columns(table, drop=["age"])))
    assert fragments_with_dropped(rewritten) == []
    assert rewritten.read(["id", "tags"]).sort_by("id").to_pylist() == [
        {"id": "a", "tags": ["x"]},
        {"id": "b", "tags": []},
    ]
    ids = rewritten.read(["id"], with_row_ids=True).sort_by("id").column("_rowid")
    cells = read_blob_cells(rewritten, "photo", ids.combine_chunks()).to_pylist()
    assert cells[0]["data"] == b"one"
