"""Rows of a load in memory and, beyond a budget, in scratch files."""

from __future__ import annotations

import os

import pytest

from omnigraph.errors import LoadError
from omnigraph.load.splits import RowStore
from tests.unit.load.loading import WORKSHOP_RECORDS, load


def test_rows_beyond_the_budget_wait_in_files_and_read_the_same(tmp_path):
    expected = load(WORKSHOP_RECORDS)
    with RowStore(tmp_path, budget=100) as store:
        found = load(WORKSHOP_RECORDS, store=store)
        assert len(list(tmp_path.rglob("*.arrow"))) > 1
        assert found.types.keys() == expected.types.keys()
        for key, loaded in expected.types.items():
            assert found.types[key].rows.equals(loaded.rows)
    assert os.listdir(tmp_path) == []


def test_files_are_removed_when_a_load_fails(tmp_path):
    with pytest.raises(LoadError), RowStore(tmp_path, budget=10) as store:
        load(WORKSHOP_RECORDS + WORKSHOP_RECORDS, store=store)
    assert os.listdir(tmp_path) == []


def test_within_the_budget_nothing_is_written(tmp_path):
    with RowStore(tmp_path) as store:
        load(WORKSHOP_RECORDS, store=store)
        assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_number_of_threads_changes_nothing(monkeypatch, threads):
    expected = load(WORKSHOP_RECORDS, threads=1)
    monkeypatch.setattr("omnigraph.load.json_text.LOAD_BLOCK_BYTES", 150)
    found = load(WORKSHOP_RECORDS, threads=threads)
    for key, loaded in expected.types.items():
        assert found.types[key].rows.combine_chunks().equals(loaded.rows.combine_chunks())
