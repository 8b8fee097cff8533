"""The writer lock of a branch: one writer at a time moves its tables and publishes.

Inside a process a mutex per graph and branch; on a local disk also a lock file, which the kernel
frees when its holder dies. Readers never look at it.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Lock

from omnigraph.errors import BranchLocked, StoreCallFailed
from omnigraph.faults import declare
from omnigraph.limits import LOCK_WAIT_SECONDS
from omnigraph.storage.uris import GraphRoot
from omnigraph.versioning.branch_names import public_name

AFTER_ACQUIRE = declare("lock.after_acquire", "right after a writer lock was taken")

LOCKS_DIR = "__locks"

_registry: defaultdict[tuple[str, str | None], Lock] = defaultdict(Lock)
_registry_guard = Lock()


@contextmanager
def writer_lock(root: GraphRoot, branch: str | None, operation: str) -> Iterator[None]:
    """Hold the writer lock of a branch. Raises `BranchLocked` after waiting too long."""
    deadline = time.monotonic() + LOCK_WAIT_SECONDS
    with _registry_guard:
        mutex = _registry[(root.identity, branch)]
    if not mutex.acquire(timeout=LOCK_WAIT_SECONDS):
        raise BranchLocked(public_name(branch), operation)
    try:
        if root.kind == "local":
            with _file_lock(root, branch, operation, deadline):
                AFTER_ACQUIRE.hit(branch=branch)
                yield
        else:
            AFTER_ACQUIRE.hit(branch=branch)
            yield
    finally:
        mutex.release()


@contextmanager
def writer_locks(root: GraphRoot, branches: Iterable[str | None], operation: str) -> Iterator[None]:
    """Hold the locks of several branches, always taken in one order: main, then by name."""
    ordered = sorted(set(branches), key=lambda branch: (branch is not None, branch or ""))
    with ExitStack() as held:
        for branch in ordered:
            held.enter_context(writer_lock(root, branch, operation))
        yield


@contextmanager
def _file_lock(
    root: GraphRoot, branch: str | None, operation: str, deadline: float
) -> Iterator[None]:
    name = "main" if branch is None else f"b-{branch}"
    path = Path(root.uri) / LOCKS_DIR / f"{name}.lock"
    handle = _open_lock_file(path)
    try:
        while not _try_lock(handle, path):
            if time.monotonic() > deadline:
                raise BranchLocked(public_name(branch), operation)
            time.sleep(0.002)
        # Who holds it is for messages only; a full disk is no reason not to hold it.
        with suppress(OSError):
            note = json.dumps({"pid": os.getpid(), "operation": operation})
            os.ftruncate(handle, 0)
            os.pwrite(handle, note.encode(), 0)
        yield
    finally:
        os.close(handle)


def _open_lock_file(path: Path) -> int:
    try:
        path.parent.mkdir(exist_ok=True)
        # Close-on-exec, so that a spawned child never keeps the lock of its parent.
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StoreCallFailed("lock", str(path), error.strerror or str(error)) from error


def _try_lock(handle: int, path: Path) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise StoreCallFailed("lock", str(path), error.strerror or str(error)) from error
    return True
