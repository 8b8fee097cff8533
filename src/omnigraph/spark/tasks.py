"""Kernels as Spark tasks: one answer per task, in order.

A kernel answers with values that pickle and returns its errors instead of raising them, so that the
caller always learns of everything that was done. Spark repeats a task whose process died, and only
one attempt's answer arrives.
Tests: tests/spark/test_tasks.py.
"""

from __future__ import annotations

import gc
import os
import pickle
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import pyarrow as pa

from omnigraph.errors import LoadSourceError, OmnigraphError, SparkJobFailed
from omnigraph.limits import LOAD_RANGE_ROWS
from omnigraph.spark.failures import failure
from omnigraph.spark.following import named_job
from omnigraph.storage.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


Answer = TypeVar("Answer")
Reduced = TypeVar("Reduced")

_ROW: Final = "task int, bucket int, content binary"
_SCHEMA: Final = pa.schema([("task", pa.int32()), ("bucket", pa.int32()), ("content", pa.binary())])
_OWN: Final = ("AWS_", "OMNIGRAPH_", "GEMINI_", "OPENAI_")
"""How the variables begin that our tasks read."""

_ANSWER: Final = -1
"""The bucket of answers, which no kernel sends keys to."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job that was run."""

    name: str
    tasks: int
    seconds: float
    bytes: int
    """What its tasks sent to this process."""


_jobs: ContextVar[list[Job] | None] = ContextVar("_jobs", default=None)


_have_worked: Final[set[str]] = set()
"""The applications in which tasks of this process have worked."""


def has_worked(spark: SparkSession) -> bool:
    """Whether tasks have worked in a session, so that the processes of tasks are there."""
    return _application_of(spark) in _have_worked


def _application_of(spark: SparkSession) -> str:
    with suppress(Exception):  # A session of Spark Connect has no context to ask.
        return str(spark.sparkContext.applicationId)
    return str(getattr(spark, "session_id", ""))


@contextmanager
def noting_jobs() -> Iterator[list[Job]]:
    """A while in which every job that this thread runs is noted when it is over."""
    noted: list[Job] = []
    before = _jobs.get()
    token = _jobs.set(noted)
    try:
        yield noted
    finally:
        _jobs.reset(token)
        if before is not None:
            before += noted


@dataclass(frozen=True, slots=True)
class Sent:
    """Something a task sends to whichever task looks after a bucket."""

    bucket: int
    content: bytes


Exchanging = Callable[[int], Iterator["Sent | Answer"]]
"""A kernel that sends things on the way to its answer, which comes last."""


@dataclass(frozen=True, slots=True)
class Exchanged(Generic[Answer, Reduced]):
    """The answers of the first set of tasks, in order, and what buckets were reduced to."""

    answers: list[Answer]
    reduced: list[Reduced]


def run_tasks(
    spark: SparkSession, job: str, count: int, kernel: Callable[[int], Answer]
) -> list[Answer]:
    """The kernel's answers for 0 to `count`, one task each. Raises `SparkError`."""
    here = _Surroundings.of(spark)
    frame = _numbers(spark, count).mapInArrow(partial(_answer, here, _packed(kernel)), _ROW)
    return _in_order(_collect(job, count, frame, count), count, job)


def run_exchange(
    spark: SparkSession,
    job: str,
    count: int,
    kernel: Exchanging[Answer],
    buckets: int,
    reduce: Callable[[int, Iterator[bytes]], Reduced],
) -> Exchanged[Answer, Reduced]:
    """As `run_tasks`; what tasks send is then reduced bucket by bucket, in tasks of their own."""
    here = _Surroundings.of(spark)
    sent = _numbers(spark, count).mapInArrow(partial(_send, here, _packed(kernel)), _ROW)
    # What a single task sends is reduced by its own process: another one would have to start first.
    # Otherwise every bucket is a task of its own, and so are the answers.
    partitions = buckets + 1 if count > 1 else 1
    reduced = partial(_reduce, here, _packed(reduce))
    frame = _by_bucket(sent, partitions).mapInArrow(reduced, _ROW)
    rows = _collect(job, count, frame, count + partitions)
    answers = _in_order([row for row in rows if row[1] == _ANSWER], count, job)
    return Exchanged(answers, [pickle.loads(row[2]) for row in rows if row[1] != _ANSWER])


def run_on_frame(
    frame: DataFrame, job: str, kernel: Callable[[Iterator[pa.RecordBatch]], Answer]
) -> list[Answer]:
    """The kernel's answers for the partitions of a data frame, in order. Raises `SparkError`."""
    here = _Surroundings.of(frame.sparkSession)
    answering = frame.mapInArrow(partial(_answer_partition, here, _packed(kernel)), _ROW)
    rows = _collect(job, None, answering, None)
    return [pickle.loads(content) for _, _, content in sorted(rows)]


def is_embedded(spark: SparkSession) -> bool:
    """Whether tasks run on this machine, in processes below this one."""
    with suppress(Exception):  # A session of Spark Connect has no context to ask.
        return str(spark.sparkContext.master).startswith("local")
    return False


@dataclass(frozen=True, slots=True)
class _Surroundings:
    """The caller's folder and, in an embedded session, those variables that tasks look at.

    Python processes of tasks outlive a job and have the surroundings of when Java was started. On a
    cluster credentials belong to the executors and never travel.
    """

    folder: str
    variables: dict[str, str] | None

    @classmethod
    def of(cls, spark: SparkSession) -> _Surroundings:
        return cls(os.getcwd(), _own_variables() if is_embedded(spark) else None)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Work there, and restore the process for the next job."""
        folder, variables = os.getcwd(), _own_variables()
        self._enter()
        try:
            yield
        finally:
            _Surroundings(folder, variables)._enter()

    def _enter(self) -> None:
        with suppress(OSError):  # Executors elsewhere may not have it, and then no kernel needs it.
            os.chdir(self.folder)
        if self.variables is not None:
            for name in _own_variables().keys() - self.variables.keys():
                del os.environ[name]
            os.environ.update(self.variables)


def _own_variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(_OWN)}


def _packed(kernel: Callable[..., object]) -> bytes:
    """A kernel as it travels. It is unpacked in its surroundings, which it may look at by then."""
    from pyspark import cloudpickle

    packed: bytes = cloudpickle.dumps(kernel)  # type: ignore[no-untyped-call]  # has no types
    return packed


def _numbers(spark: SparkSession, count: int) -> DataFrame:
    return spark.range(0, count, 1, numPartitions=count)


def _by_bucket(sent: DataFrame, partitions: int) -> DataFrame:
    """A partition for each bucket, where Spark places rows exactly (4.1); else it hashes them."""
    if hasattr(sent, "repartitionById"):
        return sent.repartitionById(partitions, "bucket")
    return sent.repartition(partitions, "bucket")


_Rows = list[tuple[int, int, bytes]]


def _collect(job: str, count: int | None, frame: DataFrame, tasks: int | None) -> _Rows:
    """What all tasks answered; without a `count` there are as many of them as answers.

    `tasks` are those of all stages, if that is known.
    """
    # A call that fails or is interrupted may leave the connection to Java unusable for the next.
    started = time.perf_counter()
    spark, tag = frame.sparkSession, f"omnigraph-{uuid.uuid4().hex}"
    spark.addTag(tag)
    try:
        with named_job(spark, job, tag, tasks):
            table = frame.toArrow()
    except KeyboardInterrupt:
        with suppress(Exception):
            spark.interruptTag(tag)
        raise
    except Exception as error:
        raise failure(job, error) from None
    finally:
        with suppress(Exception):
            spark.removeTag(tag)
    _have_worked.add(_application_of(spark))
    noted = _jobs.get()
    if noted is not None:
        answered = table.num_rows if count is None else count
        noted.append(Job(job, answered, time.perf_counter() - started, table.nbytes))
    columns = (table.column(name).to_pylist() for name in ("task", "bucket", "content"))
    return list(zip(*columns, strict=True))


def _in_order(rows: Sequence[tuple[int, int, bytes]], count: int, job: str) -> list[Any]:
    """One answer per task: before a commit of what tasks wrote, none may be missing."""
    contents = {task: content for task, _, content in rows}
    if len(rows) != count or set(contents) != set(range(count)):
        raise SparkJobFailed(job, f"{count} tasks gave {len(rows)} answers")
    return [pickle.loads(contents[task]) for task in range(count)]


# -- in the tasks -------------------------------------------------------------------------------


def _answer(
    here: _Surroundings, packed: bytes, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for number in _tasks(batches):
        with here.entered():
            answer = pickle.loads(packed)(number)
        yield _row(number, _ANSWER, pickle.dumps(answer))
    _spare_modules()


def _answer_partition(
    here: _Surroundings, packed: bytes, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None, "this runs in a task"
    with here.entered():
        answer = pickle.loads(packed)(batches)
    yield _row(context.partitionId(), _ANSWER, pickle.dumps(answer))
    _spare_modules()


def _send(
    here: _Surroundings, packed: bytes, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    with here.entered():
        kernel = pickle.loads(packed)
        for number in _tasks(batches):
            for item in kernel(number):
                if isinstance(item, Sent):
                    yield _row(number, item.bucket, item.content)
                else:
                    yield _row(number, _ANSWER, pickle.dumps(item))
    _spare_modules()


def _reduce(
    here: _Surroundings, packed: bytes, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Pass answers on; reduce everything else bucket by bucket."""
    contents: dict[int, list[bytes]] = {}
    for batch in batches:
        for task, bucket, content in zip(*(c.to_pylist() for c in batch.columns), strict=True):
            if bucket == _ANSWER:
                yield _row(task, _ANSWER, content)
            else:
                contents.setdefault(bucket, []).append(content)
    if not contents:
        return
    with here.entered():
        reduce = pickle.loads(packed)
        for bucket, parts in sorted(contents.items()):
            yield _row(0, bucket, pickle.dumps(reduce(bucket, iter(parts))))


@cache
def _spare_modules() -> None:
    """To be called when the first kernel is done and everything it needs has been imported.

    Spark looks for garbage after every task. Modules are none, and going through them takes longer
    than a small task does, so they are left out of it from now on.
    """
    gc.collect()
    gc.freeze()


def _tasks(batches: Iterator[pa.RecordBatch]) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()


def _row(task: int, bucket: int, content: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [{"task": task, "bucket": bucket, "content": content}], schema=_SCHEMA
    )


Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Failed:
    """An error that is returned instead of raised."""

    error: OmnigraphError


def returning(call: Callable[[], Result]) -> Result | Failed:
    """The result of a call, or its error as one."""
    try:
        return call()
    except OmnigraphError as error:
        return Failed(error)


def value_of(answer: Result | Failed) -> Result:
    """The result; raises the error that was returned instead."""
    if isinstance(answer, Failed):
        raise answer.error
    return answer


def table_named(spark: SparkSession, name: str) -> DataFrame:
    """A table of the session's catalog. Raises `LoadSourceError`."""
    with _naming(name):
        return spark.table(name)


def with_columns(frame: DataFrame, names: Sequence[str], source: str) -> DataFrame:
    """The data frame with these columns alone, whatever characters their names have."""
    with _naming(source):
        return frame.select(*("`" + name.replace("`", "``") + "`" for name in names))


@contextmanager
def _naming(source: str) -> Iterator[None]:
    from pyspark.errors import AnalysisException

    try:
        yield
    except AnalysisException as error:
        reason = str(error).partition("\n")[0]
        raise LoadSourceError(source, f"cannot be read by Spark: {reason}") from None


FragmentGroup = tuple[int, ...]
"""The ids of fragments that one task reads."""


def fragment_groups(table: Table, rows: int | None = None) -> tuple[FragmentGroup, ...]:
    """All fragments of a table with rows, in parts of about as many rows as a task reads."""
    most = LOAD_RANGE_ROWS if rows is None else rows
    groups: list[FragmentGroup] = []
    held: list[int] = []
    count = 0
    for fragment in table.fragments():
        if held and count + fragment.rows > most:
            groups.append(tuple(held))
            held, count = [], 0
        held.append(fragment.id)
        count += fragment.rows
    if held:
        groups.append(tuple(held))
    return tuple(groups)
