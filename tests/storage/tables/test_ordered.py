"""Rows by id: the same order whether a table is sorted at once or a range of ids at a time."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from omnigraph.storage import ordered
from omnigraph.storage.ordered import scan_by_id
from omnigraph.storage.stage import stage_append
from tests.storage.tables.rows import PEOPLE, commit, numbered

IDS = ["", "a", "a\x00", "é", "\U0001f600", "'", *(f"{n}" for n in range(5000))]


@pytest.mark.parametrize("size", [5_000, 40_000, 10**9])
def test_every_row_comes_once_and_in_the_order_of_ids(store, monkeypatch, size):
    ids = random.Random(7).sample(IDS, len(IDS))
    table = store.create("nodes/people", PEOPLE, rows=numbered(dict.fromkeys(ids[:2000], 1)))
    table = commit(table, stage_append(table, numbered(dict.fromkeys(ids[2000:], 2))))
    monkeypatch.setattr(ordered, "SORTED_BYTES", size)
    batches = list(scan_by_id(table, ["age", "id"], with_row_ids=True))
    rows = pa.Table.from_batches(batches)
    assert rows.column("id").to_pylist() == sorted(IDS, key=str.encode)
    assert rows.column_names == ["age", "id", "_rowid"]
    monkeypatch.setattr(ordered, "SORTED_BYTES", 10**9)
    assert rows.equals(pa.Table.from_batches(scan_by_id(table, ["age", "id"], with_row_ids=True)))


def test_a_large_table_has_larger_ranges_instead_of_more_files(store, monkeypatch):
    table = store.create("nodes/people", PEOPLE, rows=numbered(dict.fromkeys(IDS, 1)))
    assert len(ordered.id_bounds(table, ["id"], 1_000)) > 10
    assert len(ordered.id_bounds(table, ["id"], 1_000, 4)) == 3


def test_a_table_without_rows_has_none(store):
    table = store.create("nodes/people", PEOPLE)
    assert sum(batch.num_rows for batch in scan_by_id(table, ["id"])) == 0
