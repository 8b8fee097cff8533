"""Timing of small calls: the median of several rounds, so that one busy moment does not count."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable

_WARM_UP, _WARM_UP_SECONDS = 40, 2.0


def settle(call: Callable[[], object]) -> None:
    """Call until whoever answers has in memory what it wants to keep there; slow ones not that often."""
    started = time.perf_counter()
    for _ in range(_WARM_UP):
        call()
        if time.perf_counter() - started > _WARM_UP_SECONDS:
            return


def median_seconds(call: Callable[[], object], *, rounds: int = 9, seconds: float = 0.2) -> float:
    """Seconds per call. Each round repeats the call for about `seconds`."""
    call()
    started = time.perf_counter()
    call()
    once = max(time.perf_counter() - started, 1e-9)
    repeats = max(1, int(seconds / once))
    gc.collect()
    found = []
    for _ in range(rounds):
        started = time.perf_counter()
        for _ in range(repeats):
            call()
        found.append((time.perf_counter() - started) / repeats)
    return statistics.median(found)


def readable(seconds: float) -> str:
    """A duration in the unit that keeps it short."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.1f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.2f} ms"
    return f"{seconds:.2f} s"
