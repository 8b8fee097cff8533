"""Rows of one type between reading and judging, and what was wrong with single records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.catalog.model import EntityType

Numbers = npt.NDArray[np.int64]

UnknownProperties = Counter[tuple[str, str]]
"""Records by type name and by the key no property answers to."""


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
    unknown: UnknownProperties = field(default_factory=Counter)

    def add(self, other: Reading) -> None:
        """Take over what another reading of the same piece found."""
        self.rows += other.rows
        self.problems += other.problems
        self.unknown.update(other.unknown)
