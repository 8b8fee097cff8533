"""Two ways to a graph: read what a query touches into memory, or look up only what it comes to.

Both find the same rows. Memory is quicker once it is filled; look-ups are quicker for a query that
begins at few nodes of a graph nobody has read yet. What look-ups have cost so far is remembered, so
that a table which is looked at again and again ends up in memory.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from threading import Lock
from typing import Final

from omnigraph.errors import InputError
from omnigraph.limits import LOOKUP_MAX_FRONTIER, LOOKUP_MAX_HOPS
from omnigraph.plan.cost import ID_COST, LOOKUP_COST, ROW_COST

MODE_VARIABLE: Final = "OMNIGRAPH_TRAVERSAL_MODE"
FRONTIER_VARIABLE: Final = "OMNIGRAPH_EXPAND_INDEXED_MAX_FRONTIER"
HOPS_VARIABLE: Final = "OMNIGRAPH_EXPAND_INDEXED_MAX_HOPS"


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
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> TraversalSettings:
        """The settings of the environment. Raises `InputError` for a mode that does not exist."""
        text = environment.get(MODE_VARIABLE) or TraversalMode.AUTO.value
        try:
            mode = TraversalMode(text)
        except ValueError:
            modes = ", ".join(f"'{mode.value}'" for mode in TraversalMode)
            raise InputError(f"{MODE_VARIABLE} is '{text}'; set it to one of {modes}") from None
        return cls(
            mode,
            _number(environment.get(FRONTIER_VARIABLE), LOOKUP_MAX_FRONTIER),
            _number(environment.get(HOPS_VARIABLE), LOOKUP_MAX_HOPS),
        )


def _number(text: str | None, default: int) -> int:
    """A tuning value; what is no positive number stands for the default."""
    return int(text) if text and text.isascii() and text.isdigit() and int(text) else default


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
