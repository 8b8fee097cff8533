"""A graph for each test."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from omnigraph.api.graph import Graph
from tests.crash.recovery.situations import new_graph


@pytest.fixture(autouse=True)
def _without_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Syncing takes most of the time; the tests that are about it switch it on again."""
    monkeypatch.setenv("OMNIGRAPH_DURABILITY", "none")


@pytest.fixture
def local_uri(tmp_path: Path) -> str:
    return str(tmp_path / "graph")


@pytest.fixture(params=["local", "memory"])
def uri(request: pytest.FixtureRequest, local_uri: str) -> str:
    """An empty place, on each kind of store in turn."""
    return local_uri if request.param == "local" else f"memory://{uuid.uuid4().hex}"


@pytest.fixture
def graph(uri: str) -> Graph:
    return new_graph(uri)


@pytest.fixture
def local_graph(local_uri: str) -> Graph:
    return new_graph(local_uri)
