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
    INLINE_EXPORT_SECONDS_PER_GB,
    INLINE_LOAD_SECONDS_PER_GB,
    LARGE_INLINE_BYTES,
    SPARK_CACHED_SECONDS,
    SPARK_COLD_SECONDS,
    SPARK_COMPARED_ROWS,
    SPARK_EXPORT_CORE_SECONDS_PER_GB,
    SPARK_EXPORT_SECONDS_PER_GB,
    SPARK_IDLE_SECONDS,
    SPARK_LOAD_CORE_SECONDS_PER_GB,
    SPARK_LOAD_SECONDS_PER_GB,
    SPARK_MEMORY_SHARE,
    SPARK_REWRITTEN_ROWS,
    SPARK_WARM_SECONDS,
    UNWEIGHED_BYTES,
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


@dataclass(frozen=True, slots=True)
class Work:
    """Work that either engine can do: its bytes, and among how many tasks they can be divided."""

    bytes: int
    parts: int | None = None
    """None if they can be divided among any number."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds per GB of a kind of work: in one process, and on Spark for its driver and its cores."""

    inline: float
    driver: float
    cores: float

    def seconds_inline(self, work: Work) -> float:
        return work.bytes / 1e9 * self.inline

    def seconds_on_spark(self, work: Work, available: Available) -> float:
        cores = available.cores if work.parts is None else min(available.cores, work.parts)
        return available.start_seconds + work.bytes / 1e9 * (self.driver + self.cores / cores)


LOAD: Final = Cost(
    INLINE_LOAD_SECONDS_PER_GB, SPARK_LOAD_SECONDS_PER_GB, SPARK_LOAD_CORE_SECONDS_PER_GB
)
EXPORT: Final = Cost(
    INLINE_EXPORT_SECONDS_PER_GB, SPARK_EXPORT_SECONDS_PER_GB, SPARK_EXPORT_CORE_SECONDS_PER_GB
)


@dataclass(frozen=True, slots=True)
class Available:
    """The Spark that would do the work: its cores, and how long it takes to be at work."""

    cores: int
    session: Literal["none", "cached", "idle", "warm"] = "none"
    """A cached one does not exist either, but Java has its start cache."""

    @property
    def start_seconds(self) -> float:
        return {
            "none": SPARK_COLD_SECONDS,
            "cached": SPARK_CACHED_SECONDS,
            "idle": SPARK_IDLE_SECONDS,
            "warm": SPARK_WARM_SECONDS,
        }[self.session]

    def __str__(self) -> str:
        started = "running" if self.session in ("idle", "warm") else "to be started"
        cores = "1 core" if self.cores == 1 else f"{self.cores} cores"
        return f"{cores}, {started}"


@dataclass(frozen=True, slots=True)
class Decision:
    """The engine that does some work, and why, in one line."""

    on_spark: bool
    reason: str
    is_weighed: bool = False
    """Whether the costs of both engines were compared, instead of a request being followed."""


def weigh(
    work: Work, cost: Cost, available: Available, memory_bytes: int | None = None
) -> Decision:
    """The engine that is quicker; Spark for more than one process should hold."""
    if memory_bytes is None:
        memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    size = f"{work.bytes / 1e6:,.0f} MB"
    if work.bytes > memory_bytes * SPARK_MEMORY_SHARE:
        share = f"{SPARK_MEMORY_SHARE:.0%} of the memory of this machine"
        return Decision(True, f"{size} are more than {share}", is_weighed=True)
    here, there = cost.seconds_inline(work), cost.seconds_on_spark(work, available)
    reason = f"{size} take about {here:.0f} s in this process and {there:.0f} s on Spark"
    return Decision(there < here, f"{reason} ({available})", is_weighed=True)


def decide(choice: EngineChoice, work: Callable[[], Work], cost: Cost, *, shared: bool) -> Decision:
    """The engine for some work; `work` is called only if its size matters.

    Tables that other processes cannot read are processed here. Raises `UsageError` when Spark was
    requested for them.
    """
    given = _given(choice, shared=shared)
    if given is not None:
        return given
    found = work()
    if found.bytes < UNWEIGHED_BYTES:
        return Decision(False, "it is little")
    if not has_spark():
        return Decision(False, "Spark is not installed")
    decision = weigh(found, cost, available())
    _log.info("%s: %s", "spark" if decision.on_spark else "inline", decision.reason)
    return decision


def decide_by_size(
    choice: EngineChoice, size: Callable[[], int], least: int, *, shared: bool
) -> Decision:
    """The same for work that runs on Spark from `least` bytes on."""
    given = _given(choice, shared=shared)
    if given is not None:
        return given
    return Decision(size() >= least and has_spark(), f"Spark is for {least / 1e6:,.0f} MB and more")


def _given(choice: EngineChoice, *, shared: bool) -> Decision | None:
    """The engine if there is nothing to choose."""
    if choice.engine == "inline":
        return Decision(False, "engine 'inline' was requested")
    if not _is_possible(choice, shared=shared):
        return Decision(False, "no other process can read a graph in memory")
    if choice.spark is not None:
        return Decision(True, "a session was passed")
    if _is_requested(choice):
        return Decision(True, "engine 'spark' was requested")
    from omnigraph.spark.session import configured_master

    master = configured_master()
    return None if master is None else Decision(True, f"the master {master} is configured")


def available() -> Available:
    """The Spark of this process, or the one it would start."""
    from omnigraph.spark.session import cores_of, running_session, starts_quickly

    running = running_session()
    if running is not None:
        from omnigraph.spark.tasks import has_worked

        cores = cores_of(running) or cores_here()
        return Available(cores, "warm" if has_worked(running) else "idle")
    return Available(cores_here(), "cached" if starts_quickly() else "none")


def cores_here() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if _HAS_AFFINITY else os.cpu_count() or 1


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
    `UsageError` as `decide` does.
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
