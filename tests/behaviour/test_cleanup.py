"""Cleanup: which old versions are deleted, and which are kept because a branch or tag needs them."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread

import lance
import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import (
    BranchLocked,
    HistoryRemoved,
    InputError,
    ReadOnlyHandle,
    RecoveryPending,
    StorageError,
    StoreCallFailed,
)
from omnigraph.maintenance import cleanup
from omnigraph.storage.cleanup import StoredVersion, stored_versions
from omnigraph.storage.delta import insert_exclusively
from omnigraph.storage.stage import commit_staged, stage_restore
from omnigraph.versioning.manifest import Manifest
from omnigraph.versioning.retention import find_retained
from omnigraph.versioning.rows import MANIFEST_PATH, checkpoint_row, rows_table
from tests.behaviour.graphs import PERSON, SCHEMA, Backstage
from tests.support.faults import Fail, FailStorage, InjectedFault, armed

NOW = timedelta()


@pytest.fixture
def graph(local_uri: str) -> Graph:
    """Five commits after the first, each with another version of the people."""
    graph = init(local_uri, SCHEMA)
    for number in range(5):
        graph.load(person("ada", number).encode(), "merge")
    return graph


def person(name: str, age: int) -> str:
    return json.dumps({"type": "Person", "data": {"name": name, "age": age}})


def ages(graph: Graph, branch: str | None = None, at: str | None = None) -> list[object]:
    query = "query q() { match { $p: Person } return { $p.age } order { $p.age } }"
    return [row["p.age"] for row in graph.query(query, branch=branch, at=at).to_dicts()]


def versions(graph: Graph, key: str = PERSON) -> list[int]:
    location = graph._snapshot().entry(key).location
    return [v.number for v in stored_versions(Backstage(graph.uri).tables.open(location))]


@pytest.mark.acceptance("S-129")
@pytest.mark.parametrize("keep", [1, 3])
def test_exactly_as_many_versions_stay_as_were_asked_for(graph, keep):
    commits = [c.id for c in graph.log(reverse=True)]
    report = graph.maintenance.cleanup(keep_versions=keep, min_age=NOW)
    assert versions(graph) == [2, 3, 4, 5, 6][-keep:]
    people = next(t for t in report.tables if t.table_key == PERSON)
    assert people.removed.versions == 6 - keep
    assert people.removed.bytes > 0
    assert people.error is None
    assert ages(graph) == [4]
    graph.load(person("ada", 9).encode(), "merge")
    assert ages(open_graph(graph.uri)) == [9]
    assert [c.id for c in graph.log(reverse=True)][: len(commits)] == commits


def test_what_was_removed_is_told_apart_from_what_never_was(graph):
    first = graph.log(reverse=True)[1].id
    assert ages(graph, at=first) == [0]
    graph.maintenance.cleanup(older_than=NOW, min_age=NOW)
    assert versions(graph) == [6]
    with pytest.raises(HistoryRemoved, match=r"version 2 of .*Person.*cleanup"):
        ages(open_graph(graph.uri), at=first)
    assert graph.commit(first).id == first


def test_a_reader_that_loses_its_version_gets_an_error_of_ours(graph):
    reader = open_graph(graph.uri, read_only=True)
    early, late = reader.at(2)._snapshot, reader.at(3)._snapshot
    table = early.open(reader._core.tables, PERSON)
    graph.maintenance.cleanup(keep_versions=1, min_age=NOW)
    with pytest.raises(HistoryRemoved):
        late.open(reader._core.tables, PERSON)
    with pytest.raises(StoreCallFailed, match="Not found"):
        table.read()


@pytest.mark.acceptance("S-129")
@pytest.mark.parametrize(
    "statement",
    ['update Person set { age: 7 } where name = "ada"', 'insert Person { name: "eve", age: 7 }'],
)
def test_a_write_goes_on_where_what_its_handle_knows_was_cleaned_up(graph, statement):
    stale = open_graph(graph.uri)
    for _ in range(2):
        graph.load(person("bob", 1).encode(), "merge")
        graph.maintenance.optimize()
    graph.maintenance.cleanup(keep_versions=1, min_age=NOW)
    stale.mutate(f"query q() {{ {statement} }}")
    assert 7 in ages(open_graph(graph.uri))


def test_a_policy_is_needed_and_must_make_sense(graph):
    negative = {"keep_versions": 1, "min_age": timedelta(-1)}
    for policy, message in (
        ({}, "cleanup needs a policy"),
        ({"keep_versions": 0}, "at least the newest version"),
        ({"older_than": timedelta(-1)}, "an age is not negative"),
        (negative, "an age is not negative"),
    ):
        with pytest.raises(InputError, match=message):
            graph.maintenance.cleanup(**policy)
    with pytest.raises(ReadOnlyHandle):
        open_graph(graph.uri, read_only=True).maintenance.cleanup(keep_versions=1)


def test_with_both_limits_a_version_goes_only_if_both_say_so(graph):
    graph.maintenance.cleanup(keep_versions=1, older_than=timedelta(days=1), min_age=NOW)
    assert versions(graph) == [1, 2, 3, 4, 5, 6]
    graph.maintenance.cleanup(keep_versions=2, older_than=NOW, min_age=NOW)
    assert versions(graph) == [5, 6]


def test_versions_in_use_within_the_last_day_stay_unless_told_otherwise(graph):
    first = graph.log(reverse=True)[1].id
    for policy in ({"keep_versions": 1}, {"older_than": NOW}):
        report = graph.maintenance.cleanup(**policy)
        people = next(t for t in report.tables if t.table_key == PERSON)
        assert people.kept == {"current on main": 1, "replaced too recently": 5}
    assert ages(graph, at=first) == [0]


def test_a_version_counts_as_used_until_another_took_its_place():
    policy = cleanup.CleanupPolicy(keep_versions=1, min_age=timedelta(hours=24))
    now = datetime.now(UTC)
    stored = [StoredVersion(n, now - timedelta(days=d)) for n, d in ((1, 9), (2, 3), (3, 0))]
    assert [policy.why_kept(stored, place, now) for place in range(3)] == [
        None,
        "replaced too recently",
        "the newest",
    ]


def test_a_dry_run_says_what_would_go_and_why_the_rest_stays(graph):
    graph.branches.create("feature")
    graph.load(person("ada", 9).encode(), "merge")
    planned = graph.maintenance.cleanup(keep_versions=1, min_age=NOW, dry_run=True)
    assert versions(graph) == [1, 2, 3, 4, 5, 6, 7]
    done = graph.maintenance.cleanup(keep_versions=1, min_age=NOW)
    assert planned.tables == done.tables
    assert (planned.dry_run, done.dry_run) == (True, False)
    people = next(t for t in planned.tables if t.table_key == PERSON)
    assert people.kept == {"current on feature": 1, "current on main": 1}
    assert versions(graph) == [6, 7]


@pytest.mark.acceptance("S-130")
def test_what_a_branch_reads_from_main_stays(graph):
    graph.branches.create("lazy")
    for number in range(10, 15):
        graph.load(person("ada", number).encode(), "merge")
    graph.maintenance.cleanup(keep_versions=1, min_age=NOW)
    assert ages(graph, "lazy") == [4]
    assert ages(open_graph(graph.uri, branch="lazy")) == [4]
    lazy = open_graph(graph.uri, branch="lazy")
    lazy.load(person("bo", 1).encode(), "merge")
    assert ages(lazy) == [1, 4]


def test_what_a_merge_would_compare_with_stays(graph):
    feature = graph.branches.create("feature")
    feature.load(person("bo", 1).encode(), "merge")
    graph.load(person("cy", 2).encode(), "merge")
    graph.merge("main", into="feature")
    for number in range(20, 24):
        graph.load(person("dee", number).encode(), "merge")
    feature.load(person("bo", 3).encode(), "merge")
    report = graph.maintenance.cleanup(keep_versions=1, min_age=NOW)
    people = next(t for t in report.tables if t.table_key == PERSON)
    assert "merge base of main and feature" in people.kept
    graph.merge("feature", into="main")
    assert ages(graph) == [2, 3, 4, 23]


@pytest.mark.acceptance("S-125")
def test_maintenance_is_refused_while_an_interrupted_write_is_pending(graph):
    with armed("mutation.post_table_commit", Fail()), pytest.raises(InjectedFault):
        graph.load(person("eve", 1).encode(), "merge")
    for name, maintain in (
        ("cleanup", lambda: graph.maintenance.cleanup(keep_versions=1, min_age=NOW)),
        ("optimize", graph.maintenance.optimize),
        ("repair", graph.maintenance.repair),
    ):
        with pytest.raises(RecoveryPending, match=f"{name} requires a clean recovery state"):
            maintain()
    assert len(versions(graph)) == 7


@pytest.mark.acceptance("S-131")
def test_an_error_in_one_table_is_told_with_it_and_keeps_no_other_back(graph):
    for name in ("a", "b"):
        graph.load(json.dumps({"type": "Company", "data": {"name": name}}).encode(), "merge")
    with armed("cleanup.table_gc", FailStorage(), first=3, times=1):
        report = graph.maintenance.cleanup(keep_versions=1, min_age=NOW)
    assert [t.table_key for t in report.failed] == ["node:Company"]
    assert "cleanup.table_gc" in str(report.failed[0].error)
    assert versions(graph) == [6]
    assert len(versions(graph, "node:Company")) == 3


def test_a_table_that_moved_by_itself_is_left_alone(graph):
    entry = graph._snapshot().entry(PERSON)
    table = graph._snapshot().open(graph._core.tables, PERSON)
    commit_staged(table, stage_restore(table, entry.version), operation_id="x", writer_kind="Test")
    report = graph.maintenance.cleanup(keep_versions=1, min_age=NOW)
    [failed] = report.failed
    assert failed.table_key == PERSON
    assert "repair" in str(failed.error)
    assert len(versions(graph)) == 7


@pytest.mark.acceptance("S-028")
def test_a_write_to_the_next_branch_of_a_name_reclaims_the_fork_of_the_last(graph):
    graph.branches.create("feature").load(person("bo", 1).encode(), "merge")
    with armed("branch_delete.before_table_cleanup", FailStorage()):
        graph.branches.delete("feature")
    assert list(graph.branches) == ["main"]
    again = graph.branches.create("feature")
    again.load(person("cy", 2).encode(), "merge")
    assert ages(again) == [2, 4]
    assert graph.maintenance.cleanup(keep_versions=100).orphans == ()


def test_forks_of_branches_that_are_gone_are_reclaimed(graph):
    feature = graph.branches.create("feature")
    feature.load(person("bo", 1).encode(), "merge")
    entry = feature._snapshot().entry(PERSON)
    with armed("branch_delete.before_table_cleanup", FailStorage()):
        graph.branches.delete("feature")
    fork = Path(graph.uri, entry.location, "tree", "feature")
    assert fork.exists()
    planned = graph.maintenance.cleanup(keep_versions=100, dry_run=True)
    assert planned.orphans == (f"{entry.location}/feature",)
    with armed("cleanup.reconcile_fork", FailStorage()):
        assert graph.maintenance.cleanup(keep_versions=100).orphans == ()
    assert fork.exists()
    assert graph.maintenance.cleanup(keep_versions=100).orphans == planned.orphans
    assert not fork.exists()
    assert graph.maintenance.cleanup(keep_versions=100).orphans == ()


def test_the_first_write_of_a_branch_keeps_its_fork_whenever_it_comes(graph, monkeypatch):
    graph.branches.create("feature")
    writer = open_graph(graph.uri, branch="feature")
    needed = find_retained

    def then_write(*arguments):
        found = needed(*arguments)
        writer.load(person("bo", 1).encode(), "merge")
        return found

    monkeypatch.setattr(cleanup, "find_retained", then_write)
    assert graph.maintenance.cleanup(keep_versions=100, dry_run=True).orphans == ()
    assert graph.maintenance.cleanup(keep_versions=100).orphans == ()
    assert ages(open_graph(graph.uri, branch="feature")) == [1, 4]


def test_a_branch_that_is_made_from_a_branch_meanwhile_stays(graph, monkeypatch):
    graph.branches.create("feature").load(person("bo", 1).encode(), "merge")
    other = open_graph(graph.uri)
    creating = Thread(target=lambda: other.branches.create("child", "feature"))
    needed = find_retained

    def then_branch(*arguments):
        found = needed(*arguments)
        creating.start()
        creating.join(1)
        return found

    monkeypatch.setattr(cleanup, "find_retained", then_branch)
    graph.maintenance.cleanup(keep_versions=1, min_age=NOW)
    creating.join()
    assert list(graph.branches) == ["main", "child", "feature"]
    assert ages(open_graph(graph.uri, branch="child")) == [1, 4]


def test_no_branch_is_deleted_while_all_are_asked(graph, monkeypatch):
    """What a merge would compare with is known only while branches stay as they are."""
    monkeypatch.setenv("OMNIGRAPH_LOCK_WAIT_MS", "50")
    for name in ("feature", "gone"):
        graph.branches.create(name).load(person("bo", 1).encode(), "merge")
    other = open_graph(graph.uri)
    refused: list[BranchLocked] = []
    current = Manifest.current

    def delete_first(manifest, branch, **options):
        if branch == "gone" and other._core.manifest is not manifest and not refused:
            with pytest.raises(BranchLocked) as caught:
                other.branches.delete(branch)
            refused.append(caught.value)
        return current(manifest, branch, **options)

    monkeypatch.setattr(Manifest, "current", delete_first)
    assert graph.maintenance.cleanup(keep_versions=1, min_age=NOW).failed == ()
    assert refused
    other.branches.delete("gone")
    assert list(graph.branches) == ["main", "feature"]
    assert ages(graph, "feature") == [1, 4]


@pytest.mark.acceptance("S-142")
def test_a_zombie_of_a_branch_is_removed_and_its_successor_stays(graph):
    backstage = Backstage(graph.uri)
    graph.branches.create("feature")
    stale = backstage.tables.open(MANIFEST_PATH, "feature")
    graph.branches.delete("feature")
    insert_exclusively(stale, rows_table([checkpoint_row(999, {})]))
    again = graph.branches.create("feature")
    again.load(person("bo", 1).encode(), "merge")
    assert graph.maintenance.cleanup(keep_versions=100).orphans == (f"{MANIFEST_PATH}/feature",)
    assert backstage.tables.zombie_branches(MANIFEST_PATH) == set()
    assert ages(open_graph(graph.uri, branch="feature")) == [1, 4]


def test_unreferenced_forks_of_existing_branches_are_removed_too(graph):
    graph.branches.create("feature")
    entry = graph._snapshot().entry(PERSON)
    raw = lance.dataset(f"{graph.uri}/{entry.location}")
    raw.create_branch("feature", entry.version)
    raw.create_branch("not.ours/x", entry.version)
    assert graph.maintenance.cleanup(keep_versions=100).orphans == (f"{entry.location}/feature",)
    assert set(lance.dataset(f"{graph.uri}/{entry.location}").branches.list()) == {"not.ours/x"}
    open_graph(graph.uri, branch="feature").load(person("bo", 1).encode(), "merge")


def test_tables_of_a_schema_that_never_came_go_after_an_hour(graph, monkeypatch):
    text = SCHEMA + "node Tool { code: String @key }\n"
    with armed("schema_apply.before_staging_write", Fail()), pytest.raises(InjectedFault):
        graph.schema.apply(text)
    again = open_graph(graph.uri)
    left = sorted(set(os.listdir(f"{graph.uri}/nodes")) - _locations(again))
    assert len(left) == 1
    assert again.maintenance.cleanup(keep_versions=100).orphans == ()
    monkeypatch.setattr(cleanup, "MIN_ORPHAN_AGE", timedelta())
    assert again.maintenance.cleanup(keep_versions=100).orphans == (f"nodes/{left[0]}",)
    assert set(os.listdir(f"{graph.uri}/nodes")) == _locations(again)
    again.schema.apply(text)
    again.load(b'{"type":"Tool","data":{"code":"saw"}}', "merge")


def _locations(graph: Graph, kind: str = "node") -> set[str]:
    found = graph._snapshot().entries.items()
    return {e.location.rpartition("/")[2] for key, e in found if key.startswith(kind)}


def test_a_dropped_type_goes_when_it_has_been_gone_long_enough(graph):
    before = graph.head().id
    location = graph._snapshot().entry("edge:WorksAt").location
    graph.schema.apply(SCHEMA.replace("edge WorksAt: Person -> Company\n", ""))
    graph.maintenance.cleanup(older_than=timedelta(days=1), min_age=NOW)
    assert Path(graph.uri, location).exists()
    assert "edge:WorksAt" in graph.at(before)._snapshot.entries
    report = graph.maintenance.cleanup(older_than=NOW, min_age=NOW)
    assert "edge:WorksAt" in [t.table_key for t in report.tables]
    assert not Path(graph.uri, location).exists()
    snapshot = open_graph(graph.uri).at(before)._snapshot
    with pytest.raises(HistoryRemoved):
        snapshot.open(graph._core.tables, "edge:WorksAt")


def test_files_of_writes_that_never_came_go_when_they_are_a_week_old(graph):
    location = Path(graph.uri, graph._snapshot().entry(PERSON).location, "data")
    known = set(location.iterdir())
    with (
        armed("mutation.pre_table_commit", FailStorage()),
        pytest.raises(StorageError, match="injected failure"),
    ):
        graph.load(person("eve", 1).encode(), "merge")
    [left] = set(location.iterdir()) - known
    graph.maintenance.cleanup(keep_versions=100)
    assert left.exists()
    old = time.time() - 8 * 86400
    os.utime(left, (old, old))
    report = graph.maintenance.cleanup(keep_versions=100)
    assert not left.exists()
    assert report.removed.bytes > 0
    assert set(location.iterdir()) == known
    assert ages(graph) == [4]


def test_versions_of_the_manifest_go_after_an_hour_and_history_stays(graph, monkeypatch):
    before = len(stored_versions(Backstage(graph.uri).tables.open(MANIFEST_PATH)))
    graph.maintenance.cleanup(older_than=NOW, min_age=NOW)
    assert len(stored_versions(Backstage(graph.uri).tables.open(MANIFEST_PATH))) == before
    monkeypatch.setattr(cleanup, "MIN_MANIFEST_AGE", timedelta())
    graph.maintenance.cleanup(older_than=NOW, min_age=NOW)
    assert len(stored_versions(Backstage(graph.uri).tables.open(MANIFEST_PATH))) == 1
    fresh = open_graph(graph.uri)
    assert len(fresh.log(reverse=True)) == 6
    fresh.load(person("bo", 1).encode(), "merge")
    assert graph._snapshot().version == 7
