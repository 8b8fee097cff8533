"""Blocks of a pattern as columns of rows: left joins, and aggregates of what a block finds for a row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from omnigraph.language.query.ast import AggregateFunction
from omnigraph.plan.ir import BlockValue
from omnigraph.plan.steps import Apply, Introduced, Step, Subpattern
from omnigraph.read.adjacency import Counts
from omnigraph.read.aggregate import Groups, aggregate, key_of
from omnigraph.read.expressions import Expressions
from omnigraph.read.frame import ROW, Frame
from omnigraph.read.positions import Positions


def left_join(frame: Frame, found: Frame, introduced: Introduced) -> Frame:
    """Each row with the inner rows found for it, or once with unbound variables.

    A variable that the inner rows do not enumerate is only known to be bound or not.
    """
    matched = found.columns[ROW]
    lacks = np.ones(frame.length, np.bool_)
    lacks[matched] = False
    missing = np.flatnonzero(lacks)
    joined = frame.take(np.concatenate([matched, missing]))
    unbound = np.full(len(missing), -1, np.int64)
    for name, kind in introduced:
        column = found.columns.get(name)
        if column is None:
            column = np.zeros(len(matched), np.int64)
        joined = joined.bind(name, found.types.get(name, kind), np.concatenate([column, unbound]))
    if found.weights is not None:
        joined = joined.multiply(np.concatenate([found.weights, np.ones_like(unbound)]))
    return joined.with_optional(name for name, _ in introduced)


def left_count(frame: Frame, counts: Counts, introduced: Introduced) -> Frame:
    """Each row as often as there are solutions, or once with unbound variables."""
    for name, kind in introduced:
        frame = frame.bind(name, kind, np.where(counts > 0, 0, -1))
    return frame.multiply(np.maximum(counts, 1)).with_optional(name for name, _ in introduced)


class BlockValues:
    """The values of blocks, computed for the rows of a frame when an expression reads them."""

    def __init__(
        self,
        run: Callable[[tuple[Step, ...], Frame], Frame],
        solutions: Callable[[str, Subpattern, Frame], Counts],
        expressions: Expressions,
    ) -> None:
        self._run = run
        self._solutions = solutions
        self._expressions = expressions
        self._steps: dict[str, Apply] = {}

    def add(self, step: Apply) -> None:
        """Say how a block is computed."""
        self._steps[step.name] = step

    def values(self, block: BlockValue, frame: Frame) -> pa.Array:
        """The value of a block for each row."""
        step = self._steps[block.name]
        if isinstance(step.inner, Subpattern):
            counts = self._solutions(step.outer[0], step.inner, frame)
            return pa.array(counts > 0 if step.function is None else counts)
        rows, inverse = _distinct_rows([frame.columns[name] for name in step.outer], frame.length)
        found = self._run(step.inner, frame.take(rows).seed(step.outer))
        return self._aggregated(step, step.function, found, len(rows)).take(pa.array(inverse))

    def _aggregated(
        self, step: Apply, function: AggregateFunction | None, found: Frame, count: int
    ) -> pa.Array:
        rows, weights = found.columns[ROW], found.weights
        if function is None:
            return pa.array(np.bincount(rows, minlength=count) > 0)
        values = None
        if step.argument is not None:
            values = self._expressions.values(step.argument, found)
        if step.distinct and values is not None:
            key = key_of(values)
            _, first = np.unique(rows * key.size + key.codes, return_index=True)
            rows, values, weights = rows[first], values.take(pa.array(first)), None
        return aggregate(function, values, Groups(rows, count, None), weights, len(rows))


def _distinct_rows(columns: list[Positions], length: int) -> tuple[Positions, Positions]:
    """A row of each combination of values, and the number of the combination of each row."""
    if not columns:
        return np.zeros(min(length, 1), np.int64), np.zeros(length, np.int64)
    order = np.lexsort(tuple(columns))
    first = np.zeros(len(order), np.bool_)
    first[:1] = True
    for column in columns:
        first[1:] |= np.diff(column[order]) != 0
    inverse = np.empty(len(order), np.int64)
    inverse[order] = np.cumsum(first) - 1
    return order[first], inverse
