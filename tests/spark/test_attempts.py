"""Tasks that run twice, as with speculation: no row is doubled or lost, and what is left over goes."""

from __future__ import annotations

import json
import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from lance.fragment import write_fragments

from omnigraph.api.graph import Graph, init
from omnigraph.commit import background
from omnigraph.errors import StoreCallFailed
from omnigraph.load import spark_load
from omnigraph.spark.tasks import Exchanged
from omnigraph.storage import stage
from tests.spark.graphs import SCHEMA, comparable, data_files, exported, town
from tests.spark.in_process import patched, run_exchange, run_tasks, tasks_in_this_process

WEEK = 7 * 86_400


def run_exchange_twice(*arguments: Any) -> Exchanged[Any, Any]:
    """Both attempts do all their work; of every second task the later one is accepted."""
    first, second = run_exchange(*arguments), run_exchange(*arguments)
    pairs = zip(first.answers, second.answers, strict=True)
    taken = [pair[number % 2] for number, pair in enumerate(pairs)]
    return Exchanged(taken, first.reduced)


def run_tasks_twice(*arguments: Any) -> list[Any]:
    first, second = run_tasks(*arguments), run_tasks(*arguments)
    return [pair[number % 2] for number, pair in enumerate(zip(first, second, strict=True))]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory) -> tuple[Graph, Graph]:
    """Graphs loaded in all modes by one process, and by tasks that all ran twice."""
    folder = tmp_path_factory.mktemp("attempts")
    once, twice = (init(str(folder / name), SCHEMA) for name in ("once", "twice"))
    for mode in ("append", "merge", "overwrite"):
        expected = once.load(town(60).encode(), mode, load_id=mode, engine="inline")
        with (
            tasks_in_this_process(3_000),
            patched(
                (spark_load, "run_exchange", run_exchange_twice),
                (spark_load, "run_tasks", run_tasks_twice),
            ),
        ):
            result = twice.load(town(60).encode(), mode, load_id=mode, engine="spark")
        assert comparable(result) == comparable(expected)
    return once, twice


def named_files(graph: Graph) -> set[str]:
    """The data files that the newest state is made of."""
    snapshot = graph._snapshot()
    return {
        name for key in snapshot.entries for name in snapshot.open(graph._core.tables, key).files()
    }


def left_over(graph: Graph, before: set[str]) -> set[str]:
    return {path for path in before if Path(path).name not in named_files(graph)}


def test_of_two_attempts_one_counts(loaded):
    once, twice = loaded
    assert exported(twice) == exported(once)
    assert sum(entry.row_count for entry in twice._snapshot().entries.values()) == 182


def test_files_of_the_other_attempt_are_listed_and_removed_when_they_are_old(loaded):
    _, graph = loaded
    before = exported(graph)
    files = data_files(graph.uri)
    policy: dict[str, Any] = {"keep_versions": 1, "min_age": timedelta()}
    graph.maintenance.cleanup(**policy)
    young = data_files(graph.uri)
    unnamed = left_over(graph, young)
    assert len(unnamed) > 10, "a load at work may need files that no version names yet"
    past = time.time() - WEEK - 60
    for path in unnamed:
        os.utime(path, (past, past))
    shown = graph.maintenance.cleanup(**policy, dry_run=True)
    assert shown.removed.bytes >= sum(os.path.getsize(path) for path in unnamed)
    assert data_files(graph.uri) == young
    graph.maintenance.cleanup(**policy)
    assert left_over(graph, data_files(graph.uri)) == set()
    assert exported(graph) == before
    assert files >= young


def test_a_load_prepared_twice_keeps_its_files_when_a_compaction_follows_it(tmp_path, monkeypatch):
    graph = init(str(tmp_path / "graph"), "node Person { name: String @key }")
    for name in "abc":
        graph.load(_person(name).encode(), "append", engine="inline")
    prepared = spark_load.SparkLoad.stage
    attempts: list[Any] = []

    def prepare_slowly(load: spark_load.SparkLoad, against: Any) -> Any:
        found = prepared(load, against)
        if not attempts:
            graph.load(_person("late").encode(), "append", engine="inline")
        attempts.append(found)
        return found

    monkeypatch.setattr(spark_load.SparkLoad, "stage", prepare_slowly)
    monkeypatch.setattr(background, "MAX_SMALL_FRAGMENTS", 1)
    with tasks_in_this_process(2**20):
        rows = "\n".join(map(_person, ["x", "y"]))
        commit = graph.load(rows.encode(), "merge", engine="spark").receipt.graph_commit_id
    graph.maintenance.wait()
    assert len(attempts) == 2
    assert commit is not None
    assert graph.head().id != commit
    rows_then = graph.at(commit)._snapshot.open(graph._core.tables, "node:Person").read(["id"])
    assert sorted(rows_then.column("id").to_pylist()) == ["a", "b", "c", "late", "x", "y"]


def _person(name: str) -> str:
    return json.dumps({"type": "Person", "data": {"name": name}})


def test_a_disk_that_is_full_for_some_task_is_told_and_the_next_load_works(tmp_path):
    graph = init(str(tmp_path / "graph"), SCHEMA)
    head, written = graph._snapshot().commit_id, iter(range(100))

    def until_full(*arguments: Any, **options: Any) -> Any:
        if next(written) == 2:
            raise OSError(28, "No space left on device")
        return write_fragments(*arguments, **options)

    with (
        tasks_in_this_process(3_000),
        patched((stage, "write_fragments", until_full)),
        pytest.raises(StoreCallFailed, match="No space left on device"),
    ):
        graph.load(town(60).encode(), "append", engine="spark")
    assert (graph._snapshot().commit_id, exported(graph)) == (head, "")
    assert data_files(graph.uri) == set()
    with tasks_in_this_process(3_000):
        assert graph.load(town(60).encode(), "append", engine="spark").engine == "spark"
