"""What stands behind the queue of a process: a lock that other processes see."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from msgspec import Struct

from omnigraph.errors import BranchLocked
from omnigraph.versioning.branch_names import public_name
from omnigraph.versioning.locks.waiting import Deadline

IsLost = Callable[[], bool]
"""Asks whether a lock that was taken has been lost meanwhile; once it has, it stays so."""


class Holder(Struct, frozen=True):
    """Who has a lock, for messages."""

    owner: str | None = None
    operation: str | None = None


@dataclass(frozen=True, slots=True)
class ProcessHold:
    """A lock that was taken. `undisturbed` is explained at `HeldLock`."""

    is_lost: IsLost
    undisturbed: bool = False


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
        """Who holds the lock of a branch, as far as it is known."""
        ...

    def reserve(self, branch: str) -> bool:
        """Whether no branch of this storage name was ever locked; none will be found so again.

        Always True where names may be used again.
        """
        ...

    def forget_others(self, names: Collection[str]) -> None:
        """Remove what is stored of locks of other names, as far as nobody holds them."""
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
