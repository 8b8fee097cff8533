"""Files beside the tables of a graph that processes of one job pass on to each other.

They belong to no table and to no version, and their job removes them when it is over. A job that was
killed leaves its files behind; their names tell when it began.
Tests: tests/spark/test_frames.py.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from omnigraph.storage.durability import Durability
from omnigraph.storage.objects import ObjectStore, open_store
from omnigraph.storage.uris import GraphRoot

FOLDER: Final = "__scratch"


@dataclass(frozen=True, slots=True)
class Scratch:
    """The files of one job. It travels to every process that writes some."""

    root: GraphRoot
    job: str
    """A name that no other job has, and that tells when the job began."""

    def write(self, content: bytes | memoryview) -> str:
        """Keep some content as a file of its own; returns its address."""
        path = f"{FOLDER}/{self.job}-{secrets.token_hex(8)}"
        self._objects().write_bytes(path, content)
        return self.root.join(path)

    def remove(self) -> None:
        """Remove all files of the job, also those of attempts nobody heard of."""
        remove_scratch(self._objects(), lambda job: job == self.job)

    def _objects(self) -> ObjectStore:
        # What a power failure takes is of no use to anybody afterwards.
        return open_store(self.root, Durability.NONE)


def list_scratch(objects: ObjectStore, wanted: Callable[[str], bool]) -> list[str]:
    """The files of the jobs that are wanted, in order."""
    found = objects.list_dir(FOLDER)
    return sorted(path for path in found if wanted(_job_of(path)))


def remove_scratch(objects: ObjectStore, wanted: Callable[[str], bool]) -> list[str]:
    """Remove the files of jobs that are wanted; returns their names."""
    gone = list_scratch(objects, wanted)
    for path in gone:
        objects.delete(path)
    return gone


def _job_of(path: str) -> str:
    return path.rpartition("/")[2].partition("-")[0]
