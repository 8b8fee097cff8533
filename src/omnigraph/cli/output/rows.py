"""The result of a read as the writers for people see it: a headline, column names, and rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Cell: TypeAlias = "bool | int | float | str | Sequence[Cell] | Mapping[str, Cell] | None"


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows in column order. `rows` is walked once, so it may be a stream."""

    headline: str
    columns: Sequence[str]
    rows: Iterable[Sequence[Cell]]

    @classmethod
    def from_objects(
        cls, headline: str, columns: Sequence[str] | None, objects: Sequence[Cell]
    ) -> Rows:
        """Arrange the row objects of a JSON document, which may not say its columns.

        Without columns, the keys of all rows are used, sorted. A row that is not an object has
        one value, in the column `value`.
        """
        mappings = [row if isinstance(row, Mapping) else {"value": row} for row in objects]
        if columns is None:
            columns = sorted({key for row in mappings for key in row})
        return cls(headline, columns, [[row.get(name) for name in columns] for row in mappings])
