"""A cluster loses executors, workers and its driver in the middle of a load."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator

import pytest

from omnigraph.engine.graph import init
from omnigraph.engine.graph import open as open_graph
from tests.spark.cluster import Cluster, kill, running_cluster, wait_until
from tests.spark.graphs import SCHEMA, data_files, exported, town

pytestmark = pytest.mark.slow

LOAD = """
    import sys
    import omnigraph as og
    from omnigraph.engine.write.bulk import prepare
    prepare.LOAD_RANGE_BYTES = 20_000
    uri, seed, master = sys.argv[1:]
    result = og.open(uri).load(seed, "append", load_id="job", engine="spark", master=master)
    print(result.engine, sum(result.rows_loaded.values()))
"""


@pytest.fixture
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def start_load(cluster) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a load in a process of its own."""
    started: list[subprocess.Popen[str]] = []

    def start(uri, seed):
        command = [sys.executable, "-c", textwrap.dedent(LOAD), uri, str(seed), cluster.master]
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


def test_a_killed_driver_leaves_the_graph_as_it_was(cluster, start_load, tmp_path, seed, expected):
    graph = init(str(tmp_path / "graph"), SCHEMA)
    before = graph.snapshot().commit_id
    load = start_load(graph.uri, seed)
    wait_for_files(load, graph.uri)
    load.kill()
    load.communicate()
    assert open_graph(graph.uri).snapshot().commit_id == before
    assert exported(open_graph(graph.uri)) == ""
    assert finished(start_load(graph.uri, seed)) == ["spark", "6002"]
    assert exported(open_graph(graph.uri)) == expected
