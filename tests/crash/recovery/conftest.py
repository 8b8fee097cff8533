"""A graph for each test."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

import pytest

from omnigraph.api.graph import Graph
from omnigraph.api.graph import open as open_graph
from tests.crash.recovery.situations import new_graph


@pytest.fixture(autouse=True)
def _without_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Syncing takes most of the time; the tests that are about it switch it on again."""
    monkeypatch.setenv("OMNIGRAPH_DURABILITY", "none")


@pytest.fixture
def local_uri(tmp_path: Path) -> str:
    return str(tmp_path / "graph")


@pytest.fixture(params=["local", pytest.param("memory", marks=pytest.mark.slow)])
def uri(request: pytest.FixtureRequest, local_uri: str) -> str:
    """An empty place. A graph in memory ends with its process: only the slow tests recover one."""
    return local_uri if request.param == "local" else f"memory://{uuid.uuid4().hex}"


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of which tests get copies."""
    root = tmp_path_factory.mktemp("recovery") / "graph"
    new_graph(str(root))
    return root


@pytest.fixture
def graph(request: pytest.FixtureRequest, uri: str) -> Graph:
    if uri.startswith("memory:"):
        return new_graph(uri)
    graph: Graph = request.getfixturevalue("local_graph")
    return graph


@pytest.fixture
def local_graph(made: Path, local_uri: str) -> Graph:
    shutil.copytree(made, local_uri)
    return open_graph(local_uri)
