"""Holding a lease: waiting for it, and a thread that renews it while it is held."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Final

from omnigraph.errors import OmnigraphError, StorageError
from omnigraph.faults import declare
from omnigraph.storage.objects import ObjectStore
from omnigraph.versioning.ids import process_identity
from omnigraph.versioning.locks.lease import Lease, LeaseContender, ReleasedLease, holder_of
from omnigraph.versioning.locks.lease_object import LeaseNote, LeaseObject
from omnigraph.versioning.locks.lease_timing import LeaseTiming
from omnigraph.versioning.locks.process_lock import (
    DescribeBranch,
    Holder,
    ProcessHold,
    lock_name,
    still_locked,
)
from omnigraph.versioning.locks.waiting import Deadline

RENEW: Final = declare("lock.renew", "before a lease is renewed")

_FIRST_PAUSE_SECONDS: Final = 0.05
_LONGEST_PAUSE_SECONDS: Final = 0.5
"""Between two looks at a lease. Holders keep one for some requests; after that it is a long job or a
dead writer, and each look is a request somebody pays for."""

_log = logging.getLogger(__name__)


class LeaseLocks:
    """The leases of one graph."""

    def __init__(
        self, objects: ObjectStore, timing: LeaseTiming, describe: DescribeBranch | None = None
    ) -> None:
        self._objects = objects
        self._timing = timing
        self._describe = describe
        self._released: dict[str, ReleasedLease] = {}

    @contextmanager
    def hold(self, branch: str | None, operation: str, deadline: Deadline) -> Iterator[ProcessHold]:
        name = lock_name(branch)
        contender = LeaseContender(
            self._stored(branch),
            process_identity(),
            operation,
            self._timing,
            released=self._released.pop(name, None),
            head=self._head(branch),
        )
        try:
            lease = _wait(contender, deadline)
            if lease is None:
                raise still_locked(branch, operation, contender.holder())
            with _renewing(lease, self._timing):
                yield ProcessHold(lease.is_lost, contender.undisturbed)
        finally:
            released = contender.give_back(self._head(branch))
            if released is not None:
                self._released[name] = released

    def reserve(self, branch: str) -> bool:
        """Leases stay when their branch goes, so one that is there tells of an earlier branch."""
        stored = self._stored(branch)
        note = LeaseNote.new(stored.name, process_identity(), "reserve", 1, self._timing.ttl_s)
        token = stored.write(note.released(), None)
        if token is None:
            return False
        self._released[stored.name] = ReleasedLease(note.term, token)
        return True

    def _head(self, branch: str | None) -> str | None:
        return None if self._describe is None else self._describe(branch)

    def holder(self, branch: str | None) -> Holder | None:
        with suppress(StorageError):
            seen = self._stored(branch).read()
            return None if seen is None else holder_of(seen)
        return None

    def forget_others(self, names: Collection[str]) -> None:
        """They stay: a deletion is not conditional and could hit a lease that was taken since."""

    def _stored(self, branch: str | None) -> LeaseObject:
        return LeaseObject(self._objects, lock_name(branch))


def _wait(contender: LeaseContender, deadline: Deadline) -> Lease | None:
    pause = _FIRST_PAUSE_SECONDS
    while True:
        lease = contender.attempt()
        if lease is not None:
            return lease
        remaining = deadline.remaining_s()
        if remaining == 0:
            return None
        time.sleep(min(remaining, pause * random.uniform(0.5, 1)))
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


@contextmanager
def _renewing(lease: Lease, timing: LeaseTiming) -> Iterator[None]:
    """Renew a lease for the length of the block."""
    stop = Event()
    thread = Thread(
        target=_renew_until,
        args=(stop, lease, timing),
        name=f"omnigraph lease {lease.name}",
        daemon=True,
    )
    thread.start()
    try:
        yield
    finally:
        stop.set()
        # A renewal under way would make the release come too late. One that hangs is left alone.
        thread.join(timing.loss_s)


def _renew_until(stop: Event, lease: Lease, timing: LeaseTiming) -> None:
    pause = timing.renew_s
    while not stop.wait(pause) and not lease.is_lost():
        try:
            RENEW.hit(lease=lease.name)
            lease.renew()
            pause = timing.renew_s
        except OmnigraphError as error:
            # The holder stops when this goes on; until then there is time for some more attempts.
            _log.warning("lease '%s' was not renewed: %s", lease.name, error)
            pause = timing.renew_s / 3
    if lease.is_lost():
        _log.warning("lease '%s' was lost", lease.name)
