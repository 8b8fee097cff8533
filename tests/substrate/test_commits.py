"""What we rely on when transactions are staged and committed: when they conflict, and when not."""

from __future__ import annotations

import pickle
from datetime import timedelta

import lance
import pytest
from lance import LanceDataset, LanceOperation, Transaction
from lance.commit import CommitConflictError
from lance.fragment import RowIdSequence, write_fragments

from omnigraph.storage.failures import Failure, classify
from tests.substrate.people import (
    again,
    appended,
    commit,
    deleted,
    ids,
    make,
    overwritten,
    rows,
)


def refused(dataset: LanceDataset, transaction: Transaction) -> CommitConflictError:
    with pytest.raises(CommitConflictError) as caught:
        commit(dataset, transaction)
    assert classify(caught.value) is Failure.CONFLICT
    return caught.value


def test_nothing_staged_is_visible_before_its_commit():
    dataset = make("a")
    appended(dataset, "b")
    deleted(dataset, 0, 0)
    assert (again(dataset).version, ids(again(dataset))) == (1, ["a"])


def test_transaction_properties_come_back_with_the_version():
    dataset = make("a")
    transaction = appended(dataset, "b")
    transaction.transaction_properties = {"omnigraph.operation_id": "01X"}
    dataset = commit(dataset, transaction)
    found = dataset.read_transaction(2)
    assert found is not None
    assert found.transaction_properties == {"omnigraph.operation_id": "01X"}
    assert (found.read_version, found.uuid) == (1, transaction.uuid)
    assert isinstance(found.operation, LanceOperation.Append)


def test_transactions_and_fragments_travel_between_processes():
    dataset = make("a")
    dataset = commit(dataset, pickle.loads(pickle.dumps(appended(dataset, "b"))))
    assert ids(dataset) == ["a", "b"]


def test_one_update_removes_shrinks_and_adds_fragments_and_keeps_row_ids():
    dataset = make("a", "b")
    dataset = commit(dataset, appended(dataset, "c"))
    first, second = dataset.get_fragment(0), dataset.get_fragment(1)
    assert first is not None
    assert second is not None
    shrunk = first.delete_rows([1])
    assert shrunk is not None
    assert second.delete_rows([0]) is None
    new = write_fragments(rows("b", "new", n=9), dataset)
    new[0].row_id_meta = RowIdSequence([1]).to_inline_metadata()
    operation = LanceOperation.Update(
        removed_fragment_ids=[1],
        updated_fragments=[shrunk],
        new_fragments=new,
        update_mode="rewrite_rows",
    )
    dataset = commit(dataset, Transaction(dataset.version, operation))
    columns = ["id", "n", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    assert [tuple(row.values()) for row in dataset.to_table(columns=columns).to_pylist()] == [
        ("a", 0, 0, 1, 1),
        ("b", 9, 1, 1, 3),
        ("new", 9, 3, 3, 3),
    ]
    dataset.validate()


def test_an_overwrite_keeps_stable_row_ids_and_starts_new_ones():
    dataset = make("a")
    dataset = commit(dataset, overwritten(dataset, "b"))
    assert dataset.has_stable_row_ids
    assert dataset.to_table(columns=["_rowid"]).column("_rowid").to_pylist() == [1]


def test_an_overwrite_without_fragments_empties_the_dataset():
    dataset = make("a")
    operation = LanceOperation.Overwrite(dataset.lance_schema, [])
    dataset = commit(dataset, Transaction(1, operation))
    assert (dataset.version, dataset.count_rows()) == (2, 0)


def test_a_restore_makes_old_content_the_next_version_and_carries_properties():
    dataset = make("a")
    dataset = commit(dataset, appended(dataset, "b"))
    properties = {"omnigraph.operation_id": "01X"}
    restore = Transaction(2, LanceOperation.Restore(1), transaction_properties=properties)
    dataset = commit(dataset, restore)
    found = dataset.read_transaction(3)
    assert ids(dataset) == ["a"]
    assert found is not None
    assert found.transaction_properties == properties


class TestTwoCommitsOnOneVersion:
    def test_an_append_lands_behind_an_append_at_a_later_version_than_expected(self):
        dataset = make("a")
        late = appended(dataset, "c")
        commit(dataset, appended(dataset, "b"))
        assert commit(dataset, late).version == 3

    def test_an_append_lands_behind_a_delete_and_a_delete_behind_an_append(self):
        dataset = make("a", "b")
        late = deleted(dataset, 0, 0)
        commit(dataset, appended(dataset, "c"))
        landed = commit(dataset, late)
        assert (landed.version, ids(landed)) == (3, ["b", "c"])

    def test_changes_of_different_fragments_both_land(self):
        dataset = make("a")
        dataset = commit(dataset, appended(dataset, "b", "c"))
        late = deleted(dataset, 1, 0)
        commit(dataset, deleted(dataset, 0, 0))
        assert ids(commit(dataset, late)) == ["c"]

    def test_changes_of_one_fragment_conflict_and_may_be_prepared_again(self):
        dataset = make("a", "b", "c")
        late = deleted(dataset, 0, 0)
        commit(dataset, deleted(dataset, 0, 1))
        error = refused(dataset, late)
        assert error.retryable
        assert "Retryable commit conflict" in str(error)
        assert again(dataset).version == 2

    def test_an_overwrite_is_strict(self):
        dataset = make("a")
        late = overwritten(dataset, "c")
        commit(dataset, appended(dataset, "b"))
        assert refused(dataset, late).retryable
        assert ids(again(dataset)) == ["a", "b"]

    def test_nothing_lands_behind_an_overwrite(self):
        dataset = make("a", "b")
        changes = [appended(dataset, "c"), deleted(dataset, 0, 0)]
        commit(dataset, overwritten(dataset, "z"))
        for change in changes:
            error = refused(dataset, change)
            assert not error.retryable
            assert "Incompatible transaction" in str(error)

    def test_nothing_lands_behind_a_restore(self):
        dataset = make("a")
        dataset = commit(dataset, appended(dataset, "b"))
        late = appended(dataset, "c")
        commit(dataset, Transaction(2, LanceOperation.Restore(1)))
        assert not refused(dataset, late).retryable

    def test_a_restore_never_conflicts_and_discards_what_came_before_it(self):
        dataset = make("a")
        dataset = commit(dataset, appended(dataset, "b"))
        restore = Transaction(2, LanceOperation.Restore(1))
        commit(dataset, appended(dataset, "lost"))
        assert ids(commit(dataset, restore)) == ["a"]

    def test_committing_one_transaction_twice_is_not_refused(self):
        dataset = make("a")
        change = appended(dataset, "b")
        commit(dataset, change)
        assert ids(commit(dataset, change)) == ["a", "b", "b"]


def test_a_strict_overwrite_from_a_version_before_a_cleanup_falls_into_the_hole(tmp_path):
    dataset = make("a", uri=str(tmp_path / "t"))
    late = overwritten(dataset, "lost")
    for name in "bcd":
        newest = again(dataset)
        commit(newest, appended(newest, name))
    again(dataset).cleanup_old_versions(older_than=timedelta(0), retain_versions=1)
    assert commit(dataset, late).version == 2
    assert again(dataset).version == 4
    assert "lost" not in ids(again(dataset))


def test_an_update_that_matches_nothing_still_makes_a_version():
    dataset = make("a")
    dataset.delete("id = 'nobody'")
    deleted_version = dataset.version
    dataset.merge_insert("id").when_matched_update_all().execute(rows("nobody"))
    assert (deleted_version, dataset.version) == (2, 3)


def test_two_staged_merge_inserts_of_one_key_both_commit():
    dataset = make("a")

    def staged() -> Transaction:
        builder = dataset.merge_insert("id").when_not_matched_insert_all()
        return builder.execute_uncommitted(rows("b"))[0]

    first, second = staged(), staged()
    commit(dataset, first)
    assert ids(commit(dataset, second)) == ["a", "b", "b"]


def test_a_version_may_change_while_its_fragments_keep_their_numbers():
    dataset = make("a", "b")
    after = commit(dataset, deleted(dataset, 0, 0))
    assert [f.fragment_id for f in after.get_fragments()] == [0]
    assert ids(after) == ["b"]


def test_a_transaction_survives_the_loss_of_its_own_file(tmp_path):
    uri = tmp_path / "t"
    make("a", uri=str(uri))
    for file in (uri / "_transactions").iterdir():
        file.write_bytes(b"")
    dataset = lance.dataset(str(uri))
    assert dataset.read_transaction(1) is not None
    assert ids(commit(dataset, appended(dataset, "b"))) == ["a", "b"]
