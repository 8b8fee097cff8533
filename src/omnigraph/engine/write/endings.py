"""What is left of a write when its caller can be answered: clean-up, and the release of the lock.

On an object store each of these is a request. The write is visible before them, and whoever comes
after a process that dies here finds its operation settled. So the caller does not wait for them, only
the next writer of the branch does. A process that ends waits for what was begun.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock

from omnigraph.side_by_side import begin


class Endings:
    """Endings of writes that are under way. Thread-safe."""

    def __init__(self) -> None:
        self._waits: dict[object, Callable[[], None]] = {}
        self._guard = RLock()

    def begin(self, end: Callable[[], None]) -> None:
        """End a write in a thread of its own."""
        token = object()

        def run() -> None:
            try:
                end()
            finally:
                with self._guard:
                    self._waits.pop(token, None)

        with self._guard:
            self._waits[token] = begin(run)

    def wait(self) -> None:
        """Return when the writes that were answered have ended. Raises what kept one from it."""
        with self._guard:
            waits = list(self._waits.values())
        for wait in waits:
            wait()
