"""The queue of writers inside a process: first come, first served.

The writer at the head of a queue has the lock. Leaving a queue is the same act for a writer that
is done, one that gave up and one that was interrupted, so there is one way out and it always works.

A writer may offer its work while it waits. The writer at the head takes the offers that stand right
behind it, does that work in its own turn, and wakes those writers when it is done.
Tests: tests/unit/versioning/test_lock_queues.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Condition, Event
from typing import Any, Final

from omnigraph.interrupts import uninterrupted

QueueKey = tuple[str, str | None]
"""The identity of a graph's root, and the branch."""


@dataclass(slots=True, eq=False)
class Place:
    """A writer's place in a queue, and the work it offers to the writer at the head."""

    operation: str
    offer: Any = None
    is_done: bool = False
    """Whether another writer has done the offered work."""
    _is_taken: bool = False
    _called: Event = field(default_factory=Event)

    def wait(self, timeout_s: float) -> bool:
        """Wait for the head of the queue, or until the offer is done. False when time was up first."""
        return self._called.wait(timeout_s)

    def call(self) -> None:
        """Tell the writer that it is its turn."""
        self._called.set()


class LockQueues:
    """The queues of all branches of all graphs. An empty queue takes no memory."""

    def __init__(self) -> None:
        self._queues: dict[QueueKey, deque[Place]] = {}
        self._guard = Condition()

    @contextmanager
    def join(self, key: QueueKey, operation: str, offer: Any = None) -> Iterator[Place]:
        """Stand in a queue for the length of the block.

        A writer whose offer was taken stays until that work is done, also when it is interrupted.
        """
        place = Place(operation, offer)
        try:
            with self._guard:
                queue = self._queues.setdefault(key, deque())
                queue.append(place)
                queue[0].call()
            yield place
        finally:
            uninterrupted(lambda: self.leave(key, place))

    def first(self, key: QueueKey) -> str | None:
        """The operation at the head of a queue, if there is one."""
        with self._guard:
            queue = self._queues.get(key)
            return queue[0].operation if queue else None

    def take(self, key: QueueKey, most: int, accepts: Callable[[Any], bool]) -> list[Place]:
        """For the writer at the head: take the offers right behind it, in order.

        It stops at an offer that is not accepted, or at none: no writer is overtaken.
        """
        with self._guard:
            taken: list[Place] = []
            for place in list(self._queues.get(key, ()))[1 : most + 1]:
                if place.offer is None or not accepts(place.offer):
                    break
                place._is_taken = True
                taken.append(place)
            return taken

    def give_back(self, key: QueueKey, places: Iterable[Place], done: Collection[Place]) -> None:
        """End the turn of the writer at the head: some of the taken offers are done, others not.

        Those that are done leave the queue, so that the next turn does not wait for their threads.
        """
        with self._guard:
            for place in places:
                place._is_taken = False
                if place in done:
                    place.is_done = True
                    self._queues[key].remove(place)
                    place.call()
            self._guard.notify_all()

    def leave(self, key: QueueKey, place: Place) -> None:
        """Leave the queue. A writer whose offer is taken waits until it is given back."""
        with self._guard:
            while place._is_taken:
                self._guard.wait()
            queue = self._queues.get(key, deque())
            if place in queue:
                queue.remove(place)
            if queue:
                queue[0].call()
            else:
                self._queues.pop(key, None)


PROCESS_QUEUES: Final = LockQueues()
"""Shared by every handle of this process, so that handles of one graph exclude each other."""
