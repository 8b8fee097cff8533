"""Commits, snapshots and time travel: what was true at a commit stays readable and never changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise, product
from typing import Any

import pytest

from omnigraph.engine.graph import init
from omnigraph.engine.graph import open as open_graph
from omnigraph.engine.receipts import commit_to_json
from omnigraph.errors import (
    BranchNotFound,
    CommitNotFound,
    InputError,
    NotFoundError,
    UnknownVersion,
)
from omnigraph.storage.table import Table
from omnigraph.versioning.commits import Counts, OperationKind, Warning
from omnigraph.versioning.manifest import Manifest, ManifestState, fold
from omnigraph.versioning.publish import Publication, publish
from omnigraph.versioning.rows import MANIFEST_PATH
from omnigraph.versioning.upkeep import tend_manifest
from tests.behaviour.graphs import COMPANY, KEYS, PERSON, SCHEMA, Backstage


@contextmanager
def reading(patch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """The rows of the manifest that are read meanwhile."""
    seen: list[dict[str, Any]] = []
    scan = Table.scan

    def recording(self: Table, *args: Any, **kwargs: Any) -> Any:
        found = scan(self, *args, **kwargs).read_all()
        if self.path == MANIFEST_PATH:
            seen.extend(found.to_pylist())
        return found.to_reader()

    with patch.context() as inner:
        inner.setattr(Table, "scan", recording)
        yield seen


# -- snapshots -------------------------------------------------------------------------------


def test_a_snapshot_as_json_has_the_promised_form(graph, backstage):
    graph.create_branch("review/7")
    made = backstage.add(graph, PERSON, ["ada"])
    assert graph.snapshot().commit_id == made.graph_commit_id
    document = graph.snapshot().to_json()
    assert list(document) == ["branch", "manifest_version", "tables"]
    assert (document["branch"], document["manifest_version"]) == ("main", 2)
    assert [table["table_key"] for table in document["tables"]] == KEYS
    assert document["tables"][-1] == {
        "table_key": PERSON,
        "table_path": "nodes/40d76f1f51639ec0",
        "table_version": 2,
        "table_branch": None,
        "row_count": 1,
    }
    json.dumps(document)


@pytest.mark.acceptance("S-019", partly="rows are published by hand, not inserted by a mutation")
def test_a_snapshot_never_changes(graph, backstage):
    backstage.add(graph, PERSON, ["ada"])
    old = graph.snapshot()
    before = old.to_json()
    backstage.add(graph, PERSON, ["bo"])
    graph.snapshot()
    assert old.to_json() == before
    assert old.version == 2
    assert old.open(backstage.tables, PERSON).read(["id"]).to_pylist() == [{"id": "ada"}]
    assert graph.snapshot().open(backstage.tables, PERSON).row_count() == 2


@pytest.mark.acceptance("S-020", partly="snapshots instead of queries")
def test_another_handle_sees_a_commit_without_refresh(graph, backstage):
    one, two = open_graph(graph.uri), open_graph(graph.uri)
    two.snapshot()
    backstage.add(one, PERSON, ["ada"])
    assert two.snapshot().entry(PERSON).row_count == 1
    assert two.head() == one.head()


def test_an_unknown_table_key_is_a_bad_request(graph):
    for key in ("node:Nobody", "Person", "edge:Person", ""):
        with pytest.raises(InputError, match="no manifest entry for"):
            graph.snapshot().entry(key)


# -- reading only what is new ----------------------------------------------------------------


@pytest.mark.acceptance("S-139")
def test_a_handle_reads_only_what_is_new(memory_uri, monkeypatch):
    init(memory_uri, SCHEMA)
    writer, reader = Backstage(memory_uri), Backstage(memory_uri)
    for _ in range(39):
        writer.publish()
    assert reader.manifest.current(None).sequence == 40
    for _ in range(3):
        writer.publish()
    with reading(monkeypatch) as rows:
        assert reader.manifest.current(None).sequence == 43
    assert {row["commit_seq"] for row in rows} == {41, 42, 43}
    with reading(monkeypatch) as rows:
        assert reader.manifest.current(None).sequence == 43
    assert rows == []


def test_folding_the_manifest_changes_nothing_a_reader_sees(memory_uri, monkeypatch):
    graph = init(memory_uri, SCHEMA)
    backstage, reader = Backstage(memory_uri), Backstage(memory_uri)
    stored = backstage.tables.open(MANIFEST_PATH)
    fragments = [len(stored.fragments())]
    for _ in range(40):
        backstage.publish()
        tend_manifest(backstage.manifest.newest(None))
        fragments.append(len(backstage.tables.open(MANIFEST_PATH).fragments()))
        assert reader.manifest.current(None) == backstage.manifest.current(None)
    assert max(fragments) <= 18
    assert any(later < earlier for earlier, later in pairwise(fragments))
    assert [commit.sequence for commit in graph.commits()] == list(range(1, 42))


@pytest.mark.acceptance("S-140")
def test_every_version_is_the_fold_of_the_rows_up_to_it(memory_uri, monkeypatch):
    graph = init(memory_uri, SCHEMA)
    backstage = Backstage(memory_uri)
    for number in range(79):
        if number % 3:
            backstage.publish()
        else:
            backstage.add(graph, PERSON if number % 2 else COMPANY, [f"x{number}"])
    cold = Manifest(backstage.tables)
    with reading(monkeypatch) as rows:
        assert cold.current(None).sequence == 80
    assert {row["commit_seq"] for row in rows if row.get("object_id")} == set(range(64, 81))
    assert open_graph(memory_uri).snapshot_at_version(63).version == 63
    everything = backstage.rows()
    checkpoints = [row["commit_seq"] for row in everything if row["object_type"] == "checkpoint"]
    assert sorted(checkpoints) == [1, 64]
    nothing = ManifestState(None, 0, graph.commits()[0].graph_commit_id, {}, {})
    for version in range(1, 81):
        expected = fold(nothing, [row for row in everything if row["commit_seq"] <= version])
        assert cold.at(None, version) == expected


# -- time travel -----------------------------------------------------------------------------


@pytest.mark.acceptance("S-039", partly="snapshots instead of queries; no entity is read")
def test_every_version_and_commit_gives_the_snapshot_of_its_time(graph, backstage):
    seen = [graph.snapshot()]
    for number in range(4):
        backstage.add(graph, PERSON, [f"p{number}"])
        seen.append(graph.snapshot())
    for handle in (graph, open_graph(graph.uri, read_only=True)):
        for version, snapshot in enumerate(seen, 1):
            for target in (version, snapshot.commit_id):
                found = handle.snapshot_at(target)
                assert found.to_json() == snapshot.to_json()
                assert found.commit_id == snapshot.commit_id
                names = found.open(backstage.tables, PERSON).read(["id"]).column("id").to_pylist()
                assert names == [f"p{n}" for n in range(version - 1)]
    assert graph.snapshot_at("main").to_json() == seen[-1].to_json()


@pytest.mark.acceptance("S-039", partly="snapshots instead of queries; no entity is read")
def test_a_version_a_branch_does_not_have_is_not_found(graph):
    for version, call in product((0, -1, 2, 1000), (graph.snapshot_at_version, graph.at)):
        with pytest.raises(UnknownVersion) as caught:
            call(version)
        assert (caught.value.version, caught.value.head) == (version, 1)
        assert isinstance(caught.value, NotFoundError)


@pytest.mark.acceptance("S-037")
def test_an_unknown_commit_is_not_found(graph):
    graph.create_branch("feature")
    unknown = ["01KV8Z6M3Q9V2X4T7B5N0C1D2E", "nope", "", "' or true --", "a b"]
    calls = (graph.snapshot_of, graph.commit, graph.receipt_of, graph.at)
    for commit_id, call in product(unknown, calls):
        with pytest.raises(CommitNotFound) as caught:
            call(commit_id)
        assert f"commit '{commit_id}' not found" in caught.value.message
        assert isinstance(caught.value, NotFoundError)


def test_a_commit_is_found_from_a_handle_of_any_branch(graph, backstage):
    feature = graph.create_branch("feature")
    on_main, on_feature = backstage.publish(), backstage.publish("feature")
    other = graph.create_branch("other", source="feature")
    for handle in (graph, feature, other, open_graph(graph.uri)):
        for made in (on_main, on_feature):
            assert handle.commit(made.graph_commit_id) == made
            assert handle.snapshot_of(made.graph_commit_id).commit_id == made.graph_commit_id
            assert handle.snapshot_of(made.graph_commit_id).version == 2


def test_a_branch_shares_the_versions_up_to_its_fork(graph, backstage):
    backstage.add(graph, PERSON, ["ada"])
    feature = graph.create_branch("feature")
    backstage.add(graph, PERSON, ["bo"])
    for version in (1, 2):
        ours, theirs = graph.snapshot_at(version), feature.snapshot_at(version)
        assert ours.commit_id == theirs.commit_id
        assert [entry.pin for entry in ours.entries.values()] == [
            entry.pin for entry in theirs.entries.values()
        ]
    with pytest.raises(UnknownVersion):
        feature.at(3)
    assert graph.snapshot_at_version(1, "feature").branch == "feature"
    with pytest.raises(BranchNotFound):
        graph.snapshot_at_version(1, "nope")


def test_a_commit_whose_branch_is_gone_is_not_found(graph, backstage):
    graph.create_branch("feature")
    made = backstage.publish("feature")
    graph.delete_branch("feature")
    with pytest.raises(CommitNotFound):
        graph.snapshot_of(made.graph_commit_id)


# -- commits ---------------------------------------------------------------------------------


@pytest.mark.acceptance("S-035", partly="the commit is published by hand, not made by a mutation")
def test_commits_are_listed_and_filtered(graph, backstage):
    person = graph.snapshot().entry(PERSON).table_id
    first = backstage.publish(actor_id="act-1", message="mine", counts={person: Counts(inserted=1)})
    second = backstage.publish(actor_id="act-2", operation=OperationKind.LOAD)
    third = backstage.publish(actor_id="act-2")
    genesis = graph.commits()[0]
    assert graph.commits() == [genesis, first, second, third]
    assert graph.commits(newest_first=True) == [third, second, first, genesis]
    assert graph.commits(newest_first=True, limit=2) == [third, second]
    assert graph.commits(limit=0) == []
    assert graph.commits(actor="act-1") == [first]
    assert graph.commits(actor="act-2", operation="load") == [second]
    assert graph.commits(operation="init") == [genesis]
    assert graph.commits(actor="nobody") == []
    assert first.parent_commit_id == genesis.graph_commit_id
    assert (first.draft.operation.value, first.draft.message) == ("mutate", "mine")


def test_commits_are_bounded_by_commits_and_by_moments(graph, backstage):
    noon = datetime(2030, 1, 1, 12, tzinfo=UTC)
    micros = int(noon.timestamp()) * 1_000_000
    made = [backstage.publish(created_at=micros + n * 1_000_000, actor_id="ada") for n in range(4)]
    ids = [commit.graph_commit_id for commit in made]
    assert graph.commits(since=ids[1]) == made[1:]
    assert graph.commits(since=ids[1], until=ids[2]) == made[1:3]
    assert graph.commits(since=ids[2], until=ids[1]) == []
    assert graph.commits(until=ids[0])[-1] == made[0]
    second = timedelta(seconds=1)
    for moment in (noon + second, (noon + second).replace(tzinfo=None), "2030-01-01T12:00:01"):
        assert graph.commits(since=moment) == made[1:]
        assert graph.commits(since=moment, until="2030-01-01T14:00:02+02:00") == made[1:3]
    assert graph.commits(since="2030-01-02") == []
    assert graph.commits(since="20300101", newest_first=True, limit=1) == [made[3]]
    assert graph.commits(until=noon - timedelta(microseconds=1)) == graph.commits()[:1]
    assert graph.commits(since=ids[3], actor="nobody") == []


def test_a_bound_that_is_no_time_and_no_commit_of_the_branch_is_refused(graph, backstage):
    feature = graph.create_branch("feature")
    elsewhere = backstage.publish("feature").graph_commit_id
    assert len(feature.commits(since=elsewhere)) == 1
    for bound in (elsewhere, "yesterday", "", "2030-02-30"):
        for call in ({"since": bound}, {"until": bound}):
            with pytest.raises(InputError, match="neither a time nor a commit of this branch"):
                graph.commits(**call)


def test_a_commit_as_json_names_types_and_branches_as_people_do(graph, backstage):
    graph.create_branch("review/7")
    person = graph.snapshot().entry(PERSON).table_id
    made = backstage.publish(
        "review/7", actor_id="ada", message="Grüße", counts={person: Counts(updated=3)}
    )
    assert commit_to_json(made, graph.catalog) == {
        "graph_commit_id": made.graph_commit_id,
        "manifest_branch": "review/7",
        "manifest_version": 2,
        "parent_commit_id": graph.head("main"),
        "merged_parent_commit_id": None,
        "actor_id": "ada",
        "created_at": made.draft.created_at,
        "operation": "mutate",
        "message": "Grüße",
        "counts": {PERSON: {"inserted": 0, "updated": 3, "deleted": 0}},
    }
    assert commit_to_json(graph.commits()[0], graph.catalog)["manifest_branch"] is None


@pytest.mark.acceptance("S-147", partly="the receipt is rebuilt; no write returns one here")
def test_a_receipt_is_rebuilt_from_its_commit(graph, backstage):
    person = graph.snapshot().entry(PERSON).table_id
    draft = backstage.draft(
        actor_id="ada",
        counts={person: Counts(inserted=1)},
        warnings=(Warning("index_pending", "later"),),
    )
    made = publish(backstage.manifest, None, Publication(draft))
    assert graph.receipt_of(made.graph_commit_id).to_json() == {
        "graph_commit_id": made.graph_commit_id,
        "parent_commit_id": made.parent_commit_id,
        "branch": "main",
        "manifest_version": 2,
        "operation": "mutate",
        "operation_id": draft.operation_id,
        "actor_id": "ada",
        "created_at": draft.created_at,
        "counts": {PERSON: {"inserted": 1, "updated": 0, "deleted": 0}},
        "warnings": [{"code": "index_pending", "message": "later"}],
    }


def test_the_commits_of_an_unknown_branch_are_not_found(graph):
    for call in (graph.commits, graph.head, graph.snapshot):
        with pytest.raises(BranchNotFound):
            call("nope")
