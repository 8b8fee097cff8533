"""Clusters in a directory, and the same on an object store."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from tests.cluster.clusters import Cluster
from tests.contract.objects.moto_server import BUCKET, environment_for


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """One declared graph with a stored query and a policy; nothing is applied."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMNIGRAPH_DURABILITY", "none")
    return Cluster(tmp_path / "cluster")


@pytest.fixture
def s3_cluster(s3_endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """The same, stored at an `s3://` address."""
    monkeypatch.chdir(tmp_path)
    for name, value in environment_for(s3_endpoint).items():
        monkeypatch.setenv(name, value)
    return Cluster(tmp_path / "cluster", f"s3://{BUCKET}/cluster-{uuid4().hex}")


@pytest.fixture(params=["cluster", "s3_cluster"])
def any_cluster(request: pytest.FixtureRequest) -> Cluster:
    """Both in turn."""
    found: Cluster = request.getfixturevalue(request.param)
    return found
