"""Leases: the lock between processes on an object store.

A lease is taken by creating its object, by replacing a released one, or by replacing one that its
holder has not renewed for a whole term. Every change is conditional on the text that was read. Each
process measures times on its own monotonic clock, so clocks are never compared. A thread renews the
lease while it is held.

A released marker stays in the store. Deletions are not conditional: one that arrives after the next
writer has replaced the marker would delete that writer's lease.
Tests: tests/unit/versioning/test_leases.py.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Event, Thread
from typing import Final

from omnigraph.errors import OmnigraphError, StorageError
from omnigraph.faults import declare
from omnigraph.storage.objects import ObjectStore, VersionToken
from omnigraph.versioning.ids import process_identity
from omnigraph.versioning.locks.lease_object import LeaseNote, LeaseObject, LeaseTiming, SeenLease
from omnigraph.versioning.locks.process_lock import (
    Deadline,
    DescribeBranch,
    Holder,
    ProcessHold,
    lock_name,
    still_locked,
)

BEFORE_TAKEOVER: Final = declare(
    "lock.before_takeover", "a lease was unchanged for its whole term and is about to be replaced"
)

_RELEASE_PAUSES: Final = (0.05, 0.2)
"""Seconds between attempts to release a lease. A lease that is left behind costs the next writer a
whole term, a short failure of the network need not."""

_log = logging.getLogger(__name__)

Monotonic = Callable[[], float]


@dataclass(frozen=True, slots=True)
class ReleasedLease:
    """The marker of a lease that this process has released. Every text is unique, so that a marker
    which is still there tells that the lease was not taken since."""

    term: int
    token: VersionToken


class Lease:
    """A lease this process has taken. One thread renews it, any thread may ask whether it is lost."""

    def __init__(
        self,
        stored: LeaseObject,
        note: LeaseNote,
        token: VersionToken,
        timing: LeaseTiming,
        sent_at: float,
        monotonic: Monotonic = time.monotonic,
    ) -> None:
        self._stored = stored
        self._note = note
        self._token = token
        self._timing = timing
        self._monotonic = monotonic
        # Before the request, not after its answer: others may have seen the text since then.
        self._renewed_at = sent_at
        self._lost = False
        self._refused = False

    @property
    def name(self) -> str:
        return self._stored.name

    @property
    def term(self) -> int:
        return self._note.term

    def is_lost(self) -> bool:
        """Whether it may be another's. True for ever once it was true."""
        if self._monotonic() - self._renewed_at >= self._timing.loss_s:
            self._lost = True
        return self._lost

    def renew(self) -> None:
        """Replace the text by a fresh one; a refusal is a loss. Raises `StoreCallFailed`."""
        if self.is_lost():
            return
        sent_at = self._monotonic()
        note = self._note.renewed(self._timing.ttl_s)
        token = self._stored.write(note, self._token)
        if token is None:
            self._lost = self._refused = True
            return
        self._note, self._token = note, token
        if not self.is_lost():
            self._renewed_at = sent_at

    def release(self, head: str | None = None) -> ReleasedLease | None:
        """Let the next one have it at once. A store that fails is logged: the lease runs out.

        Returns the marker, if it is known to be in the store.
        """
        if self._refused:
            return None
        # A holder that lost the lease because the store is unreachable does not wait for it again.
        for pause in (None,) if self.is_lost() else (*_RELEASE_PAUSES, None):
            try:
                # A refusal is fine as well: the marker is there already, or another process's lease.
                token = self._stored.replace(self._note.released(head), self._token)
                return None if token is None else ReleasedLease(self._note.term, token)
            except StorageError as error:
                if pause is None:
                    _log.warning("lease '%s' was not released: %s", self.name, error)
                else:
                    time.sleep(pause)
        return None


class LeaseContender:
    """One writer's way to a lease: it looks again and again, and takes the lease when it may."""

    def __init__(
        self,
        stored: LeaseObject,
        owner: str,
        operation: str,
        timing: LeaseTiming,
        monotonic: Monotonic = time.monotonic,
        *,
        released: ReleasedLease | None = None,
        head: str | None = None,
    ) -> None:
        """`released` is the marker that this process has left, `head` what it knows of the branch."""
        self._stored = stored
        self._owner = owner
        self._operation = operation
        self._timing = timing
        self._monotonic = monotonic
        self._released = released
        self._head = head
        self.undisturbed = False
        self._watched: SeenLease | None = None
        self._watched_since = 0.0
        self._sent: LeaseNote | None = None
        self._lease: Lease | None = None

    def attempt(self) -> Lease | None:
        """Take the lease if it is free or abandoned. None: look again a little later."""
        if self._released is not None:
            # Most likely the marker is still there. If it is not, the store refuses.
            released, self._released = self._released, None
            lease = self._take(released.term + 1, released.token)
            if lease is not None:
                self.undisturbed = True
                return lease
        asked_at = self._monotonic()
        seen = self._stored.read()
        if seen is None:
            return self._take(1, None)
        if seen.is_free:
            return self._take(seen.term + 1, seen.token)
        # From the answer of the first look to the question of the last: both may have been slow.
        if self._watched is None or self._watched.token != seen.token:
            self._watched, self._watched_since = seen, self._monotonic()
        elif asked_at - self._watched_since >= self._timing.ttl_s:
            BEFORE_TAKEOVER.hit(lease=self._stored.name)
            return self._take(seen.term + 1, seen.token)
        return None

    def holder(self) -> Holder | None:
        """The holder when the lease was last read."""
        return None if self._watched is None else holder_of(self._watched)

    def give_back(self, head: str | None = None) -> ReleasedLease | None:
        """Release the lease, also one that an interrupted attempt may have taken."""
        try:
            if self._lease is None and self._sent is not None:
                token = self._stored.token_of(self._sent)
                if token is not None:
                    self._keep(self._sent, token, self._monotonic())
        except StorageError as error:
            _log.warning(
                "could not confirm the release of lease '%s': %s", self._stored.name, error
            )
        return None if self._lease is None else self._lease.release(head)

    def _take(self, term: int, instead_of: VersionToken | None) -> Lease | None:
        sent_at = self._monotonic()
        note = LeaseNote.new(
            self._stored.name, self._owner, self._operation, term, self._timing.ttl_s, self._head
        )
        self._sent = note
        token = self._stored.write(note, instead_of)
        if token is None:
            self._sent = None
            return None
        return self._keep(note, token, sent_at)

    def _keep(self, note: LeaseNote, token: VersionToken, sent_at: float) -> Lease:
        self._lease = Lease(self._stored, note, token, self._timing, sent_at, self._monotonic)
        return self._lease


def holder_of(seen: SeenLease) -> Holder | None:
    """The holder of a lease, if it is held and readable."""
    if seen.note is None or seen.is_free:
        return None
    return Holder(seen.note.owner, seen.note.operation)


RENEW: Final = declare("lock.renew", "before a lease is renewed")

_FIRST_PAUSE_SECONDS: Final = 0.05
_LONGEST_PAUSE_SECONDS: Final = 0.5
"""Between two looks at a lease. Holders keep one for some requests; after that it is a long job or a
dead writer, and each check is a paid request."""

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
        """Leases stay when their branch goes, so an existing one may belong to an earlier branch."""
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
