"""Kernels as tasks: answers in order, surroundings of the caller, words for failures."""

from __future__ import annotations

import gc
import os

import pytest

from omnigraph.errors import SparkExecutorUnfit, SparkJobFailed
from omnigraph.spark.session import installed
from omnigraph.spark.tasks import Sent, _in_order, failure, noting_jobs, run_exchange, run_tasks


def test_answers_come_in_order(spark):
    with noting_jobs() as jobs:
        assert run_tasks(spark, "roots", 5, lambda n: n * n) == [0, 1, 4, 9, 16]
    assert [(job.name, job.tasks) for job in jobs] == [("roots", 5)]


def test_what_is_sent_to_a_bucket_meets_there(spark):
    def kernel(number):
        for other in range(3):
            yield Sent(other, bytes([number]))
        yield f"answer {number}"

    def reduce(bucket, contents):
        return bucket, sorted(contents)

    done = run_exchange(spark, "meet", 3, kernel, 3, reduce)
    assert done.answers == ["answer 0", "answer 1", "answer 2"]
    assert sorted(done.reduced) == [(b, [b"\0", b"\1", b"\2"]) for b in range(3)]


def test_tasks_see_the_folder_and_variables_of_the_caller(spark, tmp_path, monkeypatch):
    def look(_number):
        return os.getcwd(), os.environ.get("OMNIGRAPH_LOOK")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMNIGRAPH_LOOK", "here")
    assert run_tasks(spark, "look", 1, look) == [(str(tmp_path), "here")]
    monkeypatch.delenv("OMNIGRAPH_LOOK")
    assert run_tasks(spark, "look", 1, look) == [(str(tmp_path), None)]


def test_modules_are_not_searched_for_garbage_after_every_task(spark):
    def spared(_number):
        return gc.get_freeze_count()

    run_tasks(spark, "import", 1, spared)
    assert run_tasks(spark, "look", 1, spared)[0] > 10_000


def test_a_task_that_dies_is_tried_again(spark, tmp_path):
    mark = str(tmp_path / "died")

    def die_once(number):
        if number == 1 and not os.path.exists(mark):
            open(mark, "w").close()
            os._exit(9)
        return number

    assert run_tasks(spark, "die", 2, die_once) == [0, 1]


def test_a_job_that_fails_says_so_in_a_line(spark):
    def fail(_number):
        raise RuntimeError("no such luck")

    with pytest.raises(SparkJobFailed, match="Spark job 'fail' failed") as caught:
        run_tasks(spark, "fail", 1, fail)
    assert "\n" not in str(caught.value)
    assert run_tasks(spark, "next", 1, float) == [0.0]


@pytest.mark.parametrize("rows", [[], [(0, -1, b"")], [(0, -1, b""), (0, -1, b"")]])
def test_a_job_without_all_its_answers_failed(rows):
    with pytest.raises(SparkJobFailed, match="2 tasks gave"):
        _in_order(rows, 2, "job")


def test_executors_without_the_package_are_named():
    lines = "An error\n  ModuleNotFoundError: No module named 'omnigraph'\n  more"
    found = failure("job", RuntimeError(lines))
    assert isinstance(found, SparkExecutorUnfit)
    assert "No module named 'omnigraph'" in str(found)


def test_what_is_installed_here_is_known():
    assert installed()["omnigraph"] != "missing"
