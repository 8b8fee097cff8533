"""One Spark session for all tests of a process; loads that say nothing about it do not use it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from omnigraph.spark.session import close_session, open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A session takes seconds to start, so one worker runs all of them."""
    for item in items:
        if "/tests/spark/" in item.path.as_posix():
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(autouse=True)
def _without_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_DURABILITY", "none")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The embedded session. Another one may be running in between, so tests ask for it anew."""
    yield open_session("local[2,4]")
    close_session()
