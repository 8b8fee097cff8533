"""How much one actor may write at the same time: a number of requests and of bytes.

Tests: tests/server/test_admission.py.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from omnigraph.errors import TooManyRequests

DEFAULT_INFLIGHT_MAX: Final = 16
DEFAULT_BYTES_MAX: Final = 4 * 1024**3
BRANCH_OPERATION_BYTES: Final = 256
ANONYMOUS: Final = "anonymous"
"""The actor that all requests without one share."""


@dataclass(slots=True)
class _InUse:
    requests: int = 0
    bytes: int = 0


class Admission:
    """Counts the writes of every actor. Thread-safe."""

    def __init__(
        self,
        inflight_max: int = DEFAULT_INFLIGHT_MAX,
        bytes_max: int = DEFAULT_BYTES_MAX,
    ) -> None:
        self._inflight_max = inflight_max
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._actors: dict[str, _InUse] = {}
        self.admitted = 0
        self.rejected = 0

    @contextmanager
    def admit(self, actor: str | None, estimate: int) -> Iterator[None]:
        """Reserve a request and its bytes until the end. Raises `TooManyRequests`."""
        name = ANONYMOUS if actor is None else actor
        with self._lock:
            self._reserve(name, estimate)
        try:
            yield
        finally:
            with self._lock:
                used = self._actors[name]
                used.requests -= 1
                used.bytes -= estimate
                if not used.requests:
                    del self._actors[name]

    def _reserve(self, name: str, estimate: int) -> None:
        used = self._actors.get(name, _InUse())
        if used.requests >= self._inflight_max:
            self.rejected += 1
            raise TooManyRequests(f"actor in-flight count cap {self._inflight_max} exceeded")
        if used.bytes + estimate > self._bytes_max:
            self.rejected += 1
            raise TooManyRequests(f"actor in-flight byte budget {self._bytes_max} exceeded")
        self.admitted += 1
        used.requests += 1
        used.bytes += estimate
        self._actors[name] = used

    @property
    def running(self) -> int:
        with self._lock:
            return sum(used.requests for used in self._actors.values())
