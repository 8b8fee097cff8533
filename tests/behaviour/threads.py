"""Calls from several threads at the same moment, each with its own outcome.

The threads are daemons and have a deadline, so a call that never returns fails its test instead of
blocking the run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

DEADLINE_SECONDS = 120
"""Far longer than all calls of one test take, on any machine."""


@dataclass(slots=True)
class Outcome:
    """What one call returned or raised."""

    value: Any = None
    error: BaseException | None = None

    def get(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.value


class Together:
    """Threads that begin their calls at the same moment."""

    def __init__(self, calls: Sequence[Callable[[], Any]]) -> None:
        self._outcomes = [Outcome() for _ in calls]
        self._start = threading.Barrier(len(calls) + 1)
        self._threads = [
            threading.Thread(target=self._run, args=pair, daemon=True)
            for pair in zip(calls, self._outcomes, strict=True)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, call: Callable[[], Any], outcome: Outcome) -> None:
        self._start.wait()
        try:
            outcome.value = call()
        except BaseException as error:
            outcome.error = error

    def start(self) -> None:
        self._start.wait()

    def outcomes(self) -> list[Outcome]:
        """The outcome of each call, in the order of the calls."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        hanging = [number for number, thread in enumerate(self._threads) if thread.is_alive()]
        assert hanging == [], f"calls {hanging} do not return"
        return self._outcomes


def together(calls: Sequence[Callable[[], Any]]) -> list[Outcome]:
    """Make calls from one thread each; the outcome of each call, in their order."""
    threads = Together(calls)
    threads.start()
    return threads.outcomes()
