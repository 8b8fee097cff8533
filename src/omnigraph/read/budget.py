"""What one query may use: rows, bytes, time, and the cost of index look-ups.

Edges are followed in memory or by look-ups; both find the same rows. Memory is faster once it is filled,
look-ups are faster for a query that starts at few nodes of a graph that is not in memory yet. The cost of
look-ups is added up per table, so a table that is looked up repeatedly ends up in memory.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

from omnigraph.errors import QueryBudgetExceeded, QueryCancelled
from omnigraph.limits import (
    LOOKUP_MAX_FRONTIER,
    LOOKUP_MAX_HOPS,
    QUERY_MAX_BYTES,
    QUERY_MAX_ROWS,
    QUERY_TIMEOUT_SECONDS,
)
from omnigraph.plan.cost import ID_COST, LOOKUP_COST, ROW_COST
from omnigraph.settings import read_settings


class CancelToken:
    """Cancels the queries it was passed to, from any thread."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def cancel(self) -> None:
        self._event.set()

    @property
    def is_cancelled(self) -> bool:
        return self._event.is_set()


@dataclass(frozen=True, slots=True)
class QueryBudget:
    """Limits of one query. A budget can be passed to any number of queries."""

    max_rows: int = QUERY_MAX_ROWS
    max_bytes: int = QUERY_MAX_BYTES
    timeout_s: float = QUERY_TIMEOUT_SECONDS

    @classmethod
    def from_environment(cls) -> QueryBudget:
        """The limits set by the environment, or the defaults. Raises `InvalidSetting`."""
        settings = read_settings()
        return cls(settings.max_rows, settings.max_bytes, settings.max_seconds)

    def start(self, cancel: CancelToken | None = None) -> Meter:
        return Meter(self, cancel)


class Meter:
    """The budget of a running query, checked between steps and before large intermediate results."""

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

    def allows_bytes(self, nbytes: int) -> bool:
        """Whether so many bytes are within the budget."""
        return nbytes <= self._budget.max_bytes

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Exclude the time in which the query waits for its caller."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._started += time.monotonic() - began


# -- look-ups -----------------------------------------------------------------------------------


class TraversalMode(Enum):
    """How edges are followed: by the cheaper way, or always in one way."""

    AUTO = "auto"
    INDEXED = "indexed"
    CSR = "csr"


@dataclass(frozen=True, slots=True)
class TraversalSettings:
    """The mode, and the most nodes and hops for which `AUTO` uses look-ups."""

    mode: TraversalMode = TraversalMode.AUTO
    max_frontier: int = LOOKUP_MAX_FRONTIER
    max_hops: int = LOOKUP_MAX_HOPS

    @classmethod
    def from_environment(cls) -> TraversalSettings:
        """The settings of the environment. Raises `InvalidSetting`."""
        settings = read_settings()
        return cls(
            TraversalMode(settings.traversal_mode),
            settings.expand_indexed_max_frontier or LOOKUP_MAX_FRONTIER,
            settings.expand_indexed_max_hops or LOOKUP_MAX_HOPS,
        )


class LookupsTooCostly(Exception):
    """Look-ups have cost as much as reading everything would."""


class LookupWork:
    """Cost of one query's look-ups per table, and the most they may cost together."""

    def __init__(self, max_cost: float = float("inf")) -> None:
        self._left = max_cost
        self.lookups = 0
        self.by_table: dict[str, float] = {}

    def add_lookup(self, table: str, values: int, rows: int) -> None:
        """Count a look-up of `values` that found `rows`. Raises `LookupsTooCostly`."""
        self.add(table, LOOKUP_COST + ID_COST * values + ROW_COST * rows)

    def add(self, table: str, cost: float) -> None:
        """Count any work on a table. Raises `LookupsTooCostly`."""
        self.lookups += 1
        self.by_table[table] = self.by_table.get(table, 0.0) + cost
        self._left -= cost
        if self._left < 0:
            raise LookupsTooCostly


class LookupLedger:
    """Cost of all look-ups per table since a graph was opened. Thread-safe."""

    def __init__(self) -> None:
        self._spent: dict[str, float] = {}
        self._lock = threading.Lock()

    def add(self, work: LookupWork) -> None:
        with self._lock:
            for table, cost in work.by_table.items():
                self._spent[table] = self._spent.get(table, 0.0) + cost

    def remaining(self, table: str, cost: float) -> float:
        """The part of the cost of reading a table that its look-ups have not reached yet."""
        return max(cost - self._spent.get(table, 0.0), 0.0)
