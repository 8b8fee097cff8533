"""What the engine says about its work while it runs: events that are counted, and steps that took time.

A program that wants to listen installs `Instruments`, as a server does when it starts; without them an
event costs one comparison. The engine knows no library of metrics or traces.
Tests: tests/unit/test_instruments.py, tests/server/test_metrics.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from time import perf_counter
from typing import Final, Protocol


class Event(Enum):
    """Something that is counted."""

    CACHE_LOOKUP = "cache_lookup"
    """A look into a cache. Labels: its name; `hit` or `miss`."""
    COMPACTION = "compaction"
    """A compaction in the background. Label: `done`, `busy` or `failed`."""
    RECOVERY = "recovery"
    """A sidecar that recovery has looked at. Label: `resolved` or `quarantined`."""


class Step(Enum):
    """Work that takes time."""

    READ = "read"
    LOCK_WAIT = "lock_wait"
    COMMIT = "commit"
    COMPACT = "compact"
    RECOVER = "recover"


HIT: Final = "hit"
MISS: Final = "miss"


class Instruments(Protocol):
    """Receives events and steps, from any thread. It must not raise."""

    def count(self, event: Event, labels: tuple[str, ...]) -> None: ...

    def took(self, step: Step, seconds: float) -> None:
        """A step has ended just now, after so many seconds."""
        ...


class _Installed:
    """The listener of this process, if there is one."""

    __slots__ = ("listener",)

    def __init__(self) -> None:
        self.listener: Instruments | None = None


_INSTALLED: Final = _Installed()


def install(listener: Instruments | None) -> None:
    """Replace the listener; None removes it."""
    _INSTALLED.listener = listener


def count(event: Event, *labels: str) -> None:
    """Count an event."""
    if (listener := _INSTALLED.listener) is not None:
        listener.count(event, labels)


def looked_up(cache: str, *, found: bool) -> None:
    """Count a look into a cache."""
    if (listener := _INSTALLED.listener) is not None:
        listener.count(Event.CACHE_LOOKUP, (cache, HIT if found else MISS))


@contextmanager
def timed(step: Step) -> Iterator[None]:
    """Report the block as a step, whether it succeeds or fails."""
    began = perf_counter()
    try:
        yield
    finally:
        took(step, perf_counter() - began)


def took(step: Step, seconds: float) -> None:
    """Report a step that has ended just now."""
    if (listener := _INSTALLED.listener) is not None:
        listener.took(step, seconds)
