"""The binding table: a column of numbered nodes per variable, a weight and fused ranks per row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from omnigraph.engine.read.numbering import Mask, Positions
from omnigraph.errors import QueryBudgetExceeded
from omnigraph.plan.ir import Rrf

Weights = npt.NDArray[np.int64]

_MOST: Final = 2**62
_SEVERAL: Final = 4
"""Columns from which on it pays to see first whether taking rows changes anything."""


@dataclass(frozen=True, slots=True)
class Fused:
    """Per row the fused score of two rankings, and the places in both that decide between equals.

    A row in neither ranking has no score, which is NaN.
    """

    scores: npt.NDArray[np.float64]
    first: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]

    def take(self, rows: Positions) -> Fused:
        return Fused(self.scores[rows], self.first[rows], self.second[rows])


@dataclass(frozen=True, slots=True)
class Frame:
    """Rows of bindings. A row stands for `weights` rows of the full result; None means one each."""

    length: int
    columns: Mapping[str, Positions] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    weights: Weights | None = None
    fused: Mapping[Rrf, Fused] = field(default_factory=dict)
    """Known once all rows are."""

    def take(self, rows: Positions) -> Frame:
        """The given rows, in the given order."""
        if len(rows) == self.length and len(self.columns) > _SEVERAL and _is_identity(rows):
            return self
        return Frame(
            len(rows),
            {name: column[rows] for name, column in self.columns.items()},
            self.types,
            None if self.weights is None else self.weights[rows],
            {rank: fused.take(rows) for rank, fused in self.fused.items()},
        )

    def where(self, mask: Mask) -> Frame:
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def bind(self, variable: str, node_type: str, positions: Positions) -> Frame:
        """With one more variable, a node for every row."""
        return Frame(
            self.length,
            {**self.columns, variable: positions},
            {**self.types, variable: node_type},
            self.weights,
        )

    def times(self, factors: Weights) -> Frame:
        """With every weight multiplied; rows of weight zero go."""
        weights = factors if self.weights is None else product(self.weights, factors)
        frame = Frame(self.length, self.columns, self.types, weights)
        return frame.where(weights > 0)

    def spelled_out(self) -> Frame:
        """Every row as often as it counts."""
        if self.weights is None:
            return self
        rows = np.repeat(np.arange(self.length, dtype=np.int64), self.weights)
        return replace(self, weights=None).take(rows)

    def total(self) -> int:
        """How many rows of the full result these are."""
        return self.length if self.weights is None else int(self.weights.sum())


def product(left: Weights, right: Weights) -> Weights:
    """Weights multiplied. Raises `QueryBudgetExceeded` for what no longer fits into 64 bits."""
    if len(left):
        refuse_uncountable(float(left.max()) * float(right.max()))
    return left * right


def refuse_uncountable(rows: float) -> None:
    if rows > _MOST:
        raise QueryBudgetExceeded("rows", "more than can be counted", f"{_MOST:,}")


def _is_identity(rows: Positions) -> bool:
    return bool(np.array_equal(rows, np.arange(len(rows))))


def concatenated(frames: Sequence[Frame]) -> Frame:
    """The rows of frames with the same variables, at least one."""
    first = frames[0]
    if len(frames) == 1:
        return first
    columns = {n: np.concatenate([f.columns[n] for f in frames]) for n in first.columns}
    weights = None
    if any(frame.weights is not None for frame in frames):
        parts = [np.ones(f.length, np.int64) if f.weights is None else f.weights for f in frames]
        weights = np.concatenate(parts)
    return Frame(sum(frame.length for frame in frames), columns, first.types, weights)


def everything() -> Frame:
    """The one row of no bindings that every query starts from."""
    return Frame(1)
