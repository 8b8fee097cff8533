"""Creating, opening and reading tables, on every store."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.errors import StoreCallFailed, TableExists, TableMissing
from omnigraph.limits import ROWS_PER_FRAGMENT
from omnigraph.storage.delta import insert_exclusively, stage_delta
from omnigraph.storage.durability import Durability
from omnigraph.storage.filters import Comparison
from omnigraph.storage.indexes import list_indexes, stage_btree_index, uncovered_fragments
from omnigraph.storage.objects import open_store
from omnigraph.storage.stage import stage_append, stage_overwrite
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uris import normalise_root
from tests.storage.tables.rows import KEYED, PEOPLE, commit, content, make, numbered, people


def test_every_store_runs_the_whole_life_of_a_table(anywhere):
    store = TableStore(anywhere, Durability.FSYNC)
    table = make(store, ada=36)
    table = commit(table, stage_append(table, people(bo=41)))
    table = commit(table, stage_btree_index(table, "id"))
    branch = store.create_branch(
        "nodes/people", "review_s7", source_branch=None, source_version=table.version
    )
    branch = commit(branch, stage_delta(branch, people(bo=42, cy=1), ["ada"]))
    table = commit(table, stage_overwrite(table, people(dee=5)))
    assert content(store.open("nodes/people")) == {"dee": 5}
    assert content(store.open("nodes/people", version=2)) == {"ada": 36, "bo": 41}
    assert content(store.open("nodes/people", "review_s7")) == {"bo": 42, "cy": 1}
    assert content(store.open("nodes/people", "review_s7", 3)) == {"ada": 36, "bo": 41}
    assert store.open("nodes/people").latest_version() == table.version == 4
    store.reclaim_branch("nodes/people", "review_s7", open_store(anywhere, Durability.NONE))
    assert store.list_branches("nodes/people") == {}
    assert not store.has_branch_files("nodes/people", "review_s7")


def test_every_store_lets_a_key_be_inserted_once(anywhere):
    store = TableStore(anywhere, Durability.NONE)
    table = store.create("keyed", KEYED, rows=numbered({"a": 1}, KEYED))
    assert content(insert_exclusively(table, numbered({"b": 2}, KEYED))) == {"a": 1, "b": 2}


def test_another_process_sees_a_commit_at_once(store, root):
    table = make(store, ada=36)
    other = TableStore(root, Durability.NONE)
    seen = other.open("nodes/people")
    commit(table, stage_append(table, people(bo=41)))
    assert seen.latest_version() == 2
    assert other.open("nodes/people").version == 2
    assert content(seen) == {"ada": 36}


class TestCreate:
    def test_first_rows_and_metadata_are_one_commit(self, store):
        table = make(store, ada=36)
        assert table.version == 1
        assert content(table) == {"ada": 36}
        assert table.schema.metadata == {b"made by": b"a test"}
        assert table.schema.field("age").metadata == {b"omnigraph.prop_id": b"7"}
        assert not table.schema.field("id").nullable

    def test_a_table_may_start_empty(self, store):
        table = store.create("nodes/people", PEOPLE)
        assert (table.version, table.row_count(), table.fragments()) == (1, 0, ())
        table = commit(table, stage_append(table, people(ada=36)))
        assert content(table) == {"ada": 36}

    def test_configuration_costs_a_second_commit(self, store):
        table = store.create("nodes/people", PEOPLE, config={"managed": "true"})
        assert table.version == 2
        assert table.dataset.config() == {"managed": "true"}

    def test_rows_are_spread_over_files_of_bounded_size(self, store):
        rows = numbered(dict.fromkeys(map(str, range(2 * ROWS_PER_FRAGMENT + 1)), 0))
        table = store.create("nodes/people", PEOPLE, rows=rows)
        assert [f.rows for f in table.fragments()] == [ROWS_PER_FRAGMENT, ROWS_PER_FRAGMENT, 1]

    def test_an_existing_table_is_not_replaced(self, store):
        make(store, ada=36)
        with pytest.raises(TableExists, match="nodes/people"):
            make(store, bo=41)
        assert content(store.open("nodes/people")) == {"ada": 36}


class TestOpen:
    @pytest.mark.parametrize(
        ("path", "branch", "version"),
        [("nowhere", None, None), ("nodes/people", "gone", None), ("nodes/people", None, 9),
         ("nodes/people", "gone", 1)],
    )  # fmt: skip
    def test_what_is_not_there_is_named(self, store, path, branch, version):
        make(store, ada=36)
        with pytest.raises(TableMissing, match=path) as caught:
            store.open(path, branch, version)
        assert ".rs:" not in str(caught.value)
        assert isinstance(pickle.loads(pickle.dumps(caught.value)), TableMissing)

    def test_a_version_does_not_change_under_its_reader(self, store):
        table = make(store, ada=36)
        newer = commit(table, stage_append(table, people(bo=41)))
        assert content(table) == {"ada": 36}
        assert content(newer) == {"ada": 36, "bo": 41}


class TestRead:
    def test_columns_rows_and_order_are_chosen(self, store):
        table = make(store, cy=3, ada=1, bo=2)
        found = table.read(["id"], Comparison("age", ">", 1), order_by="id")
        assert found.column_names == ["id"]
        assert found.column("id").to_pylist() == ["bo", "cy"]
        assert table.read(["id"], order_by="id", limit=1).column("id").to_pylist() == ["ada"]

    def test_row_ids_addresses_and_versions_are_read_by_name(self, store):
        table = make(store, ada=1)
        table = commit(table, stage_append(table, people(bo=2)))
        columns = ["id", "_rowid", "_rowaddr", "_row_created_at_version"]
        updated = "_row_last_updated_at_version"
        assert table.read([*columns, updated]).to_pylist() == [
            {"id": "ada", "_rowid": 0, "_rowaddr": 0, columns[3]: 1, updated: 1},
            {"id": "bo", "_rowid": 1, "_rowaddr": 1 << 32, columns[3]: 2, updated: 2},
        ]
        assert table.read(["id"], with_row_ids=True).column_names == ["id", "_rowid"]
        assert table.read(["id"], Comparison(updated, ">", 1)).column("id").to_pylist() == ["bo"]

    def test_rows_are_streamed(self, store):
        table = make(store, ada=1, bo=2)
        reader = table.scan(["id"])
        assert isinstance(reader, pa.RecordBatchReader)
        assert sum(batch.num_rows for batch in reader) == 2

    @pytest.mark.parametrize("wanted", [3, 900])
    @pytest.mark.parametrize("indexed", [False, True])
    def test_ids_are_looked_up_by_index_or_by_scan(self, store, wanted, indexed):
        table = store.create(
            "nodes/people", PEOPLE, rows=numbered({f"p{n}": n for n in range(1_000)})
        )
        if indexed:
            table = commit(table, stage_btree_index(table, "id"))
        table = commit(table, stage_delta(table, numbered({"p1": -1, "new": -2}), ["p2"]))
        ids = pa.array([*(f"p{n}" for n in range(wanted)), "new", "nobody"])
        columns = ["id", "age", "_rowid", "_rowaddr", "_row_last_updated_at_version"]
        found = table.lookup(ids, columns)
        assert found.column_names == columns
        assert table.lookup(ids, ["age"]).num_rows == found.num_rows
        assert set(found.column(columns[-1]).to_pylist()) == {1, table.version}
        expected = {f"p{n}": n for n in range(wanted) if n != 2} | {"p1": -1, "new": -2}
        assert dict(zip(*(found.column(c).to_pylist() for c in ("id", "age")), strict=True)) == (
            expected
        )

    def test_a_file_that_vanished_is_reported_by_the_read_that_needs_it(self, store, root):
        make(store, ada=1)
        for file in Path(root.uri, "nodes", "people", "data").iterdir():
            file.unlink()
        table = TableStore(root, Durability.NONE).open("nodes/people")
        with pytest.raises(StoreCallFailed, match=r"storage read failed for '.*nodes/people'"):
            table.read()
        with pytest.raises(StoreCallFailed):
            for _ in table.scan(["id"]):
                pass

    def test_looking_up_no_ids_finds_no_rows(self, store):
        none = pa.array([], pa.string())
        assert make(store, ada=1).lookup(none, ["id", "age"]).to_pydict() == {"id": [], "age": []}


class TestWhatIsKnownAboutAVersion:
    def test_its_place_is_told_as_json(self, store, root):
        table = make(store, ada=36)
        told = json.loads(table.version_info().to_json())
        assert list(told) == ["manifest_path", "manifest_size", "e_tag", "naming_scheme"]
        assert f"/{told['manifest_path']}".startswith(f"{root.uri}/nodes/people/_versions/")
        assert told["manifest_size"] > 0
        assert told["naming_scheme"] == "V2"

    def test_the_operation_and_its_properties_are_kept(self, store):
        table = make(store, ada=36)
        table = commit(table, stage_append(table, people(bo=41)), "op-7")
        record = table.record()
        assert (record.version, record.operation) == (2, "append")
        assert (record.operation_id, record.writer_kind) == ("op-7", "Mutation")
        assert table.record(1).operation == "overwrite"
        assert table.record(1).operation_id is None
        with pytest.raises(TableMissing):
            table.record(9)

    def test_fragments_and_index_coverage_are_listed(self, store):
        table = make(store, ada=1, bo=2)
        assert uncovered_fragments(table, "id") is None
        table = commit(table, stage_btree_index(table, "id"))
        assert [(i.name, i.kind, i.columns, i.fragment_ids) for i in list_indexes(table)] == [
            ("id_idx", "BTREE", ("id",), frozenset({0}))
        ]
        assert uncovered_fragments(table, "id") == frozenset()
        table = commit(table, stage_delta(table, people(bo=3), []))
        assert [(f.id, f.rows, f.stored_rows) for f in table.fragments()] == [(0, 1, 2), (1, 1, 1)]
        assert uncovered_fragments(table, "id") == frozenset({1})
        assert uncovered_fragments(table, "age") is None

    def test_an_empty_table_has_nothing_to_index(self, store):
        assert stage_btree_index(store.create("nodes/people", PEOPLE), "id") is None


@pytest.mark.parametrize("name", ["with space", "ünïcödé", "100%41", "a#b", "it's"])
def test_a_directory_may_have_any_name(tmp_path, name):
    root = normalise_root(str(tmp_path / name))
    store, objects = TableStore(root, Durability.FSYNC), open_store(root, Durability.NONE)
    make(store, ada=1)
    branch = store.create_branch("nodes/people", "b", source_branch=None, source_version=1)
    branch = commit(branch, stage_delta(branch, people(bo=2), ["ada"]))
    assert content(TableStore(root, Durability.NONE).open("nodes/people", "b")) == {"bo": 2}
    assert (tmp_path / name / "nodes" / "people" / "tree" / "b" / "data").is_dir()
    store.reclaim_branch("nodes/people", "b", objects)
    assert not store.has_branch_files("nodes/people", "b")
