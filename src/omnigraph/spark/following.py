"""Jobs as Spark's own pages name them, and progress while their tasks run.

A job has a group and a description in Spark's UI. Those of the caller, if it has any, are there again after the
job. Spark Connect has neither; there a job is only known by its tag.
Tests: tests/spark/test_following.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final

from omnigraph.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PROPERTIES: Final = (
    "spark.jobGroup.id",
    "spark.job.description",
    "spark.job.interruptOnCancel",
)
_POLL_SECONDS: Final = 0.2


@dataclass(slots=True)
class Following:
    """A stage whose rows are done as its tasks are."""

    progress: Progress
    rows: int
    done: int = 0

    def reach(self, rows: int) -> None:
        """So many rows are done."""
        if rows > self.done:
            self.progress.advance(rows - self.done)
            self.done = rows


_following: ContextVar[Following | None] = ContextVar("_following", default=None)


@contextmanager
def following(progress: Progress, rows: int) -> Iterator[Following]:
    """A while in which jobs of this thread advance a stage of about that many rows.

    The rows of a task are not known before it is done: each counts as the same share.
    """
    found = Following(progress, rows)
    before = _following.set(found)
    try:
        yield found
    finally:
        _following.reset(before)


@contextmanager
def named_job(spark: SparkSession, job: str, group: str, tasks: int | None) -> Iterator[None]:
    """While Spark runs a job of so many tasks: its name on Spark's pages, and its progress."""
    context = _context_of(spark)
    if context is None:
        yield
        return
    before = {name: context.getLocalProperty(name) for name in _PROPERTIES}
    context.setJobGroup(group, f"OmniGraph: {job}")
    followed = _following.get()
    try:
        if followed is None or not tasks or not followed.rows:
            yield
        else:
            with _polling(context, group, tasks, followed):
                yield
    finally:
        with suppress(Exception):  # Java may be gone, and the job has failed then.
            for name, value in before.items():
                context.setLocalProperty(name, value)


@contextmanager
def _polling(context: Any, group: str, tasks: int, followed: Following) -> Iterator[None]:
    """Advance the stage in a thread of its own; the calling one waits for the job."""
    over = Event()

    def poll() -> None:
        with suppress(Exception):  # What is shown is not worth an error.
            tracker = context.statusTracker()
            while not over.wait(_POLL_SECONDS):
                finished = completed_tasks(tracker, group)
                followed.reach(min(finished, tasks) * followed.rows // tasks)

    thread = Thread(target=poll, name="omnigraph-spark-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def completed_tasks(tracker: Any, group: str) -> int:
    """How many tasks of the jobs of a group are done."""
    jobs = (tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group))
    stages = {stage for job in jobs if job is not None for stage in job.stageIds}
    found = (tracker.getStageInfo(stage) for stage in stages)
    return sum(stage.numCompletedTasks for stage in found if stage is not None)


def _context_of(spark: SparkSession) -> Any:
    with suppress(Exception):  # A session of Spark Connect has none.
        return spark.sparkContext
    return None
