"""Old graphs, fresh for each test."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.upgrade.old_graphs import OldGraph, with_branches, with_history


@pytest.fixture(autouse=True)
def _without_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_DURABILITY", "none")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "graph"


@pytest.fixture
def long_history(root: Path) -> OldGraph:
    return with_history(root, 1)


@pytest.fixture
def branched(root: Path) -> OldGraph:
    return with_branches(root, 2)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user of the machine can get at, unlike those of `tmp_path`."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)
