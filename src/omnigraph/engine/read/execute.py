"""Running the steps of an arrangement: from one empty row to the binding table of a query."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import takewhile
from typing import Final, assert_never

import numpy as np

from omnigraph.engine.read.adjacency import Counts, summed
from omnigraph.engine.read.budget import Meter
from omnigraph.engine.read.expressions import Expressions
from omnigraph.engine.read.frame import (
    Frame,
    concatenated,
    everything,
    product,
    refuse_uncountable,
)
from omnigraph.engine.read.hops import Hops
from omnigraph.engine.read.joins import EqualRows
from omnigraph.engine.read.looked_up import LookedUpNodes
from omnigraph.engine.read.nodes import Nodes
from omnigraph.engine.read.numbering import Positions, distinct_positions
from omnigraph.engine.read.source import GraphSource
from omnigraph.plan.ir import Direction, Filter
from omnigraph.plan.steps import (
    Branch,
    Check,
    Connected,
    Count,
    Follow,
    Has,
    Join,
    Lacks,
    Scan,
    Step,
    Without,
)

_FIRST_ROWS: Final = 1024
"""Rows that are tried first when only some results are wanted."""

_SHARE: Final = 0.125
"""What it takes to look at a node among all of them, against following an edge from a source."""

_ROW = "#row"
"""Which outer row a row of an inner pattern belongs to. No variable has such a name."""


@dataclass(frozen=True, slots=True)
class StepReport:
    """What a step did: the rows it left, the time it took and the look-ups it made."""

    step: Step
    rows: int
    seconds: float
    lookups: int


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
        self._scanned: dict[tuple[str, tuple[Filter, ...], int | None], Positions] = {}

    def run(self, steps: tuple[Step, ...], frame: Frame) -> Frame:
        before: Step | None = None
        for number, step in enumerate(steps):
            started, lookups = time.perf_counter(), self._source.work.lookups
            self._meter.check(frame.length)
            if isinstance(step, Scan) and not isinstance(before, Scan):
                self._refuse_large_product(steps[number:], frame.length)
            before = step
            frame = self._step(step, frame)
            if self._report is not None:
                seconds = time.perf_counter() - started
                made = self._source.work.lookups - lookups
                self._report(StepReport(step, frame.length, seconds, made))
        return frame

    def run_for(self, steps: tuple[Step, ...], enough: int | None) -> Frame:
        """All rows the steps find, or at least so many of them: whichever, so not in one go."""
        if enough is None or len(steps) < 2:
            return self.run(steps, everything())
        first = self.run(steps[:1], everything())
        found: list[Frame] = []
        total, start, size = 0, 0, max(_FIRST_ROWS, 2 * enough)
        while not found or (total < enough and start < first.length):
            rows = np.arange(start, min(start + size, first.length), dtype=np.int64)
            found.append(self.run(steps[1:], first.take(rows)))
            total += found[-1].total()
            start, size = start + size, 4 * size
        return concatenated(found)

    def _step(self, step: Step, frame: Frame) -> Frame:
        match step:
            case Scan():
                return self._scan(step, frame)
            case Join():
                return self._join(step, frame)
            case Follow():
                return self._follow(step, frame)
            case Connected():
                sources, targets = frame.columns[step.source], frame.columns[step.target]
                return frame.where(self._hops.joins(step.hop, sources, targets))
            case Count():
                return frame.times(self.solutions(step.branch, frame.columns[step.source]))
            case Has():
                found = self.solutions(step.branch, frame.columns[step.source])
                return frame.where(found > 0)
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
        found = self._scan_once(step)
        if frame.length == 1 and not frame.columns:
            return Frame(len(found), {step.variable: found}, {step.variable: step.node_type})
        self._meter.check(frame.length * len(found), 8 * (len(frame.columns) + 1))
        rows = np.repeat(np.arange(frame.length, dtype=np.int64), len(found))
        return frame.take(rows).bind(step.variable, step.node_type, np.tile(found, frame.length))

    def _refuse_large_product(self, steps: tuple[Step, ...], rows: int) -> None:
        """Scans in a row multiply each other: see what comes of all before the first is multiplied."""
        for step in takewhile(lambda step: isinstance(step, Scan), steps):
            assert isinstance(step, Scan)
            rows *= len(self._scan_once(step))
            self._meter.check(rows)

    def _scan_once(self, step: Scan) -> Positions:
        """The nodes of a scan, which may occur many times in one query."""
        key = (step.node_type, step.conditions, step.enough)
        found = self._scanned.get(key)
        if found is None:
            found = self._scanned[key] = self._found(*key)
        return found

    def _found(
        self, node_type: str, conditions: tuple[Filter, ...], enough: int | None = None
    ) -> Positions:
        """The nodes of a type that meet conditions, or so many of them."""
        nodes = self._source.nodes(node_type)
        if enough == 0:
            return np.empty(0, np.int64)
        if not isinstance(nodes, LookedUpNodes):
            found = self._expressions.select(nodes, conditions)
            return found if enough is None else found[:enough]
        plain = [self._expressions.plain(condition) for condition in conditions]
        others = tuple(c for c, p in zip(conditions, plain, strict=True) if p is None)
        found = nodes.find([p for p in plain if p is not None], None if others else enough)
        return self._expressions.select(nodes, others, found)[:enough]

    def _join(self, step: Join, frame: Frame) -> Frame:
        found = self._found(step.node_type, step.conditions)
        right = Frame(len(found), {step.variable: found}, {step.variable: step.node_type})
        equal = EqualRows(
            self._expressions.values(step.bound, frame),
            self._expressions.values(step.property, right),
        )
        if step.only_whether:
            return frame.where(equal.exist)
        self._meter.check(equal.total, 8 * (len(frame.columns) + 1))
        rows, places = equal.pairs()
        return frame.take(rows).bind(step.variable, step.node_type, found[places])

    def _follow(self, step: Follow, frame: Frame) -> Frame:
        rows, nodes = self._hops.reach(step.hop, frame.columns[step.source])
        if step.conditions:
            met = self._expressions.meets(
                self._source.nodes(step.hop.node_type), step.conditions, nodes
            )
            rows, nodes = rows[met], nodes[met]
        self._meter.check(len(rows), 8 * (len(frame.columns) + 1))
        return frame.take(rows).bind(step.target, step.hop.node_type, nodes)

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
        everywhere = self._everywhere(branch, len(sources))
        if everywhere is not None:
            return everywhere if self._start(branch).is_everything(sources) else everywhere[sources]
        distinct, place = distinct_positions(sources)
        found = self._solutions_one_by_one(branch, distinct)
        return found if place is None else found[place]

    def _solutions_one_by_one(self, branch: Branch, sources: Positions) -> Counts:
        if _is_bare(branch):
            return self._hops.counts(branch.hop, sources)
        rows, nodes = self._hops.reach(branch.hop, sources)
        if branch.conditions:
            ends = self._source.nodes(branch.hop.node_type)
            met = self._expressions.meets(ends, branch.conditions, nodes)
            rows, nodes = rows[met], nodes[met]
        return summed(rows, self._hanging(branch, nodes), len(sources))

    def _everywhere(self, branch: Branch, sources: int) -> Counts | None:
        """The solutions from each node of the type a branch starts at; None if that takes longer
        than following the edges of so many sources."""
        hop, start = branch.hop, self._start(branch)
        if not self._hops.is_single(hop) or not self._source.is_in_memory(hop, sources):
            return None
        if _is_bare(branch):
            return self._hops.degrees(hop, start.size) if sources > _SHARE * start.size else None
        nodes = self._source.nodes(hop.node_type)
        edges = self._source.edge_count(hop.edge)
        followed = edges * sources / max(start.size, 1)
        if followed < _SHARE * nodes.size:
            return None
        met = self._expressions.select(nodes, branch.conditions)
        if self._hops.cost_of_sums(hop, len(met), edges) + _SHARE * start.size > followed:
            return None
        weights = self._hanging(branch, met)
        if weights is not None:
            counting = weights > 0
            met, weights = met[counting], weights[counting]
        return self._hops.sums(hop, met, weights, start.size)

    def _hanging(self, branch: Branch, nodes: Positions) -> Counts | None:
        """What hangs on each node, counted; None when nothing hangs there and each counts once."""
        weights: Counts | None = None
        for further in branch.branches:
            found = self.solutions(further, nodes)
            weights = found if weights is None else product(weights, found)
        for lacking in branch.without:
            is_free = (self.solutions(lacking, nodes) == 0).astype(np.int64)
            weights = is_free if weights is None else weights * is_free
        if weights is not None and len(weights):
            # No source leads to more than all of them.
            refuse_uncountable(float(weights.max()) * len(weights))
        return weights

    def _start(self, branch: Branch) -> Nodes:
        """The nodes of the type from which a branch starts."""
        edge = self._source.catalog.edges[branch.hop.edge]
        start = edge.from_type if branch.hop.direction is Direction.OUT else edge.to_type
        return self._source.nodes(start)


def _is_bare(branch: Branch) -> bool:
    """Whether every node that the hop leads to is one solution."""
    return not (branch.conditions or branch.branches or branch.without)
