"""Executes a physical plan: from one empty row to the binding table, then to the result rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final, assert_never

import numpy as np
import pyarrow as pa

from omnigraph.plan.ir import Direction, Filter, ReadPlan
from omnigraph.plan.steps import (
    Arrangement,
    Check,
    Connected,
    Count,
    Follow,
    Has,
    Join,
    Lacks,
    Scan,
    Step,
    Subpattern,
    Without,
)
from omnigraph.read.adjacency import Counts, sum_by
from omnigraph.read.budget import Meter
from omnigraph.read.expand import Expander
from omnigraph.read.expressions import Expressions
from omnigraph.read.frame import (
    EqualityJoin,
    Frame,
    check_countable,
    concat_frames,
    product,
    unit_frame,
)
from omnigraph.read.lookup import LookupNodes
from omnigraph.read.nodes import Nodes
from omnigraph.read.positions import Positions, distinct_positions
from omnigraph.read.project import project_rows
from omnigraph.read.source import GraphSource

FIRST_BATCH_ROWS: Final = 1024
"""Rows of the first batch if only some results are wanted."""

NODE_SCAN_COST: Final = 0.125
"""Cost of visiting a node in a scan of all nodes, relative to following an edge."""

_ROW: Final = "#row"
"""The column with the outer row of each inner row of a negation. No variable has such a name."""


@dataclass(frozen=True, slots=True)
class StepReport:
    """Rows left by a step, its time and its look-ups."""

    step: Step
    rows: int
    seconds: float
    lookups: int


def execute_read(
    plan: ReadPlan,
    physical: Arrangement,
    parameters: Mapping[str, Any],
    source: GraphSource,
    meter: Meter,
    report: Callable[[StepReport], None] | None = None,
) -> pa.Table:
    """The result of a read: one column per projection, in the types of the language."""
    expressions = Expressions(source, parameters)
    executor = Executor(source, expressions, meter, report)
    found = executor.run_until(physical.steps, physical.enough)
    meter.check(found.total() if not plan.is_aggregate and plan.limit is None else 0)
    return project_rows(plan, found, expressions)


class Executor:
    """Runs the steps of one query."""

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
        self._expander = Expander(source, meter)
        self._report = report
        self._scans: dict[tuple[str, tuple[Filter, ...], int | None], Positions] = {}

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

    def run_until(self, steps: tuple[Step, ...], enough: int | None) -> Frame:
        """All rows, or at least `enough` of them, found in batches of growing size."""
        if enough is None or len(steps) < 2:
            return self.run(steps, unit_frame())
        first = self.run(steps[:1], unit_frame())
        found: list[Frame] = []
        total, start, size = 0, 0, max(FIRST_BATCH_ROWS, 2 * enough)
        while not found or (total < enough and start < first.length):
            rows = np.arange(start, min(start + size, first.length), dtype=np.int64)
            found.append(self.run(steps[1:], first.take(rows)))
            total += found[-1].total()
            start, size = start + size, 4 * size
        return concat_frames(found)

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
                return frame.where(self._expander.connects(step.hop, sources, targets))
            case Count():
                return frame.multiply(
                    self.count_solutions(step.subpattern, frame.columns[step.source])
                )
            case Has():
                found = self.count_solutions(step.subpattern, frame.columns[step.source])
                return frame.where(found > 0)
            case Check():
                return frame.where(self._expressions.holds(step.filter, frame))
            case Lacks():
                found = self.count_solutions(step.subpattern, frame.columns[step.source])
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
        """Check the product of consecutive scans before the first one is multiplied out."""
        for step in takewhile(lambda step: isinstance(step, Scan), steps):
            assert isinstance(step, Scan)
            rows *= len(self._scan_once(step))
            self._meter.check(rows)

    def _scan_once(self, step: Scan) -> Positions:
        """The nodes of a scan, found once even if the query runs the scan many times."""
        key = (step.node_type, step.conditions, step.enough)
        found = self._scans.get(key)
        if found is None:
            found = self._scans[key] = self._find(*key)
        return found

    def _find(
        self, node_type: str, conditions: tuple[Filter, ...], enough: int | None = None
    ) -> Positions:
        """The nodes of a type that match conditions, up to `enough` of them."""
        nodes = self._source.nodes(node_type)
        if enough == 0:
            return np.empty(0, np.int64)
        if not isinstance(nodes, LookupNodes):
            found = self._expressions.select(nodes, conditions)
            return found if enough is None else found[:enough]
        plain = [self._expressions.pushdown(condition) for condition in conditions]
        others = tuple(c for c, p in zip(conditions, plain, strict=True) if p is None)
        found = nodes.find([p for p in plain if p is not None], None if others else enough)
        return self._expressions.select(nodes, others, found)[:enough]

    def _join(self, step: Join, frame: Frame) -> Frame:
        found = self._find(step.node_type, step.conditions)
        right = Frame(len(found), {step.variable: found}, {step.variable: step.node_type})
        join = EqualityJoin(
            self._expressions.values(step.bound, frame),
            self._expressions.values(step.property, right),
        )
        if step.only_whether:
            return frame.where(join.matched)
        self._meter.check(join.total, 8 * (len(frame.columns) + 1))
        rows, matches = join.pairs()
        return frame.take(rows).bind(step.variable, step.node_type, found[matches])

    def _follow(self, step: Follow, frame: Frame) -> Frame:
        rows, nodes = self._reach(step, frame.columns[step.source])
        self._meter.check(len(rows), 8 * (len(frame.columns) + 1))
        return frame.take(rows).bind(step.target, step.hop.node_type, nodes)

    def _reach(self, step: Follow | Subpattern, sources: Positions) -> tuple[Positions, Positions]:
        """The nodes that a hop reaches and that match its conditions: source index and node."""
        rows, nodes = self._expander.reach(step.hop, sources)
        if not step.conditions:
            return rows, nodes
        reached = self._source.nodes(step.hop.node_type)
        met = self._expressions.matches(reached, step.conditions, nodes)
        return rows[met], nodes[met]

    def _without(self, step: Without, frame: Frame) -> Frame:
        rows = np.arange(frame.length, dtype=np.int64)
        columns = {name: frame.columns[name] for name in step.outer}
        types = {name: frame.types[name] for name in step.outer}
        seed = Frame(frame.length, {**columns, _ROW: rows}, types)
        found = self.run(step.inner, seed).columns[_ROW]
        lacking = np.ones(frame.length, np.bool_)
        lacking[found] = False
        return frame.where(lacking)

    # -- subpatterns ------------------------------------------------------------------------

    def count_solutions(self, subpattern: Subpattern, sources: Positions) -> Counts:
        """The number of solutions of a subpattern from each source."""
        if not self._expander.is_possible(subpattern.hop):
            return np.zeros(len(sources), np.int64)
        for_all = self._count_for_all(subpattern, len(sources))
        if for_all is not None:
            return (
                for_all if self._start_nodes(subpattern).covers_all(sources) else for_all[sources]
            )
        distinct, inverse = distinct_positions(sources)
        if _is_bare(subpattern):
            found = self._expander.counts(subpattern.hop, distinct)
        else:
            rows, nodes = self._reach(subpattern, distinct)
            found = sum_by(rows, self._weights(subpattern, nodes), len(distinct))
        return found if inverse is None else found[inverse]

    def _count_for_all(self, subpattern: Subpattern, sources: int) -> Counts | None:
        """The solutions from every node of the subpattern's start type; None if following the edges of
        the sources is cheaper."""
        hop, start = subpattern.hop, self._start_nodes(subpattern)
        if not self._expander.is_single(hop) or not self._source.is_in_memory(hop, sources):
            return None
        if _is_bare(subpattern):
            is_cheaper = sources > NODE_SCAN_COST * start.size
            return self._expander.degrees(hop, start.size) if is_cheaper else None
        nodes = self._source.nodes(hop.node_type)
        edges = self._source.edge_count(hop.edge)
        followed = edges * sources / max(start.size, 1)
        if followed < NODE_SCAN_COST * nodes.size:
            return None
        met = self._expressions.select(nodes, subpattern.conditions)
        cost = self._expander.sum_cost(hop, len(met), edges) + NODE_SCAN_COST * start.size
        if cost > followed:
            return None
        weights = self._weights(subpattern, met)
        if weights is not None:
            counting = weights > 0
            met, weights = met[counting], weights[counting]
        return self._expander.sums(hop, met, weights, start.size)

    def _weights(self, subpattern: Subpattern, nodes: Positions) -> Counts | None:
        """Solutions of the nested subpatterns per node; None if there are none and each node counts once."""
        weights: Counts | None = None
        for further in subpattern.subpatterns:
            found = self.count_solutions(further, nodes)
            weights = found if weights is None else product(weights, found)
        for lacking in subpattern.without:
            is_free = (self.count_solutions(lacking, nodes) == 0).astype(np.int64)
            weights = is_free if weights is None else weights * is_free
        if weights is not None and len(weights):
            # No source reaches more than all of them.
            check_countable(float(weights.max()) * len(weights))
        return weights

    def _start_nodes(self, subpattern: Subpattern) -> Nodes:
        """The nodes of the type that a subpattern starts from."""
        edge = self._source.catalog.edges[subpattern.hop.edge]
        start = edge.from_type if subpattern.hop.direction is Direction.OUT else edge.to_type
        return self._source.nodes(start)


def _is_bare(subpattern: Subpattern) -> bool:
    """Whether every node that the hop reaches is one solution."""
    return not (subpattern.conditions or subpattern.subpatterns or subpattern.without)
