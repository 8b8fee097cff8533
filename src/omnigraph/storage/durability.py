"""How much is asked of the local disk, and the fsync calls that make it true.

A write is acknowledged only when it would survive a power loss, so files are synced before what
names them, and directories after. Nothing here writes: files are opened by path once they are
complete. Object stores need none of it.
Tests: tests/contract/objects/test_durability.py.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Final

from omnigraph.errors import SyncFailed
from omnigraph.faults import declare
from omnigraph.side_by_side import in_parallel

BEFORE_FSYNC: Final = declare(
    "durability.before_fsync", "a file or directory is complete but may not be on the disk yet"
)
AFTER_FSYNC: Final = declare("durability.after_fsync", "a file or directory is on the disk")

CLOCK_SLACK_NS: Final = 2_000_000_000
"""File systems stamp changes with a clock that ticks coarsely, up to two seconds on old ones. Two
changes within one tick have the same stamp, so a younger stamp than this proves nothing."""


class Durability(Enum):
    """What the disk must have done before a write is acknowledged."""

    FSYNC = "fsync"
    NONE = "none"


class DiskSync:
    """Brings files below one directory, and the way to them, onto the disk.

    A new directory is lost with its content unless its parent is synced too, even if another process created it. So
    every directory up to the root is synced, except those unchanged since this object last did it.
    With `Durability.NONE` all methods do nothing.
    """

    def __init__(self, root: str, durability: Durability) -> None:
        self._root = root
        self._active = durability is Durability.FSYNC
        # What a directory looked like when it was last synced: device, inode, time of change.
        self._synced: dict[str, tuple[int, int, int]] = {}

    def files(self, paths: Iterable[str]) -> None:
        """Sync files, then the directories they are in. Raises `SyncFailed`."""
        if not self._active:
            return
        synced = list(dict.fromkeys(paths))
        self._sync(synced)
        self._sync_directories({os.path.dirname(path) for path in synced}, self._root)

    def descriptor(self, descriptor: int, path: str) -> None:
        """Sync an open file; `path` is its name in errors and fault points."""
        if self._active:
            BEFORE_FSYNC.hit(path=path)
            try:
                os.fsync(descriptor)
            except OSError as error:
                raise SyncFailed("sync", path, error.strerror or str(error)) from error
            AFTER_FSYNC.hit(path=path)

    def directory(self, directory: str, *, top: str | None = None) -> None:
        """Sync a directory whose entries changed, and those above it up to `top` (the root)."""
        if self._active:
            self._sync_directories({directory}, top or self._root)

    def _sync_directories(self, changed: set[str], top: str) -> None:
        """Sync directories that changed, and then those above them that may have."""
        self._sync_directories_of(sorted(changed))
        above = {parent for directory in changed for parent in _directories_above(directory, top)}
        unsynced = [directory for directory in above - changed if not self._is_synced(directory)]
        self._sync_directories_of(sorted(unsynced, key=len, reverse=True))

    def _is_synced(self, directory: str) -> bool:
        try:
            return self._synced.get(directory) == _appearance(os.stat(directory))
        except OSError as error:
            raise SyncFailed("sync", directory, error.strerror or str(error)) from error

    def _sync_directories_of(self, directories: Sequence[str]) -> None:
        found = self._sync(directories)
        for directory, status in zip(directories, found, strict=True):
            if status.st_mtime_ns < time.time_ns() - CLOCK_SLACK_NS:
                self._synced[directory] = _appearance(status)

    def _sync(self, paths: Sequence[str]) -> list[os.stat_result]:
        """Sync paths in any order; returns what each looked like just before.

        Later changes show by that. The calls are made together, as a file system that has to write
        its journal anyway confirms several files for the price of one.
        """
        for path in paths:
            BEFORE_FSYNC.hit(path=path)
        found = in_parallel(_sync_path, paths)
        for path in paths:
            AFTER_FSYNC.hit(path=path)
        return found


def _sync_path(path: str) -> os.stat_result:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            status = os.fstat(descriptor)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise SyncFailed("sync", path, error.strerror or str(error)) from error
    return status


def _appearance(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_dev, status.st_ino, status.st_mtime_ns


def _directories_above(directory: str, top: str) -> Iterator[str]:
    """The directories above this one, nearest first, the last being `top`."""
    while directory != top and directory != os.path.dirname(directory):
        directory = os.path.dirname(directory)
        yield directory
