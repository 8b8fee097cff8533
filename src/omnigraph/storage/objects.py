"""Object store interface for schema files, sidecars, leases and probes.

Local disk, S3 and memory give the same guarantees; tests/contract/objects runs one suite over all of
them. Most objects are texts, and nothing here interprets them.

`probe_store` checks that a store honours conditional writes. Some servers accept a conditional request
and ignore the condition: nothing fails until two writers meet and one write is lost. So the check runs
before the first graph is created.
Tests: tests/contract/objects/test_probe.py.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, NewType, Protocol, assert_never

from omnigraph.errors import StorageError, StoreCallFailed, UnsafeStore
from omnigraph.storage.durability import Durability
from omnigraph.storage.failures import cause_in_words
from omnigraph.storage.uris import GraphRoot, normalise_path

VersionToken = NewType("VersionToken", str)
"""Identifies the content an object had when it was read. Only for comparison by the same store."""

NO_CONDITIONAL_PUT: Final = "the store does not honour conditional put"
NO_HARD_LINKS: Final = "its file system does not support hard links"


@dataclass(frozen=True, slots=True)
class DirectoryListing:
    """What is directly in a directory: objects by path, and the names of directories."""

    objects: Mapping[str, VersionToken | None]
    """With the token of each content, where a listing tells it."""
    folders: Sequence[str]


class ObjectStore(Protocol):
    """Objects below one root; paths are relative to it, and `/` separates their parts.

    Every method raises `StoreCallFailed` when the store fails or the path is impossible. A write
    that fails may have happened all the same, unless its method says otherwise.
    """

    @property
    def is_remote(self) -> bool:
        """Whether every call is a request that is worth saving, or making beside another one."""
        ...

    def read_text(self, path: str) -> str:
        """The whole object. Raises `ObjectMissing`."""
        ...

    def write_text(self, path: str, text: str) -> None:
        """Create or replace. Readers see the old or the new text, never a part of it."""
        ...

    def read_bytes(self, path: str) -> bytes:
        """The whole object, as it is stored. Raises `ObjectMissing`."""
        ...

    def write_bytes(self, path: str, content: bytes | memoryview) -> None:
        """Create or replace, like `write_text`."""
        ...

    def write_text_if_absent(self, path: str, text: str) -> VersionToken | None:
        """Create. Of several callers exactly one gets a token; the others change nothing."""
        ...

    def exists(self, path: str) -> bool:
        """Whether there is an object of this path, or one below it. Empty directories are not."""
        ...

    def rename_text(self, source: str, target: str) -> None:
        """Move an object, replacing the target. Raises `ObjectMissing`.

        On S3 this is a copy and a deletion: a crash may leave both.
        """
        ...

    def delete(self, path: str) -> None:
        """Remove an object if it exists."""
        ...

    def list_dir(self, path: str) -> list[str]:
        """The objects directly in a directory, in no order, each as `path/name`.

        Empty for a missing directory. The paths can be read as they are.
        """
        ...

    def list_level(self, path: str) -> DirectoryListing:
        """The same objects and the directories beside them, in one request.

        A directory whose last object was deleted may still be among them.
        """
        ...

    def read_text_versioned(self, path: str) -> tuple[str, VersionToken]:
        """The whole object and the token of this content. Raises `ObjectMissing`."""
        ...

    def read_text_of(self, path: str, token: VersionToken | None) -> str:
        """The object, which has the content of the token by now, or whose name is given once.

        A remote store may have kept it. Raises `ObjectMissing`.
        """
        ...

    def may_have_kept(self) -> bool:
        """Whether it is worth asking for tokens first, to read objects with `read_text_of`."""
        ...

    def stamp(self, paths: Sequence[str]) -> Hashable | None:
        """What is another whenever one of some objects has changed, found without reading them.

        None if one is missing, has just changed, or if there is nothing of the kind.
        """
        ...

    def write_text_if_match(self, path: str, text: str, token: VersionToken) -> VersionToken | None:
        """Replace the content the token stands for. None: it has changed or gone, nothing was done."""
        ...

    def delete_prefix(self, path: str) -> None:
        """Remove an object and everything below it, empty directories included. Not atomic."""
        ...


def open_store(root: GraphRoot, durability: Durability) -> ObjectStore:
    """The store a root lies in. Nothing is read or written yet."""
    match root.kind:
        case "local":
            from omnigraph.storage.local_objects import LocalObjects

            return LocalObjects(root, durability)
        case "s3":
            from omnigraph.storage.remote_objects import RemoteObjects

            return RemoteObjects(root)
        case "memory":
            from omnigraph.storage.memory_objects import MemoryObjects

            return MemoryObjects(root)
        case _:
            assert_never(root.kind)


def object_path(path: str) -> str:
    """The normalised path of one object. Raises `ValueError` for a path that cannot have one."""
    normalised = normalise_path(path)
    if not normalised:
        raise ValueError("the path does not name an object")
    return normalised


def child_path(directory: str, name: str) -> str:
    """The path of a listed object, beginning with the directory as the caller wrote it."""
    separator = "/" if directory and not directory.endswith("/") else ""
    return f"{directory}{separator}{name}"


@contextmanager
def naming_object_failures(
    root: GraphRoot, action: str, path: str, *failures: type[Exception]
) -> Iterator[None]:
    """Turn what the system raises into `StoreCallFailed` with the action and the address."""
    expected: tuple[type[Exception], ...] = (OSError, ValueError, *failures)
    try:
        yield
    except expected as error:
        raise StoreCallFailed(action, root.join(path), cause_of(error)) from error


def cause_of(error: Exception) -> str:
    """One line for a message; client libraries append pages of details."""
    return cause_in_words((error.strerror if isinstance(error, OSError) else None) or str(error))


PROBE_DIR: Final = "__probe"


def probe_store(store: ObjectStore, root: GraphRoot) -> None:
    """Try every conditional write on an object of our own, and remove it again.

    Raises `UnsafeStore` naming the check that failed.
    """
    with _probe_object(store) as path:
        _check_creation(store, root, path)
        content, token = store.read_text_versioned(path)
        if content != "a":
            raise UnsafeStore(root.uri, "read back", NO_CONDITIONAL_PUT)
        if store.write_text_if_match(path, "c", token) is None:
            raise UnsafeStore(root.uri, "replace if unchanged", NO_CONDITIONAL_PUT)
        if store.write_text_if_match(path, "d", token) is not None or store.read_text(path) != "c":
            raise UnsafeStore(root.uri, "refuse to replace a change", NO_CONDITIONAL_PUT)


def probe_hard_links(root: GraphRoot) -> None:
    """What a graph on a local disk needs at every read-write open: it may have been moved.

    Raises `UnsafeStore`. Does nothing for a graph that is not on a local disk. A disk that is full
    or may not be written passes: nothing is known about it, and the graph can still be read.
    """
    if root.kind == "local":
        store = open_store(root, Durability.NONE)
        with suppress(StoreCallFailed), _probe_object(store) as path:
            _check_creation(store, root, path)


def _check_creation(store: ObjectStore, root: GraphRoot, path: str) -> None:
    problem = NO_HARD_LINKS if root.kind == "local" else NO_CONDITIONAL_PUT
    if not store.write_text_if_absent(path, "a"):
        raise UnsafeStore(root.uri, "create if absent", problem)
    if store.write_text_if_absent(path, "b"):
        raise UnsafeStore(root.uri, "refuse to create twice", problem)


@contextmanager
def _probe_object(store: ObjectStore) -> Iterator[str]:
    """A path no other process uses; nothing is left there at the end."""
    from ulid import ULID

    path = f"{PROBE_DIR}/{ULID()}"
    try:
        yield path
    except BaseException:
        with suppress(StorageError):
            store.delete_prefix(path)
        raise
    store.delete_prefix(path)
