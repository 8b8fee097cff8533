"""Folding: small writes do not leave a table in more and more pieces."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from omnigraph.engine.graph import Graph
from omnigraph.engine.graph import open as open_graph
from omnigraph.engine.write import fold as folding
from omnigraph.errors import HeadMoved
from omnigraph.testing.faults import Fail, FailStorage, Pause, armed
from tests.behaviour.graphs import PERSON, Backstage

FEW = 6
"""Pieces a table may have in these tests, so that a dozen writes are enough."""


@pytest.fixture(autouse=True)
def _fold_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "FOLD_FRAGMENTS", FEW)


def person(name: str, age: int) -> str:
    return json.dumps({"type": "Person", "data": {"name": name, "age": age}})


def write(graph: Graph, count: int, branch: str = "main", start: int = 0) -> None:
    for number in range(start, start + count):
        graph.load(person(f"p{number % 9}", number), branch=branch, actor="ada")


def pieces(backstage: Backstage, graph: Graph, branch: str = "main") -> int:
    entry = graph.snapshot(branch).entry(PERSON)
    return len(backstage.tables.open(entry.location, entry.branch, entry.version).fragments())


def ages(backstage: Backstage, graph: Graph, branch: str = "main") -> dict[str, int]:
    entry = graph.snapshot(branch).entry(PERSON)
    rows = backstage.tables.open(entry.location, entry.branch, entry.version).read(["id", "age"])
    return dict(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def operations(graph: Graph, branch: str = "main") -> list[tuple[str, str | None]]:
    return [(c.draft.operation.value, c.draft.actor_id) for c in graph.commits(branch)]


@pytest.mark.acceptance("S-189", partly="the time it takes is measured by benchmarks/writes.py")
@pytest.mark.parametrize("branch", ["main", "feature"])
def test_a_table_stays_in_few_pieces_on_every_branch(graph, backstage, branch):
    if branch != "main":
        write(graph, 2)
        graph.create_branch(branch)
    write(graph, 30, branch)
    assert pieces(backstage, graph, branch) <= FEW + 1
    assert ages(backstage, graph, branch) == {f"p{n % 9}": n for n in range(21, 30)}
    assert ("optimize", None) in operations(graph, branch)
    assert graph.recovery_status().pending == ()


def test_a_fold_is_a_commit_of_its_own_and_the_receipt_is_that_of_the_write(graph):
    write(graph, FEW)
    result = graph.load(person("zoe", 1))
    head = graph.commit(graph.head())
    assert head.draft.operation.value == "optimize"
    assert head.draft.counts == {}
    assert head.parent_commit_id == result.receipt.graph_commit_id
    assert result.receipt.counts[PERSON].inserted == 1


def test_who_expects_the_commit_it_was_told_of_is_not_refused_for_a_fold(graph, backstage):
    head = graph.head()
    for number in range(3 * FEW):
        receipt = graph.load(person("zoe", number), expected_head=head).receipt
        head = receipt.graph_commit_id
    assert pieces(backstage, graph) <= FEW + 1
    assert ages(backstage, graph)["zoe"] == 3 * FEW - 1
    graph.load(person("zoe", 0))
    with pytest.raises(HeadMoved, match=f"expected {head}"):
        graph.load(person("zoe", 1), expected_head=head)


def test_row_ids_and_older_versions_survive_a_fold(graph, backstage):
    write(graph, FEW)
    before = graph.snapshot()
    rows = before.open(backstage.tables, PERSON).read(["id"], with_row_ids=True)
    graph.load(person("zoe", 1))
    after = graph.snapshot().open(backstage.tables, PERSON).read(["id"], with_row_ids=True)
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
def test_a_fold_that_fails_does_not_touch_the_write_before_it(graph, backstage, point, action):
    write(graph, FEW)
    with armed(point, action, times=1) as record:
        result = graph.load(person("zoe", 1))
    assert record.count() == 1
    assert result.receipt.graph_commit_id in [c.graph_commit_id for c in graph.commits()]
    assert ages(backstage, graph)["zoe"] == 1
    write(graph, 3, start=50)
    assert graph.recovery_status().pending == ()
    assert ages(backstage, open_graph(graph.uri))["p5"] == 50
    assert pieces(backstage, graph) <= FEW + 3


@pytest.mark.acceptance("S-189", partly="the time it takes is measured by benchmarks/writes.py")
def test_no_fold_while_another_writer_is_at_work(graph, backstage):
    write(graph, FEW)
    before = operations(graph)
    done = threading.Event()

    def be_busy() -> None:
        with backstage.locks.hold(None, "something long"):
            done.wait()

    pause = Pause()
    busy = threading.Thread(target=be_busy)
    with armed("mutation.post_table_commit", pause, times=1), ThreadPoolExecutor(1) as pool:
        written = pool.submit(graph.load, person("zoe", 1))
        pause.wait_until_reached()
        # It queues behind the write, and so comes before the fold.
        busy.start()
        time.sleep(0.2)
        pause.release()
        written.result(timeout=30)
    assert operations(graph) == [*before, ("load", None)]
    done.set()
    busy.join()
    graph.load(person("zoe", 2))
    assert operations(graph)[-1] == ("optimize", None)
