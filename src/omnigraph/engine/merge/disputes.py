"""Rows that both sides changed and nobody has decided: all are counted, the first by id are told.

Tests: tests/behaviour/test_merge_rows.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import EntityType
from omnigraph.engine.compare.changes import chunks
from omnigraph.engine.compare.sides import ABSENT, Side
from omnigraph.engine.merge.truth import Verdicts
from omnigraph.engine.read.entities import compared_documents
from omnigraph.errors import MergeConflict
from omnigraph.limits import CONFLICTS_TOLD
from omnigraph.rows.equality import Mask
from omnigraph.storage.changed_rows import Numbers

_KINDS = ("divergent_insert", "delete_vs_update", "divergent_update")
_MESSAGES = (
    "both branches added '{}' with different values",
    "'{}' was deleted on one branch and changed on the other",
    "both branches changed '{}' to different values",
)


def kinds_of(verdicts: Verdicts) -> npt.NDArray[np.int8]:
    """The kind of conflict each contested row is, as a number."""
    kinds = np.full(len(verdicts.taken), 2, np.int8)
    kinds[verdicts.divergent_insert] = 0
    kinds[verdicts.delete_vs_update] = 1
    return kinds


@dataclass(frozen=True, slots=True)
class Disputed:
    """Some such rows. Numbers are those that the three states have for them."""

    ids: pa.Array
    kinds: npt.NDArray[np.int8]
    base: Numbers
    ours: Numbers
    theirs: Numbers
    clashes: Mask
    """By row and column: whether the two sides clash there; all false if only rows are looked at."""

    def at(self, numbers: Numbers) -> Disputed:
        return Disputed(
            self.ids.take(pa.array(numbers)),
            self.kinds[numbers],
            self.base[numbers],
            self.ours[numbers],
            self.theirs[numbers],
            self.clashes[numbers],
        )


@dataclass
class Disputes:
    """Gathers them for one table."""

    declared: EntityType
    columns: Sequence[str]
    total: int = 0
    _kept: list[Disputed] = field(default_factory=list)
    _kept_rows: int = 0

    def add(self, disputed: Disputed) -> None:
        self.total += len(disputed.ids)
        self._kept.append(disputed)
        self._kept_rows += len(disputed.ids)
        if self._kept_rows > 4 * CONFLICTS_TOLD:
            first = self._first()
            self._kept, self._kept_rows = [first], len(first.ids)

    def conflicts(self, base: Side, ours: Side, theirs: Side) -> Iterator[MergeConflict]:
        """Those that are told, by id, with what the three states hold."""
        if not self._kept:
            return
        first = self._first()
        for part in chunks(np.arange(len(first.ids))):
            rows = first.at(part)
            values = zip(
                self._documents(base, rows.base),
                self._documents(ours, rows.ours),
                self._documents(theirs, rows.theirs),
                strict=True,
            )
            for number, (before, mine, other) in enumerate(values):
                id, kind = rows.ids[number].as_py(), int(rows.kinds[number])
                message = _MESSAGES[kind].format(id)
                if rows.clashes[number].any():
                    named = np.flatnonzero(rows.clashes[number]).tolist()
                    message += f" of {', '.join(self.columns[column] for column in named)}"
                yield MergeConflict(
                    self.declared.table_key, id, _KINDS[kind], message, before, mine, other
                )

    def _first(self) -> Disputed:
        kept = self._kept
        ids = pa.concat_arrays([part.ids for part in kept])
        together = Disputed(
            ids,
            np.concatenate([part.kinds for part in kept]),
            np.concatenate([part.base for part in kept]),
            np.concatenate([part.ours for part in kept]),
            np.concatenate([part.theirs for part in kept]),
            np.concatenate([part.clashes for part in kept]),
        )
        order = pc.sort_indices(ids).to_numpy().astype(np.int64)
        return together.at(order[:CONFLICTS_TOLD])

    def _documents(self, side: Side, numbers: Numbers) -> list[dict[str, object] | None]:
        there = numbers != ABSENT
        rows = side.read(numbers[there], self.declared.columns)
        found = iter(compared_documents(self.declared, rows.to_batches()))
        return [next(found) if has else None for has in there.tolist()]
