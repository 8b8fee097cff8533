"""The acceptance rows as values: which ids exist, in which area, and what each one checks.

Reads ``rows.toml`` and nothing else. Owned by ``tests/acceptance/test_rows.py``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROWS_FILE = Path(__file__).with_name("rows.toml")


@dataclass(frozen=True, slots=True)
class Row:
    """One promised behaviour."""

    id: str
    area: str
    title: str


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All rows in the order of the file, and the ids that must not come back.

    Of some rows it is known why no test proves them: we have `decided` against them, or part of
    them waits for something that comes `later`. Both give the ids by reason.
    """

    rows: tuple[Row, ...]
    retired: frozenset[str]
    decided: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    later: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(row.id for row in self.rows)

    def areas(self) -> dict[str, tuple[Row, ...]]:
        """The rows of each area, both in the order of the file."""
        grouped: dict[str, list[Row]] = {}
        for row in self.rows:
            grouped.setdefault(row.area, []).append(row)
        return {area: tuple(rows) for area, rows in grouped.items()}


def read_catalogue(path: Path = ROWS_FILE) -> Catalogue:
    with path.open("rb") as file:
        document = tomllib.load(file)
    retired = frozenset(document.pop("retired"))
    decided, later = (_by_reason(document.pop(name)) for name in ("decided", "later"))
    rows = (Row(id, area, title) for area, rows in document.items() for id, title in rows.items())
    return Catalogue(tuple(rows), retired, decided, later)


def _by_reason(table: dict[str, list[str]]) -> dict[str, tuple[str, ...]]:
    return {reason: tuple(ids) for reason, ids in table.items()}
