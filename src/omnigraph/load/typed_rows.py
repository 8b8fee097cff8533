"""Rows of one type between reading and judging, and what was wrong with single records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.catalog.model import EntityType

Numbers = npt.NDArray[np.int64]

_FIRST_RECORDS: Final = 3
"""Records named in an error about all records that have something in common."""

Key = tuple[str, str]
"""The name of a type, and a key of its records that none of its properties has."""


class UnknownProperties:
    """Keys that no property has: the number of records with each, and the first of these records."""

    def __init__(self) -> None:
        self.counts: Counter[Key] = Counter()
        self.first: dict[Key, list[tuple[int, int]]] = {}
        """Source and record by number; what was not placed yet has its position."""

    def note(self, key: Key, positions: Sequence[int]) -> None:
        """Count records, the first ones of which come first."""
        self._add(key, len(positions), [(0, place) for place in positions[:_FIRST_RECORDS]])

    def update(self, other: UnknownProperties) -> None:
        """Count the records of another part of the load."""
        for key, count in other.counts.items():
            self._add(key, count, other.first[key])

    def placed(self, source: int, before: int) -> UnknownProperties:
        """The same in a source of which so many records come before."""
        moved = UnknownProperties()
        for key, count in self.counts.items():
            first = [(source, before + position + 1) for _, position in self.first[key]]
            moved._add(key, count, first)
        return moved

    def _add(self, key: Key, count: int, first: list[tuple[int, int]]) -> None:
        self.counts[key] += count
        self.first[key] = sorted([*self.first.get(key, ()), *first])[:_FIRST_RECORDS]


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in the text of a record: line ends before it, and its column in that line, from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with one record, known by its position in what is being read."""

    position: int
    code: str
    message: str
    type: str | None = None
    property: str | None = None
    id: str | None = None
    spot: Spot | None = None


@dataclass(frozen=True, slots=True)
class MisfitValue:
    """A cell that was left null because its value does not fit."""

    row: int
    property: str
    message: str


@dataclass(frozen=True, slots=True)
class TypedRows:
    """Converted columns of one type: every property and, for edges, `src` and `dst`; of a patch
    also which properties each record has (`omnigraph.load.given_keys`).

    `ids` are the explicit ids that were given as text; `odd_ids` shows those that were not.
    """

    declared: EntityType
    positions: Numbers
    columns: Mapping[str, pa.Array]
    ids: pa.Array
    misfits: tuple[MisfitValue, ...] = ()
    odd_ids: Mapping[int, str] = field(default_factory=dict)


@dataclass(slots=True)
class Reading:
    """What a piece of a source became: `count` records, some of them rows, some problems."""

    count: int
    lines: Numbers | None = None
    rows: list[TypedRows] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    unknown: UnknownProperties = field(default_factory=UnknownProperties)

    def add(self, other: Reading) -> None:
        """Take over what another reading of the same piece found."""
        self.rows += other.rows
        self.problems += other.problems
        self.unknown.update(other.unknown)
