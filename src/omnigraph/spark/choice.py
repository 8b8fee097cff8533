"""Which engine runs bulk work: this process, or Spark tasks. One rule for all that can do both."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, Union, cast, get_args

from omnigraph.errors import UsageError
from omnigraph.extras import SPARK
from omnigraph.limits import (
    INLINE_SECONDS_PER_GB,
    LARGE_INLINE_BYTES,
    SPARK_AHEAD_SECONDS,
    SPARK_COMPARED_ROWS,
    SPARK_CORE_SECONDS_PER_GB,
    SPARK_MEMORY_SHARE,
    SPARK_REWRITTEN_ROWS,
    SPARK_SECONDS_PER_GB,
)
from omnigraph.settings import read_settings
from omnigraph.spark.java import has_spark, require_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Engine = Literal["auto", "spark", "inline"]


@dataclass(frozen=True)
class Spark:
    """A Spark session to start: on `master`, with the settings `conf`.

    >>> og.Spark(master="local[2]", conf={"spark.executor.memory": "4g"})
    Spark(master='local[2]', conf={'spark.executor.memory': '4g'})
    """

    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)


EngineArgument: TypeAlias = Union[str, Spark, "SparkSession", "EngineChoice"]
"""Where bulk work runs: `"auto"`, `"inline"`, `"spark"`, a `SparkSession`, or `Spark(…)`.

An `EngineChoice` is accepted as it is.
"""


_HAS_AFFINITY: Final = hasattr(os, "sched_getaffinity")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """The requested engine, and the session or master to use."""

    engine: Engine = "auto"
    spark: SparkSession | None = None
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)


AUTO: Final = EngineChoice()
INLINE: Final = EngineChoice("inline")


def chosen_engine(engine: EngineArgument) -> EngineChoice:
    """What the caller and, for `"auto"`, the environment request. Raises `UsageError`."""
    if isinstance(engine, EngineChoice):
        return engine
    if isinstance(engine, Spark):
        return EngineChoice("spark", master=engine.master, conf=engine.conf)
    if type(engine).__module__.startswith("pyspark.sql."):
        return EngineChoice("spark", spark=cast("SparkSession", engine))
    wanted = (read_settings().engine or "auto") if engine == "auto" else engine
    for known in get_args(Engine):
        if wanted == known:
            return EngineChoice(known)
    words = ", ".join(get_args(Engine))
    shown = f"'{wanted}'" if isinstance(wanted, str) else type(wanted).__name__
    raise UsageError(f"unknown engine {shown}; use one of {words}, a SparkSession or Spark(...)")


def min_spark_bytes(cores: int | None = None, memory_bytes: int | None = None) -> int:
    """The bytes from which Spark is faster on this machine, or more than one process should hold."""
    if cores is None:
        cores = len(os.sched_getaffinity(0)) if _HAS_AFFINITY else os.cpu_count() or 1
    if memory_bytes is None:
        memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    most = memory_bytes * SPARK_MEMORY_SHARE
    saved = INLINE_SECONDS_PER_GB - SPARK_SECONDS_PER_GB - SPARK_CORE_SECONDS_PER_GB / cores
    return int(most if saved <= 0 else min(most, SPARK_AHEAD_SECONDS / saved * 1e9))


def runs_on_spark(
    choice: EngineChoice,
    size: Callable[[], int],
    *,
    shared: bool,
    at_least: int | None = None,
) -> bool:
    """Whether work runs on Spark; `size` gives its bytes and is called only if they matter.

    Engine "auto" chooses Spark from `at_least` bytes on, or from where Spark is faster.

    Tables that other processes cannot read are processed here. Raises `UsageError` when Spark was
    requested for them.
    """
    if choice.engine == "inline" or not _is_possible(choice, shared=shared):
        return False
    if _is_requested(choice) or _has_session():
        return True
    return size() >= (min_spark_bytes() if at_least is None else at_least) and has_spark()


def missing_spark_note(
    choice: EngineChoice, size: Callable[[], int], *, shared: bool
) -> str | None:
    """The warning about large work that runs in this process because Spark is not installed.

    None for small work, and for tables that other processes cannot read.
    """
    if choice.engine != "auto" or not shared:
        return None
    found = size()
    if found < LARGE_INLINE_BYTES or has_spark():
        return None
    return _without_spark(f"{found / 1e6:,.0f} MB")


def compares_on_spark(choice: EngineChoice, rows: int, *, shared: bool) -> bool:
    """Whether a diff or merge runs on Spark; `rows` is how many rows may differ.

    A running session alone does not choose Spark: a few rows are merged before a job starts. Raises
    `UsageError` as `runs_on_spark` does.
    """
    return _is_worth(choice, rows >= SPARK_COMPARED_ROWS, shared=shared)


def rewrites_on_spark(choice: EngineChoice, rows: int, *, shared: bool) -> bool:
    """Whether a rewrite of that many rows of a table runs on Spark, by the same rule."""
    return _is_worth(choice, rows >= SPARK_REWRITTEN_ROWS, shared=shared)


def session_of(choice: EngineChoice) -> SparkSession:
    """The session to use: the caller's, or our own.

    Raises `SparkUnavailable`, and `MissingExtra` when Spark is not installed.
    """
    from omnigraph.spark.session import check_executors, open_session

    if choice.spark is None:
        require_spark(_requested(choice))
    spark = choice.spark if choice.spark is not None else open_session(choice.master, choice.conf)
    check_executors(spark)
    return spark


def _is_worth(choice: EngineChoice, is_large: bool, *, shared: bool) -> bool:
    if choice.engine == "inline" or not _is_possible(choice, shared=shared):
        return False
    if _is_requested(choice):
        return True
    if is_large and not has_spark():
        _log.warning(_without_spark("many rows"))
    return is_large and has_spark()


def _without_spark(what: str) -> str:
    command = SPARK.install_command()
    return (
        f"{what} are processed here, because Spark is not installed; "
        f"for large inputs install it with: {command}"
    )


def _is_requested(choice: EngineChoice) -> bool:
    return choice.engine == "spark" or choice.spark is not None or choice.master is not None


def _requested(choice: EngineChoice) -> str:
    """What requested Spark, for messages."""
    from omnigraph.spark.session import configured_master

    master = choice.master or (None if choice.engine == "spark" else configured_master())
    return f"the Spark master '{master}'" if master is not None else "engine 'spark'"


def _is_possible(choice: EngineChoice, *, shared: bool) -> bool:
    if not shared and _is_requested(choice):
        raise UsageError('Spark tasks cannot read an in-memory graph; use engine="inline"')
    if choice.spark is None and _is_requested(choice):
        require_spark(_requested(choice))
    return shared


def _has_session() -> bool:
    from omnigraph.spark.session import configured_master, is_running

    return configured_master() is not None or is_running()
