"""One Spark session for all tests of a process; loads that say nothing about it do not use it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from omnigraph.spark.session import close_session, open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def _without_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_DURABILITY", "none")


@pytest.fixture
def free_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """`auto` is auto: elsewhere in tests the environment asks for `inline`."""
    monkeypatch.delenv("OMNIGRAPH_ENGINE")


@pytest.fixture(scope="session")
def _ends_with_the_tests() -> Iterator[None]:
    yield
    close_session()


@pytest.fixture
def spark(_ends_with_the_tests: None) -> SparkSession:
    """The embedded session: the one that runs, unless a test has had another one meanwhile."""
    return open_session("local[2,4]")
