"""The solutions of a pattern: all combinations of nodes and edges for which every part of it holds.

A combination occurs once, so what a solution is does not depend on the order of the clauses.
"""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.plan.ir import Block, EdgePattern, Filter, Pattern
from tests.support.model.image import Image
from tests.support.model.read.expressions import Assignment, Evaluator
from tests.support.model.read.reach import Reach
from tests.support.model.read.routes import best_path, joining_edges
from tests.support.model.values import text_of

_Part = EdgePattern | Filter


class Matcher:
    def __init__(self, image: Image, evaluator: Evaluator) -> None:
        self._image = image
        self._evaluator = evaluator
        self._reach = Reach(image)
        evaluator.solutions = self.solutions

    def solutions(self, pattern: Pattern, given: Assignment) -> Iterator[Assignment]:
        """Every way to extend the given nodes by nodes and edges for the variables of a pattern.

        Clauses that mention no variable of an optional block come first, then the blocks in the order
        of the text, then the other clauses.
        """
        late = set(pattern.optional_types)
        for edge in pattern.edges:
            if late & {edge.left, edge.right}:
                late |= set(edge.named)
        first = [edge for edge in pattern.edges if not late & {edge.left, edge.right}]
        then = [edge for edge in pattern.edges if late & {edge.left, edge.right}]
        named = {name for edge in pattern.edges for name in edge.named}
        filters = list(pattern.own_filters())
        parts: list[_Part] = [*first, *(f for f in filters if not f.variables & (late | named))]
        unready = [part for part in parts if _needs(part) & pattern.types.keys()]
        if not all(self._holds(part, given) for part in parts if part not in unready):
            return
        for nodes in self._extended(list(pattern.types.items()), unready, given):
            for found in self._with_edges(first, nodes):
                early = [f for f in filters if f.variables & named and not f.variables & late]
                if not self._all_hold(pattern, early, found, late, is_late=False):
                    continue
                for more in self._with_optionals(list(pattern.optionals), found):
                    for full in self._with_edges(then, more):
                        rest = [f for f in filters if f.variables & late]
                        if self._all_hold(pattern, rest, full, late, is_late=True):
                            yield full

    def _all_hold(
        self,
        pattern: Pattern,
        filters: list[Filter],
        found: Assignment,
        late: set[str],
        *,
        is_late: bool,
    ) -> bool:
        """Whether filters hold, and the blocks that mention late variables or none of them."""
        if not all(self._evaluator.satisfies(condition, found) for condition in filters):
            return False
        return all(
            self._has_solution(block, found) == wanted
            for blocks, wanted in ((pattern.negations, False), (pattern.requirements, True))
            for block in blocks
            if bool(late & set(block.outer)) == is_late
        )

    def _extended(
        self, types: list[tuple[str, str]], parts: list[_Part], given: Assignment
    ) -> Iterator[Assignment]:
        """One variable after the other; a part is tried as soon as all its variables have nodes."""
        if not types:
            yield given
            return
        (variable, type_name), rest = types[0], types[1:]
        waiting = {name for name, _ in rest}
        ready = [part for part in parts if not _needs(part) & waiting]
        later = [part for part in parts if _needs(part) & waiting]
        for row in self._image.tables[f"node:{type_name}"].values():
            nodes = {**given, variable: row}
            if all(self._holds(part, nodes) for part in ready):
                yield from self._extended(rest, later, nodes)

    def _with_edges(self, edges: list[EdgePattern], nodes: Assignment) -> Iterator[Assignment]:
        """Every edge between two nodes that have a variable for it, or the one path."""
        if not edges:
            yield nodes
            return
        edge, rest = edges[0], edges[1:]
        if nodes[edge.left] is None or nodes[edge.right] is None:
            return
        if not self._holds(edge, nodes):
            return
        left, right = text_of(nodes[edge.left], "id"), text_of(nodes[edge.right], "id")
        if edge.shortest is not None:
            path = best_path(self._image, edge, left, right)
            if path is not None:
                bound = dict.fromkeys(edge.named, path)
                yield from self._with_edges(rest, {**nodes, **bound})
        elif edge.variable is not None:
            for row in joining_edges(self._image, edge.members, left, right):
                yield from self._with_edges(rest, {**nodes, edge.variable: row})
        else:
            yield from self._with_edges(rest, nodes)

    def _with_optionals(self, blocks: list[Block], nodes: Assignment) -> Iterator[Assignment]:
        if not blocks:
            yield nodes
            return
        found = list(self.solutions(blocks[0].inner, nodes))
        unbound = dict.fromkeys(blocks[0].inner.introduced)
        for more in found or [{**nodes, **unbound}]:
            yield from self._with_optionals(blocks[1:], more)

    def _holds(self, part: _Part, nodes: Assignment) -> bool:
        if isinstance(part, Filter):
            return self._evaluator.satisfies(part, nodes)
        left, right = nodes[part.left], nodes[part.right]
        if left is None or right is None:
            return False
        return self._reach.leads(part, text_of(left, "id"), text_of(right, "id"))

    def _has_solution(self, block: Block, nodes: Assignment) -> bool:
        return any(True for _ in self.solutions(block.inner, nodes))


def _needs(part: _Part) -> frozenset[str]:
    """The variables that must have nodes before a part can be tried."""
    return part.variables if isinstance(part, Filter) else frozenset({part.left, part.right})
