"""The writer queue of one process, and the lock behind it that other processes see.

The writer at the head of a queue has the lock; writers are served in order of arrival. A writer that is
done, gave up or was interrupted leaves the queue in the same way, so leaving always works.

A writer may offer its work while it waits. The writer at the head takes the offers directly behind it,
does that work in its own turn, and wakes those writers when it is done.
Tests: tests/unit/versioning/test_lock_queues.py.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from threading import Condition, Event
from typing import Any, Final, Protocol

from msgspec import Struct

from omnigraph.errors import BranchLocked
from omnigraph.interrupts import uninterrupted
from omnigraph.versioning.branch_names import public_name


@dataclass(frozen=True, slots=True)
class Deadline:
    """The moment at which waiting ends, on the monotonic clock."""

    at: float

    @classmethod
    def after(cls, wait_ms: int) -> Deadline:
        return cls(time.monotonic() + wait_ms / 1000)

    def remaining_s(self) -> float:
        """Never negative."""
        return max(0.0, self.at - time.monotonic())


IsLost = Callable[[], bool]
"""Asks whether a lock that was taken has been lost meanwhile; once it has, it stays so."""


class Holder(Struct, frozen=True):
    """A lock holder, for messages."""

    owner: str | None = None
    operation: str | None = None


@dataclass(frozen=True, slots=True)
class ProcessHold:
    """A lock that was taken. `undisturbed` and `left` are explained at `HeldLock`."""

    is_lost: IsLost
    undisturbed: bool = False
    left: str | None = None


DescribeBranch = Callable[[str | None], str | None]
"""What is known of a branch, as a text that is stored with its lock for other processes."""


class ProcessLock(Protocol):
    """A lock per branch between processes. Its callers are already alone in their process."""

    def hold(
        self, branch: str | None, operation: str, deadline: Deadline
    ) -> AbstractContextManager[ProcessHold]:
        """Hold the lock of a branch. Raises `BranchLocked` when the time is up."""
        ...

    def holder(self, branch: str | None) -> Holder | None:
        """The holder of a branch lock, if known."""
        ...

    def reserve(self, branch: str) -> bool:
        """Whether no branch of this storage name was ever locked; none will be found so again.

        Always True where names may be used again.
        """
        ...

    def forget_others(self, names: Collection[str]) -> None:
        """Remove stored locks of other names that are not held."""
        ...


class NoProcessLock:
    """For graphs in memory, which other processes cannot see."""

    @contextmanager
    def hold(self, branch: str | None, operation: str, deadline: Deadline) -> Iterator[ProcessHold]:
        yield ProcessHold(never_lost)

    def holder(self, branch: str | None) -> Holder | None:
        return None

    def reserve(self, branch: str) -> bool:
        return True

    def forget_others(self, names: Collection[str]) -> None:
        return None


def never_lost() -> bool:
    return False


def lock_name(branch: str | None) -> str:
    """What the lock of a branch is called in storage. No branch can be called like main's."""
    # Branches from older formats may have slashes in their names.
    return "main" if branch is None else f"b-{branch.replace('/', '%2F')}"


def still_locked(branch: str | None, operation: str, holder: Holder | None) -> BranchLocked:
    """The error of an operation that waited in vain."""
    if holder is None:
        return BranchLocked(public_name(branch), operation)
    return BranchLocked(public_name(branch), operation, holder.operation, holder.owner)


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
        """For the writer at the head: take the offers right behind it and behind those it has
        taken before, in order.

        It stops at an offer that is not accepted, or at none: no writer is overtaken.
        """
        with self._guard:
            taken: list[Place] = []
            for place in list(self._queues.get(key, ()))[1:]:
                if place._is_taken:
                    continue
                if len(taken) == most or place.offer is None or not accepts(place.offer):
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
