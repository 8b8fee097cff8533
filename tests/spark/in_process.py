"""The work of tasks done by this process, in the order of their numbers, without Spark."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from omnigraph.diff import changes, comparison
from omnigraph.embedding import embed
from omnigraph.embedding import spark_embed as embed_tasks
from omnigraph.export import run as export_run
from omnigraph.export import spark_export
from omnigraph.load import run as load_run
from omnigraph.load import spark_frames, spark_indexes, spark_load
from omnigraph.merge import plan, table_merge
from omnigraph.schema import tables as schema_tables
from omnigraph.spark import tasks
from omnigraph.spark.tasks import Exchanged, Sent
from omnigraph.storage import ordered


def travelled(value: Any) -> Any:
    """What arrives of a value in another process."""
    return pickle.loads(pickle.dumps(value))


def run_tasks(_spark: Any, _job: str, count: int, kernel: Callable[[int], Any]) -> list[Any]:
    return [travelled(travelled(kernel)(number)) for number in range(count)]


def run_exchange(
    _spark: Any, _job: str, count: int, kernel: Any, _buckets: int, reduce: Any
) -> Exchanged[Any, Any]:
    answers: list[Any] = []
    contents: dict[int, list[bytes]] = {}
    for number in range(count):
        for item in travelled(kernel)(number):
            if isinstance(item, Sent):
                contents.setdefault(item.bucket, []).append(item.content)
            else:
                answers.append(travelled(item))
    reduced = [travelled(reduce)(b, iter(parts)) for b, parts in sorted(contents.items())]
    return Exchanged(answers, travelled(reduced))


@contextmanager
def patched(*changes: tuple[Any, str, Any]) -> Iterator[None]:
    """Other values for names of modules."""
    with ExitStack() as patches:
        for module, name, stand_in in changes:
            patches.enter_context(patch.object(module, name, stand_in))
        yield


@contextmanager
def tasks_in_this_process(step: int) -> Iterator[None]:
    """The work of tasks without Spark, so that many inputs can be tried."""
    with patched(
        (spark_load, "run_tasks", run_tasks),
        (spark_load, "run_exchange", run_exchange),
        (spark_indexes, "run_tasks", run_tasks),
        (spark_load, "LOAD_RANGE_BYTES", step),
        (load_run, "session_of", lambda choice: None),
    ):
        yield


class SparkLike:
    """A data frame as recognition sees one of Spark: partitions of Arrow tables."""

    def __init__(self, *partitions: pa.Table, names: Sequence[str] | None = None) -> None:
        self.partitions = partitions
        self.columns = list(partitions[0].column_names if names is None else names)
        self.sparkSession = None

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise AssertionError("rows were brought to the driver")


SparkLike.__module__ = "pyspark.sql.classic.dataframe"


def run_on_frame(frame: SparkLike, _job: str, kernel: Callable[[Any], Any]) -> list[Any]:
    return [travelled(travelled(kernel)(iter(part.to_batches()))) for part in frame.partitions]


def with_columns(frame: SparkLike, names: Sequence[str], _source: str) -> SparkLike:
    return SparkLike(*(part.select(names) for part in frame.partitions), names=names)


@contextmanager
def frames_in_this_process(step: int, run: Any = run_on_frame) -> Iterator[None]:
    """Loads of data frames like those of Spark, without Spark."""
    with (
        tasks_in_this_process(step),
        patched(
            (spark_frames, "run_on_frame", run),
            (spark_frames, "with_columns", with_columns),
            (spark_frames, "session_of", lambda choice: None),
        ),
    ):
        yield


@contextmanager
def small_exports(sorted_bytes: int, rows: int) -> Iterator[None]:
    """Exports whose tasks read so many rows and write ranges of so many bytes."""
    with patched(
        (ordered, "SORTED_BYTES", sorted_bytes),
        (spark_export, "SORTED_BYTES_PER_TASK", sorted_bytes),
        (ordered, "_SAMPLED_ROWS", 10),
        (tasks, "LOAD_RANGE_ROWS", rows),
    ):
        yield


@contextmanager
def exports_in_this_process(run: Any = run_exchange) -> Iterator[None]:
    """The work of the tasks of an export without Spark."""
    with patched(
        (spark_export, "run_exchange", run), (export_run, "session_of", lambda choice: None)
    ):
        yield


@contextmanager
def embedding_in_this_process(run: Any = run_exchange) -> Iterator[None]:
    """Embedding as on Spark, but in this process, in shares of a few rows and texts."""
    with patched(
        (embed_tasks, "run_exchange", run),
        (embed_tasks, "_BUCKET_TEXTS", 8),
        (embed, "session_of", lambda choice: None),
        (tasks, "LOAD_RANGE_ROWS", 10),
    ):
        yield


@contextmanager
def small_parts(rows: int) -> Iterator[None]:
    """Diffs and merges whose tasks look at so many rows each."""
    with patched((changes, "COMPARED_ROWS_PER_TASK", rows)):
        yield


@contextmanager
def comparisons_in_this_process(rows: int) -> Iterator[None]:
    """The work of the tasks of diffs and merges without Spark."""
    with (
        small_parts(rows),
        patched(
            (comparison, "run_tasks", run_tasks),
            (table_merge, "run_tasks", run_tasks),
            (comparison, "session_of", lambda choice: None),
            (plan, "session_of", lambda choice: None),
        ),
    ):
        yield


@contextmanager
def rewrites_in_this_process(rows: int, run: Any = run_tasks) -> Iterator[None]:
    """Rewrites of a schema apply without Spark, by tasks of so many rows."""
    with patched(
        (schema_tables, "run_tasks", run),
        (schema_tables, "session_of", lambda choice: None),
        (schema_tables, "LOAD_RANGE_ROWS", rows),
    ):
        yield
