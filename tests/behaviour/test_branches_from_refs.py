"""Branches that begin at an earlier commit, at a tag, or at a commit of another branch."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import (
    BranchExists,
    BranchInUse,
    BranchNotFound,
    CommitNotFound,
    HistoryRemoved,
    InputError,
    InvalidBranchName,
    OmnigraphError,
    RefUnderOtherSchema,
)
from omnigraph.versioning.rows import MANIFEST_PATH
from tests.behaviour.graphs import SCHEMA, tree
from tests.behaviour.merging import add, ages, edge, lines, person, remove, set_age
from tests.support.faults import Fail, FailStorage, InjectedFault, armed

NOW = timedelta()
CREATE_STEPS = [
    "branch_create.before_manifest_branch_create",
    "branch_create.before_later_commits_go",
    "branch_create.before_ref_is_named",
]


def history(uri: str) -> Graph:
    """Five commits on main: the empty graph, then three people and a changed age."""
    graph = init(uri, SCHEMA)
    for name in ("ada", "bo", "cy"):
        add(graph, "main", name)
    set_age(graph, "main", "ada", 41)
    return graph


@pytest.fixture
def graph(uri: str) -> Graph:
    return history(uri)


@pytest.fixture
def local_graph(local_uri: str) -> Graph:
    return history(local_uri)


def manifest_branches(graph: Graph) -> set[str]:
    return set(graph._core.tables.list_branches(MANIFEST_PATH))


# -- what it begins with ---------------------------------------------------------------------


def test_it_has_the_state_and_the_history_of_its_first_commit(graph):
    old = graph.branches.create("old", "main~2")
    assert (old.branch, list(graph.branches)) == ("old", ["main", "old"])
    assert ages(graph, "old") == {"ada": None, "bo": None}
    assert old.log(reverse=True) == graph.log(reverse=True)[:3]
    assert old.head().id == graph.log(reverse=True)[2].id
    assert old._snapshot().version == 3
    fresh = open_graph(graph.uri, branch="old")
    assert fresh._snapshot().to_json() == old._snapshot().to_json()


def test_every_kind_of_ref_can_be_its_source(graph):
    graph.tags.create("v1", "main~2")
    third = graph.log(reverse=True)[2]
    id = third.id
    for number, ref in enumerate(("v1", id, id[-8:].lower(), third, 3, "main~2", "v1~0")):
        branch = graph.branches.create(f"b{number}", ref)
        assert branch.head().id == id


def test_it_is_written_to_like_any_other(graph):
    old = graph.branches.create("old", "main~2")
    for name in ("dee", "eve"):
        add(graph, "old", name)
    set_age(graph, "old", "ada", 7)
    remove(graph, "old", "bo")
    assert ages(graph, "old") == {"ada": 7, "dee": None, "eve": None}
    assert ages(graph) == {"ada": 41, "bo": None, "cy": None}
    assert [commit.number for commit in old.log(reverse=True)] == [1, 2, 3, 4, 5, 6, 7]
    records = graph._core.manifest.commits(graph._ref("old").physical)
    assert {record.branch for record in records[3:]} == {"old_c1"}
    assert {commit.branch for commit in old.log(reverse=True)[3:]} == {"old"}
    assert graph._snapshot("old").branch == "old"


def test_many_commits_on_it_are_all_kept(memory_uri):
    graph = history(memory_uri)
    old = graph.branches.create("old", "main~3")
    for number in range(70):
        add(graph, "old", f"p{number:02d}")
    assert len(open_graph(memory_uri).log("old", operation="mutate", reverse=True)) == 71
    assert len(ages(graph, "old")) == 71
    assert old.at(10)._snapshot.version == 10


def test_it_takes_a_load_id_that_was_used_after_its_first_commit(graph):
    data = lines(person("dee"))
    graph.load(data, "merge", load_id="monday")
    graph.branches.create("old", "main~2")
    loaded = graph.load(data, "merge", load_id="monday", branch="old")
    assert not loaded.replayed
    assert "dee" in ages(graph, "old")


def test_it_is_made_from_a_commit_of_a_branch_with_tables_of_its_own(graph):
    feature = graph.branches.create("feature")
    add(graph, "feature", "dee")
    add(graph, "feature", "eve")
    older = graph.branches.create("older", "feature~1")
    assert sorted(ages(graph, "older")) == ["ada", "bo", "cy", "dee"]
    add(graph, "older", "flo")
    oldest = graph.branches.create("oldest", "older~1")
    assert (oldest.head().id, older.log(reverse=True)[5]) == (
        feature.log(reverse=True)[5].id,
        feature.log(reverse=True)[5],
    )
    with pytest.raises(BranchInUse, match="branch 'older' still depends on it"):
        graph.branches.delete("feature")
    add(graph, "feature", "gil")
    assert sorted(ages(graph, "older")) == ["ada", "bo", "cy", "dee", "flo"]


def test_a_commit_that_a_branch_inherited_does_not_bind_to_that_branch(graph):
    graph.branches.create("feature")
    add(graph, "feature", "dee")
    graph.branches.create("old", "feature~2")
    graph.branches.delete("feature")
    assert sorted(ages(graph, "old")) == ["ada", "bo", "cy"]


def test_it_is_deleted_and_made_again(graph):
    for _ in range(2):
        graph.branches.create("old", "main~2")
        add(graph, "old", "dee")
        graph.branches.delete("old")
        assert (list(graph.branches), manifest_branches(graph)) == (["main"], set())
    graph.branches.create("old")
    assert ages(graph, "old") == ages(graph)


# -- merging ---------------------------------------------------------------------------------


def test_it_merges_back_from_the_commit_it_began_at(graph):
    graph.branches.create("old", "main~2")
    set_age(graph, "old", "bo", 29)
    merged = graph.merge("old")
    assert merged.outcome.value == "merged"
    assert ages(graph) == {"ada": 41, "bo": 29, "cy": None}
    assert merged.receipt.counts["node:Person"].to_json() == {
        "inserted": 0,
        "updated": 1,
        "deleted": 0,
    }
    graph.merge("main", "old")
    assert ages(graph, "old") == ages(graph)


def test_what_both_sides_changed_since_then_is_a_conflict(graph):
    graph.branches.create("old", "main~2")
    set_age(graph, "old", "ada", 7)
    [conflict] = graph.merge("old", dry_run=True).conflicts
    assert (conflict.row_id, conflict.base["age"]) == ("ada", None)


def test_main_is_merged_into_it_as_a_fast_forward(graph):
    graph.branches.create("old", "main~2")
    assert graph.merge("old").outcome.value == "already_up_to_date"
    assert graph.merge("main", "old").outcome.value == "fast_forward"
    assert ages(graph, "old") == ages(graph)


def test_two_such_branches_merge_from_the_older_commit(graph):
    graph.branches.create("a", "main~3")
    graph.branches.create("b", "main~1")
    add(graph, "a", "dee")
    remove(graph, "b", "bo")
    graph.merge("a", "b")
    assert sorted(ages(graph, "b")) == ["ada", "cy", "dee"]


# -- cleanup ---------------------------------------------------------------------------------


def test_cleanup_keeps_what_it_needs(local_graph):
    local_graph.branches.create("old", "main~2")
    local_graph.branches.create("other", "main~1")
    add(local_graph, "other", "dee")
    report = local_graph.maintenance.cleanup(older_than=NOW, min_age=NOW)
    people = next(t for t in report.tables if t.table_key == "node:Person")
    assert people.kept["current on old"] == 1
    assert people.kept["merge base of main and other"] == 1
    fresh = open_graph(local_graph.uri)
    assert sorted(ages(fresh, "old")) == ["ada", "bo"]
    set_age(fresh, "old", "bo", 29)
    fresh.merge("old")
    fresh.merge("other")
    assert ages(fresh) == {"ada": 41, "bo": 29, "cy": None, "dee": None}


def test_a_tag_can_be_its_source_after_a_cleanup(local_graph):
    local_graph.tags.create("v1", "main~2")
    local_graph.maintenance.cleanup(older_than=NOW, min_age=NOW)
    local_graph.branches.create("old", "v1")
    assert sorted(ages(open_graph(local_graph.uri), "old")) == ["ada", "bo"]


def test_a_commit_that_was_cleaned_up_cannot_be_its_source(local_graph):
    local_graph.maintenance.cleanup(older_than=NOW, min_age=NOW)
    folder = Path(local_graph.uri, MANIFEST_PATH)
    before = tree(folder)
    with pytest.raises(HistoryRemoved, match="node:Person"):
        local_graph.branches.create("old", "main~2")
    assert (list(local_graph.branches), tree(folder)) == (["main"], before)


# -- refusals --------------------------------------------------------------------------------


def test_it_does_not_begin_under_another_schema(graph):
    graph.schema.apply(SCHEMA.replace("age: I32?", "age: I32?  city: String?"))
    with pytest.raises(RefUnderOtherSchema, match="a branch cannot begin there"):
        graph.branches.create("old", "main~1")
    assert list(graph.branches) == ["main"]
    add(graph, "main", "dee")
    graph.branches.create("old", "main~1")
    assert sorted(ages(graph, "old")) == ["ada", "bo", "cy"]


def test_what_is_no_source_is_refused(graph):
    graph.branches.create("feature")
    with pytest.raises(BranchNotFound, match="branch 'featrue' not found; did you mean `feature`"):
        graph.branches.create("x", "featrue")
    with pytest.raises(CommitNotFound):
        graph.branches.create("x", "01KV8Z6M3Q9V2X4T7B5N0C1D2E")
    with pytest.raises(InvalidBranchName):
        graph.branches.create("x", "a b")
    with pytest.raises(InputError, match="`source` 'main~y' is not a ref"):
        graph.branches.create("x", "main~y")
    with pytest.raises(BranchExists):
        graph.branches.create("feature", "main~1")
    with pytest.raises(InvalidBranchName):
        graph.branches.create("main", "main~1")
    assert list(graph.branches) == ["main", "feature"]


# -- failures --------------------------------------------------------------------------------


@pytest.mark.parametrize("action", [Fail(), FailStorage()], ids=["a crash", "the store"])
@pytest.mark.parametrize("point", CREATE_STEPS)
def test_a_creation_that_fails_leaves_no_branch_and_the_name_free(graph, point, action):
    with armed(point, action, times=1), pytest.raises((OmnigraphError, InjectedFault), match=point):
        graph.branches.create("old", "main~2")
    assert list(graph.branches) == list(open_graph(graph.uri).branches) == ["main"]
    with pytest.raises(CommitNotFound):
        graph.at("old")
    graph.branches.create("old", "main~2")
    assert sorted(ages(graph, "old")) == ["ada", "bo"]
    assert manifest_branches(graph) == {graph._core.branches.find("old").physical}


def test_leftovers_of_a_failed_creation_are_cleaned_up_and_block_no_branch(local_graph):
    local_graph.branches.create("feature")
    add(local_graph, "feature", "dee")
    add(local_graph, "feature", "eve")
    for name in ("one", "two"):
        with armed(CREATE_STEPS[2], Fail(), times=1), pytest.raises(InjectedFault):
            local_graph.branches.create(name, "feature~1" if name == "one" else "main~2")
    assert manifest_branches(local_graph) == {"feature", "two_c1"}  # That of `one` is gone again.
    with armed(CREATE_STEPS[2], Fail(), times=1), pytest.raises(InjectedFault):
        local_graph.branches.create("one", "feature~1")
    local_graph.branches.delete("feature")
    assert list(local_graph.branches) == ["main"]
    with armed(CREATE_STEPS[1], Fail(), times=1), pytest.raises(InjectedFault):
        local_graph.branches.create("one", "main~2")
    report = local_graph.maintenance.cleanup(keep_versions=1)
    assert f"{MANIFEST_PATH}/one_c1" in report.orphans
    assert manifest_branches(local_graph) == set()
    local_graph.branches.create("one", "main~2")
    assert sorted(ages(open_graph(local_graph.uri), "one")) == ["ada", "bo"]


def test_it_copies_nothing(local_graph):
    folders = [Path(local_graph.uri, kind) for kind in ("nodes", "edges")]
    local_graph.load(lines(edge("Knows", "ada", "bo")), "append")
    before = [tree(folder) for folder in folders]
    local_graph.branches.create("old", "main~2")
    assert [tree(folder) for folder in folders] == before
