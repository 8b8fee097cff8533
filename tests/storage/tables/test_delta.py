"""Upserts and deletes as one change: right content, kept identities, exact counts."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.errors import InputError, StorageError
from omnigraph.storage import delta, scan, stage
from omnigraph.storage.compact import compact_with_indexes
from omnigraph.storage.delta import ROW_ADDRESS_COLUMNS, find_targets, stage_delta
from omnigraph.storage.durability import Durability
from omnigraph.storage.indexes import list_indexes, stage_btree_index
from omnigraph.storage.stage import RowCounts, stage_append
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uris import normalise_root
from tests.storage.tables.rows import PEOPLE, commit, content, make, numbered, people, row_ids

if TYPE_CHECKING:
    from omnigraph.storage.table import Table

NOTHING = PEOPLE.empty_table()


def row_versions(table: Table) -> dict[str, tuple[int, int]]:
    columns = ["id", "_row_created_at_version", "_row_last_updated_at_version"]
    rows = table.read(columns).to_pylist()
    return {row["id"]: (row[columns[1]], row[columns[2]]) for row in rows}


def test_upserts_and_deletes_are_one_update_that_keeps_identities(store):
    table = make(store, ada=1, bo=2, cy=3)
    staged = stage_delta(table, people(dee=4, bo=20), ["cy", "nobody"])
    assert staged is not None
    assert (staged.counts, staged.row_count_after) == (RowCounts(1, 1, 1), 3)
    table = commit(table, staged, "op-5")
    assert table.version == 2
    assert (table.record().operation, table.record().operation_id) == ("update", "op-5")
    assert content(table) == {"ada": 1, "bo": 20, "dee": 4}
    assert row_ids(table) == {"ada": 0, "bo": 1, "dee": 3}
    assert row_versions(table) == {"ada": (1, 1), "bo": (1, 2), "dee": (2, 2)}


def test_only_deletes(store):
    table = make(store, ada=1, bo=2)
    table = commit(table, stage_delta(table, NOTHING, ["ada", "ada"]))
    assert content(table) == {"bo": 2}


def test_only_inserts(store):
    table = make(store, ada=1)
    table = commit(table, stage_delta(table, people(bo=2), []))
    assert (content(table), row_ids(table)) == ({"ada": 1, "bo": 2}, {"ada": 0, "bo": 1})


def test_a_fragment_of_which_nothing_is_left_goes(store):
    table = make(store, ada=1, bo=2)
    table = commit(table, stage_append(table, people(cy=3)))
    table = commit(table, stage_delta(table, NOTHING, ["ada", "bo"]))
    assert [f.id for f in table.fragments()] == [1]
    table = commit(table, stage_delta(table, NOTHING, ["cy"]))
    assert (table.fragments(), table.row_count()) == ((), 0)
    table = commit(table, stage_delta(table, people(ada=9), []))
    assert content(table) == {"ada": 9}


def test_deletes_of_unknown_ids_change_nothing(store):
    table = make(store, ada=1)
    assert stage_delta(table, NOTHING, ["bo"]) is None


@pytest.mark.parametrize(
    ("upserts", "deletes", "problem"),
    [
        (NOTHING, [], "nothing to change"),
        (pa.table({"id": ["a", "a"], "age": [1, 2]}), [], "twice"),
        (people(ada=1), ["ada"], "writes and deletes"),
        (pa.table({"id": pa.array([None], pa.string()), "age": [1]}), [], "needs an id"),
    ],
)
def test_a_delta_that_contradicts_itself_is_refused(store, upserts, deletes, problem):
    table = make(store, ada=1)
    with pytest.raises(InputError, match=problem):
        stage_delta(table, upserts, deletes)


def test_an_id_stored_twice_is_reported_not_guessed(store):
    table = make(store, ada=1)
    table = commit(table, stage_append(table, people(ada=2)))
    with pytest.raises(StorageError, match="more than once"):
        stage_delta(table, people(ada=3), [])


def test_a_branch_is_changed_without_touching_the_main_line(store):
    table = make(store, ada=1, bo=2)
    table = commit(table, stage_btree_index(table, "id"))
    branch = store.create_branch("nodes/people", "b", source_branch=None, source_version=2)
    branch = commit(branch, stage_delta(branch, people(bo=20, cy=3), ["ada"]))
    branch = commit(branch, stage_delta(branch, people(cy=30), []))
    assert content(branch) == {"bo": 20, "cy": 30}
    assert row_ids(branch) == {"bo": 1, "cy": 2}
    assert content(store.open("nodes/people")) == {"ada": 1, "bo": 2}


def test_more_rows_than_fit_in_one_file_keep_their_ids(store, monkeypatch):
    monkeypatch.setitem(stage.WRITE_OPTIONS, "max_rows_per_file", 100)
    table = store.create("nodes/people", PEOPLE, rows=numbered({f"p{n}": n for n in range(500)}))
    before = row_ids(table)
    changed: dict[str, int | None] = {f"p{n}": -n for n in range(100, 350)}
    added: dict[str, int | None] = {f"q{n}": n for n in range(250)}
    table = commit(table, stage_delta(table, numbered(added | changed), ["p0"]))
    after = row_ids(table)
    assert {name: after[name] for name in before if name != "p0"} == {
        name: number for name, number in before.items() if name != "p0"
    }
    assert len(set(after.values())) == len(after) == 749
    assert content(table) == {f"p{n}": n for n in range(1, 500)} | changed | added
    table.dataset.validate()


ages = st.integers(-5, 5)
names = st.sampled_from([f"p{n}" for n in range(12)])
deltas = st.tuples(st.dictionaries(names, ages, max_size=5), st.sets(names, max_size=4))
steps = st.lists(
    st.one_of(deltas, st.sampled_from(["index", "compact", "branch"])), min_size=1, max_size=8
)
roots = (normalise_root(f"memory://deltas-{number}") for number in itertools.count())


@pytest.mark.parametrize("by_index", [False, True])
@settings(max_examples=40)
@given(steps=steps)
def test_any_sequence_of_deltas_agrees_with_a_dictionary(by_index, steps):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "ROWS_SCANNED_PER_LOOKUP", 0 if by_index else 1_000)
        play(steps)


def play(steps: list[Any]) -> None:
    store = TableStore(next(roots), Durability.NONE)
    table = store.create("nodes/people", PEOPLE)
    expected: dict[str, int] = {}
    known: dict[str, int] = {}
    for number, step in enumerate(steps):
        match step:
            case "index":
                if table.row_count() and not list_indexes(table):
                    table = commit(table, stage_btree_index(table, "id"))
            case "compact":
                table = compact_with_indexes(table)
            case "branch":
                name, source = f"b{number}", table.branch
                table = store.create_branch(
                    "nodes/people", name, source_branch=source, source_version=table.version
                )
            case upserts, deletes:
                table = apply(table, upserts, sorted(deletes - set(upserts)), expected)
        assert content(table) == expected
        ids = row_ids(table)
        assert all(ids[name] == known[name] for name in known if name in ids)
        known = ids
    if expected:
        table.dataset.validate()


def apply(
    table: Table, upserts: dict[str, int], deletes: list[str], expected: dict[str, int]
) -> Table:
    if not upserts and not deletes:
        return table
    staged = stage_delta(table, numbered({**upserts}), deletes)
    gone = [name for name in deletes if name in expected]
    updated = [name for name in upserts if name in expected]
    for name in gone:
        del expected[name]
    expected |= upserts
    if staged is None:
        assert not upserts
        assert not gone
        return table
    assert staged.counts == RowCounts(len(upserts) - len(updated), len(updated), len(gone))
    assert staged.row_count_after == len(expected)
    return commit(table, staged)


# -- rows whose place is known ---------------------------------------------------------------


def places(table: Table, *ids: str) -> pa.Table:
    return table.lookup(pa.array(ids, pa.utf8()), ROW_ADDRESS_COLUMNS)


def test_rows_whose_place_is_known_are_not_looked_up(store, monkeypatch):
    table = make(store, ada=1, bo=2, cy=3)
    known = places(table, "ada", "bo", "cy")
    monkeypatch.setattr(type(table), "lookup", None)
    targets = find_targets(table, people(bo=20), ["ada"], known)
    assert targets.counts == RowCounts(updated=1, deleted=1)
    before = row_ids(table)
    changed = commit(table, stage_delta(table, people(bo=20), ["ada"], targets))
    assert content(changed) == {"bo": 20, "cy": 3}
    assert row_ids(changed) == {"bo": before["bo"], "cy": before["cy"]}


def test_the_other_rows_are_looked_up(store):
    table = make(store, ada=1, bo=2, cy=3)
    targets = find_targets(table, people(bo=20, dee=4), ["cy"], places(table, "bo", "ada"))
    assert targets.counts == RowCounts(inserted=1, updated=1, deleted=1)
    changed = commit(table, stage_delta(table, people(bo=20, dee=4), ["cy"], targets))
    assert content(changed) == {"ada": 1, "bo": 20, "dee": 4}


@pytest.mark.parametrize("small_batch", [1, 1000])
def test_rows_that_are_put_in_order_part_by_part_are_the_same(store, monkeypatch, small_batch):
    monkeypatch.setattr(delta, "_ROWS_AT_ONCE", 3)
    monkeypatch.setattr(delta, "_SMALL_BATCH", small_batch)
    table = make(store, **{f"p{n}": n for n in range(10)})
    before = row_ids(table)
    changed = {f"p{n}": -n for n in (7, 1, 9, 4)} | {"new": 1, "newer": 2}
    rows = people(**changed)
    batches = pa.concat_tables([rows.slice(0, 2), rows.slice(2, 3), rows.slice(5)])
    table = commit(table, stage_delta(table, batches, ["p2"]))
    assert content(table) == {f"p{n}": n for n in (0, 3, 5, 6, 8)} | changed
    after = row_ids(table)
    assert {name: after[name] for name in before if name in after} == {
        name: before[name] for name in before if name != "p2"
    }
