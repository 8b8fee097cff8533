"""Which nodes lead to which: a breadth-first search over the edges of some types."""

from __future__ import annotations

from omnigraph.plan.ir import Direction, EdgePattern, Member
from tests.support.model.image import Image
from tests.support.model.values import text_of


class Reach:
    """Answers for one image; what was searched once is kept."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._found: dict[tuple[tuple[Member, ...], str], dict[str, int]] = {}

    def leads(self, traversal: EdgePattern, left: str, right: str) -> bool:
        """Whether the ids on both sides are joined, within the bounds, by edges of any member.

        A shortest path never leads back to its start.
        """
        if traversal.shortest is not None and left == right:
            return False
        depth = self._depths(traversal.members, left).get(right)
        if traversal.shortest is not None and traversal.shortest.weight is not None:
            return depth is not None and depth <= traversal.high
        return depth is not None and traversal.low <= depth <= traversal.high

    def _depths(self, members: tuple[Member, ...], source: str) -> dict[str, int]:
        """Every node that can be reached, with its shortest distance.

        The source itself is reached by an edge that joins it with itself, at distance 1, and in no
        other way. Nothing follows a hop to another type, even where ids of the two types are equal.
        """
        known = self._found.get((members, source))
        if known is not None:
            return known
        chains = all(self._image.catalog.edges[edge].is_self_typed for edge, _ in members)
        seen = {source} if chains else set()
        depths: dict[str, int] = {}
        frontier, depth = {source}, 0
        while frontier and (chains or depth == 0):
            depth += 1
            frontier = self._neighbours(members, frontier) - seen
            seen |= frontier
            depths.update(dict.fromkeys(frontier, depth))
        if chains and source in self._neighbours(members, {source}):
            depths[source] = 1
        self._found[members, source] = depths
        return depths

    def _neighbours(self, members: tuple[Member, ...], sources: set[str]) -> set[str]:
        found: set[str] = set()
        for edge, direction in members:
            near, far = ("src", "dst") if direction is Direction.OUT else ("dst", "src")
            rows = self._image.tables[f"edge:{edge}"].values()
            found |= {text_of(row, far) for row in rows if row[near] in sources}
        return found
