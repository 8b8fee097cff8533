"""Which engine `auto` takes: the one that is quicker by measured cost, and it says why."""

from __future__ import annotations

import gzip
import logging
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.api.graph import init
from omnigraph.cli.main import main
from omnigraph.load.sources import JsonSource, ParquetSource, input_size
from omnigraph.spark import choice, session, tasks
from omnigraph.spark.choice import (
    AUTO,
    EXPORT,
    INLINE,
    LOAD,
    Available,
    EngineChoice,
    Work,
    decide,
    decide_by_size,
    weigh,
)
from tests.spark.graphs import SCHEMA, town

MB = 10**6
GB = 10**9


@pytest.fixture(autouse=True)
def no_session(monkeypatch):
    """Whatever other tests have left running."""
    monkeypatch.setattr(session, "running_session", lambda: None)


@pytest.mark.parametrize(
    ("size", "cores", "state", "expected"),
    [
        (8 * MB, 2, "none", False), (150 * MB, 2, "none", False), (550 * MB, 2, "none", False),
        (8 * MB, 2, "warm", False), (550 * MB, 2, "warm", True),
        (8 * MB, 2, "idle", False), (348 * MB, 2, "idle", False), (2 * GB, 2, "idle", True),
        (348 * MB, 8, "none", False), (GB, 8, "none", True),
        (8 * MB, 64, "warm", False), (150 * MB, 64, "warm", True),
        (550 * MB, 1, "warm", False),
    ],
)  # fmt: skip
def test_the_engine_is_the_one_that_is_quicker(size, cores, state, expected):
    decision = weigh(Work(size), LOAD, Available(cores, state), 64 * GB)
    assert decision.on_spark == expected
    assert decision.is_weighed


@pytest.mark.parametrize(
    ("bytes_", "state", "inline", "spark"),
    [
        (49 * MB, "warm", 1.4, 1.7), (348 * MB, "warm", 7.8, 5.8), (348 * MB, "idle", 7.8, 10.7),
        (49 * MB, "none", 1.4, 11.5),
    ],
)  # fmt: skip
def test_the_cost_of_loads_on_two_cores_is_what_was_measured(bytes_, state, inline, spark):
    work, here = Work(bytes_), Available(2, state)
    assert LOAD.seconds_inline(work) == pytest.approx(inline, rel=0.4)
    assert LOAD.seconds_on_spark(work, here) == pytest.approx(spark, rel=0.4)
    chosen = spark if weigh(work, LOAD, here, 64 * GB).on_spark else inline
    assert chosen <= 1.2 * min(inline, spark)


def test_exports_are_for_spark_where_there_are_many_cores():
    assert not weigh(Work(5 * GB), EXPORT, Available(2, "warm"), 64 * GB).on_spark
    assert weigh(Work(5 * GB), EXPORT, Available(16, "warm"), 64 * GB).on_spark


def test_more_than_one_process_should_hold_is_for_spark():
    decision = weigh(Work(3 * GB), LOAD, Available(1), 8 * GB)
    assert decision.on_spark
    assert decision.reason == "3,000 MB are more than 25% of the memory of this machine"


def test_one_compressed_file_gains_nothing_from_cores():
    warm = Available(64, "warm")
    assert not weigh(Work(550 * MB, parts=1), LOAD, warm, 64 * GB).on_spark
    assert weigh(Work(550 * MB, parts=8), LOAD, warm, 64 * GB).on_spark


def test_the_reason_is_one_line_with_both_costs():
    reason = weigh(Work(550 * MB), LOAD, Available(2, "warm"), 64 * GB).reason
    assert reason == ("550 MB take about 13 s in this process and 12 s on Spark (2 cores, running)")
    reason = weigh(Work(550 * MB), LOAD, Available(1, "cached"), 64 * GB).reason
    assert reason.endswith("27 s on Spark (1 core, to be started)")


def test_what_is_requested_is_not_weighed(monkeypatch):
    def work() -> Work:
        raise AssertionError("nobody has to know how much it is")

    decision = decide(INLINE, work, LOAD, shared=True)
    assert (decision.on_spark, decision.reason) == (False, "engine 'inline' was requested")
    assert decide(EngineChoice("spark"), work, LOAD, shared=True).on_spark
    mine: Any = SimpleNamespace()
    assert (
        decide(EngineChoice(spark=mine), work, LOAD, shared=True).reason == "a session was passed"
    )
    assert not decide(AUTO, work, LOAD, shared=False).on_spark
    monkeypatch.setenv("OMNIGRAPH_SPARK_MASTER", "spark://host:7077")
    decision = decide(AUTO, work, LOAD, shared=True)
    assert (decision.on_spark, decision.is_weighed) == (True, False)
    assert decision.reason == "the master spark://host:7077 is configured"


def test_texts_to_embed_are_for_spark_from_a_size_on():
    assert not decide_by_size(AUTO, lambda: 9, 10, shared=True).on_spark
    assert decide_by_size(AUTO, lambda: 10, 10, shared=True).on_spark
    assert not decide_by_size(INLINE, lambda: 10, 10, shared=True).on_spark


def test_a_session_tells_its_cores_and_whether_its_tasks_have_worked(monkeypatch):
    context = SimpleNamespace(applicationId="app-7", defaultParallelism=12)
    running = SimpleNamespace(sparkContext=context)
    monkeypatch.setattr(session, "running_session", lambda: running)
    monkeypatch.setattr(tasks, "_have_worked", set())
    assert choice.available() == Available(12, "idle")
    tasks._have_worked.add("app-7")
    assert choice.available() == Available(12, "warm")
    remote = SimpleNamespace(session_id="s-1")
    monkeypatch.setattr(session, "running_session", lambda: remote)
    assert choice.available() == Available(choice.cores_here(), "idle")


@pytest.mark.parametrize(("flags", "expected"), [([], "none"), (["-XX:AOTCache=f"], "cached")])
def test_a_session_to_be_started_is_quicker_with_the_start_cache(monkeypatch, flags, expected):
    monkeypatch.setattr(session, "cache_flags", lambda java: flags)
    assert choice.available() == Available(choice.cores_here(), expected)


def test_jobs_of_a_session_make_it_warm(spark):
    tasks.run_tasks(spark, "numbers", 2, float)
    assert tasks.has_worked(spark)
    assert session.cores_of(spark) == 2


def test_files_count_by_how_long_they_take(tmp_path):
    text, packed, rows = (tmp_path / name for name in ("a.jsonl", "a.jsonl.gz", "a.parquet"))
    text.write_bytes(b"x" * 1000)
    packed.write_bytes(gzip.compress(b"x" * 1000))
    pq.write_table(pa.table({"a": range(100)}), rows)
    plan: Any = None
    json_text, gz = JsonSource(name=str(text)), JsonSource(name=str(packed))
    parquet = ParquetSource(str(rows), plan)
    assert input_size([json_text]) == (1000, None)
    assert input_size([gz]) == (6 * packed.stat().st_size, 1)
    assert input_size([gz, gz]) == (12 * packed.stat().st_size, 2)
    assert input_size([parquet]) == (8500, None)
    assert input_size([gz, json_text])[1] is None
    assert input_size([JsonSource(b"x" * 1000)]) == (0, 1)
    assert input_size([JsonSource(name=str(tmp_path / "missing"))]) == (0, 1)


@pytest.mark.usefixtures("free_choice")
def test_a_load_says_which_engine_it_took_and_why(tmp_path, monkeypatch, capsys, caplog):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "town.jsonl").write_text(town(20))
    graph = init("g", SCHEMA)
    assert graph.load(tmp_path / "town.jsonl", "append").engine_reason is None, "it is little"
    monkeypatch.setattr(choice, "UNWEIGHED_BYTES", 0)
    monkeypatch.setattr(choice, "cores_here", lambda: 2)
    with caplog.at_level(logging.INFO, "omnigraph"):
        result = graph.load(tmp_path / "town.jsonl", "merge")
    why = "0 MB take about 0 s in this process and 12 s on Spark (2 cores, to be started)"
    assert (result.engine, result.engine_reason) == ("inline", why)
    assert result.to_json()["engine_reason"] == why
    assert f"inline: {why}" in caplog.text
    load = ["load", "g", "--data", "town.jsonl", "--mode", "merge"]
    assert main(load) == 0
    assert f"engine inline: {why}\n" in capsys.readouterr().out
    assert main([*load, "--engine", "inline"]) == 0
    assert "engine inline" not in capsys.readouterr().out
