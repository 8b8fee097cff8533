"""The writer locks of a graph, as its writers use them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final, assert_never

from omnigraph.errors import BranchLockLost
from omnigraph.faults import declare
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.uris import GraphRoot
from omnigraph.versioning.branch_names import public_name
from omnigraph.versioning.ids import process_identity
from omnigraph.versioning.locks.file_lock import FileLocks
from omnigraph.versioning.locks.lease_timing import LeaseTiming
from omnigraph.versioning.locks.process_lock import (
    Holder,
    IsLost,
    NoProcessLock,
    ProcessLock,
    lock_name,
    still_locked,
)
from omnigraph.versioning.locks.queues import PROCESS_QUEUES, Place, QueueKey
from omnigraph.versioning.locks.waiting import Deadline, lock_wait_from_environment

AFTER_ACQUIRE: Final = declare("lock.after_acquire", "right after a writer lock was taken")


@dataclass(frozen=True, slots=True)
class HeldLock:
    """The lock of a branch, or of several, while it is held."""

    operation: str
    _parts: tuple[tuple[str | None, IsLost], ...]

    def check(self) -> None:
        """Call it before every effect. Raises `BranchLockLost` when it was lost."""
        for branch, is_lost in self._parts:
            if is_lost():
                raise BranchLockLost(public_name(branch), self.operation)


@dataclass(frozen=True, slots=True)
class SharedTurn:
    """The lock of a branch, held by a writer that may work for those that wait behind it."""

    lock: HeldLock
    _key: QueueKey

    @contextmanager
    def take(
        self, most: int, accepts: Callable[[Any], bool]
    ) -> Iterator[tuple[list[Place], set[Place]]]:
        """What the next writers offer, in order, and an empty set for those whose work is done.

        The other offers go back to their writers at the end of the block.
        """
        taken = PROCESS_QUEUES.take(self._key, most, accepts)
        done: set[Place] = set()
        try:
            yield taken, done
        finally:
            PROCESS_QUEUES.give_back(self._key, taken, done)


class WriterLocks:
    """The locks of one graph. Raises `InputError` when the environment sets no usable wait."""

    def __init__(
        self, root: GraphRoot, objects: ObjectStore, timing: LeaseTiming | None = None
    ) -> None:
        self._root = root
        self._processes = _process_lock(root, objects, timing or LeaseTiming())
        self._wait_ms = lock_wait_from_environment()

    @contextmanager
    def hold(
        self, branch: str | None, operation: str, *, wait_ms: int | None = None
    ) -> Iterator[HeldLock]:
        """Hold the lock of a branch. Raises `BranchLocked` after waiting too long.

        `wait_ms` is how long that is, 0 to take it only if it is free at once; without it
        `OMNIGRAPH_LOCK_WAIT_MS` decides.
        """
        deadline = Deadline.after(self._wait_ms if wait_ms is None else wait_ms)
        with PROCESS_QUEUES.join(self._queue(branch), operation) as place:
            if not place.wait(deadline.remaining_s()):
                raise still_locked(branch, operation, self._holder(branch))
            with self._hold_process(branch, operation, deadline) as lock:
                yield lock

    @contextmanager
    def share(
        self, branch: str | None, operation: str, offer: object
    ) -> Iterator[SharedTurn | None]:
        """Hold the lock of a branch, or let a writer that is before this one do the offered work.

        None if that is done. Raises `BranchLocked` after waiting too long.
        """
        deadline, key = Deadline.after(self._wait_ms), self._queue(branch)
        with PROCESS_QUEUES.join(key, operation, offer) as place:
            has_waited = not place.wait(deadline.remaining_s())
            if has_waited:
                PROCESS_QUEUES.leave(key, place)
            if place.is_done:
                yield None
                return
            if has_waited:
                raise still_locked(branch, operation, self._holder(branch))
            with self._hold_process(branch, operation, deadline) as lock:
                yield SharedTurn(lock, key)

    @contextmanager
    def _hold_process(
        self, branch: str | None, operation: str, deadline: Deadline
    ) -> Iterator[HeldLock]:
        """Hold the lock that other processes see, for the writer at the head of the queue."""
        with self._processes.hold(branch, operation, deadline) as is_lost:
            AFTER_ACQUIRE.hit(branch=branch)
            yield HeldLock(operation, ((branch, is_lost),))

    def is_busy(self, branch: str | None) -> bool:
        """Whether a writer of this process holds the lock of a branch or waits for it."""
        return PROCESS_QUEUES.first(self._queue(branch)) is not None

    @contextmanager
    def hold_all(
        self, branches: Iterable[str | None], operation: str, *, beside: HeldLock | None = None
    ) -> Iterator[HeldLock]:
        """Hold the locks of several branches, always taken in one order: main, then by name.

        `beside` is the lock of main, for one who holds it already.
        """
        ordered = sorted(set(branches), key=lambda branch: (branch is not None, branch or ""))
        with ExitStack() as stack:
            held = [stack.enter_context(self.hold(branch, operation)) for branch in ordered]
            every = held if beside is None else [beside, *held]
            yield HeldLock(operation, tuple(part for lock in every for part in lock._parts))

    def forget_others(self, branches: Iterable[str | None]) -> None:
        """Remove what the locks of other branches, which are gone, have left in storage."""
        self._processes.forget_others(frozenset(map(lock_name, branches)))

    def _queue(self, branch: str | None) -> QueueKey:
        return self._root.identity, branch

    def _holder(self, branch: str | None) -> Holder | None:
        """Who is in the way. The head of the queue may itself wait for another process."""
        known = self._processes.holder(branch)
        if known is not None:
            return known
        first = PROCESS_QUEUES.first(self._queue(branch))
        return None if first is None else Holder(process_identity(), first)


def _process_lock(root: GraphRoot, objects: ObjectStore, timing: LeaseTiming) -> ProcessLock:
    match root.kind:
        case "local":
            return FileLocks(root)
        case "s3":
            from omnigraph.versioning.locks.lease_lock import LeaseLocks

            return LeaseLocks(objects, timing)
        case "memory":
            return NoProcessLock()
        case _:
            assert_never(root.kind)
