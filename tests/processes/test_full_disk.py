"""A disk that is full: a typed error, nothing to be seen of the attempt, and the next call works."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("stride", [3, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("disk", ["tmpfs", "limit"])
def test_a_write_without_room_fails_whole_and_works_when_there_is_some(tmp_path, disk, stride):
    """A machine that lends no small disk runs both cases with the limit; none is left out."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.processes.small_disk", str(tmp_path), disk, str(stride)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["disk"] in (disk, "limit")
    *attempts, end = report["seen"]
    loads = 0
    for write, found in groupby(attempts, key=lambda attempt: attempt["write"]):
        if write == "event":
            # Every single one is there once, whatever its first call said.
            events = list(found)
            errors = [attempt["error"] for attempt in events if attempt["error"]]
            assert len(errors) > len(events) // 4
            assert all(attempt["unchanged"] for attempt in events if attempt["error"])
            continue
        *failed, succeeded = found
        assert len(failed) >= 2, write
        for attempt in failed:
            assert attempt["error"] in ("StoreCallFailed", "SyncFailed", "CommitStateUnknown"), (
                attempt
            )
            assert attempt["unchanged"], attempt
        assert succeeded["error"] is None, "there was never enough room"
        loads += (len(failed) + 1) if write == "load" else 0
    assert end["rows"] == 2 * loads
    assert end["events"] == len(events)
