"""Commits, snapshots and time travel: what was true at a commit stays readable and never changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise, product
from typing import Any

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import (
    BranchNotFound,
    CommitNotFound,
    InputError,
    NotFoundError,
    UnknownVersion,
)
from omnigraph.history.commits import Commit
from omnigraph.storage.table import Table
from omnigraph.versioning.commits import CommitRecord, Counts, OperationKind, Warning
from omnigraph.versioning.manifest import Manifest, ManifestState, replay
from omnigraph.versioning.manifest_compaction import compact_manifest
from omnigraph.versioning.publish import Publication, publish
from omnigraph.versioning.rows import MANIFEST_PATH
from tests.behaviour.graphs import COMPANY, KEYS, PERSON, SCHEMA, Backstage
from tests.support.receipts import receipt_of_commit


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


PEOPLE = "query q() { match { $p: Person } return { $p.name } }"


def shown(graph: Graph, made: CommitRecord) -> Commit:
    return Commit.of(made, graph.schema.catalog)


# -- snapshots -------------------------------------------------------------------------------


def test_a_snapshot_as_json_has_the_promised_form(graph, backstage):
    graph.branches.create("review/7")
    made = backstage.add(graph, PERSON, ["ada"])
    assert graph._snapshot().commit_id == made.graph_commit_id
    document = graph._snapshot().to_json()
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


def test_a_snapshot_never_changes(graph, backstage):
    backstage.add(graph, PERSON, ["ada"])
    old = graph._snapshot()
    before = old.to_json()
    backstage.add(graph, PERSON, ["bo"])
    graph._snapshot()
    assert old.to_json() == before
    assert old.version == 2
    assert old.open(backstage.tables, PERSON).read(["id"]).to_pylist() == [{"id": "ada"}]
    assert graph._snapshot().open(backstage.tables, PERSON).row_count() == 2


def test_another_handle_sees_a_commit_without_refresh(graph, backstage):
    one, two = open_graph(graph.uri), open_graph(graph.uri)
    two._snapshot()
    backstage.add(one, PERSON, ["ada"])
    assert two._snapshot().entry(PERSON).row_count == 1
    assert two.head().id == one.head().id


def test_an_unknown_table_key_is_a_bad_request(graph):
    for key in ("node:Nobody", "Person", "edge:Person", ""):
        with pytest.raises(InputError, match="no manifest entry for"):
            graph._snapshot().entry(key)


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


def test_compacting_the_manifest_changes_nothing_a_reader_sees(memory_uri, monkeypatch):
    graph = init(memory_uri, SCHEMA)
    backstage, reader = Backstage(memory_uri), Backstage(memory_uri)
    stored = backstage.tables.open(MANIFEST_PATH)
    fragments = [len(stored.fragments())]
    for _ in range(40):
        backstage.publish()
        compact_manifest(backstage.manifest.newest(None))
        fragments.append(len(backstage.tables.open(MANIFEST_PATH).fragments()))
        assert reader.manifest.current(None) == backstage.manifest.current(None)
    assert max(fragments) <= 18
    assert any(later < earlier for earlier, later in pairwise(fragments))
    assert [commit.number for commit in graph.log(reverse=True)] == list(range(1, 42))


@pytest.mark.acceptance("S-140")
def test_every_version_is_the_replay_of_the_rows_up_to_it(memory_uri, monkeypatch):
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
    assert open_graph(memory_uri).at(63)._snapshot.version == 63
    everything = backstage.rows()
    checkpoints = [row["commit_seq"] for row in everything if row["object_type"] == "checkpoint"]
    assert sorted(checkpoints) == [1, 64]
    nothing = ManifestState(None, 0, graph.log(reverse=True)[0].id, {}, {})
    for version in range(1, 81):
        expected = replay(nothing, [row for row in everything if row["commit_seq"] <= version])
        assert cold.at(None, version) == expected


# -- time travel -----------------------------------------------------------------------------


def test_every_version_and_commit_gives_the_snapshot_of_its_time(graph, backstage):
    seen = [graph._snapshot()]
    for number in range(4):
        backstage.add(graph, PERSON, [f"p{number}"])
        seen.append(graph._snapshot())
    for handle in (graph, open_graph(graph.uri, read_only=True)):
        for version, snapshot in enumerate(seen, 1):
            for target in (version, snapshot.commit_id):
                found = handle.at(target)._snapshot
                assert found.to_json() == snapshot.to_json()
                assert found.commit_id == snapshot.commit_id
                names = found.open(backstage.tables, PERSON).read(["id"]).column("id").to_pylist()
                assert names == [f"p{n}" for n in range(version - 1)]
    assert graph.at("main")._snapshot.to_json() == seen[-1].to_json()


def test_a_version_a_branch_does_not_have_is_not_found(graph):
    calls = (graph.at, graph.commit, lambda ref: graph.query(PEOPLE, at=ref))
    for version, call in product((0, -1, 2, 1000), calls):
        with pytest.raises(UnknownVersion) as caught:
            call(version)
        assert (caught.value.version, caught.value.head) == (version, 1)
        assert isinstance(caught.value, NotFoundError)


@pytest.mark.acceptance("S-037")
def test_an_unknown_commit_is_not_found(graph):
    graph.branches.create("feature")
    unknown = ["01KV8Z6M3Q9V2X4T7B5N0C1D2E", "nope", "", "' or true --", "a b"]
    calls = (graph.at, graph.commit, lambda ref: graph.query(PEOPLE, at=ref))
    for commit_id, call in product(unknown, calls):
        with pytest.raises(CommitNotFound) as caught:
            call(commit_id)
        assert f"commit '{commit_id}' not found" in caught.value.message
        assert isinstance(caught.value, NotFoundError)


def test_a_commit_is_found_from_a_handle_of_any_branch(graph, backstage):
    feature = graph.branches.create("feature")
    on_main, on_feature = backstage.publish(), backstage.publish("feature")
    other = graph.branches.create("other", "feature")
    for handle in (graph, feature, other, open_graph(graph.uri)):
        for made in (on_main, on_feature):
            assert handle.commit(made.graph_commit_id) == shown(graph, made)
            assert handle.at(made.graph_commit_id)._snapshot.commit_id == made.graph_commit_id
            assert handle.at(made.graph_commit_id)._snapshot.version == 2


def test_a_branch_shares_the_versions_up_to_its_fork(graph, backstage):
    backstage.add(graph, PERSON, ["ada"])
    feature = graph.branches.create("feature")
    backstage.add(graph, PERSON, ["bo"])
    for version in (1, 2):
        ours, theirs = graph.at(version)._snapshot, feature.at(version)._snapshot
        assert ours.commit_id == theirs.commit_id
        assert [entry.version_ref for entry in ours.entries.values()] == [
            entry.version_ref for entry in theirs.entries.values()
        ]
    with pytest.raises(UnknownVersion):
        feature.at(3)
    assert graph.checkout("feature").at(1)._snapshot.branch == "feature"
    with pytest.raises(BranchNotFound):
        graph.checkout("nope").at(1)


def test_a_commit_whose_branch_is_gone_is_not_found(graph, backstage):
    graph.branches.create("feature")
    made = backstage.publish("feature")
    graph.branches.delete("feature")
    with pytest.raises(CommitNotFound):
        graph.at(made.graph_commit_id)


# -- commits ---------------------------------------------------------------------------------


def test_commits_are_listed_and_filtered(graph, backstage):
    person = graph._snapshot().entry(PERSON).table_id
    counts = {person: Counts(inserted=1)}
    first = shown(graph, backstage.publish(actor_id="act-1", message="mine", counts=counts))
    second = shown(graph, backstage.publish(actor_id="act-2", operation=OperationKind.LOAD))
    third = shown(graph, backstage.publish(actor_id="act-2"))
    genesis = graph.log(reverse=True)[0]
    assert graph.log(reverse=True) == [genesis, first, second, third]
    assert graph.log() == [third, second, first, genesis]
    assert graph.log(limit=2) == [third, second]
    assert graph.log(limit=0, reverse=True) == []
    assert graph.log(actor="act-1", reverse=True) == [first]
    assert graph.log(actor="act-2", operation="load", reverse=True) == [second]
    assert graph.log(operation="init", reverse=True) == [genesis]
    assert graph.log(actor="nobody", reverse=True) == []
    assert first.parents == (genesis.id,)
    assert (first.operation, first.message, first.actor) == ("mutate", "mine", "act-1")
    assert first.counts == {PERSON: Counts(inserted=1)}


def test_commits_are_bounded_by_commits_and_by_moments(graph, backstage):
    noon = datetime(2030, 1, 1, 12, tzinfo=UTC)
    micros = int(noon.timestamp()) * 1_000_000
    moments = [micros + n * 1_000_000 for n in range(4)]
    made = [shown(graph, backstage.publish(created_at=m, actor_id="ada")) for m in moments]
    ids = [commit.id for commit in made]
    assert [commit.created_at - noon for commit in made] == [timedelta(seconds=n) for n in range(4)]
    assert graph.log(since=ids[1], reverse=True) == made[1:]
    assert graph.log(since=ids[1], until=ids[2], reverse=True) == made[1:3]
    assert graph.log(since=ids[2], until=ids[1], reverse=True) == []
    assert graph.log(until=ids[0], reverse=True)[-1] == made[0]
    second = timedelta(seconds=1)
    for moment in (noon + second, (noon + second).replace(tzinfo=None), "2030-01-01T12:00:01"):
        assert graph.log(since=moment, reverse=True) == made[1:]
        assert graph.log(since=moment, until="2030-01-01T14:00:02+02:00", reverse=True) == made[1:3]
    assert graph.log(since="2030-01-02", reverse=True) == []
    assert graph.log(since="20300101", limit=1) == [made[3]]
    assert (
        graph.log(until=noon - timedelta(microseconds=1), reverse=True)
        == graph.log(reverse=True)[:1]
    )
    assert graph.log(since=ids[3], actor="nobody", reverse=True) == []


def test_a_bound_that_is_no_time_and_no_commit_of_the_branch_is_refused(graph, backstage):
    feature = graph.branches.create("feature")
    elsewhere = backstage.publish("feature").graph_commit_id
    assert len(feature.log(since=elsewhere, reverse=True)) == 1
    for bound in (elsewhere, "yesterday", "", "2030-02-30"):
        for call in ({"since": bound}, {"until": bound}):
            with pytest.raises(InputError, match="neither a time nor a commit of this branch"):
                graph.log(**call, reverse=True)


def test_a_commit_as_json_names_types_and_branches_as_people_do(graph, backstage):
    graph.branches.create("review/7")
    person = graph._snapshot().entry(PERSON).table_id
    made = backstage.publish(
        "review/7", actor_id="ada", message="Grüße", counts={person: Counts(updated=3)}
    )
    assert graph.commit(made.graph_commit_id).to_json() == {
        "graph_commit_id": made.graph_commit_id,
        "manifest_branch": "review/7",
        "manifest_version": 2,
        "parent_commit_id": graph.head("main").id,
        "merged_parent_commit_id": None,
        "actor_id": "ada",
        "created_at": made.draft.created_at,
        "operation": "mutate",
        "message": "Grüße",
        "counts": {PERSON: {"inserted": 0, "updated": 3, "deleted": 0}},
    }
    assert graph.log(reverse=True)[0].to_json()["manifest_branch"] is None


def test_a_receipt_is_rebuilt_from_its_commit(graph, backstage):
    person = graph._snapshot().entry(PERSON).table_id
    draft = backstage.draft(
        actor_id="ada",
        counts={person: Counts(inserted=1)},
        warnings=(Warning("index_pending", "later"),),
    )
    made = publish(backstage.manifest, None, Publication(draft))
    assert receipt_of_commit(graph, made.graph_commit_id).to_json() == {
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
    for call in (graph.log, graph.head, graph._snapshot):
        with pytest.raises(BranchNotFound):
            call("nope")
