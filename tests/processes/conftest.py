"""Processes that share a graph, on a local disk and on an S3-compatible server."""

from __future__ import annotations

import os
import pickle
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.contract.objects.moto_server import BUCKET, environment_for
from tests.contract.objects.seaweed_server import BINARY as SEAWEED
from tests.contract.objects.seaweed_server import running_seaweed
from tests.support.fork_server import fork_server

START_SECONDS = 0.1
"""More than it takes to fork a few processes, so that their works begin together."""


@dataclass(frozen=True)
class Place:
    """Where a graph of several processes lies, and what they need to reach it."""

    uri: str
    environment: Mapping[str, str]


Work = tuple[object, ...]
"""The name of a function of `working` and its arguments."""


@pytest.fixture
def run(tmp_path: Path) -> Callable[[Place, Sequence[Work]], list[Any]]:
    """Do each work in a process of its own, all at the same moment."""

    def run_together(place: Place, works: Sequence[Work]) -> list[Any]:
        start = time.time() + START_SECONDS
        environment = {**os.environ, **place.environment}
        answers = [tmp_path / f"{uuid.uuid4().hex}.answer" for _ in works]
        processes = [
            fork_server().start(
                "tests.processes.working:answer_in_file",
                (str(answer), name, start, *arguments),
                environment,
            )
            for answer, (name, *arguments) in zip(answers, works, strict=True)
        ]
        assert [process.wait(300) for process in processes] == [0] * len(works)
        return [_returned(answer) for answer in answers]

    return run_together


def _returned(answer: Path) -> Any:
    value, error = pickle.loads(answer.read_bytes())
    if error is not None:
        raise error
    return value


@pytest.fixture
def local_place(tmp_path: Path) -> Place:
    return Place(str(tmp_path / "graph"), {})


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


STORES_IN_SLOW_TESTS = [pytest.param(name, marks=pytest.mark.slow) for name in ("s3", "seaweed")]
local_first = pytest.mark.parametrize("place", ["local", *STORES_IN_SLOW_TESTS], indirect=True)
"""Outside the slow tests, the local disk alone: another test of the file does the like on S3."""


@pytest.fixture(params=["local", "s3", pytest.param("seaweed", marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest) -> Place:
    """Every store that several processes can share."""
    found: Place = request.getfixturevalue(f"{request.param}_place")
    return found
