"""Executes a physical plan: from one empty row to the binding table, then to the result rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final, assert_never

import numpy as np
import pyarrow as pa

from omnigraph.plan.ir import Filter, ReadPlan
from omnigraph.plan.steps import (
    Apply,
    Arrangement,
    Check,
    Connected,
    Count,
    EdgeRow,
    Follow,
    Has,
    Hop,
    Join,
    Lacks,
    LeftCount,
    LeftJoin,
    Present,
    Route,
    Scan,
    ScanEdges,
    Step,
    Subpattern,
    With,
    Without,
    further_subpatterns,
)
from omnigraph.read.adjacency import Counts, sum_by
from omnigraph.read.blocks import BlockValues, left_count, left_join
from omnigraph.read.budget import Meter
from omnigraph.read.edge_rows import EdgeRows
from omnigraph.read.expand import Expander
from omnigraph.read.expressions import Expressions
from omnigraph.read.frame import (
    ROW,
    Entities,
    EqualityJoin,
    Frame,
    check_countable,
    concat_frames,
    product,
    unit_frame,
)
from omnigraph.read.lookup import LookupNodes
from omnigraph.read.nodes import Nodes
from omnigraph.read.positions import Mask, Positions, distinct_positions
from omnigraph.read.project import project_rows
from omnigraph.read.routes import RouteSearch
from omnigraph.read.source import GraphSource

ALL_EDGES_SHARE: Final = 0.25
"""Share of a type's nodes from which all edges are counted, not those of each node."""

FIRST_BATCH_ROWS: Final = 1024
"""Rows of the first batch if only some results are wanted."""

NODE_SCAN_COST: Final = 0.125
"""Cost of visiting a node in a scan of all nodes, relative to following an edge."""


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
) -> list[pa.Table]:
    """The results of a read: one column per projection, in the types of the language."""
    expressions = Expressions(source, parameters)
    executor = Executor(source, expressions, meter, plan.spelled_paths, report)
    found = executor.run_until(physical.steps, physical.enough)
    executor.run(physical.values, found)
    unbounded = any(not r.is_grouped and r.limit is None for r in plan.all_results)
    meter.check(found.total() if unbounded else 0)
    return [project_rows(result, found, expressions) for result in plan.all_results]


class Executor:
    """Runs the steps of one query."""

    def __init__(
        self,
        source: GraphSource,
        expressions: Expressions,
        meter: Meter,
        spelled_paths: frozenset[str],
        report: Callable[[StepReport], None] | None = None,
    ) -> None:
        self._source = source
        self._expressions = expressions
        self._meter = meter
        self._expander = Expander(source, meter)
        self._routes = RouteSearch(source, self._expander, meter, spelled_paths)
        self._values = BlockValues(self.run, self._solutions, expressions)
        expressions.blocks = self._values
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
                return self._connected(step, frame)
            case ScanEdges():
                return self._scan_edges(step, frame)
            case Route():
                return self._route(step, frame)
            case Count():
                return frame.multiply(self._solutions(step.source, step.subpattern, frame))
            case Has():
                return frame.where(self._solutions(step.source, step.subpattern, frame) > 0)
            case Check():
                return frame.where(self._expressions.holds(step.filter, frame))
            case Present():
                unbound = frame.unbound(step.variable)
                return frame if unbound is None else frame.where(~unbound)
            case Lacks():
                return frame.where(self._solutions(step.source, step.subpattern, frame) == 0)
            case With() | Without():
                has = np.zeros(frame.length, np.bool_)
                has[self.run(step.inner, frame.seed(step.outer)).columns[ROW]] = True
                return frame.where(has if isinstance(step, With) else ~has)
            case LeftJoin():
                inner = self.run(step.inner, frame.seed(step.outer))
                return left_join(frame, inner, step.introduced)
            case LeftCount():
                counts = self._solutions(step.source, step.subpattern, frame)
                return left_count(frame, counts, step.introduced)
            case Apply():
                self._values.add(step)
                return frame
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
        sources = frame.columns[step.source]
        if step.edge is None:
            rows, nodes = self._expander.reach(step.hop, sources)
            met = self._met(step.hop.node_type, step.conditions, nodes)
            if met is not None:
                rows, nodes = rows[met], nodes[met]
            self._meter.check(len(rows), 8 * (len(frame.columns) + 1))
            return frame.take(rows).bind(step.target, step.hop.node_type, nodes)
        rows, edges, nodes = self._edges(step.hop, step.edge, sources, step.conditions)
        self._meter.check(len(rows), 8 * (len(frame.columns) + 2))
        taken = frame.take(rows).bind(step.target, step.hop.node_type, nodes)
        return _with_edges(taken, step.edge, edges)

    def _connected(self, step: Connected, frame: Frame) -> Frame:
        sources, targets = frame.columns[step.source], frame.columns[step.target]
        if step.edge is None:
            return frame.where(self._expander.connects(step.hop, sources, targets))
        rows, edges, nodes = self._edges(step.hop, step.edge, sources, ())
        joined = np.flatnonzero(nodes == targets[rows])
        return _with_edges(frame.take(rows[joined]), step.edge, edges[joined])

    def _scan_edges(self, step: ScanEdges, frame: Frame) -> Frame:
        near, edges, far = self._all_edges(step.hop, step.edge)
        met = self._met(step.hop.start_type, step.source_conditions, near)
        if met is not None:
            near, edges, far = near[met], edges[met], far[met]
        met = self._met(step.hop.node_type, step.target_conditions, far)
        if met is not None:
            near, edges, far = near[met], edges[met], far[met]
        self._meter.check(frame.length * len(edges), 8 * (len(frame.columns) + 3))
        taken = frame.take(np.repeat(np.arange(frame.length, dtype=np.int64), len(edges)))
        taken = taken.bind(step.source, step.hop.start_type, np.tile(near, frame.length))
        taken = taken.bind(step.target, step.hop.node_type, np.tile(far, frame.length))
        return _with_edges(taken, step.edge, np.tile(edges, frame.length))

    def _route(self, step: Route, frame: Frame) -> Frame:
        found, nodes = self._routes.run(step, frame)
        if step.joined:
            return found
        found = found.bind(step.target, step.hop.node_type, nodes)
        met = self._met(step.hop.node_type, step.conditions, nodes)
        return found if met is None else found.where(met)

    def _met(
        self, kind: Entities, conditions: tuple[Filter, ...], positions: Positions
    ) -> Mask | None:
        """Which nodes or edges match conditions; None if there are no conditions."""
        if not conditions:
            return None
        return self._expressions.matches(self._source.entities(kind), conditions, positions)

    def _edges(
        self, hop: Hop, edge: EdgeRow, sources: Positions, conditions: tuple[Filter, ...]
    ) -> tuple[Positions, Positions, Positions]:
        """The edges of a hop that match, with nodes that match: source index, edge and node."""
        rows, edges, nodes = self._expander.edges(hop, sources)
        met = self._met(edge.types, edge.conditions, edges)
        if met is not None:
            rows, edges, nodes = rows[met], edges[met], nodes[met]
        met = self._met(hop.node_type, conditions, nodes)
        if met is not None:
            rows, edges, nodes = rows[met], edges[met], nodes[met]
        return rows, edges, nodes

    def _all_edges(self, hop: Hop, edge: EdgeRow) -> tuple[Positions, Positions, Positions]:
        """All edges of a hop that match: the node at each end, and the edge between."""
        if not edge.types:
            none = np.empty(0, np.int64)
            return none, none, none
        found = self._expressions.select(self._source.entities(edge.types), edge.conditions)
        return self._expander.ends_of(hop, found)

    # -- subpatterns ------------------------------------------------------------------------

    def _reach(self, step: Subpattern, sources: Positions) -> tuple[Positions, Positions]:
        """The nodes of a subpattern at its first hop: source index and node."""
        if step.edge is not None:
            rows, _, nodes = self._edges(step.hop, step.edge, sources, step.conditions)
            return rows, nodes
        rows, nodes = self._expander.reach(step.hop, sources)
        met = self._met(step.hop.node_type, step.conditions, nodes)
        return (rows, nodes) if met is None else (rows[met], nodes[met])

    def _solutions(self, source: str, subpattern: Subpattern, frame: Frame) -> Counts:
        """The number of solutions of a subpattern for each row; none where the source is unbound."""
        sources, unbound = frame.columns[source], frame.unbound(source)
        if unbound is None:
            return self.count_solutions(subpattern, sources)
        found = np.zeros(frame.length, np.int64)
        found[~unbound] = self.count_solutions(subpattern, sources[~unbound])
        return found

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
        if subpattern.edge is not None:
            return self._count_edges_for_all(subpattern, subpattern.edge, sources)
        if not hop.is_single or hop.only is None:
            return None
        if not self._source.is_in_memory(hop, sources):
            return None
        if _is_bare(subpattern):
            is_cheaper = sources > NODE_SCAN_COST * start.size
            return self._expander.degrees(hop, start.size) if is_cheaper else None
        nodes = self._source.nodes(hop.node_type)
        edges = self._source.edge_count(hop.only[0])
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

    def _count_edges_for_all(
        self, subpattern: Subpattern, edge: EdgeRow, sources: int
    ) -> Counts | None:
        """As `_count_for_all` for edges apart; with conditions few of them may be left."""
        hop, start = subpattern.hop, self._start_nodes(subpattern)
        if not edge.types or not start.is_whole or sources <= ALL_EDGES_SHARE * start.size:
            return None
        if not all(isinstance(self._source.edges(name), EdgeRows) for name in edge.types):
            return None
        near, _, far = self._all_edges(hop, edge)
        met = self._met(hop.node_type, subpattern.conditions, far)
        if met is not None:
            near, far = near[met], far[met]
        weights = None
        if further_subpatterns(subpattern):
            distinct, inverse = np.unique(far, return_inverse=True)
            weights = self._weights(subpattern, distinct)
            weights = None if weights is None else weights[inverse]
        return sum_by(near, weights, start.size)

    def _weights(self, subpattern: Subpattern, nodes: Positions) -> Counts | None:
        """Solutions of the nested subpatterns per node; None if there are none and each node counts once."""
        weights: Counts | None = None
        for further in subpattern.subpatterns:
            found = self.count_solutions(further, nodes)
            weights = found if weights is None else product(weights, found)
        for hanging, wanted in ((subpattern.without, False), (subpattern.having, True)):
            for tested in hanging:
                holds = (self.count_solutions(tested, nodes) > 0) == wanted
                weights = holds.astype(np.int64) if weights is None else weights * holds
        if weights is not None and len(weights):
            # No source reaches more than all of them.
            check_countable(float(weights.max()) * len(weights))
        return weights

    def _start_nodes(self, subpattern: Subpattern) -> Nodes:
        """The nodes of the type that a subpattern starts from."""
        return self._source.nodes(subpattern.hop.start_type)


def _is_bare(subpattern: Subpattern) -> bool:
    """Whether every node or edge that the hop reaches is one solution."""
    edge = subpattern.edge
    conditions = subpattern.conditions or (edge is not None and edge.conditions)
    return not (conditions or further_subpatterns(subpattern))


def _with_edges(frame: Frame, edge: EdgeRow, edges: Positions) -> Frame:
    return frame if edge.variable is None else frame.bind(edge.variable, edge.types, edges)
