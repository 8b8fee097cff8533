"""Objects as files.

Every object is written to a temporary file beside it and then linked or renamed into place, so that
no reader sees a part of it. Temporary and lock files are named `#<digits>`; no path can reach them and
no listing shows them, which is all that a crash may leave behind.

A writer that replaces or removes an object holds the lock of its directory. That makes the conditional
update a real compare-and-swap between all processes of a machine. Creating needs no lock: a hard
link never replaces anything, and where it could succeed there is nothing to be updated.
Tests: tests/contract/objects.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from hashlib import sha256
from typing import Final

from omnigraph.errors import ObjectMissing, UnsafeStore
from omnigraph.storage.durability import CLOCK_SLACK_NS, DiskSync, Durability
from omnigraph.storage.objects import (
    NO_HARD_LINKS,
    DirectoryListing,
    VersionToken,
    child_path,
    naming_object_failures,
    object_path,
)
from omnigraph.storage.uris import GraphRoot, is_addressable, normalise_path

_MISSING_ERRORS: Final = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
_LINK_REFUSED: Final = frozenset({errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
_LOCK_NAME: Final = "#0"
_ATTEMPTS: Final = 100
"""How often a directory that others keep removing is made again before that counts as a failure."""


class LocalObjects:
    """An `ObjectStore` in a directory."""

    is_remote: Final = False

    def __init__(self, root: GraphRoot, durability: Durability) -> None:
        self._root = root
        self._sync = DiskSync(root.uri, durability)

    def read_text(self, path: str) -> str:
        with self._naming("read", path):
            return self._read(path).decode()

    def read_bytes(self, path: str) -> bytes:
        with self._naming("read", path):
            return self._read(path)

    def read_text_versioned(self, path: str) -> tuple[str, VersionToken]:
        with self._naming("read", path):
            content = self._read(path)
            return content.decode(), _token_of(content)

    def _read(self, path: str) -> bytes:
        try:
            with open(self._locate(path), "rb") as file:
                return file.read()
        except _MISSING_ERRORS:
            raise self._missing("read", path) from None

    def write_text(self, path: str, text: str) -> None:
        with self._naming("write", path):
            content = text.encode()
        self.write_bytes(path, content)

    def write_bytes(self, path: str, content: bytes | memoryview) -> None:
        with self._naming("write", path):
            target = self._locate(path)
            directory = os.path.dirname(target)
            with self._staged(target, content) as (temporary, top), _exclusive(directory):
                os.replace(temporary, target)
            self._sync.directory(directory, top=top)

    def write_text_if_absent(self, path: str, text: str) -> VersionToken | None:
        with self._naming("create", path):
            target, content = self._locate(path), text.encode()
            if os.path.lexists(target):
                return None
            with self._staged(target, content) as (temporary, top):
                try:
                    os.link(temporary, target)
                except FileExistsError:
                    return None
                except OSError as error:
                    if error.errno in _LINK_REFUSED:
                        raise UnsafeStore(
                            self._root.uri, "create if absent", NO_HARD_LINKS
                        ) from error
                    raise
            self._sync.directory(os.path.dirname(target), top=top)
            return _token_of(content)

    def read_text_of(self, path: str, token: VersionToken | None) -> str:
        return self.read_text(path)

    def may_have_kept(self) -> bool:
        return False

    def stamp(self, paths: Sequence[str]) -> Hashable | None:
        before = time.time_ns() - CLOCK_SLACK_NS
        try:
            found = [os.stat(f"{self._root.uri}/{path}") for path in paths]
        except OSError:
            return None
        if any(file.st_ctime_ns > before or file.st_mtime_ns > before for file in found):
            return None
        return tuple((f.st_dev, f.st_ino, f.st_size, f.st_mtime_ns, f.st_ctime_ns) for f in found)

    def write_text_if_match(self, path: str, text: str, token: VersionToken) -> VersionToken | None:
        with self._naming("update", path):
            target = self._locate(path)
            if not _holds(target, token):
                return None
            directory = os.path.dirname(target)
            with self._staged(target, text.encode()) as (temporary, top), _exclusive(directory):
                if not _holds(target, token):
                    return None
                os.replace(temporary, target)
            self._sync.directory(directory, top=top)
            return _token_of(text.encode())

    def exists(self, path: str) -> bool:
        with self._naming("check", path):
            target = self._root.join(normalise_path(path))
            return _is_object(target) or _has_objects(target)

    def rename_text(self, source: str, target: str) -> None:
        with self._naming("rename", source):
            old, new = self._locate(source), self._locate(target)
            if not _is_object(old):
                raise self._missing("rename", source)
            if old == new:
                return
            directories = {os.path.dirname(old), os.path.dirname(new)}
            top = self._make_directory(os.path.dirname(new))
            with ExitStack() as locks:
                for directory in sorted(directories):
                    locks.enter_context(_exclusive(directory))
                if not _is_object(old):
                    raise self._missing("rename", source)
                os.replace(old, new)
            self._sync.directory(os.path.dirname(new), top=top)
            self._sync.directory(os.path.dirname(old))

    def delete(self, path: str) -> None:
        with self._naming("delete", path):
            self._delete_file(self._locate(path))

    def list_dir(self, path: str) -> list[str]:
        return list(self.list_level(path).objects)

    def list_level(self, path: str) -> DirectoryListing:
        with self._naming("list", path):
            names: list[str] = []
            folders: list[str] = []
            with (
                suppress(*_MISSING_ERRORS),
                os.scandir(self._root.join(normalise_path(path))) as entries,
            ):
                for entry in entries:
                    if is_addressable(entry.name):
                        (names if entry.is_file() else folders).append(entry.name)
            return DirectoryListing({child_path(path, name): None for name in names}, folders)

    def delete_prefix(self, path: str) -> None:
        with self._naming("delete", path):
            target = self._locate(path)
            self._delete_file(target)
            _remove_tree(target)
            # An object store forgets a directory with its last object, and so do we.
            parent = os.path.dirname(target)
            while parent != self._root.uri and _remove_if_empty(parent):
                parent = os.path.dirname(parent)

    def _naming(self, action: str, path: str) -> AbstractContextManager[None]:
        return naming_object_failures(self._root, action, path)

    def _missing(self, action: str, path: str) -> ObjectMissing:
        return ObjectMissing(action, self._root.join(path), "no such object")

    def _locate(self, path: str) -> str:
        return self._root.join(object_path(path))

    def _delete_file(self, target: str) -> None:
        # Looked at first, so that deleting what is not there needs no permission to write.
        if _is_object(target):
            with suppress(*_MISSING_ERRORS), _exclusive(os.path.dirname(target)):
                os.unlink(target)

    @contextmanager
    def _staged(self, target: str, content: bytes | memoryview) -> Iterator[tuple[str, str]]:
        """A complete temporary file beside the target, and the topmost directory that changed.

        Whatever is left of the file at the end is removed.
        """
        directory = os.path.dirname(target)
        temporary = os.path.join(directory, f"#{secrets.randbits(62) + 1}")
        top, descriptor = self._create(directory, temporary)
        try:
            with open(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                self._sync.descriptor(file.fileno(), temporary)
            yield temporary, top
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)

    def _create(self, directory: str, temporary: str) -> tuple[str, int]:
        """Open a new file, creating its directory again if another process removes it."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        top = self._root.uri
        for _ in range(_ATTEMPTS):
            with suppress(FileNotFoundError):
                return top, os.open(temporary, flags, 0o666)
            top = self._make_directory(directory)
        raise FileNotFoundError(errno.ENOENT, "its directory was removed repeatedly")

    def _make_directory(self, directory: str) -> str:
        """Make a directory with its parents; returns where the sync of the new ones must end.

        Another process may remove one of them at any moment, so it need not be there afterwards.
        """
        existing = directory
        while not os.path.lexists(existing):
            existing = os.path.dirname(existing)
        try:
            os.makedirs(directory, exist_ok=True)
        except FileNotFoundError:
            pass
        except FileExistsError:
            if os.path.lexists(directory) and not os.path.isdir(directory):
                raise
        return existing if _is_above(existing, self._root.uri) else self._root.uri


@contextmanager
def _exclusive(directory: str) -> Iterator[None]:
    """Hold the lock of a directory. Raises `FileNotFoundError` when there is no such directory."""
    path = os.path.join(directory, _LOCK_NAME)
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # The file goes with the lock. A process that waited for a deleted file has locked nothing.
            if _is_file_at(descriptor, path):
                try:
                    yield
                finally:
                    if _is_file_at(descriptor, path):
                        os.unlink(path)
                return
        finally:
            os.close(descriptor)


def _is_file_at(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _is_object(target: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(target).st_mode)
    except _MISSING_ERRORS:
        return False


def _has_objects(directory: str) -> bool:
    """Whether there is an object anywhere below; a link counts as one and is not followed."""
    with suppress(*_MISSING_ERRORS), os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if _has_objects(entry.path):
                    return True
            elif is_addressable(entry.name):
                return True
    return False


def _holds(target: str, token: VersionToken) -> bool:
    try:
        with open(target, "rb") as file:
            return _token_of(file.read()) == token
    except _MISSING_ERRORS:
        return False


def _token_of(content: bytes) -> VersionToken:
    return VersionToken(sha256(content).hexdigest())


def _is_above(directory: str, other: str) -> bool:
    return directory != other and os.path.commonpath([directory, other]) == directory


def _remove_tree(target: str) -> None:
    """Remove a directory with all it holds, or the link that stands for it."""
    if os.path.islink(target):
        os.unlink(target)
        return
    try:
        with os.scandir(target) as listing:
            entries = list(listing)
    except _MISSING_ERRORS:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            _remove_tree(entry.path)
        else:
            with suppress(FileNotFoundError):
                os.unlink(entry.path)
    _remove_if_empty(target)


def _remove_if_empty(directory: str) -> bool:
    try:
        os.rmdir(directory)
    except FileNotFoundError:
        pass
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False  # another process has put something there meanwhile
        raise
    return True
