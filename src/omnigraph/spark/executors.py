"""Whether the processes that run tasks can run ours, asked before the first job on a cluster.

Tests: tests/spark/test_cluster.py.
"""

from __future__ import annotations

import platform
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final

from omnigraph.errors import SparkExecutorUnfit
from omnigraph.spark.tasks import is_embedded, run_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PACKAGES: Final = ("omnigraph", "pylance", "pyarrow", "numpy")
_ASKED: Final = 4
"""Executors asked. One image usually serves all of them."""


def check_executors(spark: SparkSession) -> None:
    """Compare what is installed there with what is here. Raises `SparkError`.

    Executors of an embedded session are children of this process.
    """
    if not is_embedded(spark):
        _check(spark)


@lru_cache(maxsize=8)
def _check(spark: SparkSession) -> None:
    here = installed()
    for there in run_tasks(spark, "look at the executors", _ASKED, _installed_there):
        for name, found in there.items():
            if found != here[name]:
                raise SparkExecutorUnfit(f"{name} is {found} there and {here[name]} here")


def installed() -> dict[str, str]:
    """The versions that tasks depend on."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {"Python": python, **{name: _version(name) for name in _PACKAGES}}


def _installed_there(_task: int) -> dict[str, str]:
    return installed()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"
