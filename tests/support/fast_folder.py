"""Tests write to a folder in memory where the machine has room for one.

What they check does not depend on the disk, and syncing files to one takes longer than the work itself.
`--basetemp` names another folder, for example one on the disk of a product that is to be tested there.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

MEMORY = Path("/dev/shm")
ROOM_IN_BYTES = 6 * 1024**3
"""What a run of all tests leaves behind, with room for the largest single test."""

_PREFIX = "omnigraph-tests-"
_created = pytest.StashKey[Path]()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Runs before pytest decides where temporary folders are."""
    if config.option.basetemp is not None or hasattr(config, "workerinput") or not _has_room():
        return
    _remove_left_overs()
    folder = MEMORY / f"{_PREFIX}{os.getpid()}"
    config.option.basetemp = str(folder)
    config.stash[_created] = folder


def pytest_unconfigure(config: pytest.Config) -> None:
    folder = config.stash.get(_created, None)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def _has_room() -> bool:
    try:
        return (
            os.access(MEMORY, os.W_OK)
            and shutil.disk_usage(MEMORY).free >= ROOM_IN_BYTES
            and _free_memory() >= ROOM_IN_BYTES
        )
    except OSError:
        return False


def _free_memory() -> int:
    """What is available without swapping; a folder in memory may be larger than that."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    sizes = dict(line.split(":", 1) for line in lines)
    return int(sizes["MemAvailable"].split()[0]) * 1024


def _remove_left_overs() -> None:
    """Folders of runs that were killed hold memory until someone removes them."""
    for folder in MEMORY.glob(f"{_PREFIX}*"):
        if not Path("/proc", folder.name.removeprefix(_PREFIX)).exists():
            shutil.rmtree(folder, ignore_errors=True)
