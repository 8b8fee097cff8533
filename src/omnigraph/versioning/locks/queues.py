"""The queue of writers inside a process: first come, first served.

Whoever stands at the head of a queue has the lock. Leaving a queue is the same act for a writer that
is done, one that gave up and one that was interrupted, so there is one way out and it always works.
Tests: tests/unit/versioning/test_lock_queues.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Final

QueueKey = tuple[str, str | None]
"""The identity of a graph's root, and the branch."""


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A writer's place in a queue."""

    operation: str
    _turn: Event = field(default_factory=Event)

    def wait(self, timeout_s: float) -> bool:
        """Wait for the head of the queue. False when time was up first."""
        return self._turn.wait(timeout_s)

    def call(self) -> None:
        """Tell the writer that it is its turn."""
        self._turn.set()


class LockQueues:
    """The queues of all branches of all graphs. An empty queue takes no memory."""

    def __init__(self) -> None:
        self._queues: dict[QueueKey, deque[Place]] = {}
        self._guard = Lock()

    @contextmanager
    def join(self, key: QueueKey, operation: str) -> Iterator[Place]:
        """Stand in a queue for the length of the block."""
        place = Place(operation)
        try:
            with self._guard:
                queue = self._queues.setdefault(key, deque())
                queue.append(place)
                queue[0].call()
            yield place
        finally:
            self._leave(key, place)

    def first(self, key: QueueKey) -> str | None:
        """The operation at the head of a queue, if there is one."""
        with self._guard:
            queue = self._queues.get(key)
            return queue[0].operation if queue else None

    def _leave(self, key: QueueKey, place: Place) -> None:
        with self._guard:
            queue = self._queues.get(key, deque())
            if place in queue:
                queue.remove(place)
            if queue:
                queue[0].call()
            else:
                self._queues.pop(key, None)


PROCESS_QUEUES: Final = LockQueues()
"""Shared by every handle of this process, so that handles of one graph exclude each other."""
