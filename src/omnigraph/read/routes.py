"""Runs `shortest` traversals: chooses the search, keeps the labels, spells out paths when they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.errors import UnusableWeight
from omnigraph.plan.ir import reverse
from omnigraph.plan.steps import Hop, Route
from omnigraph.read.aggregate import sort_keys
from omnigraph.read.budget import Meter
from omnigraph.read.edge_rows import MEMBER_BITS
from omnigraph.read.expand import Expander, repeat_per_row
from omnigraph.read.frame import Frame
from omnigraph.read.paths import (
    Costs,
    Ends,
    Follow,
    FollowWeighted,
    LabelList,
    Meeting,
    fewest_edges,
    first_of_each,
    least_cost,
)
from omnigraph.read.positions import Positions, distinct_positions
from omnigraph.read.source import GraphSource
from omnigraph.storage.filters import Comparison

_BYTES_PER_LABEL: Final = 48


class FoundPaths:
    """The paths that one step found, in all batches of rows."""

    def __init__(self, source: GraphSource, expander: Expander, step: Route) -> None:
        hop = step.hop
        self._source = source
        self._expander = expander
        self._backwards = step.backwards
        self._weight = step.weight
        self.along = _reversed(hop) if step.backwards else hop
        """The hop from the start of a path to its end."""
        self.labels = LabelList()

    def values(self, part: str, labels: Positions) -> pa.Array:
        missing = labels < 0
        kept = labels[~missing] if missing.any() else labels
        found = self._present(part, kept)
        if len(kept) == len(labels):
            return found
        at = np.cumsum(~missing) - 1
        return found.take(pa.array(at, mask=missing))

    def _present(self, part: str, labels: Positions) -> pa.Array:
        match part:
            case "length":
                return pa.array(self.labels.labels.lengths[labels])
            case "cost":
                return self._costs(labels)
            case "nodes":
                bounds, nodes = self.labels.chains(labels, backwards=self._backwards)
                return _lists(bounds, self._source.nodes(self.along.node_type).ids(nodes))
            case _:
                bounds, edges, _ = self._edges(labels)
                return _lists(bounds, self._source.entities(self.along.edge_types).ids(edges))

    def _costs(self, labels: Positions) -> pa.Array:
        if self._weight is None:
            return pa.nulls(len(labels), pa.float64())
        if not self._backwards:
            return pa.array(self.labels.labels.costs[labels])
        # Added from the start of the path to its end, as rounding depends on the order.
        bounds, _, weights = self._edges(labels)
        total = np.zeros(len(labels))
        for step in range(int(np.diff(bounds).max(initial=0))):
            on = np.flatnonzero(bounds[:-1] + step < bounds[1:])
            total[on] += weights[bounds[on] + step]
        return pa.array(total)

    def _edges(self, labels: Positions) -> tuple[Positions, Positions, Costs]:
        """The edges of paths: where each path begins, the edges, and their weights.

        Of parallel edges the cheapest is taken, then the first by type name and id.
        """
        bounds, nodes = self.labels.chains(labels, backwards=self._backwards)
        is_start = np.zeros(len(nodes) + 1, np.bool_)
        is_start[bounds[:-1]] = True
        steps = np.flatnonzero(~is_start[: len(nodes)])
        rows, edges, reached = self._expander.edges(self.along, nodes[steps - 1])
        right = reached == nodes[steps][rows]
        rows, edges = rows[right], edges[right]
        weights = np.zeros(len(edges))
        if self._weight is not None:
            weights = weights_of(self._source, self.along, self._weight, edges)
            usable = ~np.isnan(weights)
            rows, edges, weights = rows[usable], edges[usable], weights[usable]
        names = self.along.edge_types
        by_name = np.argsort(np.argsort(names)) if names else np.empty(0, np.int64)
        types = by_name[edges >> MEMBER_BITS]
        ids = sort_keys(self._source.entities(names).ids(edges), descending=False)[0]
        first = first_of_each(rows, weights, types, ids)
        return bounds - np.arange(len(bounds)), edges[first], weights[first]


class RouteSearch:
    """Runs the shortest traversals of one query."""

    def __init__(
        self, source: GraphSource, expander: Expander, meter: Meter, spelled: frozenset[str]
    ) -> None:
        """`spelled` are the path variables whose nodes or edges are read."""
        self._spelled = spelled
        self._source = source
        self._expander = expander
        self._meter = meter
        self._found: dict[int, FoundPaths] = {}

    def run(self, step: Route, frame: Frame) -> tuple[Frame, Positions]:
        """The rows extended by paths, and the node that each path leads to."""
        if not step.hop.members or not (step.hop.low <= 1 or step.hop.chains):
            empty = np.empty(0, np.int64)
            return self._bound(step, frame, empty, empty), empty
        if step.weight is not None:
            self._refuse_unusable(step.hop, step.weight)
        if step.joined:
            return self._between(step, frame)
        sources, inverse = distinct_positions(frame.columns[step.source])
        ends = self._from(step, sources)
        rows, nodes, labels = ends.starts, ends.nodes, ends.labels
        if inverse is not None:
            rows, at = repeat_per_row(inverse, rows, np.arange(len(rows)), len(sources))
            nodes, labels = nodes[at], labels[at]
        self._meter.check(len(rows), 8 * (len(frame.columns) + 2))
        return self._bound(step, frame, rows, labels), nodes

    def _bound(self, step: Route, frame: Frame, rows: Positions, labels: Positions) -> Frame:
        taken = frame.take(rows)
        return taken if step.path is None else taken.bind(step.path, self.paths(step), labels)

    def paths(self, step: Route) -> FoundPaths:
        found = self._found.get(id(step))
        if found is None:
            found = self._found[id(step)] = FoundPaths(self._source, self._expander, step)
        return found

    def _from(self, step: Route, sources: Positions) -> Ends:
        """The paths from distinct sources to all nodes."""
        hop, labels = step.hop, self.paths(step).labels
        if step.weight is not None:
            return least_cost(
                self._weighted(hop, step.weight),
                self._order(hop),
                self._check,
                sources,
                hop.high,
                labels,
                backwards=step.backwards,
            )
        if step.path is None:
            rows, nodes = self._expander.reach(hop, sources)
            others = nodes != sources[rows]
            return Ends(rows[others], nodes[others], rows[others])
        layers = list(
            fewest_edges(
                self._follow(hop),
                self._order(hop),
                self._check,
                sources,
                (hop.low, hop.high),
                labels,
                backwards=step.backwards,
                spelled=step.path in self._spelled,
            )
        )
        none = np.empty(0, np.int64)
        layers.append(Ends(none, none, none))
        return Ends(
            np.concatenate([layer.starts for layer in layers]),
            np.concatenate([layer.nodes for layer in layers]),
            np.concatenate([layer.labels for layer in layers]),
        )

    def _between(self, step: Route, frame: Frame) -> tuple[Frame, Positions]:
        """The rows whose two nodes a path joins."""
        sources, targets = frame.columns[step.source], frame.columns[step.target]
        order = np.lexsort((targets, sources))
        first = np.ones(len(order), np.bool_)
        first[1:] = np.diff(sources[order]) != 0
        first[1:] |= np.diff(targets[order]) != 0
        pair_of = np.empty(len(order), np.int64)
        pair_of[order] = np.cumsum(first) - 1
        pairs = order[first]
        starts, ends = sources[pairs], targets[pairs]
        hop, found = step.hop, self.paths(step).labels
        if step.weight is not None:
            joined = least_cost(
                self._weighted(hop, step.weight),
                self._order(hop),
                self._check,
                starts,
                hop.high,
                found,
                targets=ends,
            )
            numbers, labels = joined.starts, joined.labels
        else:
            meeting = Meeting(
                self._follow(hop),
                self._follow(_reversed(hop)),
                self._order(hop),
                self._check,
                (starts, ends),
                (hop.low, hop.high),
                spelled=step.path in self._spelled,
            )
            numbers, labels = meeting.run(found)
        label_of = np.full(len(pairs), -1, np.int64)
        label_of[numbers] = labels
        label_of = label_of[pair_of]
        rows = np.flatnonzero(label_of >= 0)
        return self._bound(step, frame, rows, label_of[rows]), targets[rows]

    # -- the graph --------------------------------------------------------------------------

    def _check(self, rows: int) -> None:
        self._meter.check(rows, _BYTES_PER_LABEL)

    def _follow(self, hop: Hop) -> Follow:
        return lambda nodes: self._expander.step(hop, nodes)

    def _weighted(self, hop: Hop, weight: str) -> FollowWeighted:
        def follow(nodes: Positions) -> tuple[Positions, Positions, Costs]:
            rows, edges, reached = self._expander.edges(hop, nodes)
            weights = weights_of(self._source, hop, weight, edges)
            usable = ~np.isnan(weights)
            return rows[usable], reached[usable], weights[usable]

        return follow

    def _order(self, hop: Hop) -> Callable[[Positions], Positions]:
        nodes = self._source.nodes(hop.node_type)

        def order(positions: Positions) -> Positions:
            distinct, inverse = np.unique(positions, return_inverse=True)
            if len(distinct) < 2:
                return np.zeros(len(positions), np.int64)
            return sort_keys(nodes.ids(distinct), descending=False)[0][inverse]

        return order

    def _refuse_unusable(self, hop: Hop, weight: str) -> None:
        """Refuse a weight that is negative or no number on any visible edge."""
        for name in hop.edge_types:
            rows = self._source.edges(name)
            tests = [Comparison(weight, "<", 0)]
            if rows.declared.properties[weight].type.scalar.is_float:
                tests.append(Comparison(weight, ">", float("inf")))
            for test in tests:
                if len(rows.select(test)):
                    raise UnusableWeight(name, weight)


def _reversed(hop: Hop) -> Hop:
    return Hop(
        reverse(hop.members), hop.node_type, hop.start_type, hop.low, hop.high, hop.edges_apart
    )


def weights_of(source: GraphSource, hop: Hop, weight: str, edges: Positions) -> Costs:
    """The weights of edges as doubles, NaN where there is none."""
    found = np.full(len(edges), np.nan)
    for number, name in enumerate(hop.edge_types):
        at = np.flatnonzero(edges >> MEMBER_BITS == number)
        if len(at):
            values = source.edges(name).values(weight, edges[at] - (number << MEMBER_BITS))
            found[at] = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return found


def _lists(bounds: Positions, items: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), items)
