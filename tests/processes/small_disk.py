"""A process with a disk of its own that is full whenever it is told to be.

The disk is a small `tmpfs`, mounted where only this process can see it. Not every machine lets an
ordinary process do that. Where it may not, files are kept from growing beyond a limit instead: the
same calls fail at the same places, with another error number. Nothing is patched either way.

Prints, as JSON, which of the two it was and what every attempt to write led to.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

CLONE_NEWNS, CLONE_NEWUSER, MS_PRIVATE_ALL = 0x00020000, 0x10000000, 0x44000
DISK_BYTES = 8 * 1024 * 1024
PAGE = 4096
PERSON = '{"type": "Person", "data": {"name": "%s"}}'
EVENTS = "node Event { what: String }\n"
NOTE = "query note($what: String) { insert Event { what: $what } }"
BIG = 200_000
"""Bytes of a text that takes most of the room a load needs."""


def mount_small_disk(folder: Path) -> bool:
    """Give this process a small disk at a folder; False where the machine does not allow it.

    Only a process with a single thread may do so, hence before anything heavy is imported.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0:
        return False
    try:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    except OSError:
        return False
    # Without this the mount would show up outside.
    if libc.mount(None, b"/", None, MS_PRIVATE_ALL, None) != 0:
        return False
    options = f"size={DISK_BYTES}".encode()
    return bool(libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, options) == 0)


class SmallDisk:
    """A file system with hardly any room left."""

    name = "tmpfs"
    steps = tuple(pages * PAGE for pages in (0, 1, 2, 3, 5, 8, 12, 20, 40, 80, 200))
    event_steps = tuple(pages * PAGE for pages in range(24))

    def __init__(self, folder: Path) -> None:
        self._filler = folder / "filler"

    @contextmanager
    def full_but_for(self, room: int) -> Iterator[None]:
        with self._filler.open("wb", buffering=0) as file:
            while True:
                try:
                    file.write(b"x" * PAGE)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    break
            file.truncate(max(0, file.tell() - room))
        try:
            yield
        finally:
            self._filler.unlink()


class SmallFiles:
    """A process none of whose files may outgrow a limit."""

    name = "limit"
    steps = (0, 100, 300, 600, 1000, 2000, 4000, 10_000, 100_000)
    event_steps = tuple(range(0, 12_000, 500))

    @contextmanager
    def full_but_for(self, room: int) -> Iterator[None]:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)


def fill_up(disk: SmallDisk | SmallFiles, folder: Path, stride: int) -> list[dict[str, Any]]:
    """Try every kind of write with ever more room, and again with enough of it.

    Events are written with every `stride`-th amount of room.
    """
    from omnigraph.api.graph import init
    from omnigraph.api.graph import open as open_graph
    from omnigraph.errors import StorageError
    from tests.behaviour.graphs import SCHEMA

    def load(uri: str, rows: str, key: str | None) -> None:
        open_graph(uri).load(rows.encode(), "append", load_id=key)

    def mutate(uri: str, what: str, key: str | None) -> None:
        open_graph(uri).mutate(NOTE, {"what": what}, idempotency_key=key)

    def create_branch(uri: str, name: str, _key: str | None) -> None:
        open_graph(uri).branches.create(name)

    def create_graph(uri: str, _key: str | None) -> None:
        init(uri, SCHEMA)

    uri = str(folder / "graph")
    init(uri, SCHEMA + EVENTS)
    seen: list[dict[str, Any]] = []

    def attempt(name: str, room: int, write: Callable[[str | None], object]) -> bool:
        """Whether there was too little room. What failed is repeated as its error advises."""
        before = open_graph(uri, read_only=True)
        state = before._snapshot().to_json(), list(before.branches)
        error = key = None
        with disk.full_but_for(room):
            try:
                write(None)
            except StorageError as raised:
                error = type(raised).__name__
                key = getattr(raised, "idempotency_key", None)
        after = open_graph(uri, read_only=True)
        unchanged = (after._snapshot().to_json(), list(after.branches)) == state
        if error:
            write(key)
        seen.append({"write": name, "room": room, "error": error, "unchanged": unchanged})
        return error is not None

    for room in disk.steps:
        rows = PERSON % f"p{room}" + PERSON % ("x" * BIG + str(room))
        if not attempt("load", room, partial(load, uri, rows)):
            break
    for number, room in enumerate(disk.event_steps[::stride]):
        attempt("event", room, partial(mutate, uri, f"e{number}"))
    for room in disk.steps:
        if not attempt("branch", room, partial(create_branch, uri, f"b{room}")):
            break
    for room in disk.steps:
        if not attempt("init", room, partial(create_graph, f"{folder}/init{room}")):
            break
    counts = {key: entry.row_count for key, entry in open_graph(uri)._snapshot().entries.items()}
    seen.append({"write": "end", "rows": counts["node:Person"], "events": counts["node:Event"]})
    return seen


def main() -> None:
    folder, wanted, stride = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    mounted = wanted == SmallDisk.name and mount_small_disk(folder)
    disk = SmallDisk(folder) if mounted else SmallFiles()
    print(json.dumps({"disk": disk.name, "seen": fill_up(disk, folder, stride)}))


if __name__ == "__main__":
    main()
