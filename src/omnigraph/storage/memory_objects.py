"""Text objects in the memory of this process, for tests.

Two handles of one name see the same objects; other processes see none of them.
Tests: tests/contract/objects.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from omnigraph.errors import ObjectMissing
from omnigraph.storage.objects import (
    DirectoryListing,
    VersionToken,
    child_path,
    naming_object_failures,
    object_path,
)
from omnigraph.storage.uris import GraphRoot, normalise_path


@dataclass(frozen=True, slots=True)
class _Object:
    content: bytes
    token: VersionToken


@dataclass(frozen=True, slots=True)
class MemoryBucket:
    """The objects of one name. Reading or changing them requires the lock."""

    objects: dict[str, _Object] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    _numbers: Iterator[int] = field(default_factory=count)

    def put(self, key: str, content: bytes) -> VersionToken:
        token = VersionToken(str(next(self._numbers)))
        self.objects[key] = _Object(content, token)
        return token


_BUCKETS: Final[dict[str, MemoryBucket]] = {}
_BUCKETS_LOCK: Final = threading.Lock()


def bucket_of(root: GraphRoot) -> MemoryBucket:
    """The objects of a root, the same for every caller in this process."""
    with _BUCKETS_LOCK:
        return _BUCKETS.setdefault(root.uri, MemoryBucket())


class MemoryObjects:
    """An `ObjectStore` in a dictionary."""

    is_remote: Final = False

    def __init__(self, root: GraphRoot) -> None:
        self._root = root
        self._shelf = bucket_of(root)

    def read_text(self, path: str) -> str:
        return self.read_text_versioned(path)[0]

    def read_bytes(self, path: str) -> bytes:
        return self._get(path).content

    def read_text_versioned(self, path: str) -> tuple[str, VersionToken]:
        found = self._get(path)
        with self._naming("read", path):
            return found.content.decode(), found.token

    def write_text(self, path: str, text: str) -> None:
        with self._naming("write", path):
            content = text.encode()
        self.write_bytes(path, content)

    def write_bytes(self, path: str, content: bytes | memoryview) -> None:
        with self._changing("write", path) as key:
            self._shelf.put(key, bytes(content))

    def write_text_if_absent(self, path: str, text: str) -> VersionToken | None:
        with self._changing("create", path) as key:
            if key in self._shelf.objects:
                return None
            return self._shelf.put(key, text.encode())

    def read_text_of(self, path: str, token: VersionToken | None) -> str:
        return self.read_text(path)

    def may_have_kept(self) -> bool:
        return False

    def stamp(self, paths: Sequence[str]) -> None:
        return None

    def write_text_if_match(self, path: str, text: str, token: VersionToken) -> VersionToken | None:
        with self._changing("update", path) as key:
            found = self._shelf.objects.get(key)
            if found is None or found.token != token:
                return None
            return self._shelf.put(key, text.encode())

    def exists(self, path: str) -> bool:
        with self._naming("check", path):
            key = normalise_path(path)
            with self._shelf.lock:
                return key in self._shelf.objects or any(self._below(key))

    def rename_text(self, source: str, target: str) -> None:
        with self._naming("rename", source), self._shelf.lock:
            old, new = object_path(source), object_path(target)
            if old not in self._shelf.objects:
                raise self._missing("rename", source)
            self._shelf.put(new, self._shelf.objects[old].content)
            if old != new:
                del self._shelf.objects[old]

    def delete(self, path: str) -> None:
        with self._changing("delete", path) as key:
            self._shelf.objects.pop(key, None)

    def list_dir(self, path: str) -> list[str]:
        return list(self.list_level(path).objects)

    def list_level(self, path: str) -> DirectoryListing:
        with self._naming("list", path):
            start = len(_directory_prefix(normalise_path(path)))
            with self._shelf.lock:
                names = [key[start:] for key in self._below(normalise_path(path))]
            found = {child_path(path, name): None for name in names if "/" not in name}
            return DirectoryListing(
                found, sorted({name.split("/")[0] for name in names if "/" in name})
            )

    def delete_prefix(self, path: str) -> None:
        with self._changing("delete", path) as key:
            for below in [key, *self._below(key)]:
                self._shelf.objects.pop(below, None)

    def _below(self, directory: str) -> Iterator[str]:
        prefix = _directory_prefix(directory)
        return (key for key in self._shelf.objects if key.startswith(prefix))

    def _get(self, path: str) -> _Object:
        with self._naming("read", path):
            key = object_path(path)
            with self._shelf.lock:
                found = self._shelf.objects.get(key)
            if found is None:
                raise self._missing("read", path)
            return found

    def _naming(self, action: str, path: str) -> AbstractContextManager[None]:
        return naming_object_failures(self._root, action, path)

    def _missing(self, action: str, path: str) -> ObjectMissing:
        return ObjectMissing(action, self._root.join(path), "no such object")

    @contextmanager
    def _changing(self, action: str, path: str) -> Iterator[str]:
        with self._naming(action, path), self._shelf.lock:
            yield object_path(path)


def _directory_prefix(directory: str) -> str:
    return f"{directory}/" if directory else ""
