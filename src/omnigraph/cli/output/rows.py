"""The result of a read as the writers see it: column names, rows, and what was read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Cell: TypeAlias = "bool | int | float | str | Sequence[Cell] | Mapping[str, Cell] | None"


@dataclass(frozen=True, slots=True)
class ReadFacts:
    """What was run, where, and how many rows it gave; exactly one of branch and snapshot is set."""

    query_name: str
    row_count: int
    branch: str | None = None
    snapshot: str | None = None

    def __post_init__(self) -> None:
        if (self.branch is None) == (self.snapshot is None):
            raise ValueError("a read has either a branch or a snapshot")

    @property
    def target(self) -> dict[str, str | None]:
        return {"branch": self.branch, "snapshot": self.snapshot}

    @property
    def line(self) -> str:
        """The line above the rows in the formats made for people."""
        if self.branch is not None:
            source = f"branch {self.branch}"
        else:
            source = f"snapshot {self.snapshot}"
        return f"{self.row_count} rows from {source} via {self.query_name}"


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows in column order. `rows` is walked once, so it may be a stream."""

    facts: ReadFacts
    columns: Sequence[str]
    rows: Iterable[Sequence[Cell]]

    @classmethod
    def from_objects(
        cls, facts: ReadFacts, columns: Sequence[str] | None, objects: Sequence[Cell]
    ) -> Rows:
        """Arrange the row objects of a JSON document, which may not say its columns.

        Without columns, the keys of all rows are used, sorted. A row that is not an object has
        one value, in the column `value`.
        """
        mappings = [row if isinstance(row, Mapping) else {"value": row} for row in objects]
        if columns is None:
            columns = sorted({key for row in mappings for key in row})
        return cls(facts, columns, [[row.get(name) for name in columns] for row in mappings])
