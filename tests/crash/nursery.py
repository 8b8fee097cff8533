"""Processes that die, made by one that has imported everything: imports take longer than most writers."""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO

PROJECT = Path(__file__).parents[2]
PATIENCE_SECONDS = 120


class Nursery:
    """One such process. It ends with the tests."""

    def __init__(self) -> None:
        # The one thread that numbers would be crunched by, and that a fork would lose.
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.dying"],
            cwd=PROJECT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(self.close)

    def close(self) -> None:
        _open(self._process.stdin).close()
        self._process.wait()

    def run(self, writer: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str]:
        """Run a writer to its end; how the process ended, and what it printed."""
        with tempfile.NamedTemporaryFile("r") as output:
            order = {
                "writer": writer,
                "environment": dict(environment),
                "output": output.name,
            }
            return self._ended(order), output.read()

    def _ended(self, order: Mapping[str, object]) -> int:
        asked, answers = _open(self._process.stdin), _open(self._process.stdout)
        asked.write(json.dumps(order) + "\n")
        asked.flush()
        ready, _, _ = select.select([answers], [], [], PATIENCE_SECONDS)
        if not ready:
            self._process.kill()
            the_nursery.cache_clear()
            raise TimeoutError(f"{order['writer']} neither died nor ended")
        return int(answers.readline())


@cache
def the_nursery() -> Nursery:
    return Nursery()


def _open(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream
