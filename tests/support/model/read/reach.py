"""Which nodes lead to which: a breadth-first search over the edges of one type."""

from __future__ import annotations

from omnigraph.plan.ir import Direction, EdgePattern
from tests.support.model.image import Image
from tests.support.model.values import text_of


class Reach:
    """Answers for one image; what was searched once is kept."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._found: dict[tuple[str, str], dict[str, int]] = {}

    def leads(self, traversal: EdgePattern, left: str, right: str) -> bool:
        """Whether the ids on both sides are joined, within the bounds, by the edge type."""
        source, target = left, right
        if traversal.direction is Direction.IN:
            source, target = right, left
        depth = self._depths(traversal.edge_type, source).get(target)
        return depth is not None and traversal.low <= depth <= traversal.high

    def _depths(self, edge: str, source: str) -> dict[str, int]:
        """Every node that can be reached, with its shortest distance.

        The source itself is reached by an edge that joins it with itself, at distance 1, and in no
        other way. Nothing follows a hop to another type, even where ids of the two types are equal.
        """
        known = self._found.get((edge, source))
        if known is not None:
            return known
        chains = self._image.catalog.edges[edge].is_self_typed
        seen = {source} if chains else set()
        depths: dict[str, int] = {}
        frontier, depth = {source}, 0
        while frontier and (chains or depth == 0):
            depth += 1
            frontier = self._neighbours(edge, frontier) - seen
            seen |= frontier
            depths.update(dict.fromkeys(frontier, depth))
        if chains and source in self._neighbours(edge, {source}):
            depths[source] = 1
        self._found[edge, source] = depths
        return depths

    def _neighbours(self, edge: str, sources: set[str]) -> set[str]:
        rows = self._image.tables[f"edge:{edge}"].values()
        return {text_of(row, "dst") for row in rows if row["src"] in sources}
