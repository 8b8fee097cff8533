"""Files that are only read, at an `s3://` address: opened a range at a time, and listed.

The store is reached as the graphs on it are, by the `AWS_*` variables. Tests:
tests/surfaces/test_load_from_s3.py.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, BinaryIO, Final

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from omnigraph.errors import SourceUnreadable
from omnigraph.storage.s3_options import s3_options

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
