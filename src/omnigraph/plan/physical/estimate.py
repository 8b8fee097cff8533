"""Guesses of how many rows a step leaves, from the sizes of types alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from omnigraph.catalog.model import Catalog, NodeType
from omnigraph.language.query.ast import Operator
from omnigraph.language.types import Scalar
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

    def start_type(self, hop: Hop) -> str:
        """The type of the nodes a hop starts from."""
        edge = self.catalog.edges[hop.edge]
        return edge.from_type if hop.direction is Direction.OUT else edge.to_type

    def degree(self, hop: Hop) -> float:
        """Edges that a hop finds at one node."""
        return self.edges(hop.edge) / self.nodes(self.start_type(hop))

    def fan_out(self, hop: Hop) -> float:
        """Nodes that a hop reaches from one node."""
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
        # Somebody wants to find nodes by it, so it tells them apart.
        is_telling = group in node.index_groups
        return min(_EQUAL, 1.0 / math.sqrt(nodes)) if is_telling else _EQUAL

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
                return _EQUAL
            case Operator.NE:
                return _DIFFERENT
            case Operator.CONTAINS | Operator.STARTS_WITH:
                return _TEXT
            case _:
                return _RANGE
