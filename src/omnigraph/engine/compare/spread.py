"""A comparison spread over tasks: each compares the rows of one part of the ids of one table.

Tasks answer with places, and rows stay where they are stored. Tests: tests/spark/test_comparing.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.compare.changes import TableChanges
from omnigraph.engine.compare.comparison import ComparedTable, Comparison
from omnigraph.engine.compare.parts import Part, parts_for
from omnigraph.engine.compare.sides import ABSENT, Side, StoredSide, no_rows
from omnigraph.spark.answers import Failed, returning, value_of
from omnigraph.spark.tasks import run_tasks
from omnigraph.storage.changed_rows import Numbers, RowAddresses
from omnigraph.versioning.snapshot import Snapshot, SnapshotEntry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Places:
    """Where rows of a stored version are; `ABSENT` of those it does not have."""

    fragments: Numbers
    positions: Numbers

    @classmethod
    def of(cls, side: Side, numbers: Numbers) -> Places:
        there = numbers != ABSENT
        fragments, positions = (np.full(len(numbers), ABSENT, np.int64) for _ in range(2))
        if isinstance(side, StoredSide):
            fragments[there] = side.places.fragments[numbers[there]]
            positions[there] = side.places.positions[numbers[there]]
        return cls(fragments, positions)

    @classmethod
    def joined(cls, parts: Sequence[Places], order: Numbers) -> Places:
        return cls(
            np.concatenate([part.fragments for part in parts])[order],
            np.concatenate([part.positions for part in parts])[order],
        )


@dataclass(frozen=True, slots=True)
class PartAnswer:
    """The changes of one part of a table."""

    ids: pa.Array
    before: Places
    after: Places


@dataclass(frozen=True, slots=True)
class PartsWork:
    """What tasks have to do. A task is about one part of one table."""

    comparison: Comparison
    parts: tuple[tuple[ComparedTable, Part], ...]

    def compare(self, number: int) -> PartAnswer | Failed:
        return returning(lambda: self._compare(*self.parts[number]))

    def _compare(self, table: ComparedTable, part: Part) -> PartAnswer:
        found = self.comparison.changes(table, self.comparison.sides(table, part))
        return PartAnswer(
            found.ids,
            Places.of(found.before, found.before_numbers),
            Places.of(found.after, found.after_numbers),
        )


def compare_on_spark(
    spark: SparkSession, comparison: Comparison, sizes: Sequence[tuple[ComparedTable, int]]
) -> list[TableChanges]:
    """The changes of tables, of which so many rows can differ. Raises `SparkError`."""
    parts = tuple((table, part) for table, rows in sizes for part in parts_for(rows))
    if not parts:
        return []
    work = PartsWork(comparison, parts)
    answers = [value_of(a) for a in run_tasks(spark, "compare rows", len(parts), work.compare)]
    return [
        _joined(
            comparison, table, [a for (of, _), a in zip(parts, answers, strict=True) if of is table]
        )
        for table, _ in sizes
    ]


def _joined(
    comparison: Comparison, table: ComparedTable, answers: Sequence[PartAnswer]
) -> TableChanges:
    ids = pa.concat_arrays([answer.ids for answer in answers])
    order = pc.sort_indices(ids).to_numpy().astype(np.int64)
    ids = ids.take(pa.array(order))
    sides = [
        _side(comparison, table, ids, snapshot, entry, Places.joined(places, order))
        for snapshot, entry, places in (
            (comparison.before, table.before, [answer.before for answer in answers]),
            (comparison.after, table.after, [answer.after for answer in answers]),
        )
    ]
    (before, old), (after, new) = sides
    return TableChanges(table.shown, ids, before, after, old, new, table.is_one_line)


def _side(
    comparison: Comparison,
    table: ComparedTable,
    ids: pa.Array,
    snapshot: Snapshot,
    entry: SnapshotEntry | None,
    places: Places,
) -> tuple[Side, Numbers]:
    there = places.fragments != ABSENT
    numbers = np.where(there, np.cumsum(there) - 1, ABSENT)
    if entry is None or not there.any():
        return no_rows(table.declared), numbers
    stored = snapshot.open(comparison.tables, entry.table_key)
    found = RowAddresses(
        stored, ids.filter(pa.array(there)), places.fragments[there], places.positions[there]
    )
    return StoredSide(table.declared, found), numbers
