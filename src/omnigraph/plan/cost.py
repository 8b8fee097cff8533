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
from omnigraph.language.query.ast import Junction, Operator
from omnigraph.language.types import Scalar
from omnigraph.plan.ir import (
    Comparison,
    Constant,
    Expr,
    Filter,
    Logical,
    Not,
    NullTest,
    Param,
    Prop,
    TextMatch,
)
from omnigraph.plan.steps import (
    Apply,
    Arrangement,
    Check,
    Connected,
    Count,
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
    inner_steps,
    subpattern_of,
)

_EQUAL_SHARE: Final = 0.05
_RANGE_SHARE: Final = 0.33
_DIFFERENT_SHARE: Final = 0.9
_TEXT_SHARE: Final = 0.1
"""Assumed shares of rows that pass a comparison."""

_SHARES: Final = {
    Operator.EQ: _EQUAL_SHARE,
    Operator.NE: _DIFFERENT_SHARE,
    Operator.CONTAINS: _TEXT_SHARE,
    Operator.STARTS_WITH: _TEXT_SHARE,
    Operator.ENDS_WITH: _TEXT_SHARE,
}


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

    def edge_rows(self, hop: Hop) -> float:
        """The number of edges of a hop, each once per direction."""
        return sum(self.edges(edge) for edge, _ in hop.members)

    def degree(self, hop: Hop) -> float:
        """Average number of edges that a hop finds at one node."""
        return self.edge_rows(hop) / self.nodes(hop.start_type)

    def fan_out(self, hop: Hop) -> float:
        """Average number of nodes that a hop reaches from one node."""
        degree = self.degree(hop)
        if not hop.chains:
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
        return self._expression_share(node, condition.condition)

    def _expression_share(self, node: NodeType, condition: Expr) -> float:
        match condition:
            case Comparison(Prop() as left, Operator.EQ, Constant() | Param()):
                return self.equal(node.name, left)
            case Comparison(Prop() as left, Operator.IN, Constant(tuple() as values)):
                return min(self.equal(node.name, left) * len(values), 1.0)
            case Comparison(_, operator):
                return _SHARES.get(operator, _RANGE_SHARE)
            case NullTest(_, negated):
                return _DIFFERENT_SHARE if negated else _EQUAL_SHARE
            case Not(operand):
                return 1.0 - self._expression_share(node, operand)
            case Logical(junction, operands):
                shares = (self._expression_share(node, operand) for operand in operands)
                if junction is Junction.AND:
                    return math.prod(shares)
                return 1.0 - math.prod(1.0 - share for share in shares)
            case TextMatch():
                return _EQUAL_SHARE
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
    _steps(total, arrangement.values, sizes, rows)
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
            case ScanEdges():
                edges = sizes.edge_rows(step.hop)
                total.units += LOOKUP_COST + SCANNED_COST * edges + ROW_COST * left
                total.frontier = max(total.frontier, edges)
            case Route():
                _hop(total, step.hop, sizes, rows)
            case Count() | Has() | Lacks() | LeftCount():
                _subpattern(total, step.subpattern, sizes, rows)
            case Without() | With() | LeftJoin():
                _steps(total, step.inner, sizes, rows)
            case Apply():
                if isinstance(step.inner, Subpattern):
                    _subpattern(total, step.inner, sizes, rows)
                else:
                    _steps(total, step.inner, sizes, rows)
            case Check() | Present():
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
    match condition.condition:
        case Comparison(Prop(_, name), Operator.EQ, Constant() | Param()):
            return sizes.catalog.nodes[step.node_type].key == (name,)
        case _:
            return False


def _hop(total: LookupCost, hop: Hop, sizes: Sizes, rows: float) -> None:
    """Add the cost of the edges of each step of a hop and the nodes they lead to."""
    total.hops = max(total.hops, hop.high)
    degree = sizes.degree(hop)
    last = hop.high if hop.chains else 1
    frontier = rows
    for _ in range(min(last, 6)):
        _edges(total, hop, sizes, frontier)
        frontier = min(frontier * degree, sizes.nodes(hop.node_type))
        total.units += LOOKUP_COST + (ID_COST + ROW_COST) * frontier


def _edges(total: LookupCost, hop: Hop, sizes: Sizes, frontier: float) -> None:
    frontier = min(frontier, sizes.nodes(hop.start_type))
    total.frontier = max(total.frontier, frontier)
    total.units += LOOKUP_COST + (ID_COST + ROW_COST * sizes.degree(hop)) * frontier


def _subpattern(total: LookupCost, subpattern: Subpattern, sizes: Sizes, rows: float) -> None:
    _hop(total, subpattern.hop, sizes, rows)
    reached = min(rows * sizes.fan_out(subpattern.hop), sizes.nodes(subpattern.hop.node_type))
    if subpattern.conditions:
        total.units += LOOKUP_COST + ROW_COST * reached
    for further in further_subpatterns(subpattern):
        _subpattern(total, further, sizes, reached)


def hops_of(steps: Iterable[Step]) -> Iterator[Hop]:
    """Every hop of the steps, those of subpatterns and blocks too."""
    for step in steps:
        if isinstance(step, Follow | Connected | ScanEdges | Route):
            yield step.hop
        subpattern = subpattern_of(step)
        if subpattern is not None:
            yield from _subpattern_hops(subpattern)
        yield from hops_of(inner_steps(step))


def _subpattern_hops(subpattern: Subpattern) -> Iterator[Hop]:
    yield subpattern.hop
    for further in further_subpatterns(subpattern):
        yield from _subpattern_hops(further)


def node_types(steps: Iterable[Step]) -> frozenset[str]:
    """The node types that the steps read."""
    found: set[str] = set()
    for step in steps:
        if isinstance(step, Scan | Join):
            found.add(step.node_type)
        found |= node_types(inner_steps(step))
    for hop in hops_of(steps):
        found |= {hop.start_type, hop.node_type}
    return frozenset(found)
