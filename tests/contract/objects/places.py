"""The stores the contract is tested on, and a second way into each of them."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import pyarrow.fs

from omnigraph.storage.durability import Durability
from omnigraph.storage.memory_objects import bucket_of
from omnigraph.storage.objects import ObjectStore, open_store
from omnigraph.storage.uris import GraphRoot, normalise_root
from tests.contract.objects.moto_server import BUCKET


class Place(Protocol):
    """A root of its own for one test."""

    @property
    def root(self) -> GraphRoot: ...

    def put(self, path: str, content: bytes) -> None:
        """Write past the adapter."""

    def get(self, path: str) -> bytes:
        """Read past the adapter."""


def open_place(place: Place) -> ObjectStore:
    """A new handle. The promises do not depend on fsync, and without it the suite is quick."""
    return open_store(place.root, Durability.NONE)


class LocalPlace:
    def __init__(self, folder: Path) -> None:
        self.root = normalise_root(str(folder))

    def put(self, path: str, content: bytes) -> None:
        file = Path(self.root.join(path))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)

    def get(self, path: str) -> bytes:
        return Path(self.root.join(path)).read_bytes()


class MemoryPlace:
    def __init__(self, name: str) -> None:
        self.root = normalise_root(f"memory://{name}")

    def put(self, path: str, content: bytes) -> None:
        shelf = bucket_of(self.root)
        with shelf.lock:
            shelf.put(path, content)

    def get(self, path: str) -> bytes:
        return bucket_of(self.root).objects[path].content


class S3Place:
    def __init__(self, name: str, endpoint: str) -> None:
        self.root = normalise_root(f"s3://{BUCKET}/{name}")
        self.endpoint = endpoint

    @cached_property
    def _files(self) -> Any:
        return pyarrow.fs.S3FileSystem(
            access_key="test",
            secret_key="test",
            region="us-east-1",
            scheme="http",
            endpoint_override=self.endpoint.removeprefix("http://"),
        )

    def put(self, path: str, content: bytes) -> None:
        with self._files.open_output_stream(self._key(path)) as stream:
            stream.write(content)

    def get(self, path: str) -> bytes:
        with self._files.open_input_stream(self._key(path)) as stream:
            return bytes(stream.read())

    def mark_folder(self, path: str) -> None:
        """An empty object `path/`, which other tools show as a folder."""
        self._files.create_dir(self._key(path))

    def _key(self, path: str) -> str:
        return self.root.join(path).removeprefix("s3://")
