"""Named fault points: the places where a test may make a writer fail, stop or die.

A writer declares its points at module level and calls `hit` at the step. Nothing happens there
unless a test has set a trap, and then whatever the trap does. This module knows no traps; they are
in `tests.support.faults`.
Tests: tests/unit/test_faults.py.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping

_NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+\Z")

Trap = Callable[["FaultPoint", Mapping[str, object]], None]
"""What happens at a point: called with the point and what the step said about itself."""


class FaultPoint:
    """One step of a writer. Made by `FaultPoints.declare`, never directly."""

    __slots__ = ("_lock", "_traps", "description", "name")

    def __init__(self, name: str, description: str) -> None:
        self.name = name
        self.description = description
        self._traps: tuple[Trap, ...] = ()
        self._lock = threading.Lock()

    def hit(self, **context: object) -> None:
        """The step is reached. `context` says what a test may want to know: a path, a table."""
        for trap in self._traps:
            trap(self, context)

    def set_trap(self, trap: Trap) -> None:
        with self._lock:
            self._traps = (*self._traps, trap)

    def remove_trap(self, trap: Trap) -> None:
        with self._lock:
            self._traps = tuple(t for t in self._traps if t is not trap)

    def __repr__(self) -> str:
        return f"FaultPoint({self.name!r})"


class FaultPoints:
    """All points that have been declared, by name."""

    def __init__(self) -> None:
        self._points: dict[str, FaultPoint] = {}
        self._lock = threading.Lock()

    def declare(self, name: str, description: str) -> FaultPoint:
        """Make a point. Raises `ValueError` for a name that is taken or not of the form `a.b`."""
        if not _NAME.match(name):
            raise ValueError(f"fault point {name!r} is not named like area.step")
        if not description.strip():
            raise ValueError(f"fault point {name!r} does not say which step it is")
        with self._lock:
            if name in self._points:
                raise ValueError(f"fault point {name!r} is declared twice")
            point = self._points[name] = FaultPoint(name, description)
        return point

    def __getitem__(self, name: str) -> FaultPoint:
        """The point of that name. Raises `KeyError` when no imported module declared it."""
        try:
            return self._points[name]
        except KeyError:
            raise KeyError(f"no fault point {name!r} is declared") from None

    def all(self) -> tuple[FaultPoint, ...]:
        """Every declared point, by name. Only modules that were imported have declared theirs."""
        with self._lock:
            return tuple(sorted(self._points.values(), key=lambda p: p.name))


FAULT_POINTS = FaultPoints()
"""The points of this process. It only grows, while modules are imported."""

declare = FAULT_POINTS.declare
