"""The binding table: a column of numbered nodes per variable, and a weight per row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from omnigraph.engine.read.numbering import Mask, Positions
from omnigraph.errors import QueryBudgetExceeded

Weights = npt.NDArray[np.int64]

_MOST = 2**62


@dataclass(frozen=True, slots=True)
class Frame:
    """Rows of bindings. A row stands for `weights` rows of the full result; None means one each."""

    length: int
    columns: Mapping[str, Positions] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    weights: Weights | None = None

    def take(self, rows: Positions) -> Frame:
        """The given rows, in the given order."""
        return Frame(
            len(rows),
            {name: column[rows] for name, column in self.columns.items()},
            self.types,
            None if self.weights is None else self.weights[rows],
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
        weights = factors if self.weights is None else _product(self.weights, factors)
        frame = Frame(self.length, self.columns, self.types, weights)
        return frame.where(weights > 0)

    def spelled_out(self) -> Frame:
        """Every row as often as it counts."""
        if self.weights is None:
            return self
        rows = np.repeat(np.arange(self.length, dtype=np.int64), self.weights)
        return Frame(self.length, self.columns, self.types).take(rows)

    def total(self) -> int:
        """How many rows of the full result these are."""
        return self.length if self.weights is None else int(self.weights.sum())


def _product(left: Weights, right: Weights) -> Weights:
    if len(left) and float(left.max()) * float(right.max()) > _MOST:
        raise QueryBudgetExceeded("rows", "more than can be counted", f"{_MOST:,}")
    return left * right


def everything() -> Frame:
    """The one row of no bindings that every query starts from."""
    return Frame(1)
