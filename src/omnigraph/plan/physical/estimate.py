"""Guesses of how many rows a step leaves, from the sizes of types alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from omnigraph.catalog.model import Catalog, NodeType
from omnigraph.language.query.ast import Operator
from omnigraph.plan.ir import Constant, Direction, Filter, Param, Prop
from omnigraph.plan.physical.steps import Hop

_EQUAL: Final = 0.05
_RANGE: Final = 0.33
_DIFFERENT: Final = 0.9
_TEXT: Final = 0.1
"""Shares of rows that pass a comparison about which nothing is known."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many rows each type has, by table key."""

    rows: Mapping[str, int]
    catalog: Catalog

    def nodes(self, node_type: str) -> float:
        return float(max(self.rows.get(f"node:{node_type}", 0), 1))

    def edges(self, edge: str) -> float:
        return float(self.rows.get(f"edge:{edge}", 0))

    def fan_out(self, hop: Hop) -> float:
        """Nodes that a hop reaches from one node."""
        edge = self.catalog.edges[hop.edge]
        start = edge.from_type if hop.direction is Direction.OUT else edge.to_type
        degree = self.edges(hop.edge) / self.nodes(start)
        if not edge.is_self_typed:
            return degree if hop.low <= 1 else 0.0
        reached = sum(degree**depth for depth in range(hop.low, min(hop.high, 6) + 1))
        return min(reached, self.nodes(hop.node_type))

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
                is_key = isinstance(left, Prop) and node.key == (left.property,)
                if is_key and isinstance(condition.right, Constant | Param):
                    return 1.0 / self.nodes(node.name)
                return _EQUAL
            case Operator.NE:
                return _DIFFERENT
            case Operator.CONTAINS | Operator.STARTS_WITH:
                return _TEXT
            case _:
                return _RANGE
