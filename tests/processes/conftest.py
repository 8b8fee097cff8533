"""Processes that share a graph, on a local disk and on an S3-compatible server."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from tests.contract.objects.moto_server import BUCKET, environment_for, running_server
from tests.contract.objects.seaweed_server import BINARY as SEAWEED
from tests.contract.objects.seaweed_server import running_seaweed
from tests.processes.working import in_process, process_id

WORKERS = 4


@dataclass(frozen=True)
class Place:
    """Where a graph of several processes lies, and what they need to reach it."""

    uri: str
    environment: Mapping[str, str]


@pytest.fixture(scope="session")
def pool() -> Iterator[ProcessPoolExecutor]:
    """Processes that have imported everything, so that they can start together."""
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        list(pool.map(_settle, range(WORKERS)))
        yield pool


def _settle(_number: int) -> int:
    # Held for a moment, so that every task starts a process of its own.
    time.sleep(0.2)
    return process_id()


Work = tuple[object, ...]
"""The name of a function of `working` and its arguments."""


@pytest.fixture
def run(pool: ProcessPoolExecutor) -> Callable[[Place, Sequence[Work]], list[Any]]:
    """Run each piece of work in a process of its own, all at the same moment."""

    def run_together(place: Place, works: Sequence[Work]) -> list[Any]:
        assert len(works) <= WORKERS
        start = time.time() + 0.3
        futures = [
            pool.submit(in_process, str(name), dict(place.environment), start, *arguments)
            for name, *arguments in works
        ]
        return [future.result(timeout=300) for future in futures]

    return run_together


@pytest.fixture
def local_place(tmp_path: Path) -> Place:
    return Place(str(tmp_path / "graph"), {})


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    with running_server() as endpoint:
        yield endpoint


@pytest.fixture
def s3_place(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Place:
    return _place_at(s3_endpoint, monkeypatch)


@pytest.fixture(scope="session")
def seaweed_endpoint() -> Iterator[str]:
    if not SEAWEED.exists():
        pytest.skip("there is no SeaweedFS for this system")
    with running_seaweed() as endpoint:
        yield endpoint


@pytest.fixture
def seaweed_place(seaweed_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Place:
    return _place_at(seaweed_endpoint, monkeypatch)


def _place_at(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Place:
    environment = environment_for(endpoint)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return Place(f"s3://{BUCKET}/{uuid.uuid4().hex}", environment)


@pytest.fixture(params=["s3", pytest.param("seaweed", marks=pytest.mark.slow)])
def object_place(request: pytest.FixtureRequest) -> Place:
    """Every object store in turn."""
    found: Place = request.getfixturevalue(f"{request.param}_place")
    return found


@pytest.fixture(params=["local", "s3", pytest.param("seaweed", marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest) -> Place:
    """Every store that several processes can share."""
    found: Place = request.getfixturevalue(f"{request.param}_place")
    return found
