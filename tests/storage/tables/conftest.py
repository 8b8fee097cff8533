"""Table stores on a local disk, in memory and on S3."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from omnigraph.storage.durability import Durability
from omnigraph.storage.objects import open_store
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uris import GraphRoot, normalise_root
from tests.contract.objects.moto_server import BUCKET, environment_for

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph.storage.objects import ObjectStore


@pytest.fixture
def root(tmp_path: Path) -> GraphRoot:
    """A place on the local disk; `anywhere` runs a test on every store instead."""
    return normalise_root(str(tmp_path / "graph"))


@pytest.fixture(params=["local", "memory", "s3"])
def anywhere(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> GraphRoot:
    match request.param:
        case "local":
            return normalise_root(str(tmp_path / "graph"))
        case "memory":
            return normalise_root(f"memory://{uuid.uuid4().hex}")
        case _:
            endpoint = request.getfixturevalue("s3_endpoint")
            for name, value in environment_for(endpoint).items():
                monkeypatch.setenv(name, value)
            return normalise_root(f"s3://{BUCKET}/{uuid.uuid4().hex}")


@pytest.fixture
def store(root: GraphRoot) -> TableStore:
    return TableStore(root, Durability.NONE)


@pytest.fixture
def objects(root: GraphRoot) -> ObjectStore:
    return open_store(root, Durability.NONE)
