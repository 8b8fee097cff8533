"""Files outside tables: inputs and outputs at `s3://` URIs, and scratch files of one job.

Inputs are opened a range at a time, and listed. An output appears when it is complete. Both use the
`AWS_*` variables, as graphs do. Scratch files lie beside the tables of a graph, and the processes of
one job share them. The job deletes them when it ends; a killed job leaves them behind, and their names
tell when it began. Files with a label are for a later job that continues it.
Tests: tests/surfaces/test_load_from_s3.py, test_export_to_s3.py, tests/spark/test_frames.py.
"""

from __future__ import annotations

import io
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, BinaryIO, Final

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from omnigraph.errors import ExportError, SourceUnreadable
from omnigraph.storage.durability import Durability
from omnigraph.storage.objects import ObjectStore, open_store
from omnigraph.storage.uris import GraphRoot, s3_options

Stamp = tuple[int, str]

_SCHEME: Final = "s3://"
_READ_BYTES: Final = 4 * 1024 * 1024
"""What one request fetches at least: large enough to outweigh the way there and back."""


def is_remote(path: str) -> bool:
    return path.startswith(_SCHEME)


def open_remote(uri: str) -> BinaryIO:
    """The bytes of an object, which can be read from any place. Raises `SourceUnreadable`."""
    store, key = located(uri)
    with _naming(uri):
        found = obstore.head(store, key)
    stamp = int(found["size"]), found["e_tag"] or str(found["last_modified"])
    return io.BufferedReader(_Object(uri, store, key, stamp), _READ_BYTES)


def stamp_of(file: BinaryIO) -> Stamp:
    """What changes when a file or object that is open does: its size, and when or what it became."""
    if isinstance(file, io.BufferedReader) and isinstance(file.raw, _Object):
        return file.raw.stamp
    found = os.fstat(file.fileno())
    return found.st_size, str(found.st_mtime_ns)


def list_remote(folder: str) -> list[str]:
    """The addresses of all objects below a folder, by name. Raises `SourceUnreadable`."""
    store, prefix = located(folder)
    prefix = prefix.rstrip("/")
    bucket = folder.removeprefix(_SCHEME).partition("/")[0]
    with _naming(folder):
        found = [meta["path"] for page in obstore.list(store, prefix or None) for meta in page]
    return sorted(f"{_SCHEME}{bucket}/{key}" for key in found)


class _Object(io.RawIOBase):
    """An object as a file: every read is a request for a range."""

    def __init__(self, uri: str, store: S3Store, key: str, stamp: Stamp) -> None:
        self._uri, self._store, self._key = uri, store, key
        self.stamp = stamp
        self._size = stamp[0]
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, start + offset)
        return self._position

    def readinto(self, buffer: Any) -> int:
        length = min(len(buffer), self._size - self._position)
        if length <= 0:
            return 0
        with _naming(self._uri):
            found = obstore.get_range(self._store, self._key, start=self._position, length=length)
        buffer[:length] = memoryview(found)
        self._position += length
        return length


def located(uri: str) -> tuple[S3Store, str]:
    bucket, _, key = uri.removeprefix(_SCHEME).partition("/")
    if not bucket:
        raise SourceUnreadable(uri, "names no bucket", "write s3://bucket/key")
    retry = {"max_retries": 5, "retry_timeout": timedelta(seconds=30)}
    with _naming(uri):
        # The names of the options are data here, which the declared keys cannot express.
        return S3Store(bucket, config=s3_options(), retry_config=retry), key  # type: ignore[arg-type]


@contextmanager
def _naming(uri: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise SourceUnreadable(uri, "does not exist", "check the address") from None
    except (BaseError, OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise SourceUnreadable(uri, f"cannot be read: {reason}", "check the AWS settings") from None


_WRITE_BYTES: Final = 4 * 1024 * 1024
"""What is handed over at a time."""


@contextmanager
def writing_remote(uri: str) -> Iterator[BinaryIO]:
    """A stream to an object. Raises `ExportError`; the object is not there then."""
    try:
        store, key = located(uri)
        if not key or key.endswith("/"):
            raise ExportError(f"'{uri}' does not name a file; write s3://bucket/key")
        upload = obstore.open_writer(store, key)
        out = io.BufferedWriter(_Upload(upload), _WRITE_BYTES)
        yield out
        out.flush()
        # Only a complete upload is closed: an aborted one never becomes an object.
        upload.close()
    except SourceUnreadable as error:
        raise ExportError(str(error)) from None
    except FileNotFoundError:
        raise ExportError(f"'{uri}' cannot be written: the bucket does not exist") from None
    except (BaseError, OSError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ExportError(f"'{uri}' cannot be written: {reason}; check the AWS settings") from None


def move_remote(source: str, target: str) -> None:
    """Give an object another name in its bucket, without reading it. Raises `ExportError`."""
    with _writing(target):
        store, key = located(source)
        obstore.rename(store, key, located(target)[1])


def remove_remote(folder: str) -> None:
    """Remove all objects below a folder. Raises `ExportError`."""
    with _writing(folder):
        store, prefix = located(folder)
        found = [meta["path"] for page in obstore.list(store, f"{prefix}/") for meta in page]
        if found:
            obstore.delete(store, found)


@contextmanager
def _writing(uri: str) -> Iterator[None]:
    try:
        yield
    except (SourceUnreadable, BaseError, OSError) as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise ExportError(f"'{uri}' cannot be written: {reason}; check the AWS settings") from None


class _Upload(io.RawIOBase):
    """An upload as a file that is written from its beginning to its end."""

    def __init__(self, upload: obstore.WritableFile) -> None:
        self._upload = upload

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        content = memoryview(data).cast("B")
        self._upload.write(bytes(content))
        return len(content)


def refuse_occupied(folder: str) -> None:
    """Raises `ExportError` when there are objects below a folder."""
    try:
        found = list_remote(folder)
    except SourceUnreadable as error:
        raise ExportError(str(error)) from None
    if any(one.startswith(f"{folder.rstrip('/')}/") for one in found):
        raise ExportError(f"'{folder}' is not an empty directory; choose another target")


FOLDER: Final = "__scratch"


@dataclass(frozen=True, slots=True)
class Scratch:
    """The files of one job. It travels to every process that writes some."""

    root: GraphRoot
    job: str
    """A name that no other job has, and that tells when the job began."""

    def write(self, content: bytes | memoryview, label: str = "") -> str:
        """Keep some content as a file of its own; returns its address."""
        path = f"{FOLDER}/{self.job}-{label}{secrets.token_hex(8)}"
        self._objects().write_bytes(path, content)
        return self.root.join(path)

    def remove(self) -> None:
        """Remove all files of the job, including those of failed attempts."""
        remove_scratch(self._objects(), lambda job: job == self.job)

    def _objects(self) -> ObjectStore:
        # Files lost in a power failure are not needed afterwards.
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
