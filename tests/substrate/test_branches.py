"""What we rely on in branches of a dataset, and what their removal leaves behind."""

from __future__ import annotations

import os
from urllib.parse import quote

import lance
import pytest

from omnigraph.storage.failures import Failure, classify
from tests.substrate.people import again, appended, commit, ids, make


@pytest.fixture
def dataset(tmp_path):
    return make("a", uri=str(tmp_path / "place" / "t"))


def failure_of(action) -> Failure:
    with pytest.raises((OSError, ValueError)) as caught:
        action()
    return classify(caught.value)


def branch_of(dataset, name: str):
    return lance.dataset(f"{dataset.uri}/tree/{name}")


def test_a_branch_is_opened_by_the_address_of_its_tree(dataset):
    dataset.create_branch("x", (None, 1))
    branch = branch_of(dataset, "x")
    branch = commit(branch, appended(branch, "b"))
    assert (branch.version, ids(branch_of(dataset, "x"))) == (2, ["a", "b"])
    assert ids(lance.dataset(f"{dataset.uri}/tree/x", version=1)) == ["a"]
    assert ids(again(dataset)) == ["a"]


def test_version_numbers_continue_from_the_fork(dataset):
    dataset = commit(dataset, appended(dataset, "b"))
    assert dataset.create_branch("x", (None, 2)).version == 2


def test_a_branch_is_made_from_a_branch_and_listed_with_its_parent(dataset):
    dataset.create_branch("x", (None, 1))
    branch_of(dataset, "x").create_branch("y", ("x", 1))
    listed = again(dataset).branches.list()
    assert {n: (b["parent_branch"], b["parent_version"]) for n, b in listed.items()} == {
        "x": (None, 1),
        "y": ("x", 1),
    }


def test_ref_metadata_is_kept(dataset):
    dataset.create_branch("x", (None, 1))
    dataset.branches.replace_metadata("x", {"omnigraph.public_name": "a/b"})
    assert again(dataset).branches.list()["x"]["metadata"] == {"omnigraph.public_name": "a/b"}


def test_a_branch_copies_nothing_and_lies_in_its_own_tree(dataset):
    dataset.create_branch("x", (None, 1))
    assert sorted(os.listdir(f"{dataset.uri}/tree/x")) == ["_transactions", "_versions"]
    assert os.listdir(f"{dataset.uri}/_refs/branches") == ["x.json"]


def test_indexes_are_inherited(dataset):
    dataset.create_scalar_index("id", "BTREE")
    branch = dataset.create_branch("x", (None, 2))
    assert [i.name for i in branch.describe_indices()] == ["id_idx"]
    assert "ScalarIndexQuery" in branch.scanner(filter="id = 'a'").explain_plan(True)


def test_a_taken_name_is_refused(dataset):
    dataset.create_branch("x", (None, 1))
    assert failure_of(lambda: dataset.create_branch("x", (None, 1))) is Failure.ALREADY_EXISTS


def test_a_missing_branch_is_not_found_when_it_is_deleted(dataset):
    assert failure_of(lambda: dataset.branches.delete("x")) is Failure.NOT_FOUND


def test_a_branch_with_children_is_not_deleted(dataset):
    dataset.create_branch("x", (None, 1)).create_branch("y", ("x", 1))
    assert failure_of(lambda: dataset.branches.delete("x")) is Failure.BRANCH_IN_USE


def test_a_stale_handle_brings_back_the_files_of_a_deleted_branch(dataset):
    branch = dataset.create_branch("x", (None, 1))
    dataset.branches.delete("x")
    assert not os.path.exists(f"{dataset.uri}/tree/x/_versions")
    commit(branch, appended(branch, "b"))
    assert "x" not in again(dataset).branches.list()
    assert branch_of(dataset, "x").version == 2
    assert failure_of(lambda: dataset.branches.delete("x")) is Failure.NOT_FOUND
    with pytest.raises((OSError, ValueError)):
        dataset.create_branch("x", (None, 1))


def test_deleting_a_name_beside_one_that_continues_it_leaves_files_behind(dataset):
    dataset.create_branch("x", (None, 1))
    dataset.create_branch("x/y", (None, 1))
    dataset.branches.delete("x")
    assert os.path.exists(f"{dataset.uri}/tree/x/_versions")


def test_a_branch_remembers_the_absolute_place_of_its_dataset(dataset, tmp_path):
    dataset.create_branch("x", (None, 1))
    os.rename(tmp_path / "place", tmp_path / "elsewhere")
    moved = lance.dataset(str(tmp_path / "elsewhere" / "t"))
    assert ids(moved) == ["a"]
    with pytest.raises((OSError, ValueError), match="Not found"):
        ids(branch_of(moved, "x"))


def test_a_question_mark_in_the_address_breaks_branches(tmp_path):
    dataset = make("a", uri=str(tmp_path / "what?" / "t"))
    dataset.create_branch("x", (None, 1))
    assert not os.path.exists(f"{dataset.uri}/tree/x")


@pytest.mark.parametrize("name", ["ü", "a#b", "a%b", "~"])
def test_making_a_branch_makes_a_directory_of_the_escaped_name_unless_asked_the_other_way(
    tmp_path, name
):
    make("a", uri=str(tmp_path / name / "t"))
    other_way = lance.dataset(f"file-object-store://{quote(str(tmp_path / name))}/t")
    other_way.create_branch("x", (None, 1))
    assert os.listdir(tmp_path) == [name]
    assert ids(branch_of(lance.dataset(str(tmp_path / name / "t")), "x")) == ["a"]
    lance.dataset(str(tmp_path / name / "t")).create_branch("y", (None, 1))
    assert len(os.listdir(tmp_path)) == 2


def test_a_question_mark_in_a_path_ends_it(tmp_path):
    make("a", uri=str(tmp_path / "a?b" / "t")).create_branch("x", (None, 1))
    assert (tmp_path / "a").exists()


def test_a_branch_refers_to_the_files_of_its_parent_by_their_full_path(dataset, tmp_path):
    dataset.create_branch("x", (None, 1))
    (tmp_path / "place").rename(tmp_path / "moved")
    moved = str(tmp_path / "moved" / "t")
    assert ids(lance.dataset(moved)) == ["a"]
    with pytest.raises((OSError, ValueError), match=r"[Nn]ot found"):
        ids(lance.dataset(f"{moved}/tree/x"))
