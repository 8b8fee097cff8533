"""What publishing relies on: of several commits that rewrite one fragment exactly one succeeds."""

from __future__ import annotations

from datetime import timedelta

import lance
import pytest
from lance import LanceDataset, LanceOperation
from lance.fragment import write_fragments

from omnigraph.storage.failures import Failure, classify
from tests.substrate.people import again, appended, ids, make, rows


def insert(dataset: LanceDataset, *names: str) -> LanceDataset:
    """Insert rows by a commit that also names the oldest fragment, which stays as it is."""
    oldest = min((f.metadata for f in dataset.get_fragments()), key=lambda found: found.id)
    operation = LanceOperation.Update(
        updated_fragments=[oldest],
        new_fragments=write_fragments(rows(*names), dataset),
        update_mode="rewrite_rows",
        fields_for_preserving_frag_bitmap=[f.id() for f in dataset.lance_schema.fields()],
    )
    transaction = lance.Transaction(dataset.version, operation)
    return LanceDataset.commit(dataset, transaction, max_retries=0)


def is_refused(dataset: LanceDataset, *names: str) -> bool:
    with pytest.raises(OSError) as caught:
        insert(dataset, *names)
    return classify(caught.value) is Failure.CONFLICT


def test_an_insert_is_the_next_version_and_keeps_the_oldest_fragment():
    dataset = make("a")
    made = insert(insert(dataset, "b"), "c")
    assert (made.version, ids(made)) == (3, ["a", "b", "c"])
    first, then = dataset.get_fragment(0), made.get_fragment(0)
    assert first is not None
    assert then is not None
    assert first.metadata.files == then.metadata.files


def test_an_insert_since_the_handle_was_opened_is_a_conflict():
    dataset = make("a")
    late = again(dataset)
    insert(dataset, "b")
    assert is_refused(late, "c")
    assert ids(again(dataset)) == ["a", "b"]


def test_a_compaction_of_the_oldest_fragment_is_a_conflict():
    dataset = insert(make("a"), "b")
    late = again(dataset)
    dataset.optimize.compact_files()
    assert is_refused(late, "c")
    assert ids(insert(again(dataset), "c")) == ["a", "b", "c"]


def test_versions_in_between_that_were_removed_hide_no_insert():
    dataset = make("a")
    late = again(dataset)
    for name in "bcd":
        insert(again(dataset), name)
    again(dataset).cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    assert [v["version"] for v in again(dataset).versions()] == [4]
    assert is_refused(late, "e")


def test_an_index_made_since_does_no_harm():
    dataset = make("a")
    late = again(dataset)
    dataset.create_scalar_index("id", "BTREE")
    made = insert(late, "b")
    assert (made.version, ids(made)) == (3, ["a", "b"])
    assert again(dataset).to_table(filter="id = 'a'").num_rows == 1
    assert again(dataset).to_table(filter="id = 'b'").num_rows == 1


def test_a_plain_append_is_not_in_the_way_so_nothing_else_may_append():
    dataset = make("a")
    late = again(dataset)
    LanceDataset.commit(dataset, appended(dataset, "b"), max_retries=0)
    assert ids(insert(late, "c")) == ["a", "b", "c"]


def test_it_works_on_a_branch():
    dataset = make("a")
    branch = dataset.create_branch("x", (None, 1))
    late = branch.checkout_version(1)
    insert(branch, "b")
    assert is_refused(late, "c")
    assert ids(again(dataset)) == ["a"]
