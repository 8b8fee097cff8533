"""Small objects that never change, kept in memory and, if a folder is configured, on disk.

An entry is named after the address of its object and the token of its content, or the address alone if
the name of the object is given once. So an entry is never outdated: whoever has a token has just asked
for it. Processes share a folder without knowing of each other. An entry that is damaged, or a folder
that cannot be used, costs time and nothing else. The table library reads its own files by itself.
Tests: tests/storage/test_object_cache.py, tests/cost/test_object_cache.py.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Final
from uuid import uuid4

from omnigraph.limits import CACHED_BYTES_IN_MEMORY, CACHED_BYTES_ON_DISK, CACHED_OBJECT_BYTES
from omnigraph.settings import read_settings

_SUFFIX: Final = ".object"
_DIGEST_BYTES: Final = 32
_KEPT_SHARE: Final = 0.75
"""How much of a folder that is full stays, so that not every new entry has to look for old ones."""


class ObjectCache:
    """Contents by name. Thread-safe."""

    def __init__(self, memory_bytes: int = CACHED_BYTES_IN_MEMORY) -> None:
        self._most = memory_bytes
        self._entries: OrderedDict[str, bytes] = OrderedDict()
        self._used = 0
        self._roots: set[str] = set()
        self._lock = Lock()

    def expects(self, root: str) -> bool:
        """Whether something may be kept of what is below a root: it was asked about before, or a
        folder is configured, in which others may have put it."""
        with self._lock:
            is_known = root in self._roots
            self._roots.add(root)
        return is_known or DiskFolder.configured() is not None

    def get(self, name: str) -> bytes | None:
        """What is kept under a name."""
        with self._lock:
            content = self._entries.get(name)
            if content is not None:
                self._entries.move_to_end(name)
                return content
        folder = DiskFolder.configured()
        content = None if folder is None else folder.get(name)
        if content is not None:
            self._keep(name, content)
        return content

    def put(self, name: str, content: bytes) -> None:
        """Keep a content, unless it is large."""
        if len(content) > CACHED_OBJECT_BYTES:
            return
        self._keep(name, content)
        folder = DiskFolder.configured()
        if folder is not None:
            folder.put(name, content)

    def clear(self) -> None:
        """Forget what is in memory."""
        with self._lock:
            self._entries.clear()
            self._roots.clear()
            self._used = 0

    def _keep(self, name: str, content: bytes) -> None:
        with self._lock:
            self._used += len(content) - len(self._entries.pop(name, b""))
            self._entries[name] = content
            while self._used > self._most:
                _, dropped = self._entries.popitem(last=False)
                self._used -= len(dropped)


class DiskFolder:
    """A folder of entries. Each is put in its place by a rename, behind a digest of its content."""

    def __init__(self, path: Path, most_bytes: int = CACHED_BYTES_ON_DISK) -> None:
        self._path = path
        self._most = most_bytes

    @classmethod
    def configured(cls) -> DiskFolder | None:
        """The folder that the environment names, if it names one."""
        path = read_settings().cache_dir
        return cls(Path(path)) if path else None

    def get(self, name: str) -> bytes | None:
        """A whole entry; one that is damaged goes."""
        file = self._file(name)
        try:
            stored = file.read_bytes()
        except OSError:
            return None
        digest, content = stored[:_DIGEST_BYTES], stored[_DIGEST_BYTES:]
        with suppress(OSError):
            if digest == _digest(name, content):
                os.utime(file)  # The entries that were not used for longest go first.
                return content
            file.unlink()
        return content if digest == _digest(name, content) else None

    def put(self, name: str, content: bytes) -> None:
        """Store an entry, and remove old ones if there are too many."""
        file = self._file(name)
        written = file.with_suffix(f".{uuid4().hex}")
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            try:
                written.write_bytes(_digest(name, content) + content)
                written.replace(file)
            finally:
                written.unlink(missing_ok=True)
            self._shrink()
        except OSError:
            return

    def _shrink(self) -> None:
        found = []
        for entry in os.scandir(self._path):
            with suppress(OSError):  # Another process may have removed it.
                stat = entry.stat()
                found.append((stat.st_mtime_ns, stat.st_size, entry.path))
        used = sum(size for _, size, _ in found)
        if used <= self._most:
            return
        for _, size, path in sorted(found):
            if used <= self._most * _KEPT_SHARE:
                return
            with suppress(OSError):
                os.unlink(path)
            used -= size

    def _file(self, name: str) -> Path:
        return self._path / f"{sha256(name.encode()).hexdigest()}{_SUFFIX}"


def _digest(name: str, content: bytes) -> bytes:
    """Of the name, too: an entry that was copied to another place is not that of its place."""
    return sha256(f"{name}\0".encode() + content).digest()


CACHE: Final = ObjectCache()
"""That of this process."""
