"""Running the steps of an arrangement: from one empty row to the binding table of a query."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

import numpy as np

from omnigraph.engine.read.adjacency import Counts
from omnigraph.engine.read.budget import Meter
from omnigraph.engine.read.expressions import Expressions
from omnigraph.engine.read.frame import Frame
from omnigraph.engine.read.hops import Hops
from omnigraph.engine.read.numbering import Mask, Positions
from omnigraph.engine.read.source import GraphSource
from omnigraph.plan.ir import Direction, Filter
from omnigraph.plan.physical.steps import (
    Branch,
    Check,
    Connected,
    Count,
    Follow,
    Lacks,
    Scan,
    Step,
    Without,
)

_ROW = "#row"
"""Which outer row a row of an inner pattern belongs to. No variable has such a name."""


@dataclass(frozen=True, slots=True)
class StepReport:
    """What a step did: the rows it left and the time it took."""

    step: Step
    rows: int
    seconds: float


class Executor:
    """Runs steps for one query."""

    def __init__(
        self,
        source: GraphSource,
        expressions: Expressions,
        meter: Meter,
        report: Callable[[StepReport], None] | None = None,
    ) -> None:
        self._source = source
        self._expressions = expressions
        self._meter = meter
        self._hops = Hops(source, meter)
        self._report = report

    def run(self, steps: tuple[Step, ...], frame: Frame) -> Frame:
        for step in steps:
            started = time.perf_counter()
            self._meter.check(frame.length)
            frame = self._step(step, frame)
            if self._report is not None:
                self._report(StepReport(step, frame.length, time.perf_counter() - started))
        return frame

    def _step(self, step: Step, frame: Frame) -> Frame:
        match step:
            case Scan():
                return self._scan(step, frame)
            case Follow():
                return self._follow(step, frame)
            case Connected():
                sources, targets = frame.columns[step.source], frame.columns[step.target]
                return frame.where(self._hops.joins(step.hop, sources, targets))
            case Count():
                return frame.times(self.solutions(step.branch, frame.columns[step.source]))
            case Check():
                return frame.where(self._expressions.holds(step.filter, frame))
            case Lacks():
                found = self.solutions(step.branch, frame.columns[step.source])
                return frame.where(found == 0)
            case Without():
                return self._without(step, frame)
            case _:
                assert_never(step)

    # -- steps ------------------------------------------------------------------------------

    def _scan(self, step: Scan, frame: Frame) -> Frame:
        nodes = self._source.nodes(step.node_type)
        found = self._expressions.select(nodes, step.conditions)
        if frame.length == 1 and not frame.columns:
            return Frame(len(found), {step.variable: found}, {step.variable: step.node_type})
        self._meter.check(frame.length * len(found), 8 * (len(frame.columns) + 1))
        rows = np.repeat(np.arange(frame.length, dtype=np.int64), len(found))
        return frame.take(rows).bind(step.variable, step.node_type, np.tile(found, frame.length))

    def _follow(self, step: Follow, frame: Frame) -> Frame:
        rows, nodes = self._hops.reach(step.hop, frame.columns[step.source])
        if step.conditions:
            kept = self._meeting(step.hop.node_type, step.conditions, nodes)
            rows, nodes = rows[kept], nodes[kept]
        return frame.take(rows).bind(step.target, step.hop.node_type, nodes)

    def _meeting(
        self, node_type: str, conditions: tuple[Filter, ...], positions: Positions
    ) -> Mask:
        """Which of the nodes, some of them repeated, meet conditions."""
        nodes = self._source.nodes(node_type)
        mask = np.zeros(nodes.size, np.bool_)
        if len(positions) < nodes.size // 4:
            mask[self._expressions.select(nodes, conditions, np.unique(positions))] = True
        else:
            mask[self._expressions.select(nodes, conditions)] = True
        return mask[positions]

    def _without(self, step: Without, frame: Frame) -> Frame:
        rows = np.arange(frame.length, dtype=np.int64)
        columns = {name: frame.columns[name] for name in step.outer}
        types = {name: frame.types[name] for name in step.outer}
        seed = Frame(frame.length, {**columns, _ROW: rows}, types)
        found = self.run(step.inner, seed).columns[_ROW]
        lacking = np.ones(frame.length, np.bool_)
        lacking[found] = False
        return frame.where(lacking)

    # -- branches ---------------------------------------------------------------------------

    def solutions(self, branch: Branch, sources: Positions) -> Counts:
        """How many solutions a branch has from each source."""
        if not self._hops.is_possible(branch.hop):
            return np.zeros(len(sources), np.int64)
        size = self._sources(branch)
        if self._hops.is_single(branch.hop) and len(sources) > size // 8:
            return self._everywhere(branch, size)[sources]
        distinct, place = np.unique(sources, return_inverse=True)
        rows, nodes = self._hops.reach(branch.hop, distinct)
        ends, end_place = np.unique(nodes, return_inverse=True)
        weights = self._weights(branch, ends)[end_place]
        found = np.zeros(len(distinct), np.int64)
        np.add.at(found, rows, weights)
        return found[place]

    def _everywhere(self, branch: Branch, size: int) -> Counts:
        """The solutions from each node of the type a branch starts at."""
        if not (branch.conditions or branch.branches or branch.without):
            return self._hops.degrees(branch.hop, size)
        nodes = self._source.nodes(branch.hop.node_type)
        met = self._expressions.select(nodes, branch.conditions)
        weights = np.zeros(nodes.size, np.int64)
        weights[met] = self._hanging(branch, met)
        return self._hops.sums(branch.hop, weights, size)

    def _weights(self, branch: Branch, ends: Positions) -> Counts:
        """What each distinct end of a hop counts for: zero if it does not meet the conditions."""
        nodes = self._source.nodes(branch.hop.node_type)
        met = self._expressions.select(nodes, branch.conditions, ends)
        weights = np.zeros(len(ends), np.int64)
        weights[np.searchsorted(ends, met)] = self._hanging(branch, met)
        return weights

    def _hanging(self, branch: Branch, nodes: Positions) -> Counts:
        weights = np.ones(len(nodes), np.int64)
        for further in branch.branches:
            weights = weights * self.solutions(further, nodes)
        for lacking in branch.without:
            weights = weights * (self.solutions(lacking, nodes) == 0)
        return weights

    def _sources(self, branch: Branch) -> int:
        """How many nodes the type has from which a branch starts."""
        edge = self._source.catalog.edges[branch.hop.edge]
        start = edge.from_type if branch.hop.direction is Direction.OUT else edge.to_type
        return self._source.nodes(start).size
