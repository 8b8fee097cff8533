"""A graph on an object store, loaded by tasks that reach it by themselves."""

from __future__ import annotations

import pyarrow as pa
import pytest

from omnigraph.api.graph import init
from omnigraph.storage.durability import Durability
from omnigraph.storage.files import list_remote, list_scratch
from omnigraph.storage.objects import open_store
from omnigraph.storage.uris import normalise_root
from tests.contract.objects.moto_server import BUCKET, environment_for
from tests.spark.graphs import SCHEMA, comparable, exported, town
from tests.spark.in_process import SparkLike, exports_in_this_process, frames_in_this_process


@pytest.mark.slow
def test_every_mode_and_a_branch(s3_endpoint, spark, tmp_path, monkeypatch):
    for name, value in environment_for(s3_endpoint).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("omnigraph.load.spark_load.LOAD_RANGE_BYTES", 3_000)
    here = init(str(tmp_path / "graph"), SCHEMA)
    there = init(f"s3://{BUCKET}/spark", SCHEMA)
    for graph in (here, there):
        graph.branches.create("draft")
    for branch, mode in (("main", "append"), ("main", "merge"), ("draft", "append")):
        results = [
            graph.load(
                town(30).encode(), mode, branch=branch, engine=engine, load_id=f"{branch}-{mode}"
            )
            for graph, engine in ((here, "inline"), (there, "spark"))
        ]
        assert comparable(results[1]) == comparable(results[0])
        assert exported(there, branch) == exported(here, branch)


@pytest.mark.slow
def test_data_frames_are_staged_there_and_exports_come_from_there(
    s3_endpoint, tmp_path, monkeypatch
):
    for name, value in environment_for(s3_endpoint).items():
        monkeypatch.setenv(name, value)
    graph = init(f"s3://{BUCKET}/frames", SCHEMA)
    parts = [pa.table({"name": [f"{n}"], "age": [n]}) for n in range(3)]
    with frames_in_this_process(10**9), exports_in_this_process():
        result = graph.load({"Person": SparkLike(*parts)}, "append", engine="spark")
        assert result.rows_loaded == {"node:Person": 3}
        count = graph.export(tmp_path / "out", format="parquet", engine="spark", types=["Person"])
        there = f"s3://{BUCKET}/exported"
        assert graph.export(there, format="parquet", engine="spark") == 3
    assert count == 3
    names = [address.removeprefix(f"{there}/") for address in list_remote(there)]
    assert [name for name in names if "/" in name or "export" in name] == []
    with frames_in_this_process(10**9):
        again = init(f"s3://{BUCKET}/again", SCHEMA)
        again.load(there, "append", engine="inline")
    assert exported(again) == exported(graph)
    objects = open_store(normalise_root(graph.uri), Durability.NONE)
    assert list_scratch(objects, lambda job: True) == []
