"""The writer locks of a graph, as its writers use them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final, assert_never

from omnigraph.errors import BranchLockLost
from omnigraph.faults import declare
from omnigraph.instruments import Step, took
from omnigraph.settings import read_settings
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.uris import GraphRoot
from omnigraph.versioning.branch_names import public_name
from omnigraph.versioning.ids import process_identity
from omnigraph.versioning.locks.file_lock import FileLocks
from omnigraph.versioning.locks.lease_object import LeaseTiming
from omnigraph.versioning.locks.process_lock import (
    PROCESS_QUEUES,
    Deadline,
    DescribeBranch,
    Holder,
    IsLost,
    NoProcessLock,
    Place,
    ProcessLock,
    QueueKey,
    lock_name,
    still_locked,
)

AFTER_ACQUIRE: Final = declare("lock.after_acquire", "right after a writer lock was taken")


@dataclass(frozen=True, slots=True)
class HeldLock:
    """The lock of a branch, or of several, while it is held."""

    operation: str
    _parts: tuple[tuple[str | None, IsLost], ...]
    undisturbed: bool = False
    """Whether the lock was not taken by anyone else since these `WriterLocks` released it.

    Then whatever needs the lock of the branch was not done meanwhile by another process or another
    open graph: no commit was published on the branch, no sidecar of it was written, completed or
    removed, it was not deleted or reset. What the holder knew at its last release still holds: the
    head of the branch, the newest versions of its tables, and which of its sidecars it left.

    It says nothing about what is done under the locks of other branches. Under that of main, other
    branches and tags are created and deleted, old versions of every branch are cleaned up, and
    sidecars of deleted branches are recovered. Nor does it exclude a table commit that arrives late,
    from a writer that had lost the lock before. False on local disks and in memory, where looking
    again costs little.
    """
    left: str | None = None
    """On a local disk: what the last holder knew of the branch when it released the lock, if that was
    another process."""

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

    def take_more(
        self, taken: list[Place], most: int, accepts: Callable[[Any], bool]
    ) -> list[Place]:
        """What writers offer that have come since; it is added to what was taken."""
        more = PROCESS_QUEUES.take(self._key, most, accepts)
        taken += more
        return more


class WriterLocks:
    """The locks of one graph. Raises `InvalidSetting` when the environment sets no usable wait."""

    def __init__(
        self,
        root: GraphRoot,
        objects: ObjectStore,
        timing: LeaseTiming | None = None,
        describe: DescribeBranch | None = None,
    ) -> None:
        """`describe` gives the text that is stored with a lease when it is taken and released, or with
        a locked file when it is released."""
        self._root = root
        self._processes = _process_lock(root, objects, timing or LeaseTiming(), describe)
        self._wait_ms = read_settings().lock_wait_ms

    @contextmanager
    def hold(
        self, branch: str | None, operation: str, *, wait_ms: int | None = None
    ) -> Iterator[HeldLock]:
        """Hold the lock of a branch. Raises `BranchLocked` after waiting too long.

        `wait_ms` is how long that is, 0 to take it only if it is free at once; without it
        `OMNIGRAPH_LOCK_WAIT_MS` decides.
        """
        began = perf_counter()
        deadline = Deadline.after(self._wait_ms if wait_ms is None else wait_ms)
        with PROCESS_QUEUES.join(self._queue(branch), operation) as place:
            if not place.wait(deadline.remaining_s()):
                took(Step.LOCK_WAIT, perf_counter() - began)
                raise still_locked(branch, operation, self._holder(branch))
            with self._hold_process(branch, operation, deadline, began) as lock:
                yield lock

    @contextmanager
    def share(
        self, branch: str | None, operation: str, offer: object
    ) -> Iterator[SharedTurn | None]:
        """Hold the lock of a branch, or let a writer that is before this one do the offered work.

        None if that is done. Raises `BranchLocked` after waiting too long.
        """
        began = perf_counter()
        deadline, key = Deadline.after(self._wait_ms), self._queue(branch)
        with PROCESS_QUEUES.join(key, operation, offer) as place:
            has_waited = not place.wait(deadline.remaining_s())
            if has_waited:
                PROCESS_QUEUES.leave(key, place)
            if place.is_done or has_waited:
                took(Step.LOCK_WAIT, perf_counter() - began)
            if place.is_done:
                yield None
                return
            if has_waited:
                raise still_locked(branch, operation, self._holder(branch))
            with self._hold_process(branch, operation, deadline, began) as lock:
                yield SharedTurn(lock, key)

    @contextmanager
    def _hold_process(
        self, branch: str | None, operation: str, deadline: Deadline, began: float
    ) -> Iterator[HeldLock]:
        """Hold the lock that other processes see, for the writer at the head of the queue.

        `began` is when the writer began to wait.
        """
        with ExitStack() as stack:
            try:
                hold = stack.enter_context(self._processes.hold(branch, operation, deadline))
            finally:
                took(Step.LOCK_WAIT, perf_counter() - began)
            AFTER_ACQUIRE.hit(branch=branch)
            parts = ((branch, hold.is_lost),)
            yield HeldLock(operation, parts, hold.undisturbed, hold.left)

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
            parts = tuple(part for lock in every for part in lock._parts)
            left = every[0].left if len(every) == 1 else None
            yield HeldLock(operation, parts, all(lock.undisturbed for lock in every), left)

    def reserve(self, branch: str) -> bool:
        """Whether a storage name can be given to a new branch. Each name is given once, where that
        can be known: on an object store, which keeps the leases of branches that are gone."""
        return self._processes.reserve(branch)

    def forget_others(self, branches: Iterable[str | None]) -> None:
        """Remove what the locks of other branches, which are gone, have left in storage."""
        self._processes.forget_others(frozenset(map(lock_name, branches)))

    def _queue(self, branch: str | None) -> QueueKey:
        return self._root.identity, branch

    def _holder(self, branch: str | None) -> Holder | None:
        """The current holder. The head of the queue may itself wait for another process."""
        known = self._processes.holder(branch)
        if known is not None:
            return known
        first = PROCESS_QUEUES.first(self._queue(branch))
        return None if first is None else Holder(process_identity(), first)


def _process_lock(
    root: GraphRoot,
    objects: ObjectStore,
    timing: LeaseTiming,
    describe: DescribeBranch | None,
) -> ProcessLock:
    match root.kind:
        case "local":
            return FileLocks(root, describe)
        case "s3":
            from omnigraph.versioning.locks.lease_lock import LeaseLocks

            return LeaseLocks(objects, timing, describe)
        case "memory":
            return NoProcessLock()
        case _:
            assert_never(root.kind)
