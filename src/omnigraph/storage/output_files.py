"""Files that are written whole at an `s3://` URI. A file appears when it is complete.

The store is reached as the graphs on it are, by the `AWS_*` variables. Tests:
tests/surfaces/test_export_to_s3.py.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Final

import obstore
from obstore.exceptions import BaseError

from omnigraph.errors import ExportError, SourceUnreadable
from omnigraph.storage.input_files import list_remote, located

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
