"""Temporary files that writers on a local disk left behind when they were killed.

Everything is written under a temporary name first, by our adapter and by the table library. Such a name
never counts as an object, so only its age matters: a file that no writer has touched for a day has none.
On an object store nothing has a temporary name; parts of unfinished uploads are not listed there.
Tests: tests/storage/test_temporary_files.py, tests/processes/test_cleanup.py.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from omnigraph.storage.objects import naming_failures
from omnigraph.storage.uris import GraphRoot

_TEMPORARY: Final = re.compile(
    r"(?:.*#[0-9]+"  # our adapter, and the library's data files
    r"|\.tmp[A-Za-z0-9]+"  # the library's versions
    r"|.+\.json\.tmp\.[0-9a-f]+"  # the library's refs and notes
    r"|latest_version_hint\.json\.[0-9]+)"  # our note of the newest version
)
_UNIQUE_FOLDERS: Final = frozenset({"_indices", "data"})
"""Where every folder belongs to one write, which makes it before it writes into it."""


def list_temporary_files(root: GraphRoot, folders: Sequence[str], older_than_s: float) -> list[str]:
    """Temporary files, and empty folders of single writes, in some folders and directly at the root."""
    if root.kind != "local":
        return []
    before = time.time() - older_than_s
    with naming_failures(root, "list", ""):
        found = [path for path in _candidates(root.uri, folders) if _is_old(path, before)]
    return sorted(os.path.relpath(path, root.uri) for path in found)


def remove_temporary_files(
    root: GraphRoot, folders: Sequence[str], older_than_s: float
) -> list[str]:
    """Remove those files and folders; returns what went."""
    found = list_temporary_files(root, folders, older_than_s)
    return [path for path in found if _removed(root, path)]


def _candidates(root: str, folders: Sequence[str]) -> Iterator[str]:
    with suppress(FileNotFoundError), os.scandir(root) as entries:
        for entry in entries:
            if _TEMPORARY.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                yield entry.path
    for folder in folders:
        for place, subfolders, files in os.walk(os.path.join(root, folder)):
            yield from (os.path.join(place, f) for f in files if _TEMPORARY.fullmatch(f))
            is_unique = os.path.basename(os.path.dirname(place)) in _UNIQUE_FOLDERS
            if is_unique and not subfolders and not files:
                yield place


def _is_old(path: str, before: float) -> bool:
    with suppress(OSError):
        return os.lstat(path).st_mtime < before
    return False


def _removed(root: GraphRoot, relative: str) -> bool:
    path = root.join(relative)
    with naming_failures(root, "delete", relative), suppress(FileNotFoundError):
        if os.path.isdir(path):
            with suppress(OSError):  # Something has been put there meanwhile.
                os.rmdir(path)
            return not os.path.isdir(path)
        return _unlink_unlocked(path)
    return False


def _unlink_unlocked(path: str) -> bool:
    """Remove a file unless it is a lock that is held: such a file is old when its folder is."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(path)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True
