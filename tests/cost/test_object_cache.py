"""What a cold process need not read again, in memory and in a folder that processes share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from omnigraph.api.graph import open as open_graph
from omnigraph.storage.remote_objects import CACHE
from tests.cost.counting_proxy import Traffic
from tests.cost.operations import QUERY, SCHEMA, MeasuredGraph

SCHEMA_FILES = ("_schema.pg", "_schema.ir.json", "__schema_state.json")
KEPT_OPEN_REQUESTS = 7
"""The newest version, its note, the root; whether it moved; the address, version and rows of a table."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OMNIGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def schema_reads(used: Traffic) -> int:
    return sum(request.path.endswith(SCHEMA_FILES) for request in used.requests)


def in_another_process(uri: str) -> None:
    """Open and query as a process that knows nothing but the folder."""
    code = f"""
from omnigraph.api.graph import open
assert len(open({uri!r}, read_only=True).query({QUERY!r})) == 5
"""
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {}, timeout=120)


def test_a_process_reads_the_schema_of_a_graph_once(measured: MeasuredGraph) -> None:
    CACHE.clear()
    reads = [schema_reads(measured.open_and_query(read_only=True)) for _ in range(3)]
    # The first one asks for all at once, and does not wait for tokens of what cannot be kept yet.
    assert reads == [3, 3, 0]
    used = measured.open_and_query(read_only=False)
    assert len(used) == KEPT_OPEN_REQUESTS, used


@pytest.mark.parametrize("read_only", [True, False])
def test_another_process_uses_the_folder(
    measured: MeasuredGraph, folder: Path, read_only: bool
) -> None:
    CACHE.clear()
    in_another_process(measured.uri)
    assert len(list(folder.iterdir())) == len(SCHEMA_FILES)
    used = measured.open_and_query(read_only=read_only)
    assert len(used) == KEPT_OPEN_REQUESTS, used
    CACHE.clear()
    used = measured.cost(lambda: in_another_process(measured.uri))
    assert (len(used), schema_reads(used)) == (KEPT_OPEN_REQUESTS, 0), used


def test_damaged_entries_are_read_from_the_store(measured: MeasuredGraph, folder: Path) -> None:
    CACHE.clear()
    measured.open_and_query(read_only=True)
    for file in folder.iterdir():
        file.write_bytes(file.read_bytes()[:-3] + b"xyz")
    CACHE.clear()
    used = measured.open_and_query(read_only=True)
    assert schema_reads(used) == 3, used
    CACHE.clear()
    assert schema_reads(measured.open_and_query(read_only=True)) == 0


def test_a_schema_that_was_changed_is_not_that_of_the_cache(
    measured: MeasuredGraph, folder: Path
) -> None:
    CACHE.clear()
    measured.open_and_query(read_only=True)
    changed = SCHEMA.replace("slug: String @key", "slug: String @key  text: String?")
    measured.graph.schema.apply(changed)
    assert "text" in open_graph(measured.uri, read_only=True).schema.source
    CACHE.clear()
    assert "text" in open_graph(measured.uri, read_only=True).schema.source


def test_refs_of_branches_are_kept(measured: MeasuredGraph, folder: Path) -> None:
    CACHE.clear()
    measured.graph.branches.create("review")
    assert list(open_graph(measured.uri).branches) == ["main", "review"]
    CACHE.clear()
    used = measured.cost(lambda: list(open_graph(measured.uri).branches))
    assert not [r for r in used.requests if r.kind == "GET" and "_refs" in r.path], used
