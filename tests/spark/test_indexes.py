"""Look-up indexes of a load on Spark: tasks build them after the commit, in parts, and join the parts."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.commit import background, writer
from omnigraph.errors import StoreCallFailed
from omnigraph.load import spark_indexes, spark_load
from omnigraph.storage.indexes import list_indexes
from tests.spark.graphs import SCHEMA, exported, person, town
from tests.spark.in_process import patched, tasks_in_this_process
from tests.support.faults import Fail, InjectedFault, armed

COLUMNS = {
    "node:Person": ["id"],
    "edge:Knows": ["dst", "id", "src"],
    "edge:LivesIn": ["dst", "id", "src"],
}


@contextmanager
def small_indexes() -> Iterator[None]:
    """Tables of 1,000 rows are large, and tasks index a few hundred rows."""
    with patched((writer, "INDEXED_UNDER_LOCK_ROWS", 999), (spark_indexes, "INDEX_PART_ROWS", 300)):
        yield


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return init(str(tmp_path / "graph"), SCHEMA)


def covered(graph: Graph, branch: str = "main") -> dict[str, list[str]]:
    """The columns whose index covers all rows, with one part, by table."""
    snapshot, found = graph._snapshot(branch), {}
    for key in snapshot.entries:
        table = snapshot.open(graph._core.tables, key)
        current = {fragment.id for fragment in table.fragments()}
        whole = [i for i in list_indexes(table) if i.parts == (frozenset(current),)]
        if whole:
            found[key] = sorted(column for index in whole for column in index.columns)
    return found


def email(graph: Graph) -> object:
    """What a look-up by key finds."""
    found = graph.get("Person", "p7")
    assert found is not None
    return found["email"]


def index_folders(graph: Graph) -> int:
    folders = (f for f in Path(graph.uri).rglob("_indices/*") if "__manifest" not in str(f))
    return sum(bool(os.listdir(folder)) for folder in folders)


def load(graph: Graph, count: int = 1200, mode: str = "append") -> Any:
    with tasks_in_this_process(20_000), small_indexes():
        return graph.load(town(count).encode(), mode, load_id=f"town-{count}", engine="spark")


def test_tasks_build_indexes_after_the_commit(graph, tmp_path):
    result = load(graph)
    assert covered(graph) == COLUMNS
    assert index_folders(graph) == 7, "parts are removed when they are joined"
    later = graph.head()
    assert later.operation == "optimize"
    assert later.parents == (result.receipt.graph_commit_id,)
    other = init(str(tmp_path / "other"), SCHEMA)
    other.load(town(1200).encode(), "append", load_id="town-1200", engine="inline")
    assert exported(graph) == exported(other)
    # The caller knows of the load alone, and still builds on what it has seen.
    graph.load(person("late").encode(), "append", expected_head=result.receipt.graph_commit_id)
    assert email(graph) == "p7@example.org"


def test_the_seconds_of_the_lock_contain_those_of_the_commit_of_indexes(graph):
    held: list[float] = []
    commit = spark_indexes.SparkIndexing._commit

    def observed(self, *arguments):
        before = self.lock_time.seconds
        added = commit(self, *arguments)
        held.append(self.lock_time.seconds - before)
        return added

    with patched((spark_indexes.SparkIndexing, "_commit", observed)):
        result = load(graph)
    assert 0 < held[0] < result.lock_seconds


def test_small_tables_are_indexed_with_the_load(graph):
    with tasks_in_this_process(20_000):
        graph.load(town(1200).encode(), "append", engine="spark")
    assert covered(graph) == COLUMNS
    assert graph.head().operation == "load"


def test_a_load_that_adds_to_an_indexed_table_builds_nothing(graph):
    load(graph)
    before = index_folders(graph)
    result = load(graph, 1500, "merge")
    assert graph.head().id == result.receipt.graph_commit_id
    assert index_folders(graph) == before


def test_a_branch_gets_indexes_of_its_own(graph):
    graph.branches.create("work")
    with tasks_in_this_process(20_000), small_indexes():
        graph.load(town(1200).encode(), "append", branch="work", engine="spark")
    assert covered(graph) == {}
    assert covered(graph, "work") == COLUMNS


def test_tables_that_others_write_to_are_begun_again(graph):
    commit = spark_indexes.SparkIndexing._commit
    calls: list[Any] = []

    def overtaken(self, *arguments):
        if not calls:
            graph.insert("Person", [{"name": "late"}])
        calls.append(commit(self, *arguments))
        return calls[-1]

    with patched((spark_indexes.SparkIndexing, "_commit", overtaken)):
        load(graph)
    assert [len(added) for added in calls] == [6, 1]
    assert covered(graph) == COLUMNS
    assert index_folders(graph) == 7
    assert graph.get("Person", "late") is not None


@pytest.mark.parametrize("where", ["build_btree_part", "join_parts"])
def test_an_index_that_cannot_be_built_fails_no_load(graph, where, caplog):
    def full(*_: Any) -> Any:
        raise StoreCallFailed("build an index", graph.uri, "No space left on device")

    with patched((spark_indexes, where, full)), caplog.at_level(logging.WARNING, "omnigraph"):
        result = load(graph)
    assert sum(result.rows_loaded.values()) == 3602
    assert "No space left on device" in caplog.text
    assert graph.head().id == result.receipt.graph_commit_id
    assert index_folders(graph) == 0
    with small_indexes():
        graph.insert("Person", [{"name": "late"}])
    assert covered(graph) == {}, "others would have to wait for it"
    load(graph, 1201, "merge")
    assert covered(graph) == COLUMNS


def test_indexes_that_were_not_published_cost_nothing(graph):
    with armed(background.BEFORE_PUBLISH.name, Fail()), pytest.raises(InjectedFault):
        load(graph)
    again = open_graph(graph.uri)
    again.insert("Person", [{"name": "late"}])
    assert sum(entry.row_count for entry in again._snapshot().entries.values()) == 3603
    assert email(again) == "p7@example.org"
    assert again.maintenance.verify().problems == ()


def test_tasks_of_spark_build_indexes(spark, graph):
    with patched((spark_load, "LOAD_RANGE_BYTES", 50_000)), small_indexes():
        result = graph.load(town(1200).encode(), "append", engine="spark")
    assert covered(graph) == COLUMNS
    stages = {stage.name: stage for stage in result.stages}
    assert stages["index"].tasks > 7
    assert stages["join indexes"].tasks == 7
