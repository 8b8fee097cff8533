"""Which worker runs which tests, and in which order.

With `--dist loadfile` a worker takes a whole file at a time, so that what its tests share is built once;
with `--dist loadgroup` it takes single tests. Either way the tests of a group go to one worker. The groups
are here because pytest-xdist 3.8 ignores `xdist_group` under pytest 9.2
(https://github.com/pytest-dev/pytest-xdist/issues/1386). Tested in tests/unit/testing/test_scheduling.py.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from xdist.remote import Producer

GROUPS = {
    "tests/spark/": "a Spark session",
    "tests/crash/test_kills.py": "the recorded steps of each writer",
    "tests/surfaces/test_wheel.py": "an environment with the installed wheel",
    "tests/surfaces/test_container.py": "an image with the installed wheel",
}
"""Files and folders whose tests go to one worker, with what they share."""

LONGEST_FIRST = (
    "tests/spark/",
    "tests/crash/test_kills.py",
    "tests/processes/test_writers.py",
    "tests/processes/test_publishers.py",
    "tests/behaviour/test_verify.py",
    "tests/behaviour/test_shared_turns.py",
    "tests/server/test_generated_requests.py",
    "tests/upgrade/",
    "tests/model/",
    "tests/processes/",
    "tests/behaviour/test_verify_files.py",
    "tests/behaviour/test_compaction.py",
    "tests/surfaces/",
    "tests/server/",
    "tests/behaviour/",
    "tests/crash/",
    "tests/unit/load/",
    "tests/storage/",
)
"""Files and folders that begin, so that no worker is busy when the others are done."""


class UnitsToWorkers(LoadScopeScheduling):  # type: ignore[misc]
    """Gives each worker a group, a file or a test, in the order they were collected."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        self._whole_files = config.getoption("dist") == "loadfile"
        # Otherwise the file with the most tests would come first.
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid, self._whole_files)


def unit_of(nodeid: str, whole_files: bool) -> str:
    """What a worker takes at once."""
    unit = nodeid.partition("::")[0] if whole_files else nodeid
    return next((group for group in GROUPS if nodeid.startswith(group)), unit)


def place_in_queue(nodeid: str) -> int:
    """Smaller for what begins earlier."""
    found = (n for n, prefix in enumerate(LONGEST_FIRST) if nodeid.startswith(prefix))
    return next(found, len(LONGEST_FIRST))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> UnitsToWorkers | None:
    """None leaves the other ways to distribute tests to pytest-xdist."""
    chosen = config.getoption("dist")
    return UnitsToWorkers(config, log) if chosen in ("loadfile", "loadgroup") else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: place_in_queue(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """One worker more than cores: some tests wait for leases, timeouts and other processes.

    None leaves it to pytest-xdist, which reads PYTEST_XDIST_AUTO_NUM_WORKERS.
    """
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ or config.option.numprocesses != "auto":
        return None
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else None
