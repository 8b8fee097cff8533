"""A graph on an object store, behind a proxy that counts requests."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests.contract.objects.moto_server import BUCKET, environment_for
from tests.cost.counting_proxy import CountingProxy, counting_proxy
from tests.cost.operations import MeasuredGraph


@pytest.fixture(scope="session")
def running_proxy(s3_endpoint: str) -> Iterator[CountingProxy]:
    with counting_proxy(s3_endpoint) as proxy:
        yield proxy


@pytest.fixture
def proxy(running_proxy: CountingProxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[CountingProxy]:
    for name, value in environment_for(running_proxy.endpoint).items():
        monkeypatch.setenv(name, value)
    yield running_proxy
    running_proxy.delay_s = 0.0


@pytest.fixture
def measured(proxy: CountingProxy) -> MeasuredGraph:
    return MeasuredGraph.create(f"s3://{BUCKET}/{uuid.uuid4().hex}", proxy)
