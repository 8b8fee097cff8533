"""Limits of one query: rows, bytes and time, and a way to stop it from another thread."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from omnigraph.errors import QueryBudgetExceeded, QueryCancelled
from omnigraph.limits import QUERY_MAX_BYTES, QUERY_MAX_ROWS, QUERY_TIMEOUT_SECONDS


class CancelToken:
    """Stops the queries it was given to, from any thread."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def cancel(self) -> None:
        self._event.set()

    @property
    def is_cancelled(self) -> bool:
        return self._event.is_set()


@dataclass(frozen=True, slots=True)
class QueryBudget:
    """What a query may use. Checked between steps and before large intermediate results."""

    max_rows: int = QUERY_MAX_ROWS
    max_bytes: int = QUERY_MAX_BYTES
    timeout_s: float = QUERY_TIMEOUT_SECONDS
    cancel: CancelToken | None = None
    _started: float = field(default_factory=time.monotonic)

    def check(self, rows: int = 0, bytes_per_row: int = 16) -> None:
        """Raises `QueryBudgetExceeded` or `QueryCancelled`; `rows` are about to be made."""
        if self.cancel is not None and self.cancel.is_cancelled:
            raise QueryCancelled
        if rows > self.max_rows:
            raise QueryBudgetExceeded("rows", f"{rows:,}", f"{self.max_rows:,}")
        if rows * bytes_per_row > self.max_bytes:
            raise QueryBudgetExceeded("bytes", f"{rows * bytes_per_row:,}", f"{self.max_bytes:,}")
        if time.monotonic() - self._started > self.timeout_s:
            raise QueryBudgetExceeded("seconds", f"over {self.timeout_s:g}", f"{self.timeout_s:g}")
