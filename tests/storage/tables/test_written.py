"""Rows that several processes wrote for one change of a table."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from omnigraph.storage.stage import RowCounts, stage_append
from omnigraph.storage.written import (
    by_fragment,
    move_written,
    remove_written,
    shrink,
    stage_written,
    write_part,
)
from tests.storage.tables.rows import commit, content, make, people, row_ids


def parts_of(table, kind, *rows):
    """Parts as they arrive from other processes."""
    return [pickle.loads(pickle.dumps(write_part(table, part, kind))) for part in rows]


def shrunk(table, parts):
    found = [shrink(table, addresses) for addresses in by_fragment(parts)]
    return pickle.loads(pickle.dumps(found))


def test_parts_are_appended_as_one_change(store):
    table = make(store, ada=1)
    parts = parts_of(table, "append", people(bo=2), people(cy=3, dee=4))
    staged = stage_written(table, "append", parts)
    assert (staged.counts, staged.row_count_after) == (RowCounts(inserted=3), 4)
    table = commit(table, staged)
    assert (table.version, content(table)) == (2, {"ada": 1, "bo": 2, "cy": 3, "dee": 4})


def test_parts_replace_the_whole_table(store):
    table = make(store, ada=1, bo=2)
    parts = parts_of(table, "overwrite", people(bo=20), people(cy=3))
    assert [part.known for part in parts] == [1, 0]
    table = commit(table, stage_written(table, "overwrite", parts))
    assert content(table) == {"bo": 20, "cy": 3}


def test_no_parts_empty_the_table(store):
    table = make(store, ada=1)
    assert content(commit(table, stage_written(table, "overwrite", []))) == {}


def test_parts_that_replace_rows_keep_their_identities(store):
    table = make(store, ada=1, bo=2, cy=3)
    table = commit(table, stage_append(table, people(dee=4, eve=5)))
    before = row_ids(table)
    parts = parts_of(table, "delta", people(new=9, dee=40, ada=10), people(bo=20, other=8))
    assert [len(same) for same in by_fragment(parts)] == [2, 1]
    staged = stage_written(table, "delta", parts, shrunk(table, parts))
    assert staged.counts == RowCounts(inserted=2, updated=3)
    table = commit(table, staged)
    expected = {"ada": 10, "bo": 20, "cy": 3, "dee": 40, "eve": 5, "new": 9, "other": 8}
    assert content(table) == expected
    after = row_ids(table)
    assert {name: after[name] for name in before} == before
    assert len(set(after.values())) == 7


def test_parts_may_remove_rows_as_well(store):
    table = make(store, ada=1, bo=2, cy=3, dee=4)
    parts = [
        write_part(table, people(ada=10, new=9), "delta", ["bo"]),
        write_part(table, people(), "delta", ["dee", "nobody"]),
    ]
    assert [(part.rows, part.known, part.removed) for part in parts] == [(2, 1, 1), (0, 0, 1)]
    staged = stage_written(table, "delta", parts, shrunk(table, parts))
    assert staged.counts == RowCounts(inserted=1, updated=1, deleted=2)
    assert staged.row_count_after == 3
    assert content(commit(table, staged)) == {"ada": 10, "cy": 3, "new": 9}


def test_a_fragment_that_loses_everything_goes(store):
    table = make(store, ada=1, bo=2)
    parts = parts_of(table, "delta", people(ada=10), people(bo=20))
    table = commit(table, stage_written(table, "delta", parts, shrunk(table, parts)))
    assert content(table) == {"ada": 10, "bo": 20}
    assert [fragment.rows for fragment in table.fragments()] == [1, 1]


def test_files_that_will_not_be_committed_are_removed(store, objects, root):
    table = make(store, ada=1)
    data = Path(root.uri) / table.path / "data"
    before = sorted(data.iterdir())
    kept, dropped = parts_of(table, "append", people(bo=2), people(cy=3))
    named = {path.name for path in data.iterdir()} - {path.name for path in before}
    assert len(named) == 2
    remove_written(objects, table.lineage, dropped.fragments)
    table = commit(table, stage_written(table, "append", [kept]))
    assert content(table) == {"ada": 1, "bo": 2}
    remove_written(objects, table.lineage, kept.fragments, besides=table.files())
    assert content(store.open(table.path)) == {"ada": 1, "bo": 2}
    assert len(list(data.iterdir())) == len(before) + 1


@pytest.mark.parametrize("kind", ["append", "delta"])
def test_rows_move_to_a_branch_that_was_made_later(store, objects, kind):
    table = make(store, ada=1, bo=2)
    rows = people(cy=3) if kind == "append" else people(bo=20, cy=3)
    parts = parts_of(table, kind, rows)
    branch = store.create_branch(
        table.path, "draft", source_branch=None, source_version=table.version
    )
    fragments = [text for part in parts for text in part.fragments]
    move_written(objects, table.lineage, branch.lineage, fragments)
    branch = commit(branch, stage_written(branch, kind, parts, shrunk(branch, parts)))
    assert content(branch) == {"ada": 1, "bo": 2 if kind == "append" else 20, "cy": 3}
    assert content(store.open(table.path)) == {"ada": 1, "bo": 2}
