"""Set-up shared by all tests."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.contract.objects.moto_server import running_server
from tests.support.background import wait_for_compaction

pytest_plugins = [
    "pytester",
    "tests.acceptance.plugin",
    "tests.scheduling",
    "tests.support.fast_folder",
]

# A time limit per example only measures how busy the machine is. Examples are the same every time, so
# that a sound change is never stopped by an old defect; `make test-random` looks for those.
settings.register_profile("same", deadline=None, print_blob=True, derandomize=True)
settings.register_profile("new", deadline=None, print_blob=True)
settings.load_profile("same")

# Whoever runs the tests in the background may have told them to ignore interrupts, which some send.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A process that has run tests of Spark still has a session, which other loads would take.
os.environ["OMNIGRAPH_ENGINE"] = "inline"

# What tests show does not depend on a start cache that this machine has.
os.environ["OMNIGRAPH_SPARK_CACHE"] = "off"

# What the person who runs the tests prefers is none of their business.
os.environ["OMNIGRAPH_HOME"] = os.path.join(os.path.dirname(__file__), "nobody")
for name in ("BEARER_TOKEN", "CONFIG", "NO_LEGACY_CONFIG", "PROFILE"):
    os.environ.pop(f"OMNIGRAPH_{name}", None)


def pytest_collection_finish() -> None:
    """What has been imported and collected stays: the garbage collector need not visit it again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _no_compaction_outlives_its_test() -> Iterator[None]:
    yield
    wait_for_compaction()


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """The address of an S3-compatible server, one for all tests of a process."""
    with running_server() as endpoint:
        yield endpoint
