"""Branches: making, listing and deleting them, their names in storage, and what they leave."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from omnigraph.api.graph import init
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import (
    BranchExists,
    BranchInUse,
    BranchLocked,
    BranchNotFound,
    ConflictError,
    InputError,
    InvalidBranchName,
    StorageError,
    StoreCallFailed,
    SyncFailed,
)
from omnigraph.storage.delta import insert_exclusively
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.branch_names import branch_name
from omnigraph.versioning.branches import Branches, BranchRef
from omnigraph.versioning.rows import MANIFEST_PATH, checkpoint_row, rows_table
from tests.behaviour.graphs import (
    PERSON,
    SCHEMA,
    Backstage,
    pins,
    tree,
    without_write_access,
)
from tests.support.faults import Call, Fail, InjectedFault, armed, recording
from tests.support.receipts import receipt_of_commit


def _made_backstage(backstage: Backstage, name: str) -> BranchRef:
    main, checked = backstage.branches.find("main"), branch_name(name)
    free = backstage.branches.free_name(checked)
    return backstage.branches.create(checked, free, main, lambda: None)


def physical_names(backstage: Backstage) -> set[str]:
    return set(backstage.tables.list_branches(MANIFEST_PATH))


# -- making and listing ----------------------------------------------------------------------


@pytest.mark.acceptance("S-021")
def test_a_new_branch_is_listed_and_touches_no_table(local_graph):
    folder = Path(local_graph.uri)
    before = [tree(folder / kind) for kind in ("nodes", "edges")]
    local_graph.branches.create("feature")
    assert list(local_graph.branches) == ["main", "feature"]
    assert [tree(folder / kind) for kind in ("nodes", "edges")] == before


def test_a_new_branch_starts_at_the_head_of_its_source_without_a_commit(graph, backstage):
    backstage.add(graph, PERSON, ["ada"])
    feature = graph.branches.create("feature")
    assert feature.branch == "feature"
    assert feature.head().id == graph.head().id
    assert feature._snapshot().version == 2
    assert pins(graph, "feature") == pins(graph)
    assert len(feature.log(reverse=True)) == len(graph.log(reverse=True)) == 2


def test_creating_a_branch_does_not_rebind_the_handle(graph):
    graph.branches.create("feature")
    assert graph.branch == "main"
    graph.branches.create("experiment", "feature")
    assert graph.branch == "main"


def test_a_branch_is_made_from_the_bound_branch_unless_another_is_named(graph, backstage):
    feature = graph.branches.create("feature")
    tip = backstage.publish("feature")
    assert feature.branches.create("a").head().id == tip.graph_commit_id
    assert graph.branches.create("b", "feature").head().id == tip.graph_commit_id
    assert feature.branches.create("c", "main").head().id == graph.head().id


def test_main_comes_first_and_the_others_by_name(graph):
    for name in ("zeta", "Alpha", "a/b", "a", "_x"):
        graph.branches.create(name)
    assert list(graph.branches) == ["main", *sorted(["zeta", "Alpha", "a/b", "a", "_x"])]


def test_work_on_main_does_not_ask_for_the_other_branches(graph, monkeypatch):
    """On an object store every branch would cost two requests."""
    graph.branches.create("feature")

    def refuse(_store, path):
        raise AssertionError(f"the branches of {path} are listed")

    monkeypatch.setattr(TableStore, "list_branches", refuse)
    graph.load(b'{"type": "Person", "data": {"name": "Eve"}}', "merge")
    graph.mutate('query q() { insert Person { name: "Flo" } }')
    assert len(graph.log("main", reverse=True)) == graph._snapshot().version == 3


def test_branches_have_histories_of_their_own(graph, backstage):
    graph.branches.create("feature")
    on_main, on_feature = backstage.publish(), backstage.publish("feature")
    assert on_main.sequence == on_feature.sequence == 2
    assert on_main.parent_commit_id == on_feature.parent_commit_id
    assert graph.head("main").id == on_main.graph_commit_id
    assert graph.head("feature").id == on_feature.graph_commit_id
    assert [c.id for c in graph.log("feature", reverse=True)][1:] == [on_feature.graph_commit_id]


def test_surrounding_white_space_does_not_make_another_branch(graph):
    graph.branches.create("feature")
    with pytest.raises(BranchExists):
        graph.branches.create(" feature ")
    assert graph._snapshot(" feature\n").branch == "feature"


@pytest.mark.acceptance("S-024")
def test_no_branch_is_made_under_a_bad_name(graph, backstage):
    for name, reason in {
        "main": "cannot create branch 'main'",
        " main ": "cannot create branch 'main'",
        "": "branch name cannot be empty",
        "a//b": "single '/'",
        "a b": "use the letters",
        "x.lock": "'.lock'",
        "__schema_apply_lock__": "internal system ref",
        "/__schema_apply_lock__": "internal system ref",
        "..": "'..'",
        ".": "'.'",
        "_" * 120: "counts twice",
    }.items():
        with pytest.raises(InvalidBranchName) as caught:
            graph.branches.create(name)
        assert reason in caught.value.message
        assert isinstance(caught.value, InputError)
    assert list(graph.branches) == ["main"]
    assert physical_names(backstage) == set()


@pytest.mark.acceptance("S-025")
def test_a_name_that_old_releases_reserved_is_an_ordinary_one(graph, backstage):
    graph.branches.create("__run__x")
    assert list(graph.branches) == ["main", "__run__x"]
    assert physical_names(backstage) == {"____run____x"}


def test_the_longest_names_work(graph, backstage):
    for name in ("a" * 120, "_" * 100, "/".join("a" * 60)):
        graph.branches.create(name)
        assert backstage.publish(name).sequence == 2
        assert graph._snapshot(name).version == 2
        graph.branches.delete(name)
    assert list(graph.branches) == ["main"]


def test_a_name_that_is_taken_is_refused(graph):
    feature = graph.branches.create("feature")
    for handle in (graph, feature, open_graph(graph.uri)):
        with pytest.raises(BranchExists) as caught:
            handle.branches.create("feature")
        assert isinstance(caught.value, ConflictError)
    assert list(graph.branches) == ["main", "feature"]


def test_a_branch_is_not_made_from_a_branch_that_does_not_exist(graph):
    with pytest.raises(BranchNotFound):
        graph.branches.create("feature", "nope")
    assert list(graph.branches) == ["main"]


@pytest.mark.acceptance("S-027")
def test_a_create_that_fails_leaves_no_branch_and_the_name_free(graph):
    point = "branch_create.before_manifest_branch_create"
    with armed(point, Fail(), times=1) as record:
        with pytest.raises(InjectedFault, match=point):
            graph.branches.create("feature")
        assert list(graph.branches) == ["main"]
        graph.branches.create("feature")
    assert record.count() == 2
    assert list(graph.branches) == ["main", "feature"]


def test_a_create_that_leaves_files_but_no_ref_says_why_and_the_next_one_works(open_folder):
    graph = init(open_folder / "graph", SCHEMA)
    graph.branches.create("first")
    for path in (open_folder / "graph").rglob("*"):
        path.chmod(0o777)
    with without_write_access(open_folder / "graph" / "__manifest" / "_refs"):
        with pytest.raises(StorageError, match="Permission denied"):
            graph.branches.create("second")
        assert list(graph.branches) == ["main", "first"]
    assert Backstage(graph.uri).tables.zombie_branches(MANIFEST_PATH) == {"second"}
    assert graph.branches.create("second")._snapshot().version == 1
    assert list(graph.branches) == ["main", "first", "second"]


def test_a_branch_the_disk_does_not_confirm_is_not_reported_as_existing(local_uri, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_DURABILITY", "fsync")
    graph = init(local_uri, SCHEMA)

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(SyncFailed, match="Input/output error"):
            graph.branches.create("feature")


@pytest.mark.parametrize("name", ["a b", "größe", "100%", "a%41b", "a#1", "[x] {y}", "~", "日本"])
def test_branches_work_wherever_a_graph_may_lie(tmp_path, name):
    graph = init(tmp_path / name / "graph", SCHEMA)
    feature = graph.branches.create("feature")
    feature.load(b'{"type": "Person", "data": {"name": "ada"}}', "merge")
    nested = graph.branches.create("nested", "feature")
    nested.load(b'{"type": "Person", "data": {"name": "bo"}}', "merge")
    assert open_graph(graph.uri, branch="nested")._snapshot().entry(PERSON).row_count == 2
    graph.branches.delete("nested")
    graph.branches.delete("feature")
    assert list(graph.branches) == ["main"]
    assert [path.name for path in tmp_path.iterdir()] == [name]


# -- names in storage ------------------------------------------------------------------------


@pytest.mark.acceptance("S-141")
def test_stored_names_are_flat_and_foreign_ones_are_left_alone(graph, backstage):
    for name in ("a_b/c", "a/b_c", "x_i2"):
        graph.branches.create(name)
    stored = backstage.tables.open(MANIFEST_PATH)
    backstage.tables.create_branch(
        MANIFEST_PATH, "not_ours", source_branch=None, source_version=stored.version
    )
    assert physical_names(backstage) == {"a__b_sc", "a_sb__c", "x__i2", "not_ours"}
    assert list(graph.branches) == ["main", "a/b_c", "a_b/c", "x_i2"]
    for name in ("not_ours", "x"):
        with pytest.raises(BranchNotFound):
            graph._snapshot(name)
    graph.branches.create("not/ours")
    for name in list(graph.branches)[1:]:
        graph.branches.delete(name)
    assert physical_names(backstage) == {"not_ours"}


def test_a_branch_and_one_below_it_live_side_by_side(graph, backstage):
    graph.branches.create("team")
    graph.branches.create("team/x")
    first, second = backstage.publish("team"), backstage.publish("team/x")
    assert physical_names(backstage) == {"team", "team_sx"}
    graph.branches.delete("team")
    assert list(graph.branches) == ["main", "team/x"]
    assert graph.head("team/x").id == second.graph_commit_id
    graph.branches.create("team")
    assert graph.head("team").id == graph.head("main").id != first.graph_commit_id
    assert backstage.publish("team").sequence == 2
    assert physical_names(backstage) in ({"team", "team_sx"}, {"team_i2", "team_sx"})


def test_a_branch_can_be_made_again_beside_a_zombie_of_it(graph, backstage):
    graph.branches.create("feature")
    stale = backstage.tables.open(MANIFEST_PATH, "feature")
    graph.branches.delete("feature")
    insert_exclusively(stale, rows_table([checkpoint_row(999, {})]))
    assert backstage.tables.zombie_branches(MANIFEST_PATH) == {"feature"}
    assert list(graph.branches) == ["main"]
    with pytest.raises(BranchNotFound):
        graph._snapshot("feature")

    again = graph.branches.create("feature")
    assert physical_names(backstage) == {"feature_i2"}
    assert backstage.publish("feature").sequence == 2
    assert list(graph.branches) == ["main", "feature"]
    assert again._snapshot().branch == "feature"
    assert again._bound.physical == "feature_i2"
    assert receipt_of_commit(again, again.head().id).branch == "feature"

    graph.branches.delete("feature")
    graph.branches.create("feature")
    assert list(graph.branches) == ["main", "feature"]
    assert backstage.tables.zombie_branches(MANIFEST_PATH) == {"feature"}


# -- deleting --------------------------------------------------------------------------------


def test_a_deleted_branch_is_gone_for_every_handle(graph):
    other = open_graph(graph.uri)
    bound = graph.branches.create("feature")
    assert other._snapshot("feature").version == 1
    graph.branches.delete("feature")
    for handle in (graph, other):
        assert list(handle.branches) == ["main"]
        with pytest.raises(BranchNotFound):
            handle._snapshot("feature")
    for call in (bound._snapshot, bound.log, bound.head, lambda: bound.branches.create("x")):
        with pytest.raises(BranchNotFound):
            call()
    assert bound.commit(graph.head().id).id == graph.head().id
    assert bound.checkout("main")._snapshot().version == 1


def test_deleting_a_branch_leaves_no_file_of_it(local_graph):
    before = set(tree(Path(local_graph.uri) / "__manifest"))
    local_graph.branches.create("feature")
    Backstage(local_graph.uri).publish("feature")
    local_graph.branches.delete("feature")
    left = set(tree(Path(local_graph.uri) / "__manifest")) - before
    assert not [path for path in left if "feature" in path]


def test_main_is_never_deleted(graph):
    with pytest.raises(InvalidBranchName, match="cannot delete branch 'main'"):
        graph.branches.delete("main")
    assert graph._snapshot().version == 1


def test_deleting_a_branch_that_does_not_exist_is_not_found(graph):
    graph.branches.create("feature")
    graph.branches.delete("feature")
    for name in ("nope", "feature"):
        with pytest.raises(BranchNotFound):
            graph.branches.delete(name)


def test_a_system_name_is_not_deleted(graph):
    with pytest.raises(InvalidBranchName, match="internal system ref"):
        graph.branches.delete("__schema_apply_lock__")


@pytest.mark.acceptance("S-031")
def test_a_branch_that_another_was_cut_from_is_kept(graph):
    graph.branches.create("feature")
    graph.branches.create("experiment", "feature")
    with pytest.raises(BranchInUse, match="still depends on it") as caught:
        graph.branches.delete("feature")
    assert isinstance(caught.value, ConflictError)
    assert list(graph.branches) == ["main", "experiment", "feature"]
    graph.branches.delete("experiment")
    graph.branches.delete("feature")
    assert list(graph.branches) == ["main"]


def test_a_branch_a_foreign_one_was_cut_from_is_kept(graph, backstage):
    graph.branches.create("feature")
    stored = backstage.tables.open(MANIFEST_PATH, "feature")
    backstage.tables.create_branch(
        MANIFEST_PATH, "not_ours", source_branch="feature", source_version=stored.version
    )
    with pytest.raises(BranchInUse, match="still depends on it"):
        graph.branches.delete("feature")
    assert graph._snapshot("feature").version == 1


@pytest.mark.acceptance("S-032")
def test_the_branch_a_handle_is_bound_to_is_kept(graph):
    feature = graph.branches.create("feature")
    with pytest.raises(BranchInUse, match="currently active"):
        feature.branches.delete("feature")
    with pytest.raises(BranchInUse, match="currently active"):
        graph.checkout("feature").branches.delete("feature")
    graph.branches.delete("feature")
    assert list(graph.branches) == ["main"]


class FullStore:
    """An object store that has nothing and cannot delete."""

    def list_dir(self, path: str) -> list[str]:
        return []

    def delete_prefix(self, path: str) -> None:
        raise StoreCallFailed("delete", path, "the store says no")

    delete = delete_prefix


def test_left_over_files_do_not_fail_a_delete(local_graph):
    """The ref is deleted, and with it the branch; a later cleanup removes its files."""
    backstage = Backstage(local_graph.uri)
    local_graph.branches.create("feature")
    branches = Branches(backstage.manifest, backstage.tables, FullStore())  # type: ignore[arg-type]  # these methods suffice
    branches.delete(branches.find("feature"), lambda: None)
    assert list(local_graph.branches) == ["main"]
    local_graph.branches.create("feature")
    assert local_graph._snapshot("feature").version == 1


def test_a_handle_of_a_deleted_branch_does_not_go_on_with_its_files(local_graph):
    """Their ref is gone: what is written there would be acknowledged and never seen again."""
    backstage = Backstage(local_graph.uri)
    bound = local_graph.branches.create("feature")
    files = Path(local_graph.uri) / "__manifest" / "tree" / "feature"
    shutil.copytree(files, files.with_name("kept"))
    local_graph.branches.delete("feature")
    files.with_name("kept").rename(files)
    assert backstage.tables.zombie_branches(MANIFEST_PATH) == {"feature"}
    person = b'{"type": "Person", "data": {"name": "Eve"}}'
    for call in (bound._snapshot, bound.log, lambda: bound.load(person, "merge")):
        with pytest.raises(BranchNotFound):
            call()
    local_graph.branches.create("feature")
    bound.load(person, "merge")
    assert local_graph._snapshot("feature").entry(PERSON).row_count == 1


@pytest.mark.parametrize("source", ["main", "other"])
def test_a_new_branch_is_locked_under_the_name_it_is_stored_under(local_graph, source):
    local_graph.branches.create("other")
    backstage = Backstage(local_graph.uri)
    local_graph.branches.create("feature")
    stale = backstage.tables.open(MANIFEST_PATH, "feature")
    local_graph.branches.delete("feature")
    insert_exclusively(stale, rows_table([checkpoint_row(999, {})]))

    def look(_hit):
        for name in (None, "feature_i2"):
            with pytest.raises(BranchLocked), backstage.locks.hold(name, "cleanup", wait_ms=0):
                pass

    with armed("branch_create.before_manifest_branch_create", Call(look)) as record:
        local_graph.branches.create("feature", source)
    assert record.count() == 1
    assert "feature_i2" in physical_names(backstage)


def test_a_branch_whose_deletion_was_interrupted_takes_no_rows_and_has_no_children(local_graph):
    """Its ref is gone and its files are not; a writer may have waited for the deletion to end."""
    local_graph.branches.create("feature")
    bound = open_graph(local_graph.uri, branch="feature")
    ref = Path(local_graph.uri, MANIFEST_PATH, "_refs/branches/feature.json")
    text = ref.read_text()

    def delete(hit):
        if hit.context["branch"] is None or hit.context["branch"] == "feature":
            ref.unlink(missing_ok=True)

    with armed("lock.after_acquire", Call(delete)), pytest.raises(BranchNotFound):
        bound.load(b'{"type": "Person", "data": {"name": "Eve"}}', "merge")
    ref.write_text(text)
    with armed("lock.after_acquire", Call(delete)), pytest.raises(BranchNotFound):
        local_graph.branches.create("child", "feature")
    assert list(local_graph.branches) == ["main"]


def test_a_writer_that_waited_while_its_branch_was_retired_is_told_so(local_graph):
    """A deleted branch that merges still compare with keeps its ref and all its files."""
    person = b'{"type": "Person", "data": {"name": "Eve"}}'
    for name in ("feature", "dev"):
        local_graph.branches.create(name)
    local_graph.load(person, "merge", branch="feature")
    for target in ("main", "dev"):
        local_graph.merge("feature", into=target)
    bound = open_graph(local_graph.uri, branch="feature")
    other = open_graph(local_graph.uri)
    backstage = Backstage(local_graph.uri)

    def delete(hit):
        if hit.context["branch"] == "feature":
            other._core.branches.delete(other._core.branches.find("feature"), lambda: None)

    with armed("lock.after_acquire", Call(delete), times=1), pytest.raises(BranchNotFound):
        bound.load(person.replace(b"Eve", b"Flo"), "merge")
    assert "feature" in physical_names(backstage)
    assert list(local_graph.branches) == ["main", "dev"]


def test_commits_on_a_branch_made_again_reach_the_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_DURABILITY", "fsync")
    graph = init(tmp_path / "graph", SCHEMA)
    backstage = Backstage(graph.uri)
    feature = _made_backstage(backstage, "feature")
    for _ in range(3):
        backstage.publish("feature")
    backstage.branches.delete(feature, lambda: None)
    _made_backstage(backstage, "feature")
    for _ in range(4):
        with recording() as record:
            backstage.publish("feature")
        version = backstage.tables.open(MANIFEST_PATH, "feature").version_info()
        synced = [
            hit.context["path"] for hit in record.hits if hit.name == "durability.after_fsync"
        ]
        assert f"/{version.manifest_path}" in synced


# -- handles that knew an earlier branch of the same name ------------------------------------


@pytest.mark.parametrize(
    ("before", "between"), [(0, 0), (0, 1), (1, 0), (1, 1), (1, 4), (3, 2), (3, 3), (3, 4)]
)
def test_a_branch_made_again_is_not_mistaken_for_the_earlier_one(graph, backstage, before, between):
    """Stored version numbers repeat: the new branch may well reach one the old branch had."""
    other = open_graph(graph.uri)
    graph.branches.create("feature")
    for _ in range(before):
        backstage.publish("feature")
    assert other._snapshot("feature").version == 1 + before
    graph.branches.delete("feature")
    for _ in range(between):
        backstage.publish("main")
    graph.branches.create("feature")
    tip = backstage.publish("feature")
    assert other.head("feature").id == tip.graph_commit_id
    assert other._snapshot("feature").version == 2 + between
    assert other.checkout("feature").at(1)._snapshot.commit_id == graph.log(reverse=True)[0].id
