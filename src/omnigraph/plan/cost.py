"""Estimates from the sizes of types alone: how many rows a step leaves, and what look-ups cost.

The unit of cost is one edge when all edges of a type are read and compressed, a bit less than a
microsecond. Tests: tests/unit/plan/test_cost.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, assert_never

from omnigraph.catalog.model import Catalog, NodeType
from omnigraph.language.query.ast import Operator
from omnigraph.language.types import Scalar
from omnigraph.plan.ir import Constant, Direction, Filter, Param, Prop
from omnigraph.plan.steps import (
    Arrangement,
    Check,
    Connected,
    Count,
    Follow,
    Has,
    Hop,
    Join,
    Lacks,
    Scan,
    Step,
    Subpattern,
    Without,
)

_EQUAL_SHARE: Final = 0.05
_RANGE_SHARE: Final = 0.33
_DIFFERENT_SHARE: Final = 0.9
_TEXT_SHARE: Final = 0.1
"""Assumed shares of rows that pass a comparison."""


LOOKUP_COST: Final = 3000.0
ID_COST: Final = 15.0
ROW_COST: Final = 40.0
"""Cost of an index look-up itself, per value it asks for, and per row it finds."""

SCANNED_COST: Final = 0.1
FOUND_COST: Final = 2.0
"""Cost of a filtered scan per row it reads and per row it finds."""

NODE_COST: Final = 0.5
"""Cost per node of reading a type into memory: node numbers and a column or two."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many rows each type has, by table key."""

    rows: Mapping[str, int]
    catalog: Catalog

    def nodes(self, node_type: str) -> float:
        return float(max(self.rows.get(f"node:{node_type}", 0), 1))

    def edges(self, edge: str) -> float:
        return float(self.rows.get(f"edge:{edge}", 0))

    def start_type(self, hop: Hop) -> str:
        """The type of the nodes a hop starts from."""
        edge = self.catalog.edges[hop.edge]
        return edge.from_type if hop.direction is Direction.OUT else edge.to_type

    def degree(self, hop: Hop) -> float:
        """Average number of edges that a hop finds at one node."""
        return self.edges(hop.edge) / self.nodes(self.start_type(hop))

    def fan_out(self, hop: Hop) -> float:
        """Average number of nodes that a hop reaches from one node."""
        edge = self.catalog.edges[hop.edge]
        degree = self.degree(hop)
        if not edge.is_self_typed:
            return degree if hop.low <= 1 else 0.0
        reached = sum(degree**depth for depth in range(hop.low, min(hop.high, 6) + 1))
        return min(reached, self.nodes(hop.node_type))

    def equal(self, node_type: str, prop: Prop) -> float:
        """The share of a type's nodes that have a given value of a property."""
        node, group = self.catalog.nodes[node_type], (prop.property,)
        nodes = self.nodes(node_type)
        if group == node.key or group in node.unique_groups:
            return 1.0 / nodes
        if prop.type.enum_values is not None:
            return 1.0 / len(prop.type.enum_values)
        if prop.type.scalar is Scalar.BOOL:
            return 0.5
        # An indexed property is assumed to be selective.
        is_indexed = group in node.index_groups
        return min(_EQUAL_SHARE, 1.0 / math.sqrt(nodes)) if is_indexed else _EQUAL_SHARE

    def selectivity(self, node_type: str, conditions: Iterable[Filter]) -> float:
        """The share of a type's rows that conditions on it leave."""
        share = 1.0
        for condition in conditions:
            share *= self._share(self.catalog.nodes[node_type], condition)
        return share

    def _share(self, node: NodeType, condition: Filter) -> float:
        left = condition.left
        match condition.operator:
            case Operator.EQ:
                if isinstance(left, Prop) and isinstance(condition.right, Constant | Param):
                    return self.equal(node.name, left)
                return _EQUAL_SHARE
            case Operator.NE:
                return _DIFFERENT_SHARE
            case Operator.CONTAINS | Operator.STARTS_WITH:
                return _TEXT_SHARE
            case _:
                return _RANGE_SHARE


@dataclass(slots=True)
class LookupCost:
    """Expected cost of look-ups, the most nodes one asks for, and the longest hop."""

    units: float = 0.0
    frontier: float = 0.0
    hops: int = 1


def lookup_cost(arrangement: Arrangement, sizes: Sizes) -> LookupCost:
    """Cost of finding the rows of an arrangement and one property of each by look-ups."""
    total = LookupCost()
    rows = _steps(total, arrangement.steps, sizes, 1.0)
    if arrangement.enough is not None:
        rows = min(rows, arrangement.enough)
    total.units += LOOKUP_COST + ROW_COST * rows
    return total


def _steps(total: LookupCost, steps: Iterable[Step], sizes: Sizes, rows: float) -> float:
    """Add the cost of steps run on `rows` rows; returns how many rows they leave."""
    start = rows
    for step in steps:
        left = start * step.estimate
        match step:
            case Scan():
                _scan(total, step, sizes)
            case Join():
                total.units += LOOKUP_COST + SCANNED_COST * sizes.nodes(step.node_type) + rows
            case Follow():
                _hop(total, step.hop, sizes, rows)
            case Connected():
                _edges(total, step.hop, sizes, rows)
            case Count() | Has() | Lacks():
                _subpattern(total, step.subpattern, sizes, rows)
            case Without():
                _steps(total, step.inner, sizes, rows)
            case Check():
                pass
            case _:
                assert_never(step)
        rows = left
    return rows


def _scan(total: LookupCost, step: Scan, sizes: Sizes) -> None:
    if any(_is_about_key(condition, step, sizes) for condition in step.conditions):
        total.units += LOOKUP_COST + ID_COST + ROW_COST
        return
    found = sizes.nodes(step.node_type) * sizes.selectivity(step.node_type, step.conditions)
    scanned = sizes.nodes(step.node_type)
    if step.enough is not None:
        scanned *= min(step.enough / max(found, 1.0), 1.0)
        found = min(found, step.enough)
    total.units += LOOKUP_COST + SCANNED_COST * scanned + FOUND_COST * found


def _is_about_key(condition: Filter, step: Scan, sizes: Sizes) -> bool:
    left, right = condition.left, condition.right
    key = sizes.catalog.nodes[step.node_type].key
    return (
        condition.operator.value == "="
        and isinstance(left, Prop)
        and isinstance(right, Constant | Param)
        and key == (left.property,)
    )


def _hop(total: LookupCost, hop: Hop, sizes: Sizes, rows: float) -> None:
    """Add the cost of the edges of each step of a hop and the nodes they lead to."""
    total.hops = max(total.hops, hop.high)
    degree = sizes.degree(hop)
    last = hop.high if sizes.catalog.edges[hop.edge].is_self_typed else 1
    frontier = rows
    for _ in range(min(last, 6)):
        _edges(total, hop, sizes, frontier)
        frontier = min(frontier * degree, sizes.nodes(hop.node_type))
        total.units += LOOKUP_COST + (ID_COST + ROW_COST) * frontier


def _edges(total: LookupCost, hop: Hop, sizes: Sizes, frontier: float) -> None:
    frontier = min(frontier, sizes.nodes(sizes.start_type(hop)))
    total.frontier = max(total.frontier, frontier)
    total.units += LOOKUP_COST + (ID_COST + ROW_COST * sizes.degree(hop)) * frontier


def _subpattern(total: LookupCost, subpattern: Subpattern, sizes: Sizes, rows: float) -> None:
    _hop(total, subpattern.hop, sizes, rows)
    reached = min(rows * sizes.fan_out(subpattern.hop), sizes.nodes(subpattern.hop.node_type))
    if subpattern.conditions:
        total.units += LOOKUP_COST + ROW_COST * reached
    for further in (*subpattern.subpatterns, *subpattern.without):
        _subpattern(total, further, sizes, reached)


def hops_of(steps: Iterable[Step]) -> Iterator[Hop]:
    """Every hop of the steps, those of subpatterns and negations too."""
    for step in steps:
        match step:
            case Follow() | Connected():
                yield step.hop
            case Count() | Has() | Lacks():
                yield from _subpattern_hops(step.subpattern)
            case Without():
                yield from hops_of(step.inner)
            case Scan() | Join() | Check():
                pass
            case _:
                assert_never(step)


def _subpattern_hops(subpattern: Subpattern) -> Iterator[Hop]:
    yield subpattern.hop
    for further in (*subpattern.subpatterns, *subpattern.without):
        yield from _subpattern_hops(further)


def node_types(steps: Iterable[Step], sizes: Sizes) -> frozenset[str]:
    """The node types that the steps read."""
    found: set[str] = set()
    for step in steps:
        match step:
            case Scan() | Join():
                found.add(step.node_type)
            case Without():
                found |= node_types(step.inner, sizes)
            case _:
                pass
    for hop in hops_of(steps):
        edge = sizes.catalog.edges[hop.edge]
        found |= {edge.from_type, edge.to_type}
    return frozenset(found)
