"""One store after the other for the same tests."""

from __future__ import annotations

import uuid
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING

import pytest

from tests.contract.objects.moto_server import environment_for, running_server
from tests.contract.objects.places import LocalPlace, MemoryPlace, Place, S3Place, open_place

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from omnigraph.storage.objects import ObjectStore


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    with running_server() as endpoint:
        yield endpoint


@pytest.fixture
def local_place(tmp_path: Path) -> Place:
    return LocalPlace(tmp_path / "graph")


@pytest.fixture
def memory_place() -> Place:
    return MemoryPlace(uuid.uuid4().hex)


@pytest.fixture
def s3_place(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Place:
    for name, value in environment_for(s3_endpoint).items():
        monkeypatch.setenv(name, value)
    return S3Place(uuid.uuid4().hex, s3_endpoint)


@pytest.fixture(params=["local", "memory", "s3"])
def place(request: pytest.FixtureRequest) -> Place:
    """Every store in turn."""
    found: Place = request.getfixturevalue(f"{request.param}_place")
    return found


@pytest.fixture(params=["local", "s3"])
def shared_place(request: pytest.FixtureRequest) -> Place:
    """Every store that several processes can see."""
    found: Place = request.getfixturevalue(f"{request.param}_place")
    return found


@pytest.fixture
def store(place: Place) -> ObjectStore:
    return open_place(place)


@pytest.fixture(scope="session")
def processes() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        yield pool
