"""What publishing relies on: of several key-checked inserts of one key exactly one succeeds."""

from __future__ import annotations

import pytest

from omnigraph.storage.conflicts import Failure, classify
from tests.substrate.people import again, ids, insert, make


def failure_of(dataset, *names: str) -> tuple[Failure, str]:
    with pytest.raises(OSError) as caught:
        insert(dataset, *names)
    return classify(caught.value), str(caught.value)


def test_new_keys_are_inserted_and_move_the_handle():
    dataset = make("a")
    insert(dataset, "b", "c")
    assert (dataset.version, ids(again(dataset))) == (2, ["a", "b", "c"])


def test_an_existing_key_keeps_all_rows_out():
    dataset = make("a")
    kind, text = failure_of(dataset, "new", "a")
    assert kind is Failure.KEY_EXISTS
    assert "Merge insert failed: found matching row" in text
    assert (again(dataset).version, ids(again(dataset))) == (1, ["a"])


def test_a_key_inserted_since_the_handle_was_opened_is_a_conflict():
    dataset = make("a")
    late = again(dataset)
    insert(dataset, "b")
    kind, text = failure_of(late, "b", "other")
    assert kind is Failure.CONFLICT
    assert "Too many concurrent writers" in text
    assert ids(again(dataset)) == ["a", "b"]


def test_other_keys_inserted_since_do_no_harm():
    dataset = make("a")
    late = again(dataset)
    insert(dataset, "b")
    insert(late, "c")
    assert (late.version, ids(again(dataset))) == (3, ["a", "b", "c"])


def test_a_compaction_since_does_no_harm_and_hides_no_key():
    dataset = make("a")
    insert(dataset, "b")
    first, second = again(dataset), again(dataset)
    dataset.optimize.compact_files()
    insert(first, "c")
    assert failure_of(second, "c")[0] is Failure.CONFLICT
    assert ids(again(dataset)) == ["a", "b", "c"]


def test_a_key_given_twice_in_one_call_is_inserted_twice():
    dataset = make("a")
    insert(dataset, "b", "b")
    assert ids(dataset) == ["a", "b", "b"]


def test_it_works_on_a_branch():
    dataset = make("a")
    branch = dataset.create_branch("x", (None, 1))
    late = branch.checkout_version(1)
    insert(branch, "b")
    assert failure_of(late, "b")[0] is Failure.CONFLICT
    assert ids(again(dataset)) == ["a"]
