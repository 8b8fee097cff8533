"""The decision table of a merge, and the rows that it leaves in conflict.

All conflicting rows are counted; the first by id are reported with their values, so that a report is
bounded and the same on one process and on Spark.
Tests: tests/unit/engine/test_merge_decisions.py, tests/behaviour/test_merge_rows.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import EntityType
from omnigraph.diff.changes import Side, chunks, row_documents
from omnigraph.errors import MergeConflict
from omnigraph.limits import MAX_REPORTED_CONFLICTS
from omnigraph.rows.equality import Mask
from omnigraph.storage.changed_rows import Numbers

_KINDS = ("divergent_insert", "delete_vs_update", "divergent_update")
_MESSAGES = (
    "both branches added '{}' with different values",
    "'{}' was deleted on one branch and changed on the other",
    "both branches changed '{}' to different values",
)


@dataclass(frozen=True, slots=True)
class Presence:
    """Which rows each state has, and which rows are equal in two of the states."""

    base: Mask
    source: Mask
    target: Mask
    source_as_base: Mask
    target_as_base: Mask
    source_as_target: Mask


@dataclass(frozen=True, slots=True)
class Decisions:
    """Masks over rows: take the source's state, or report a conflict. Other rows stay as in the target."""

    taken: Mask
    divergent_insert: Mask
    divergent_update: Mask
    delete_vs_update: Mask

    @property
    def contested(self) -> Mask:
        """Rows that both sides changed differently."""
        return self.divergent_insert | self.divergent_update | self.delete_vs_update

    def kinds(self) -> npt.NDArray[np.int8]:
        """The conflict kind of each contested row, as an index into `_KINDS`."""
        kinds = np.full(len(self.taken), 2, np.int8)
        kinds[self.divergent_insert] = 0
        kinds[self.delete_vs_update] = 1
        return kinds


def decide(rows: Presence) -> Decisions:
    """Apply the decision table to every row. An absent row is a state like any other.

    The target's state stays wherever the source changed nothing, or made the same change.
    """
    source_kept = _same(rows.source, rows.base, rows.source_as_base)
    target_kept = _same(rows.target, rows.base, rows.target_as_base)
    agreed = _same(rows.source, rows.target, rows.source_as_target)
    undecided = ~source_kept & ~target_kept & ~agreed
    everywhere = rows.base & rows.source & rows.target
    return Decisions(
        taken=~source_kept & target_kept & ~agreed,
        divergent_insert=undecided & ~rows.base,
        divergent_update=undecided & everywhere,
        delete_vs_update=undecided & rows.base & ~everywhere,
    )


def _same(left: Mask, right: Mask, equal: Mask) -> Mask:
    return ~(left ^ right) & (~left | equal)


class ConflictingRows(NamedTuple):
    """Rows that both sides changed, with their row numbers in the three states."""

    ids: pa.Array
    kinds: npt.NDArray[np.int8]
    base: Numbers
    ours: Numbers
    theirs: Numbers
    clashes: Mask
    """By row and column: whether both sides changed that property; all false for whole rows."""

    def take(self, numbers: Numbers) -> ConflictingRows:
        columns: tuple[Any, ...] = self[1:]
        return ConflictingRows(self.ids.take(pa.array(numbers)), *(c[numbers] for c in columns))

    @classmethod
    def concat(cls, parts: Sequence[ConflictingRows]) -> ConflictingRows:
        ids, *columns = zip(*parts, strict=True)
        arrays: list[Any] = [np.concatenate(column) for column in columns]
        return cls(pa.concat_arrays(ids), *arrays)


@dataclass
class ConflictCollector:
    """Counts the conflicting rows of one table and keeps the first by id."""

    declared: EntityType
    columns: Sequence[str]
    total: int = 0
    _kept: list[ConflictingRows] = field(default_factory=list)

    def add(self, rows: ConflictingRows) -> None:
        self.total += len(rows.ids)
        self._kept.append(rows)
        if sum(len(part.ids) for part in self._kept) > 4 * MAX_REPORTED_CONFLICTS:
            self._kept = [self._first()]

    def conflicts(self, base: Side, ours: Side, theirs: Side) -> Iterator[MergeConflict]:
        """The first conflicts by id, with the values of all three states."""
        if not self._kept:
            return
        first = self._first()
        for part in chunks(np.arange(len(first.ids))):
            rows = first.take(part)
            values = zip(
                row_documents(self.declared, base, rows.base),
                row_documents(self.declared, ours, rows.ours),
                row_documents(self.declared, theirs, rows.theirs),
                strict=True,
            )
            for number, documents in enumerate(values):
                id, kind = rows.ids[number].as_py(), int(rows.kinds[number])
                message = _MESSAGES[kind].format(id)
                names = [
                    self.columns[column] for column in np.flatnonzero(rows.clashes[number]).tolist()
                ]
                if names:
                    message += f" of {', '.join(names)}"
                yield MergeConflict(self.declared.table_key, id, _KINDS[kind], message, *documents)

    def _first(self) -> ConflictingRows:
        rows = ConflictingRows.concat(self._kept)
        order = pc.sort_indices(rows.ids).to_numpy().astype(np.int64)
        return rows.take(order[:MAX_REPORTED_CONFLICTS])
