"""BackgroundCompactor: small writes do not leave a table in more and more fragments."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from omnigraph.api.graph import Graph
from omnigraph.api.graph import open as open_graph
from omnigraph.api.maintenance import Maintenance
from omnigraph.commit import background
from omnigraph.commit.writer import WriteRequest
from omnigraph.errors import HeadMoved
from omnigraph.limits import MANIFEST_OVERDUE
from omnigraph.versioning import manifest_compaction
from omnigraph.versioning.rows import MANIFEST_PATH
from omnigraph.versioning.snapshot import Snapshot
from tests.behaviour.graphs import PERSON, Backstage
from tests.support.faults import Fail, FailStorage, Pause, armed

FEW = 6
"""Pieces a table may have in these tests, so that a dozen writes are enough."""


@pytest.fixture(autouse=True)
def _compact_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "MAX_SMALL_FRAGMENTS", FEW)


def person(name: str, age: int) -> bytes:
    return json.dumps({"type": "Person", "data": {"name": name, "age": age}}).encode()


def write(graph: Graph, count: int, branch: str = "main", start: int = 0) -> None:
    for number in range(start, start + count):
        graph.as_actor("ada").load(person(f"p{number % 9}", number), "merge", branch=branch)
        graph.maintenance.wait()


def fragments(backstage: Backstage, graph: Graph, branch: str = "main") -> int:
    entry = graph._snapshot(branch).entry(PERSON)
    return len(backstage.tables.open(entry.location, entry.branch, entry.version).fragments())


def ages(backstage: Backstage, graph: Graph, branch: str = "main") -> dict[str, int]:
    entry = graph._snapshot(branch).entry(PERSON)
    rows = backstage.tables.open(entry.location, entry.branch, entry.version).read(["id", "age"])
    return dict(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def operations(graph: Graph, branch: str = "main") -> list[tuple[str, str | None]]:
    return [(c.operation, c.actor) for c in graph.log(branch, reverse=True)]


@pytest.mark.acceptance("S-189", partly="the time it takes is measured by benchmarks/writes.py")
@pytest.mark.parametrize("branch", ["main", "feature"])
def test_a_table_keeps_few_fragments_on_every_branch(graph, backstage, branch):
    if branch != "main":
        write(graph, 2)
        graph.branches.create(branch)
    write(graph, 30, branch)
    assert fragments(backstage, graph, branch) <= FEW + 1
    assert ages(backstage, graph, branch) == {f"p{n % 9}": n for n in range(21, 30)}
    assert ("optimize", None) in operations(graph, branch)
    assert graph._core.recovery.status().pending == ()


def test_a_compaction_is_a_commit_of_its_own_and_the_receipt_is_that_of_the_write(graph):
    write(graph, FEW)
    result = graph.load(person("zoe", 1), "merge")
    graph.maintenance.wait()
    head = graph.commit(graph.head().id)
    assert head.operation == "optimize"
    assert head.counts == {}
    assert head.parents == (result.commit_id,) == (result.receipt.graph_commit_id,)
    assert result.receipt.counts[PERSON].inserted == 1


def test_a_caller_that_expects_its_own_commit_is_not_refused_for_a_compaction(graph, backstage):
    head = graph.head().id
    for number in range(3 * FEW):
        receipt = graph.load(person("zoe", number), "merge", expected_head=head).receipt
        head = receipt.graph_commit_id
        graph.maintenance.wait()
    assert fragments(backstage, graph) <= FEW + 1
    assert ages(backstage, graph)["zoe"] == 3 * FEW - 1
    graph.load(person("zoe", 0), "merge")
    with pytest.raises(HeadMoved, match=f"expected {head}"):
        graph.load(person("zoe", 1), "merge", expected_head=head)


def test_row_ids_and_older_versions_survive_a_compaction(graph, backstage):
    write(graph, FEW)
    before = graph._snapshot()
    rows = before.open(backstage.tables, PERSON).read(["id"], with_row_ids=True)
    graph.load(person("zoe", 1), "merge")
    graph.maintenance.wait()
    after = graph._snapshot().open(backstage.tables, PERSON).read(["id"], with_row_ids=True)
    assert {tuple(r.values()) for r in rows.to_pylist()} < {
        tuple(r.values()) for r in after.to_pylist()
    }
    assert before.open(backstage.tables, PERSON).row_count() == rows.num_rows


@pytest.mark.parametrize("action", [Fail(), FailStorage()])
@pytest.mark.parametrize(
    "point",
    [
        "optimize.pre_table_fold",
        "optimize.post_table_fold",
        "optimize.post_phase_b_pre_manifest_commit",
    ],
)
def test_a_compaction_that_fails_does_not_touch_the_write_before_it(
    graph, backstage, point, action
):
    write(graph, FEW)
    with armed(point, action, times=1) as record:
        result = graph.load(person("zoe", 1), "merge")
        graph.maintenance.wait()
    assert record.count() == 1
    assert result.receipt.graph_commit_id in [c.id for c in graph.log(reverse=True)]
    assert ages(backstage, graph)["zoe"] == 1
    write(graph, 3, start=50)
    assert graph._core.recovery.status().pending == ()
    assert ages(backstage, open_graph(graph.uri))["p5"] == 50
    assert fragments(backstage, graph) <= FEW + 3


@pytest.mark.acceptance("S-189", partly="the time it takes is measured by benchmarks/writes.py")
def test_no_compaction_while_another_writer_is_at_work(graph, backstage):
    write(graph, FEW)
    before = operations(graph)
    done = threading.Event()

    def be_busy() -> None:
        with backstage.locks.hold(None, "something long"):
            done.wait()

    pause = Pause()
    busy = threading.Thread(target=be_busy)
    with armed("mutation.post_table_commit", pause, times=1), ThreadPoolExecutor(1) as pool:
        written = pool.submit(graph.load, person("zoe", 1), "merge")
        pause.wait_until_reached()
        # It queues behind the write, and so comes before the compaction.
        busy.start()
        time.sleep(0.2)
        pause.release()
        written.result(timeout=30)
        graph.maintenance.wait()
    assert operations(graph) == [*before, ("load", None)]
    done.set()
    busy.join()
    graph.load(person("zoe", 2), "merge")
    graph.maintenance.wait()
    assert operations(graph)[-1] == ("optimize", None)


# -- beside those who go on working -----------------------------------------------------------


@contextmanager
def a_compaction_under_way(graph: Graph) -> Iterator[Pause]:
    """A write is acknowledged, and the compaction it made due has begun and does not get on."""
    pause = Pause()
    with armed("optimize.post_table_fold", pause, times=1):
        try:
            graph.load(person("zoe", 1), "merge")
            pause.wait_until_reached()
            yield pause
        finally:
            pause.release()
            graph.maintenance.wait()


def test_a_write_is_acknowledged_and_can_be_read_before_the_compaction_it_made_due(
    graph, backstage
):
    write(graph, FEW)
    with a_compaction_under_way(graph):
        assert operations(graph)[-1] == ("load", None)
        assert ages(backstage, graph)["zoe"] == 1
        assert ages(backstage, open_graph(graph.uri, read_only=True))["zoe"] == 1
    assert operations(graph)[-1] == ("optimize", None)


def test_a_write_that_comes_during_a_compaction_waits_for_it(graph, backstage):
    write(graph, FEW)
    with a_compaction_under_way(graph) as pause, ThreadPoolExecutor(1) as pool:
        later = pool.submit(graph.load, person("yan", 2), "merge")
        time.sleep(0.1)
        assert not later.done()
        pause.release()
        later.result(timeout=30)
    assert operations(graph)[-2:] == [("optimize", None), ("load", None)]
    assert ages(backstage, graph)["yan"] == 2


CHANGES = """
query change($name: String, $age: I32) { update Person set { age: $age } where name = $name }
query remove($name: String) { delete Person where name = $name }
"""


@pytest.mark.parametrize(("does", "left"), [("change", 77), ("remove", None)])
def test_rows_that_were_chosen_before_a_compaction_are_changed_after_it(
    graph, backstage, does, left
):
    write(graph, FEW)
    arguments = {"name": "p3"} | ({"age": 77} if does == "change" else {})
    with a_compaction_under_way(graph) as pause, ThreadPoolExecutor(1) as pool:
        later = pool.submit(graph.mutate, CHANGES, arguments, name=does)
        time.sleep(0.1)
        pause.release()
        result = later.result(timeout=30)
    assert result.affected_nodes == 1
    assert ages(backstage, graph).get("p3") == left


def test_a_write_that_was_prepared_before_a_compaction_is_not_prepared_again(graph, monkeypatch):
    write(graph, FEW)
    prepared_again: list[WriteRequest] = []
    prepared_on = WriteRequest.prepared_on

    def note(request: WriteRequest, current: Snapshot) -> WriteRequest:
        prepared_again.append(request)
        return prepared_on(request, current)

    monkeypatch.setattr(WriteRequest, "prepared_on", note)
    with a_compaction_under_way(graph) as pause, ThreadPoolExecutor(1) as pool:
        later = pool.submit(graph.insert, "Person", [{"name": "later", "age": 7}])
        time.sleep(0.3)
        pause.release()
        later.result(timeout=30)
    assert prepared_again == []
    assert graph.get("Person", "later") == {"id": "later", "name": "later", "age": 7}
    assert operations(graph)[-2:] == [("optimize", None), ("load", None)]


@pytest.mark.parametrize("keep_up", [Maintenance.optimize, Maintenance.ensure_indexes])
def test_maintenance_by_others_is_no_reason_to_refuse_a_change(graph, backstage, keep_up):
    write(graph, 3)
    other = open_graph(graph.uri)
    keep_up(other.maintenance)
    assert other.head().id != graph.log(operation="load", reverse=True)[-1].id
    graph.mutate(CHANGES, {"name": "p1", "age": 77}, name="change")
    assert ages(backstage, graph)["p1"] == 77


def test_a_branch_made_again_is_not_taken_for_the_one_it_replaces(graph, backstage):
    write(graph, 2)
    graph.branches.create("feature")
    graph.load(person("p0", 40), "merge", branch="feature")
    handle = open_graph(graph.uri, branch="feature")
    handle.maintenance.recover()
    graph.branches.delete("feature")
    # As many commits as the old branch had, and none of them about persons.
    graph.load(b'{"type": "Company", "data": {"name": "acme"}}', "merge")
    graph.branches.create("feature")
    handle.mutate(CHANGES, {"name": "p1", "age": 77}, name="change")
    found = handle.query(
        "query q() { match { $p: Person } return { $p.name, $p.age } order { $p.name } }"
    )
    assert [tuple(row.values()) for row in found.to_dicts()] == [("p0", 0), ("p1", 77)]


def test_a_branch_that_is_deleted_before_its_compaction_is_no_trouble(graph, caplog, monkeypatch):
    graph.branches.create("feature")
    write(graph, FEW, "feature")
    deleted, compact_if_free = threading.Event(), background.BackgroundCompactor._compact_if_free
    compacted = []

    def compact_late(self: background.BackgroundCompactor, due: background._Due) -> None:
        deleted.wait()
        compact_if_free(self, due)
        compacted.append(due.branch.public)

    monkeypatch.setattr(background.BackgroundCompactor, "_compact_if_free", compact_late)
    graph.load(person("zoe", 1), "merge", branch="feature")
    graph.branches.delete("feature")
    deleted.set()
    graph.maintenance.wait()
    assert compacted == ["feature"]
    assert list(graph.branches) == ["main"]
    assert caplog.records == []


def test_the_manifest_is_compacted_in_the_background(graph, backstage, monkeypatch):
    monkeypatch.setattr(manifest_compaction, "MANIFEST_SMALL_FRAGMENTS", FEW)
    most = 0
    for number in range(4 * FEW):
        graph.load(person(f"p{number}", number), "merge")
        graph.maintenance.wait()
        most = max(most, len(backstage.tables.open(MANIFEST_PATH).fragments()))
    assert most <= FEW + 2
    assert [commit.number for commit in graph.log(reverse=True)] == [
        *range(1, graph._snapshot().version + 1)
    ]


def test_a_manifest_without_background_compaction_is_compacted_by_the_publish(
    graph, backstage, monkeypatch
):
    monkeypatch.setattr(manifest_compaction, "MANIFEST_SMALL_FRAGMENTS", 2)
    monkeypatch.setattr(background, "is_manifest_due", lambda *_: False)
    for number in range(20):
        graph.load(person("zoe", number), "merge")
        assert len(backstage.tables.open(MANIFEST_PATH).fragments()) <= 2 * MANIFEST_OVERDUE + 2


def test_a_thread_that_cannot_be_started_costs_nothing_but_the_compaction(
    graph, backstage, monkeypatch
):
    write(graph, FEW)

    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        graph.load(person("zoe", 1), "merge")
    assert ages(backstage, graph)["zoe"] == 1
    assert operations(graph)[-1] == ("load", None)
    write(graph, 1)
    assert operations(graph)[-1] == ("optimize", None)


def test_what_waits_to_be_compacted_is_not_forgotten_for_what_comes_later(graph, backstage):
    company = '{{"type": "Company", "data": {{"name": "c{}"}}}}'
    write(graph, FEW)
    for number in range(FEW):
        graph.load(company.format(number).encode(), "merge")
    graph.branches.create("other")
    write(graph, FEW, "other")
    pause = Pause()
    with armed("optimize.post_table_fold", pause, times=1):
        graph.load(person("zoe", 1), "merge", branch="other")
        pause.wait_until_reached()
        # Both come while the thread is at work on the other branch.
        graph.load(person("zoe", 1), "merge")
        graph.load(company.format("zoe").encode(), "merge")
        pause.release()
        graph.maintenance.wait()
    assert fragments(backstage, graph) <= 2
    entry = graph._snapshot().entry("node:Company")
    assert len(backstage.tables.open(entry.location).fragments()) <= 2
