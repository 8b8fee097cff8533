"""The server that most tests of a module share: open, with the library graph."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.serving import Server, library, serving


@pytest.fixture(scope="module")
def graph_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library(tmp_path_factory.mktemp("graph"))


@pytest.fixture(scope="module")
def server(graph_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("server"), graph_root, "--unauthenticated") as running:
        yield running
