"""A graph on an object store, loaded by tasks that reach it by themselves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from omnigraph.engine.graph import init
from tests.contract.objects.moto_server import BUCKET, environment_for, running_server
from tests.spark.graphs import SCHEMA, comparable, exported, town


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with running_server() as address:
        yield address


@pytest.mark.slow
def test_every_mode_and_a_branch(endpoint, spark, tmp_path, monkeypatch):
    for name, value in environment_for(endpoint).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("omnigraph.engine.write.bulk.prepare.LOAD_RANGE_BYTES", 3_000)
    here = init(str(tmp_path / "graph"), SCHEMA)
    there = init(f"s3://{BUCKET}/spark", SCHEMA)
    for graph in (here, there):
        graph.create_branch("draft")
    for branch, mode in (("main", "append"), ("main", "merge"), ("draft", "append")):
        results = [
            graph.load(town(30), mode, branch=branch, engine=engine, load_id=f"{branch}-{mode}")
            for graph, engine in ((here, "inline"), (there, "spark"))
        ]
        assert comparable(results[1]) == comparable(results[0])
        assert exported(there, branch) == exported(here, branch)
