"""A cluster loses executors, workers and its driver in the middle of a load, or does work twice."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator

import pytest

from omnigraph.api.graph import init
from omnigraph.api.graph import open as open_graph
from tests.spark.cluster import Cluster, kill, running_cluster, wait_until
from tests.spark.graphs import SCHEMA, data_files, exported, town

pytestmark = pytest.mark.slow

LOAD = """
    import sys
    import omnigraph as og
    from omnigraph.load import spark_load
    spark_load.LOAD_RANGE_BYTES = 20_000
    uri, seed, master = sys.argv[1:]
    result = og.open(uri).load(seed, "append", load_id="job", engine=og.Spark(master))
    print(result.engine, sum(result.rows_loaded.values()))
"""

SPECULATIVE = """
    import os, sys, time
    import omnigraph as og
    from omnigraph.load import spark_load
    from omnigraph.spark import session, tasks
    from omnigraph.spark.gateway import start_java
    uri, seed, master, marks = sys.argv[1:]
    spark_load.LOAD_RANGE_BYTES = 20_000
    settings = {
        **session.settings_for(master), "spark.speculation": "true",
        "spark.speculation.quantile": "0.3", "spark.speculation.multiplier": "1.1",
    }
    gateway = start_java(settings, 1 << 29).wait()
    with gateway.offered():
        mine = session.new_session(settings)

    def run_exchange(spark, job, count, kernel, buckets, reduce):
        def slow(number):
            from pyspark import TaskContext
            attempt = TaskContext.get().attemptNumber()
            open(f"{marks}/{number}-{attempt}", "w").close()
            # The first attempt of one task hangs until another one has done all its work.
            while number == 0 and attempt == 0 and not os.path.exists(f"{marks}/done"):
                time.sleep(0.05)
            yield from kernel(number)
            if number == 0:
                open(f"{marks}/done", "w").close()
        return tasks.run_exchange(spark, job, count, slow, buckets, reduce)

    spark_load.run_exchange = run_exchange
    result = og.open(uri).load(seed, "append", load_id="job", engine=mine)
    print(result.engine, sum(result.rows_loaded.values()))
    mine.stop()
    gateway.close()
"""


@pytest.fixture
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def start_load(cluster) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a load in a process of its own."""
    started: list[subprocess.Popen[str]] = []

    def start(uri, seed, code=LOAD, *more):
        arguments = [uri, str(seed), cluster.master, *map(str, more)]
        command = [sys.executable, "-c", textwrap.dedent(code), *arguments]
        pipe = subprocess.PIPE
        started.append(
            subprocess.Popen(command, env=cluster.environment, stdout=pipe, stderr=pipe, text=True)
        )
        return started[-1]

    yield start
    for load in started:
        load.kill()
        load.communicate()


@pytest.fixture
def seed(tmp_path):
    path = tmp_path / "seed.jsonl"
    path.write_text(town(2000))
    return path


@pytest.fixture
def expected(tmp_path, seed):
    """What a load in one process leaves."""
    graph = init(str(tmp_path / "expected"), SCHEMA)
    graph.load(seed, "append", load_id="job", engine="inline")
    return exported(graph)


def finished(load):
    out, err = load.communicate(timeout=500)
    assert load.returncode == 0, err
    return out.split()


def wait_for_files(load, uri):
    """Wait until tasks have written something."""
    wait_until(lambda: load.poll() is not None or len(data_files(uri)) >= 3)
    assert load.poll() is None, load.communicate()


def test_a_load_survives_the_loss_of_an_executor(cluster, start_load, tmp_path, seed, expected):
    uri = init(str(tmp_path / "graph"), SCHEMA).uri
    load = start_load(uri, seed)
    wait_for_files(load, uri)
    kill(cluster.executors()[0])
    assert finished(load) == ["spark", "6002"]
    assert exported(open_graph(uri)) == expected


def test_a_load_survives_the_loss_of_a_worker_with_its_executor(
    cluster, start_load, tmp_path, seed, expected
):
    uri = init(str(tmp_path / "graph"), SCHEMA).uri
    load = start_load(uri, seed)
    wait_for_files(load, uri)
    lost = cluster.executors()[0]
    cluster.workers[0].kill()
    kill(lost)
    assert finished(load) == ["spark", "6002"]
    assert exported(open_graph(uri)) == expected


def test_a_cluster_of_processes_on_one_machine_can_be_named(
    cluster, start_load, tmp_path, seed, expected
):
    """Executors are processes of their own, as on a cluster, which Spark starts with the session."""
    uri = init(str(tmp_path / "graph"), SCHEMA).uri
    local = LOAD.replace("og.Spark(master)", 'og.Spark("local-cluster[2,1,1024]")')
    assert finished(start_load(uri, seed, local)) == ["spark", "6002"]
    assert exported(open_graph(uri)) == expected


def test_a_killed_driver_leaves_the_graph_as_it_was(cluster, start_load, tmp_path, seed, expected):
    graph = init(str(tmp_path / "graph"), SCHEMA)
    before = graph._snapshot().commit_id
    load = start_load(graph.uri, seed)
    wait_for_files(load, graph.uri)
    load.kill()
    load.communicate()
    assert open_graph(graph.uri)._snapshot().commit_id == before
    assert exported(open_graph(graph.uri)) == ""
    left = data_files(graph.uri)
    past = time.time() - 8 * 86_400
    for path in left:
        os.utime(path, (past, past))
    listed = open_graph(graph.uri).maintenance.cleanup(keep_versions=1, dry_run=True).removed.bytes
    assert listed >= sum(os.path.getsize(path) for path in left) > 0
    open_graph(graph.uri).maintenance.cleanup(keep_versions=1)
    assert data_files(graph.uri) & left == set()
    assert finished(start_load(graph.uri, seed)) == ["spark", "6002"]
    assert exported(open_graph(graph.uri)) == expected


def test_a_task_that_runs_twice_loads_its_rows_once(start_load, tmp_path, seed, expected):
    uri = init(str(tmp_path / "graph"), SCHEMA).uri
    marks = tmp_path / "marks"
    marks.mkdir()
    assert finished(start_load(uri, seed, SPECULATIVE, marks)) == ["spark", "6002"]
    assert {"0-0", "0-1"} <= {mark.name for mark in marks.iterdir()}
    assert exported(open_graph(uri)) == expected
