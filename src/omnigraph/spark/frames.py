"""Data frames of Spark: tables by their names, and frames with some of their columns.

Tests: tests/spark/test_frames.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from omnigraph.errors import LoadSourceError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
