"""A graph for each test, on a local disk and in memory."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import uuid
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from tests.behaviour.graphs import SCHEMA, Backstage
from tests.support.workshop import WORKSHOP, WORKSHOP_ROWS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(autouse=True)
def _without_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """What reaches the disk when is tested elsewhere, and syncing takes most of the time."""
    monkeypatch.setenv("OMNIGRAPH_DURABILITY", "none")


@pytest.fixture
def memory_uri() -> str:
    return f"memory://{uuid.uuid4().hex}"


@pytest.fixture
def local_uri(tmp_path: Path) -> str:
    return str(tmp_path / "graph")


@pytest.fixture(params=["local", "memory"])
def uri(request: pytest.FixtureRequest) -> str:
    """An empty place, on each kind of store in turn."""
    found: str = request.getfixturevalue(f"{request.param}_uri")
    return found


@pytest.fixture
def graph(uri: str) -> Graph:
    return init(uri, SCHEMA)


@pytest.fixture
def backstage(graph: Graph) -> Backstage:
    """The same graph without its façade."""
    return Backstage(graph.uri)


@pytest.fixture
def local_graph(local_uri: str) -> Graph:
    return init(local_uri, SCHEMA)


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of which tests get copies."""
    root = tmp_path_factory.mktemp("workshop") / "graph"
    init(root, WORKSHOP).load(WORKSHOP_ROWS.encode(), "merge")
    return root


@pytest.fixture
def workshop_graph(workshop: Path, local_uri: str) -> Graph:
    shutil.copytree(workshop, local_uri)
    return open_graph(local_uri)


@pytest.fixture
def without_hard_links(
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[], AbstractContextManager[None]]:
    """A while in which the disk makes no hard links, as some network disks never do."""

    def refuse(*_arguments: object, **_options: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    @contextmanager
    def refusing() -> Iterator[None]:
        with monkeypatch.context() as patch:
            patch.setattr(os, "link", refuse)
            yield

    return refusing


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user of the machine can get at, unlike those of `tmp_path`."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)
