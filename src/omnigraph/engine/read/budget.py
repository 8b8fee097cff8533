"""Limits of one query: rows, bytes and time, and a way to stop it from another thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from omnigraph.errors import QueryBudgetExceeded, QueryCancelled
from omnigraph.limits import QUERY_MAX_BYTES, QUERY_MAX_ROWS, QUERY_TIMEOUT_SECONDS
from omnigraph.settings import read_settings


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
    """What one query may use. The same budget can be given to any number of queries."""

    max_rows: int = QUERY_MAX_ROWS
    max_bytes: int = QUERY_MAX_BYTES
    timeout_s: float = QUERY_TIMEOUT_SECONDS

    @classmethod
    def from_environment(cls) -> QueryBudget:
        """The limits the environment sets, or the usual ones. Raises `InvalidSetting`."""
        settings = read_settings()
        return cls(settings.max_rows, settings.max_bytes, settings.max_seconds)

    def start(self, cancel: CancelToken | None = None) -> Meter:
        return Meter(self, cancel)


class Meter:
    """A budget while a query runs. Asked between steps and before large intermediate results."""

    def __init__(self, budget: QueryBudget, cancel: CancelToken | None = None) -> None:
        self._budget = budget
        self._cancel = cancel
        self._started = time.monotonic()

    def check(self, rows: int = 0, bytes_per_row: int = 16) -> None:
        """Raises `QueryBudgetExceeded` or `QueryCancelled`; `rows` are about to be made."""
        self.check_size(rows, rows * bytes_per_row)

    def check_size(self, rows: int, nbytes: int) -> None:
        """As `check`, for rows of a known size."""
        budget = self._budget
        if self._cancel is not None and self._cancel.is_cancelled:
            raise QueryCancelled
        if rows > budget.max_rows:
            raise QueryBudgetExceeded("rows", f"{rows:,}", f"{budget.max_rows:,}")
        if nbytes > budget.max_bytes:
            raise QueryBudgetExceeded("bytes", f"{nbytes:,}", f"{budget.max_bytes:,}")
        if time.monotonic() - self._started > budget.timeout_s:
            raise QueryBudgetExceeded(
                "seconds", f"over {budget.timeout_s:g}", f"{budget.timeout_s:g}"
            )

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave out the time in which the caller works and the query waits."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._started += time.monotonic() - began
