"""Kernels as tasks: answers in order, surroundings of the caller, words for failures."""

from __future__ import annotations

import gc
import os
from typing import Any

import pytest

from omnigraph.errors import SparkExecutorUnfit, SparkJobFailed
from omnigraph.spark.failures import failure
from omnigraph.spark.session import installed
from omnigraph.spark.tasks import (
    Sent,
    _in_order,
    noting_jobs,
    run_exchange,
    run_on_frame,
    run_tasks,
)


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

    with pytest.raises(SparkJobFailed) as caught:
        run_tasks(spark, "fail", 1, fail)
    reason = "RuntimeError: no such luck"
    assert str(caught.value) == f"Spark job 'fail' failed: {reason}; nothing was changed"
    assert run_tasks(spark, "next", 1, float) == [0.0]


@pytest.mark.parametrize("rows", [[], [(0, -1, b"")], [(0, -1, b""), (0, -1, b"")]])
def test_a_job_without_all_its_answers_failed(rows):
    with pytest.raises(SparkJobFailed, match="2 tasks gave"):
        _in_order(rows, 2, "job")


def test_the_deepest_cause_of_a_failed_job_is_named(spark):
    frame = spark.sql("select assert_true(id < 3, 'too big') from range(5)")
    with pytest.raises(SparkJobFailed, match="too big"):
        run_on_frame(frame, "read", list)


class JavaException:
    """An exception of Java as Python sees it."""

    def __init__(self, name: str, message: str | None, cause: JavaException | None = None) -> None:
        self.name, self.message, self.cause = name, message, cause

    def getClass(self) -> JavaException:
        return self

    def getSimpleName(self) -> str:
        return self.name

    def getMessage(self) -> str | None:
        return self.message

    def getCause(self) -> JavaException | None:
        return self.cause


def told(error: Exception) -> str:
    assert isinstance(error, SparkJobFailed)
    return error.reason


def test_a_cause_without_a_message_says_less_than_the_one_above_it():
    error: Any = RuntimeError("An error occurred while calling o1.getResult.\n: Exception thrown")
    bottom = JavaException("IOException", None)
    sql = JavaException("SQLException", "no such table\n  at Db.java", bottom)
    error.java_exception = JavaException("SparkException", "Job aborted", sql)
    assert told(failure("read", error)) == "SQLException: no such table"
    endless = JavaException("Loop", "again")
    endless.cause = endless
    error.java_exception = endless
    assert told(failure("read", error)) == "Loop: again"


def test_executors_without_the_package_are_named():
    lines = "An error\n  ModuleNotFoundError: No module named 'omnigraph'\n  more"
    found = failure("job", RuntimeError(lines))
    assert isinstance(found, SparkExecutorUnfit)
    assert "No module named 'omnigraph'" in str(found)


def test_what_is_installed_here_is_known():
    assert installed()["omnigraph"] != "missing"
