"""Where bulk work runs: in this process, or as Spark tasks. One rule for all that can do both."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, get_args

from omnigraph.errors import UsageError
from omnigraph.limits import SPARK_COMPARED_ROWS, SPARK_INPUT_BYTES, SPARK_REWRITTEN_ROWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Engine = Literal["auto", "spark", "inline"]

ENGINE_VARIABLE: Final = "OMNIGRAPH_ENGINE"


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """Which engine somebody asked for, and the session or master to use."""

    engine: Engine = "auto"
    spark: SparkSession | None = None
    master: str | None = None


AUTO: Final = EngineChoice()
INLINE: Final = EngineChoice("inline")


def chosen_engine(
    engine: str | None, spark: SparkSession | None = None, master: str | None = None
) -> EngineChoice:
    """What the caller and the environment ask for. Raises `UsageError` for what does not fit."""
    is_given = spark is not None or master is not None
    wanted = engine or ("spark" if is_given else os.environ.get(ENGINE_VARIABLE) or "auto")
    if wanted == "inline" and is_given:
        raise UsageError("a Spark session or master is of no use with the engine 'inline'")
    for known in get_args(Engine):
        if wanted == known:
            return EngineChoice(known, spark, master)
    raise UsageError(f"unknown engine '{wanted}'; use one of {', '.join(get_args(Engine))}")


def runs_on_spark(choice: EngineChoice, size: Callable[[], int], *, shared: bool) -> bool:
    """Whether work runs on Spark; `size` gives its bytes and is asked only if they matter.

    Tables that other processes cannot see are worked on here. Raises `UsageError` when Spark is
    asked for in vain.
    """
    if choice.engine == "inline" or not _is_possible(choice, shared=shared):
        return False
    return _is_asked(choice) or _has_session() or size() >= SPARK_INPUT_BYTES


def compares_on_spark(choice: EngineChoice, rows: int, *, shared: bool) -> bool:
    """Whether a diff or merge of so many rows that may differ runs on Spark.

    A session is no reason by itself: a few rows are merged before a job has started. Raises
    `UsageError` as `runs_on_spark` does.
    """
    return _is_worth(choice, rows >= SPARK_COMPARED_ROWS, shared=shared)


def rewrites_on_spark(choice: EngineChoice, rows: int, *, shared: bool) -> bool:
    """Whether so many rows of a table are written anew on Spark, by the same rule."""
    return _is_worth(choice, rows >= SPARK_REWRITTEN_ROWS, shared=shared)


def session_of(choice: EngineChoice) -> SparkSession:
    """The session to use: the one that was handed in, or our own. Raises `SparkUnavailable`."""
    from omnigraph.spark.executors import check_executors
    from omnigraph.spark.session import open_session

    spark = choice.spark if choice.spark is not None else open_session(choice.master)
    check_executors(spark)
    return spark


def _is_worth(choice: EngineChoice, is_large: bool, *, shared: bool) -> bool:
    if choice.engine == "inline" or not _is_possible(choice, shared=shared):
        return False
    return _is_asked(choice) or is_large


def _is_asked(choice: EngineChoice) -> bool:
    return choice.engine == "spark" or choice.spark is not None or choice.master is not None


def _is_possible(choice: EngineChoice, *, shared: bool) -> bool:
    if not shared and _is_asked(choice):
        raise UsageError("tasks cannot see a graph in memory; use engine 'inline'")
    return shared


def _has_session() -> bool:
    from omnigraph.spark.session import configured_master, is_running

    return configured_master() is not None or is_running()
