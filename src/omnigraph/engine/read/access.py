"""Two ways to a graph: read what a query touches into memory, or look up only what it comes to.

Both find the same rows. Memory is quicker once it is filled; look-ups are quicker for a query that
begins at few nodes of a graph nobody has read yet. What look-ups have cost so far is remembered, so
that a table which is looked at again and again ends up in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from threading import Lock

from omnigraph.limits import LOOKUP_MAX_FRONTIER, LOOKUP_MAX_HOPS
from omnigraph.plan.cost import ID_COST, LOOKUP_COST, ROW_COST
from omnigraph.settings import read_settings


class TraversalMode(Enum):
    """How edges are followed: whichever is expected to be quicker, or always in one way."""

    AUTO = "auto"
    INDEXED = "indexed"
    CSR = "csr"


@dataclass(frozen=True, slots=True)
class TraversalSettings:
    """The mode, and up to how many nodes and hops it may look up on its own accord."""

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


class TooMuchWork(Exception):
    """Look-ups have cost as much as reading everything would."""


class Work:
    """What the look-ups of one query have cost per table, and the most they may cost together."""

    def __init__(self, most: float = float("inf")) -> None:
        self._left = most
        self.lookups = 0
        self.by_table: dict[str, float] = {}

    def look_up(self, table: str, values: int, rows: int) -> None:
        """Note a look-up of so many values that found so many rows. Raises `TooMuchWork`."""
        self.add(table, LOOKUP_COST + ID_COST * values + ROW_COST * rows)

    def add(self, table: str, cost: float) -> None:
        """Note any work on a table. Raises `TooMuchWork`."""
        self.lookups += 1
        self.by_table[table] = self.by_table.get(table, 0.0) + cost
        self._left -= cost
        if self._left < 0:
            raise TooMuchWork


class Ledger:
    """What look-ups in each table have cost since a graph was opened. Thread-safe."""

    def __init__(self) -> None:
        self._spent: dict[str, float] = {}
        self._lock = Lock()

    def note(self, work: Work) -> None:
        with self._lock:
            for table, cost in work.by_table.items():
                self._spent[table] = self._spent.get(table, 0.0) + cost

    def left(self, table: str, cost: float) -> float:
        """How much of the cost of reading a table its look-ups have not cost yet."""
        return max(cost - self._spent.get(table, 0.0), 0.0)
