"""Delete table versions, and temporary files that killed writers left behind.

The caller decides which versions may go. The newest version and the versions that table branches
were made from always stay. Files that belong to no version may be those of a write in preparation;
they stay until they are a week old.

On a local disk, our adapter and the table library write everything under a temporary name first. Such
a name never counts as an object, so only its age matters: a file untouched for a day has no writer. An
object store has no temporary names; it does not list parts of unfinished uploads.
Tests: tests/storage/tables/test_removal.py, tests/storage/test_temporary_files.py,
tests/processes/test_cleanup.py.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from omnigraph.storage.failures import naming_failures
from omnigraph.storage.objects import naming_object_failures
from omnigraph.storage.table import Table
from omnigraph.storage.uris import GraphRoot
from omnigraph.storage.versions import confirm_newest

_ALL_VERSIONS: Final = timedelta(days=36500)
"""No version is as old as that, so none goes."""


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A version that can be opened, and when it was made."""

    number: int
    written_at: datetime


@dataclass(frozen=True, slots=True)
class RemovedFiles:
    """How much was removed, or would be."""

    versions: int = 0
    bytes: int = 0

    def __add__(self, other: RemovedFiles) -> RemovedFiles:
        return RemovedFiles(self.versions + other.versions, self.bytes + other.bytes)


def stored_versions(table: Table) -> list[StoredVersion]:
    """The versions of a table's line up to the opened one, oldest first."""
    with naming_failures("list the versions", table.lineage.uri):
        found = table.dataset.versions()
    versions = (StoredVersion(v["version"], _moment(v["timestamp"])) for v in found)
    return [version for version in versions if version.number <= table.version]


def remove_versions(table: Table, numbers: Sequence[int], *, dry_run: bool = False) -> RemovedFiles:
    """Remove versions of a line that is opened at its newest; only say what would go if `dry_run`."""
    if not numbers:
        return RemovedFiles()
    with naming_failures("remove versions", table.lineage.uri):
        if dry_run:
            stats = table.dataset.explain_cleanup_old_versions(
                versions=list(numbers), error_if_tagged_old_versions=False
            ).stats
        else:
            confirm_newest(table.lineage, table.version)
            stats = table.writable_handle().cleanup_old_versions(
                versions=list(numbers), error_if_tagged_old_versions=False
            )
    return RemovedFiles(stats.old_versions, stats.bytes_removed)


def remove_leftovers(table: Table, *, dry_run: bool = False) -> RemovedFiles:
    """Remove files that belong to no version and are too old to have a writer."""
    with naming_failures("remove files", table.lineage.uri):
        if dry_run:
            stats = table.dataset.explain_cleanup_old_versions(older_than=_ALL_VERSIONS).stats
        else:
            stats = table.writable_handle().cleanup_old_versions(older_than=_ALL_VERSIONS)
    return RemovedFiles(stats.old_versions, stats.bytes_removed)


def _moment(timestamp: object) -> datetime:
    """The library tells the time of day where it runs, without saying so."""
    assert isinstance(timestamp, datetime)
    return timestamp.astimezone()


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
    with naming_object_failures(root, "list", ""):
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
    with naming_object_failures(root, "delete", relative), suppress(FileNotFoundError):
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
