"""Where a load runs: in this process, or as Spark tasks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, get_args

from omnigraph.errors import SourceUnreadable, UsageError
from omnigraph.limits import SPARK_INPUT_BYTES
from omnigraph.load import Source
from omnigraph.load.sources import CsvFile, JsonFile, JsonObjects, ParquetFile, open_file
from omnigraph.storage.input_files import stamp_of

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


def runs_on_spark(choice: EngineChoice, sources: Sequence[Source], *, shared: bool) -> bool:
    """Whether a load of these sources runs on Spark. Tables others cannot see are loaded here.

    Raises `UsageError` when Spark is asked for in vain.
    """
    if choice.engine == "inline":
        return False
    is_asked = choice.engine == "spark" or choice.spark is not None or choice.master is not None
    if not shared:
        if is_asked:
            raise UsageError("a graph in memory is loaded by its own process; use engine 'inline'")
        return False
    return is_asked or _has_session() or _input_bytes(sources) >= SPARK_INPUT_BYTES


def session_of(choice: EngineChoice) -> SparkSession:
    """The session to use: the one that was handed in, or our own. Raises `SparkUnavailable`."""
    from omnigraph.spark.executors import check_executors
    from omnigraph.spark.session import open_session

    spark = choice.spark if choice.spark is not None else open_session(choice.master)
    check_executors(spark)
    return spark


def _has_session() -> bool:
    from omnigraph.spark.session import configured_master, is_running

    return configured_master() is not None or is_running()


def _input_bytes(sources: Sequence[Source]) -> int:
    """The size of files as they are, compressed or not.

    What is in memory is loaded by the process that has it: sending it to tasks takes longer.
    """
    return sum(map(_file_bytes, sources))


def _file_bytes(source: Source) -> int:
    match source:
        case JsonObjects(stream=stream):
            return _file_bytes(stream)
        case JsonFile() | ParquetFile() | CsvFile(held=None):
            try:
                with open_file(source.path) as file:
                    return stamp_of(file)[0]
            except SourceUnreadable:
                return 0  # Whoever reads it says what is wrong.
        case _:
            return 0
