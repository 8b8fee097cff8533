"""Whether a store can be trusted with a graph: it must honour the conditions of a write.

Some servers accept a conditional request and ignore the condition. Nothing fails there until two
writers meet, and then one of them is lost, so it is found out before the first graph is made.
Tests: tests/contract/objects/test_probe.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from omnigraph.errors import StorageError, StoreCallFailed, UnsafeStore
from omnigraph.storage.durability import Durability
from omnigraph.storage.objects import (
    NO_CONDITIONAL_PUT,
    NO_HARD_LINKS,
    ObjectStore,
    open_store,
)
from omnigraph.storage.uris import GraphRoot

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
    """A path nobody else uses, with nothing left there at the end."""
    from ulid import ULID

    path = f"{PROBE_DIR}/{ULID()}"
    try:
        yield path
    except BaseException:
        with suppress(StorageError):
            store.delete_prefix(path)
        raise
    store.delete_prefix(path)
