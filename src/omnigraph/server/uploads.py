"""Request bodies that arrive in several requests, kept in temporary files until the last one.

Each is bound to its actor and graph. What is not continued within a few minutes is forgotten.
Tests: tests/server/test_remote_graphs.py.
"""

from __future__ import annotations

import re
import tempfile
import threading
import time
from dataclasses import dataclass
from typing import IO, Final

from omnigraph.errors import TooManyRequests
from omnigraph.server.problems import HttpProblem
from omnigraph.wire.errors import ResourceLimitOutput

MAX_BYTES: Final = 1_073_741_824
MAX_OPEN: Final = 16
IDLE_SECONDS: Final = 300.0

_NAME: Final = re.compile(r"[A-Za-z0-9-]{8,64}\Z")


@dataclass(slots=True)
class _Upload:
    file: IO[bytes]
    size: int
    used: float


class Uploads:
    """The unfinished bodies of a server. Thread-safe."""

    def __init__(self, max_bytes: int = MAX_BYTES, max_open: int = MAX_OPEN) -> None:
        self._max_bytes = max_bytes
        self._max_open = max_open
        self._lock = threading.Lock()
        self._open: dict[tuple[str | None, str, str], _Upload] = {}

    def append(
        self, actor: str | None, graph_id: str, name: str, offset: int, content: bytes
    ) -> None:
        """Add a part. One that is there already may be sent again. Raises `HttpProblem`."""
        if not _NAME.match(name):
            raise HttpProblem(400, "upload must have 8 to 64 letters, digits and '-'")
        key = (actor, graph_id, name)
        with self._lock:
            self._forget_idle()
            upload = self._open.get(key)
            if upload is None:
                upload = self._begin(key, offset)
            if offset + len(content) > self._max_bytes:
                self._close(key)
                raise _too_large(self._max_bytes, offset + len(content))
            upload.used = time.monotonic()
            if offset + len(content) == upload.size and content:
                return
            if offset != upload.size:
                message = (
                    f"part at {offset} does not continue the upload, which has {upload.size} bytes"
                )
                raise HttpProblem(409, message)
            upload.file.write(content)
            upload.size += len(content)

    def take(self, actor: str | None, graph_id: str, name: str) -> bytes:
        """All parts, which are then forgotten."""
        with self._lock:
            upload = self._open.pop((actor, graph_id, name))
        with upload.file:
            upload.file.seek(0)
            return upload.file.read()

    def _begin(self, key: tuple[str | None, str, str], offset: int) -> _Upload:
        if offset:
            raise HttpProblem(409, "there is no such upload; send it again from its beginning")
        if len(self._open) >= self._max_open:
            raise TooManyRequests(f"{self._max_open} uploads are in progress")
        # Closed when it is taken or forgotten.
        file = tempfile.TemporaryFile(prefix="omnigraph-upload-")  # noqa: SIM115
        made = self._open[key] = _Upload(file, 0, time.monotonic())
        return made

    def _forget_idle(self) -> None:
        ends = time.monotonic() - IDLE_SECONDS
        for key in [key for key, upload in self._open.items() if upload.used < ends]:
            self._close(key)

    def _close(self, key: tuple[str | None, str, str]) -> None:
        self._open.pop(key).file.close()


def _too_large(limit: int, actual: int) -> HttpProblem:
    message = (
        f"the load is larger than {limit:,} bytes; load it in several commits, or beside storage"
    )
    exceeded = ResourceLimitOutput(resource="upload_bytes", limit=limit, actual=actual)
    return HttpProblem(413, message, details={"resource_limit": exceeded})
