"""Jobs by their names on Spark's pages, and progress that follows their tasks."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

from omnigraph.api.graph import init
from omnigraph.load import spark_load
from omnigraph.spark.following import Following, completed_tasks, following, named_job
from omnigraph.spark.session import settings_for
from omnigraph.spark.tasks import run_tasks
from tests.spark.graphs import SCHEMA, town
from tests.spark.in_process import patched


class Shown:
    """A progress that is looked at afterwards."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, int | None]] = []
        self.steps: list[int] = []

    def stage(self, name: str, rows: int | None = None) -> None:
        self.stages.append((name, rows))

    def advance(self, rows: int) -> None:
        self.steps.append(rows)


def test_a_job_has_a_group_and_a_description_and_those_of_the_caller_come_back(spark):
    context = spark.sparkContext
    context.setJobGroup("mine", "my work")
    try:
        with named_job(spark, "load", "g1", 2):
            assert context.getLocalProperty("spark.jobGroup.id") == "g1"
            assert context.getLocalProperty("spark.job.description") == "OmniGraph: load"
            spark.range(0, 4, 1, 2).toArrow()
        assert context.getLocalProperty("spark.jobGroup.id") == "mine"
        assert context.getLocalProperty("spark.job.description") == "my work"
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
        context.setLocalProperty("spark.job.description", None)
    assert completed_tasks(context.statusTracker(), "g1") == 2


def test_a_stage_advances_while_its_tasks_run(spark):
    shown, seen = Shown(), []

    def slow(number: int) -> int:
        time.sleep(0.6)
        return number

    with following(shown, 1000) as followed:
        run_tasks(spark, "wait", 6, slow)
        seen += shown.steps
    followed.reach(1003)
    assert seen
    assert sum(seen) <= 1000
    assert sum(shown.steps) == 1003
    assert run_tasks(spark, "next", 2, float) == [0.0, 1.0]


def test_progress_never_goes_back():
    shown = Shown()
    followed = Following(shown, 10)
    for rows in (3, 2, 7, 7):
        followed.reach(rows)
    assert shown.steps == [3, 4]


def test_a_session_without_a_context_has_no_groups():
    remote: Any = SimpleNamespace()
    with named_job(remote, "load", "g", 1):
        pass


def test_a_load_says_about_how_many_rows_it_reads_and_then_reads_them_all(spark, tmp_path):
    path, shown = tmp_path / "town.jsonl", Shown()
    path.write_text(town(200))
    graph = init(str(tmp_path / "graph"), SCHEMA)
    with patched((spark_load, "LOAD_RANGE_BYTES", 20_000)):
        result = graph.load(path, "append", engine="spark", progress=shown)
    ((_, about),) = (stage for stage in shown.stages if stage[0] == "read")
    records = sum(result.rows_loaded.values())
    assert about is not None
    assert abs(about - records) < records // 4
    assert sum(shown.steps) >= records
    assert [stage.name for stage in result.stages] == ["count records", "load"]
    assert all(stage.tasks > 1 and stage.seconds > 0 for stage in result.stages)
    assert result.lock_seconds is not None
    assert 0 < result.lock_seconds < 60
    assert result.to_json()["stages"][1]["name"] == "load"
    inline = graph.load(path, "merge", engine="inline")
    assert (inline.stages, inline.lock_seconds) == ((), None)
    assert "stages" not in inline.to_json()


def test_the_pages_of_a_cluster_stay_as_the_cluster_has_them():
    assert settings_for("local[2]")["spark.ui.enabled"] == "false"
    assert "spark.ui.enabled" not in settings_for("spark://host:7077")
