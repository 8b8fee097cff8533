"""Which variables of a pattern its steps enumerate; subpatterns beyond the others are counted."""

from __future__ import annotations

from collections.abc import Callable, Collection
from heapq import heappop, heappush
from typing import Final

from omnigraph.limits import SUBPATTERN_MAX_DEPTH
from omnigraph.plan.ir import EdgePattern, Pattern
from omnigraph.plan.pattern_costs import PatternCosts

_MAX_ENTRY_SHARE: Final = 0.1
"""Start at a variable that leads to less than this share of its neighbour's nodes."""


class KeptVariables:
    """Finds the node variables to enumerate.

    `needed` are variables that something reads, `depths` the nesting depth of the subpatterns that
    blocks add at a variable. `check` is called between decisions and may raise.
    """

    def __init__(
        self,
        pattern: Pattern,
        costs: PatternCosts,
        variables: Collection[str],
        needed: set[str],
        outer: Collection[str],
        depths: dict[str, int],
        check: Callable[[], None],
    ) -> None:
        self._pattern = pattern
        self._costs = costs
        self._variables = variables
        self._needed = needed
        self._outer = frozenset(outer)
        self._depths = dict(depths)
        self._check = check

    def find(self) -> set[str]:
        """Variables that are needed, those between them, and one per component that has none of them.

        Leaves are removed in the order of their names. A variable that loses an edge can become a
        leaf and waits again.
        """
        kept = set(self._variables)
        edges = {
            variable: {id(edge): edge for edge in self._pattern.edges_of(variable)}
            for variable in kept
        }
        waiting = sorted(kept - self._needed - self._outer)
        while waiting:
            self._check()
            leaf = heappop(waiting)
            if leaf not in kept or not self._is_leaf(leaf, edges):
                continue
            kept.discard(leaf)
            [edge] = edges.pop(leaf).values()
            other = edge.other(leaf)
            del edges[other][id(edge)]
            self._depths[other] = max(self._depths.get(other, 0), self._depths.get(leaf, 0) + 1)
            if other not in self._needed and other not in self._outer:
                heappush(waiting, other)
        return kept

    def _is_leaf(self, variable: str, edges: dict[str, dict[int, EdgePattern]]) -> bool:
        if len(edges[variable]) != 1 or self._depths.get(variable, 0) >= SUBPATTERN_MAX_DEPTH:
            return False
        [edge] = edges[variable].values()
        if edge.left == edge.right:
            return False
        other = edge.other(variable)
        if self._is_entry(edge, variable, other):
            return False
        # The last two of a component: keep the one with more edges, it has the degrees.
        if len(edges[other]) > 1 or other in self._needed or other in self._outer:
            return True
        return self._weight_of(other) >= self._weight_of(variable)

    def _is_entry(self, edge: EdgePattern, variable: str, other: str) -> bool:
        """Whether starting at a variable leads to far fewer nodes than its neighbour has.

        Such a variable is kept although nothing reads it.
        """
        reached = self._costs.nodes_found(variable) * self._costs.fan_out(edge, variable)
        return reached < _MAX_ENTRY_SHARE * self._costs.nodes_found(other)

    def _weight_of(self, variable: str) -> tuple[int, float, str]:
        """Which of two connected variables to keep when neither is read."""
        return len(self._pattern.edges_of(variable)), -self._costs.nodes_found(variable), variable
