"""The lock between processes on a local disk: a locked file per branch.

The kernel frees it when its holder dies, however that happens. What the file says is for messages, and
in a second line for the next holder: what a process that releases the lock knows of the branch. A process
that has the graph to itself does not take the trouble.
Tests: tests/processes/test_locks.py, tests/behaviour/test_writer_lock.py.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from omnigraph.errors import StoreCallFailed
from omnigraph.json_structs import described
from omnigraph.limits import HANDOVER_BYTES
from omnigraph.storage.uris import GraphRoot
from omnigraph.versioning.ids import process_identity
from omnigraph.versioning.locks.process_lock import (
    Deadline,
    DescribeBranch,
    Holder,
    ProcessHold,
    lock_name,
    never_lost,
    still_locked,
)

LOCKS_DIR: Final = "__locks"

_POLL_SECONDS: Final = 0.001
"""Holders keep a lock for milliseconds, and a look costs a few microseconds."""

_NOTE_BYTES: Final = 4096 + HANDOVER_BYTES


class FileLocks:
    """The lock files of one graph."""

    def __init__(self, root: GraphRoot, describe: DescribeBranch | None = None) -> None:
        self._folder = Path(root.uri) / LOCKS_DIR
        self._describe = describe
        self._shared: set[str | None] = set()
        """Branches of which another process has had the lock."""

    @contextmanager
    def hold(self, branch: str | None, operation: str, deadline: Deadline) -> Iterator[ProcessHold]:
        path = self._path(branch)
        while True:
            handle = _open(path)
            try:
                if not _wait(handle, path, deadline):
                    raise still_locked(branch, operation, _holder(handle))
                # Clean-up may have removed the file while we waited. Others lock the new one.
                if not _is_at(handle, path):
                    continue
                left = self._left(handle, branch)
                _write_note(handle, operation)
                try:
                    yield ProcessHold(never_lost, left=left)
                finally:
                    self._leave(handle, branch, operation)
                return
            finally:
                os.close(handle)

    def _left(self, handle: int, branch: str | None) -> str | None:
        """What the last holder has left, if it was another process."""
        with suppress(OSError, ValueError):
            noted, _, left = os.pread(handle, _NOTE_BYTES, 0).partition(b"\n")
            if (
                noted
                and msgspec.json.decode(noted, type=described(Holder)).owner != process_identity()
            ):
                self._shared.add(branch)
                return left.decode() or None
        return None

    def _leave(self, handle: int, branch: str | None, operation: str) -> None:
        if branch in self._shared and self._describe is not None:
            left = self._describe(branch)
            if left is not None:
                _write_note(handle, operation, left)

    def holder(self, branch: str | None) -> Holder | None:
        try:
            handle = os.open(self._path(branch), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            return _holder(handle)
        finally:
            os.close(handle)

    def reserve(self, branch: str) -> bool:
        return True

    def forget_others(self, names: Collection[str]) -> None:
        for path in self._folder.glob("*.lock"):
            if path.stem not in names:
                _remove_if_free(path)

    def _path(self, branch: str | None) -> Path:
        return self._folder / f"{lock_name(branch)}.lock"


def _open(path: Path) -> int:
    try:
        path.parent.mkdir(exist_ok=True)
        # Close-on-exec, so that a spawned child never keeps the lock of its parent.
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise _failed(path, error) from error


def _wait(handle: int, path: Path, deadline: Deadline) -> bool:
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if deadline.remaining_s() == 0:
                return False
        except OSError as error:
            raise _failed(path, error) from error
        time.sleep(_POLL_SECONDS)


def _remove_if_free(path: Path) -> None:
    """Remove a file that is not locked. A process that waits for it notices that it is gone."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(handle, path):
                path.unlink()
        finally:
            os.close(handle)


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except OSError:
        return False


def _write_note(handle: int, operation: str, left: str = "") -> None:
    # A full disk must not prevent locking.
    with suppress(OSError):
        fields = {"owner": process_identity(), "pid": os.getpid(), "operation": operation}
        note = f"{json.dumps(fields)}\n{left}".encode()
        os.pwrite(handle, note, 0)
        # Cut to size afterwards: a file that was emptied and filled is flushed when it is closed.
        os.ftruncate(handle, len(note))


def _holder(handle: int) -> Holder | None:
    """The last holder recorded in the file, which may be changing right now."""
    with suppress(OSError, ValueError):
        noted, _, _ = os.pread(handle, _NOTE_BYTES, 0).partition(b"\n")
        return msgspec.json.decode(noted, type=described(Holder))
    return None


def _failed(path: Path, error: OSError) -> StoreCallFailed:
    return StoreCallFailed("lock", str(path), error.strerror or str(error))
