"""StagedChange changes: nothing happens before the commit, and the commit is exactly the next version."""

from __future__ import annotations

import pyarrow as pa
import pytest

from omnigraph.errors import ConstraintError, InputError, TableConflict, TableOvertaken
from omnigraph.storage.delta import stage_delta
from omnigraph.storage.indexes import list_indexes, stage_btree_index
from omnigraph.storage.stage import RowCounts, stage_append, stage_overwrite, stage_restore
from tests.storage.tables.rows import PEOPLE, commit, content, make, people, row_ids


def test_a_staged_change_is_invisible_until_it_is_committed(store):
    table = make(store, ada=1)
    staged = [
        stage_append(table, people(bo=2)),
        stage_overwrite(table, people(cy=3)),
        stage_delta(table, people(ada=9), []),
        stage_btree_index(table, "id"),
    ]
    assert all(staged)
    assert store.open("nodes/people").version == 1
    assert content(store.open("nodes/people")) == {"ada": 1}


class TestAppend:
    def test_rows_are_counted_and_added(self, store):
        table = make(store, ada=1)
        staged = stage_append(table, people(bo=2, cy=None))
        assert (staged.counts, staged.row_count_after) == (RowCounts(inserted=2), 3)
        assert content(commit(table, staged)) == {"ada": 1, "bo": 2, "cy": None}

    def test_rows_may_be_streamed(self, store):
        table = make(store, ada=1)
        batches = (people(**{f"p{n}": n}).to_batches()[0] for n in range(5))
        staged = stage_append(table, pa.RecordBatchReader.from_batches(PEOPLE, batches))
        assert commit(table, staged).row_count() == 6

    def test_no_rows_are_refused(self, store):
        table = make(store, ada=1)
        with pytest.raises(InputError, match="nothing to append"):
            stage_append(table, PEOPLE.empty_table())

    def test_it_may_be_committed_to_a_later_version(self, store):
        table = make(store, ada=1)
        staged = stage_append(table, people(bo=2))
        moved = commit(table, stage_append(table, people(cy=3)))
        assert content(commit(moved, staged)) == {"ada": 1, "bo": 2, "cy": 3}

    def test_columns_are_reordered_and_widened(self, store):
        table = make(store, ada=1)
        rows = pa.table({"age": pa.array([2], pa.int8()), "id": ["bo"]})
        assert content(commit(table, stage_append(table, rows))) == {"ada": 1, "bo": 2}

    @pytest.mark.parametrize(
        "rows",
        [
            {"id": ["bo"]},
            {"id": ["bo"], "age": [1], "more": [1]},
            {"id": ["bo"], "age": [2**40]},
        ],
    )
    def test_rows_that_do_not_fit_are_refused(self, store, rows):
        table = make(store, ada=1)
        with pytest.raises(InputError, match="fit the table"):
            stage_append(table, pa.table(rows))
        assert store.open("nodes/people").version == 1

    def test_an_error_of_the_stream_arrives_as_it_is(self, store):
        def batches():
            yield people(bo=2).to_batches()[0]
            raise ConstraintError("record 2 is bad")

        table = make(store, ada=1)
        with pytest.raises(ConstraintError, match="record 2"):
            stage_append(table, pa.RecordBatchReader.from_batches(PEOPLE, batches()))


class TestOverwrite:
    def test_the_content_is_replaced(self, store):
        table = make(store, ada=1, bo=2)
        staged = stage_overwrite(table, people(cy=3))
        assert (staged.counts, staged.row_count_after) == (RowCounts(inserted=1, deleted=2), 1)
        table = commit(table, staged)
        assert content(table) == {"cy": 3}
        assert table.record().operation == "overwrite"
        assert table.schema.metadata == {b"made by": b"a test"}

    def test_no_rows_make_an_empty_table(self, store):
        table = make(store, ada=1)
        table = commit(table, stage_overwrite(table, PEOPLE.empty_table()))
        assert (table.row_count(), table.fragments()) == (0, ())

    def test_row_ids_stay_stable_and_are_never_given_twice(self, store):
        table = make(store, ada=1, bo=2)
        table = commit(table, stage_overwrite(table, people(ada=1)))
        assert table.dataset.has_stable_row_ids
        assert row_ids(table) == {"ada": 2}

    def test_configuration_is_kept_and_indexes_are_not(self, store):
        table = store.create("nodes/people", PEOPLE, rows=people(ada=1), config={"a": "b"})
        table = commit(table, stage_btree_index(table, "id"))
        table = commit(table, stage_overwrite(table, people(bo=2)))
        assert table.dataset.config() == {"a": "b"}
        assert list_indexes(table) == []


class TestRestore:
    def test_earlier_content_becomes_the_next_version(self, store):
        table = make(store, ada=1)
        moved = commit(table, stage_append(table, people(bo=2)))
        back = commit(moved, stage_restore(moved, 1), "op-9")
        assert (back.version, content(back)) == (3, {"ada": 1})
        assert (back.record().operation, back.record().operation_id) == ("restore", "op-9")


class TestCommit:
    def test_it_carries_operation_id_and_writer_kind(self, store):
        table = make(store, ada=1)
        for staged in (
            stage_append(table, people(bo=2)),
            stage_overwrite(table, people(cy=3)),
        ):
            table = commit(table, staged, "op-42")
            assert table.record().operation_id == "op-42"
            assert table.record().writer_kind == "Mutation"

    def test_a_change_is_committed_once(self, store):
        table = make(store, ada=1)
        staged = stage_append(table, people(bo=2))
        moved = commit(table, staged)
        with pytest.raises(ValueError, match="once"):
            commit(moved, staged)
        assert store.open("nodes/people").version == 2

    def test_a_change_that_failed_is_not_tried_again_either(self, store):
        table = make(store, ada=1)
        staged = stage_overwrite(table, people(bo=2))
        commit(table, stage_append(table, people(cy=3)))
        with pytest.raises(TableConflict):
            commit(table, staged)
        with pytest.raises(ValueError, match="once"):
            commit(store.open("nodes/people"), staged)

    def test_a_change_refused_by_the_store_is_a_conflict_and_moves_nothing(self, store):
        table = make(store, ada=1, bo=2)
        late = stage_delta(table, people(bo=3), [])
        commit(table, stage_delta(table, people(ada=9), []))
        with pytest.raises(TableConflict, match="after version 1"):
            commit(table, late)
        assert store.open("nodes/people").version == 2

    def test_landing_on_a_later_version_is_reported(self, store):
        table = make(store, ada=1)
        late = stage_append(table, people(bo=2))
        commit(table, stage_append(table, people(cy=3)))
        with pytest.raises(TableOvertaken) as caught:
            commit(table, late)
        assert (caught.value.expected, caught.value.actual) == (2, 3)

    def test_a_change_belongs_to_the_line_it_was_staged_on(self, store):
        table = make(store, ada=1)
        branch = store.create_branch("nodes/people", "b", source_branch=None, source_version=1)
        with pytest.raises(ValueError, match="staged for nodes/people, not for"):
            commit(branch, stage_append(table, people(bo=2)))

    def test_a_delta_belongs_to_the_version_it_was_staged_at(self, store):
        table = make(store, ada=1)
        staged = stage_delta(table, people(ada=2), [])
        moved = commit(table, stage_append(table, people(bo=2)))
        with pytest.raises(ValueError, match="staged at version 1"):
            commit(moved, staged)
