"""An older graph on an object store: converted and read there like on a disk."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest

from omnigraph.api.graph import open as open_graph
from omnigraph.versioning.rows import MANIFEST_PATH
from tests.behaviour.graphs import Backstage
from tests.contract.objects.moto_server import BUCKET, environment_for
from tests.support.faults import Fail, InjectedFault, armed
from tests.upgrade.old_graphs import OldGraph, with_branches
from tests.upgrade.seen import check_everything

pytestmark = pytest.mark.slow


@pytest.fixture
def uri(s3_endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in environment_for(s3_endpoint).items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}/{tmp_path.name}"


@pytest.fixture
def branched(s3_endpoint: str, root: Path, uri: str) -> OldGraph:
    """A branched graph, made on the store."""
    old = with_branches(root, 2, uri)
    upload(s3_endpoint, uri.rpartition("/")[2], root)
    return old


def upload(s3_endpoint: str, prefix: str, folder: Path) -> None:
    def put(path: Path) -> None:
        key = quote(f"{prefix}/{path.relative_to(folder)}")
        request = Request(f"{s3_endpoint}/{BUCKET}/{key}", data=path.read_bytes(), method="PUT")
        request.add_header("Content-Type", "application/octet-stream")
        urlopen(request, timeout=30).close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(put, (path for path in folder.rglob("*") if path.is_file())))


def versions(uri: str) -> Mapping[str | None, int]:
    tables = Backstage(uri).tables
    branches = [None, *tables.list_branches(MANIFEST_PATH)]
    return {branch: tables.open(MANIFEST_PATH, branch).version for branch in branches}


@pytest.mark.acceptance("S-015")
def test_reading_an_older_graph_moves_nothing(uri, branched):
    before = versions(uri)
    assert "__run__a" in before
    check_everything(open_graph(uri, read_only=True), branched)
    assert versions(uri) == before


@pytest.mark.acceptance("S-017")
def test_an_interrupted_conversion_is_finished(uri, branched):
    with armed("upgrade.after_overwrite", Fail(), first=2), pytest.raises(InjectedFault):
        open_graph(uri)
    graph = open_graph(uri)
    check_everything(graph, branched)
    for name in ("main", "a/b", "my_branch"):
        loaded = graph.load(b'{"type": "Person", "data": {"name": "new"}}', "append", branch=name)
        assert loaded.receipt.manifest_version == len(branched.history[_stored(name)]) + 1
    graph.branches.delete("a/b")
    assert list(open_graph(uri).branches) == ["main", "feature", "my_branch"]


def _stored(name: str) -> str | None:
    return None if name == "main" else name
