"""Processes that a test is responsible for, found by a variable of their environment."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path

_PATIENCE_SECONDS = 5.0
"""Python processes of tasks end when they notice that Java is gone."""


def processes_with(mark: str) -> list[str]:
    """The processes whose environment has the mark, once those that are just ending have ended."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while (found := _look(mark)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def _look(mark: str) -> list[str]:
    if not Path("/proc/self/environ").exists():
        shown = subprocess.run(["ps", "-Eaxww"], capture_output=True, text=True, check=True)
        return [line for line in shown.stdout.splitlines() if mark in line]
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.fsencode(mark) in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_text().replace("\0", " "))
    return found
