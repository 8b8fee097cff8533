"""Optimize: the same rows in fewer fragments, and indexes that cover them all."""

from __future__ import annotations

import base64
import json

import lance
import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.commit import background, tables
from omnigraph.errors import RecoveryPending, StorageError, TableDrift
from omnigraph.storage.indexes import uncovered_fragments
from omnigraph.versioning import manifest_compaction
from omnigraph.versioning.rows import MANIFEST_PATH
from tests.behaviour.graphs import PERSON, SCHEMA
from tests.support.faults import Fail, FailStorage, InjectedFault, armed
from tests.support.receipts import receipt_of_commit


@pytest.fixture(autouse=True)
def _indexes_from_the_first_row(monkeypatch):
    """A graph without background compaction, which would leave nothing to do."""
    monkeypatch.setattr(tables, "INDEX_MIN_ROWS", 1)
    monkeypatch.setattr(background, "MAX_SMALL_FRAGMENTS", 10**6)


@pytest.fixture
def graph(local_uri: str) -> Graph:
    graph = init(local_uri, SCHEMA)
    for number in range(5):
        graph.load(person(f"p{number}", number), "merge")
    graph.mutate('query q() { delete Person where name = "p0" }')
    return graph


def person(name: str, age: int) -> bytes:
    return json.dumps({"type": "Person", "data": {"name": name, "age": age}}).encode()


def people(graph: Graph, at: str | None = None) -> list[tuple[object, ...]]:
    query = "query q() { match { $p: Person } return { $p.name, $p.age } order { $p.name } }"
    return [tuple(row.values()) for row in graph.query(query, at=at).to_dicts()]


def table(graph: Graph, key: str = PERSON):
    return graph._snapshot().open(graph._core.tables, key)


@pytest.mark.acceptance("S-124", "S-123")
def test_rows_stay_the_same_in_fewer_indexed_fragments(graph):
    before, rows = graph.head().id, people(graph)
    assert uncovered_fragments(table(graph), "id")
    report = graph.as_actor("ada").maintenance.optimize()
    by_key = {t.table_key: t for t in report.tables}
    assert by_key[PERSON].committed
    assert by_key[PERSON].fragments_removed > by_key[PERSON].fragments_added == 1
    assert not by_key["node:Company"].committed
    assert len(table(graph).fragments()) == 1
    assert uncovered_fragments(table(graph), "id") == frozenset()
    assert people(graph) == people(graph, at=before) == rows
    commit = graph.commit(graph.head().id)
    assert (commit.operation, commit.actor) == ("optimize", "ada")
    assert report.receipt.graph_commit_id == commit.id
    graph.mutate('query q() { update Person set { age: 9 } where name = "p1" }')
    graph.schema.apply(SCHEMA.replace("age: I32?", "age: I32?  nick: String?"))


def test_a_second_run_finds_nothing_to_do(graph):
    graph.maintenance.optimize()
    head = graph.head().id
    report = graph.maintenance.optimize()
    assert report.receipt.graph_commit_id is None
    assert not any(t.committed for t in report.tables)
    assert graph.head().id == head


def test_only_main_is_optimized(graph):
    branch = graph.branches.create("feature")
    for number in range(3):
        branch.load(person(f"q{number}", number), "merge")
    entry = branch._snapshot().entry(PERSON)
    branch.maintenance.optimize()
    assert branch._snapshot("feature").entry(PERSON) == entry
    assert len(people(graph)) == 4


@pytest.mark.acceptance("S-126")
def test_a_table_that_moved_by_itself_is_left_alone_until_it_is_repaired(graph):
    entry = graph._snapshot().entry(PERSON)
    lance.dataset(f"{graph.uri}/{entry.location}").optimize.compact_files()
    with pytest.raises(TableDrift, match="repair"):
        graph.load(person("eve", 1), "merge")
    report = {t.table_key: t for t in graph.maintenance.optimize().tables}
    assert report[PERSON].skipped == "drift_needs_repair"
    assert report[PERSON].published == entry.version < report[PERSON].found
    graph.maintenance.repair()
    assert graph._snapshot().entry(PERSON) == entry
    repaired = graph.maintenance.repair(confirm=True).commit
    assert repaired is not None
    assert repaired.actor == "omnigraph:repair"
    assert graph.maintenance.optimize().tables[-1].skipped is None


@pytest.mark.acceptance("S-147")
def test_every_write_returns_the_receipt_that_its_commit_tells_of(graph):
    feature = graph.branches.create("feature")
    receipts = [
        feature.load(person("fay", 1), "merge").receipt,
        graph.mutate('query q() { update Person set { age: 8 } where name = "p1" }').receipt,
        graph.merge("feature").receipt,
    ]
    graph.branches.delete("feature")
    receipts += [graph.maintenance.optimize().receipt]
    text = SCHEMA.replace("age: I32?", "age: I32?  nick: String?")
    receipts += [graph.as_actor("ada").schema.apply(text).receipt]
    operations = ["load", "mutate", "merge", "optimize", "schema_apply"]
    assert [receipt.operation.value for receipt in receipts] == operations
    for receipt in receipts[1:]:
        assert receipt.graph_commit_id is not None
        assert receipt_of_commit(graph, receipt.graph_commit_id) == receipt
    assert receipts[-1].graph_commit_id == graph.head().id
    assert receipts[-1].manifest_version == graph._snapshot().version
    changed = [{key: c.to_json() for key, c in receipt.counts.items()} for receipt in receipts]
    one = {PERSON: {"inserted": 1, "updated": 0, "deleted": 0}}
    assert changed == [one, {PERSON: {"inserted": 0, "updated": 1, "deleted": 0}}, one, {}, {}]
    nothing = graph.mutate('query q() { delete Person where name = "nobody" }').receipt
    assert (nothing.graph_commit_id, nothing.parent_commit_id) == (None, graph.head().id)


def test_an_interrupted_write_comes_first(graph):
    with armed("mutation.post_table_commit", Fail()), pytest.raises(InjectedFault):
        graph.load(person("eve", 1), "merge")
    with pytest.raises(RecoveryPending, match="requires a clean recovery state"):
        graph.maintenance.optimize()
    open_graph(graph.uri).maintenance.optimize()


def test_an_error_in_one_table_keeps_no_other_back(graph):
    for number in range(3):
        graph.load(
            json.dumps({"type": "Company", "data": {"name": f"c{number}"}}).encode(), "merge"
        )
    with (
        armed("optimize.pre_table_fold", FailStorage(), times=1),
        pytest.raises(StorageError, match="injected failure"),
    ):
        graph.maintenance.optimize()
    assert graph._core.recovery.status().pending == ()
    fragments = [len(table(graph, key).fragments()) for key in ("node:Company", PERSON)]
    assert fragments == [3, 1]
    report = {t.table_key: t.committed for t in graph.maintenance.optimize().tables if t.committed}
    assert report == {"node:Company": True}


def test_an_error_before_the_publish_takes_everything_back(graph):
    rows = people(graph)
    with (
        armed("optimize.post_phase_b_pre_manifest_commit", FailStorage()),
        pytest.raises(StorageError, match="injected failure"),
    ):
        graph.maintenance.optimize()
    assert graph._core.recovery.status().pending == ()
    assert people(graph) == rows
    assert graph.maintenance.optimize().receipt.graph_commit_id is not None


def test_a_crash_before_the_publish_is_completed_by_the_next_open(graph):
    rows = people(graph)
    with (
        armed("optimize.post_phase_b_pre_manifest_commit", Fail()),
        pytest.raises(InjectedFault),
    ):
        graph.maintenance.optimize()
    again = open_graph(graph.uri)
    assert people(again) == rows
    assert [r.audit.kind.value for r in again.maintenance.recoveries()] == ["RolledForward"]
    assert again.maintenance.optimize().receipt.graph_commit_id is None


@pytest.mark.acceptance("S-183")
def test_tables_with_blobs_are_optimized_too(local_uri):
    graph = init(local_uri, "node File { name: String @key  data: Blob? }\n")
    for number in range(3):
        data = "base64:" + base64.b64encode(bytes([number]) * 1000).decode()
        graph.load(
            json.dumps({"type": "File", "data": {"name": f"f{number}", "data": data}}).encode(),
            "merge",
        )
    before = [graph.at("main").get("File", f"f{n}") for n in range(3)]
    [report] = graph.maintenance.optimize().tables
    assert (report.committed, report.skipped, report.fragments_added) == (True, None, 1)
    assert [graph.at("main").get("File", f"f{n}") for n in range(3)] == before
    assert before[1] is not None
    assert before[1]["data"] is not None


@pytest.mark.slow
@pytest.mark.acceptance("S-185")
def test_a_thousand_commits_become_a_manifest_of_few_fragments(graph):
    for number in range(1000):
        graph.load(person("p1", number), "merge")
    commits = [c.id for c in graph.log(reverse=True)]
    snapshot = graph._snapshot()
    graph.maintenance.optimize()
    assert len(graph._core.tables.open(MANIFEST_PATH).fragments()) <= 3
    fresh = open_graph(graph.uri)
    found = [c.id for c in fresh.log(reverse=True)]
    assert found[: len(commits)] == commits
    assert [c.operation for c in fresh.log(reverse=True)[len(commits) :]] in ([], ["optimize"])
    assert fresh.at(commits[-1])._snapshot.entries == snapshot.entries


@pytest.mark.acceptance("S-185", partly="with fewer commits")
def test_the_manifest_is_compacted_and_history_stays(graph, monkeypatch):
    monkeypatch.setattr(manifest_compaction, "MANIFEST_SMALL_FRAGMENTS", 1000)
    for number in range(40):
        graph.load(person("p1", number), "merge")
    commits = [c.id for c in graph.log(reverse=True)]
    assert len(graph._core.tables.open(MANIFEST_PATH).fragments()) > 30
    graph.maintenance.optimize()
    assert len(graph._core.tables.open(MANIFEST_PATH).fragments()) <= 2
    fresh = open_graph(graph.uri)
    assert [c.id for c in fresh.log(reverse=True)][: len(commits)] == commits
    assert fresh._snapshot().version == len(commits) + 1
