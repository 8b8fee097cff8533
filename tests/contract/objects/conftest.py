"""One store after the other for the same tests."""

from __future__ import annotations

import uuid
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING

import pytest

from tests.contract.objects.moto_server import environment_for
from tests.contract.objects.places import LocalPlace, MemoryPlace, Place, S3Place, open_place
from tests.contract.objects.seaweed_server import BINARY as SEAWEED
from tests.contract.objects.seaweed_server import running_seaweed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from omnigraph.storage.objects import ObjectStore


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


@pytest.fixture(scope="session")
def seaweed_endpoint() -> Iterator[str]:
    if not SEAWEED.exists():
        pytest.skip("there is no SeaweedFS for this system")
    with running_seaweed() as endpoint:
        yield endpoint


@pytest.fixture
def seaweed_place(seaweed_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Place:
    for name, value in environment_for(seaweed_endpoint).items():
        monkeypatch.setenv(name, value)
    return S3Place(uuid.uuid4().hex, seaweed_endpoint)


ON_SEAWEED = pytest.param("seaweed", marks=pytest.mark.slow)


@pytest.fixture(params=["local", "memory", "s3", ON_SEAWEED])
def place(request: pytest.FixtureRequest) -> Place:
    """Every store in turn."""
    found: Place = request.getfixturevalue(f"{request.param}_place")
    return found


@pytest.fixture(params=["local", "s3", ON_SEAWEED])
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
