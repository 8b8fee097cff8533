"""What an init that was killed leaves, and what the next one says about it."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from omnigraph.api.graph import init
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import AlreadyInitialized, GraphNotFound, TableExists
from tests.crash.graphs import SCHEMA, killed
from tests.support.faults import Arm, Kill

MANIFEST_VERSIONS = Path("__manifest", "_versions")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "graph"


def kill_init(root: Path, point: str, hit: int = 1) -> None:
    notes = root.with_name("notes")
    assert killed("init", root, [Arm(point, Kill(), first=hit)], notes) == -signal.SIGKILL


def test_schema_files_without_tables_are_replaced_by_force(root):
    kill_init(root, "init.after_schema_contract_written")
    with pytest.raises(GraphNotFound):
        open_graph(root)
    with pytest.raises(
        AlreadyInitialized, match="if no other init is running, retry with force=True"
    ):
        init(root, SCHEMA)
    assert list(init(root, SCHEMA, force=True).branches) == ["main"]
    with pytest.raises(AlreadyInitialized, match="already initialized; open it"):
        init(root, SCHEMA)


def test_tables_without_a_graph_have_to_be_removed_by_hand(root):
    kill_init(root, "init.after_coordinator_init")
    shutil.rmtree(root / "__manifest")
    for read_only in (False, True):
        with pytest.raises(GraphNotFound):
            open_graph(root, read_only=read_only)
    for force in (True, False):
        with pytest.raises(TableExists, match="interrupted init left it; remove '"):
            init(root, SCHEMA, force=force)
    shutil.rmtree(root)
    assert list(init(root, SCHEMA).branches) == ["main"]


@pytest.mark.parametrize("content", [b"", bytes(4096)], ids=["empty", "zeros"])
def test_a_graph_whose_first_moment_was_torn_is_no_graph(root, content):
    kill_init(root, "init.after_coordinator_init")
    first, *later = sorted((root / MANIFEST_VERSIONS).glob("*.manifest"), reverse=True)
    first.write_bytes(content)
    for path in later:
        path.unlink()
    for read_only in (False, True):
        with pytest.raises(GraphNotFound):
            open_graph(root, read_only=read_only)
    with pytest.raises(AlreadyInitialized, match="unfinished graph"):
        init(root, SCHEMA)


def test_a_graph_is_there_as_soon_as_its_manifest_is(root):
    kill_init(root, "init.after_coordinator_init")
    assert list(open_graph(root).branches) == ["main"]
    with pytest.raises(AlreadyInitialized, match="already initialized; open it"):
        init(root, SCHEMA, force=True)
    assert open_graph(root).schema.source == SCHEMA
