"""How many rows the parts of one pattern are expected to have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from omnigraph.plan.cost import Sizes
from omnigraph.plan.ir import EdgePattern, Filter, Pattern, Prop
from omnigraph.plan.steps import Hop
from omnigraph.plan.subpatterns import hop_of

_EDGE_CONDITION_SHARE: Final = 0.3
"""Assumed share of edges that meet a condition."""


class PatternCosts:
    """Expected numbers of rows of one pattern; `types` has the types of its node variables."""

    def __init__(self, sizes: Sizes, pattern: Pattern, types: Mapping[str, str]) -> None:
        self._sizes = sizes
        self._pattern = pattern
        self._types = types
        self._shares: dict[str, float] = {}

    def share(self, variable: str) -> float:
        """The share of a type's nodes that meet the conditions on a variable."""
        found = self._shares.get(variable)
        if found is None:
            conditions = self._pattern.conditions_of(variable)
            found = self._sizes.selectivity(self._types[variable], conditions)
            self._shares[variable] = found
        return found

    def condition_share(self, variable: str, condition: Filter) -> float:
        """The share of a type's nodes that meet one condition on a variable."""
        return self._sizes.selectivity(self._types[variable], [condition])

    def nodes_found(self, variable: str) -> float:
        """The nodes of a variable that meet its conditions."""
        return self._sizes.nodes(self._types[variable]) * self.share(variable)

    def edge_share(self, edge: EdgePattern) -> float:
        """The share of edges that meet the conditions on an edge variable."""
        return float(_EDGE_CONDITION_SHARE ** len(self._pattern.conditions_of(edge.variable)))

    def edges_found(self, edge: EdgePattern) -> float:
        """The edges that meet the conditions on an edge variable."""
        return self._sizes.edge_rows(self.hop(edge, edge.left)) * self.edge_share(edge)

    def fan_out(self, edge: EdgePattern, source: str) -> float:
        """The nodes that an edge reaches from one node."""
        return self._sizes.fan_out(self.hop(edge, source))

    def growth(self, edge: EdgePattern, source: str) -> float:
        """The rows that following an edge makes of one row."""
        growth = self.fan_out(edge, source) * self.share(edge.other(source))
        return growth * self.edge_share(edge)

    def connected_share(self, edge: EdgePattern) -> float:
        """The share of pairs of nodes that an edge connects."""
        nodes = self._sizes.nodes(self._types[edge.left])
        return min(self.fan_out(edge, edge.left) / nodes, 1.0)

    def hop(self, edge: EdgePattern, source: str) -> Hop:
        """An edge, followed from one of its ends."""
        return hop_of(edge, source, self._types)

    def equal_nodes(self, prop: Prop) -> float:
        """The nodes of a variable whose property has one given value."""
        share = self._sizes.equal(self._types[prop.variable], prop)
        return self.nodes_found(prop.variable) * share
