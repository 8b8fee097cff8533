"""The solutions of a pattern: all combinations of nodes for which every part of it holds.

A combination occurs once, so what a solution is does not depend on the order of the clauses.
"""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.plan.ir import EdgePattern, Filter, Negation, Pattern
from tests.support.model.image import Image
from tests.support.model.read.expressions import Assignment, Evaluator
from tests.support.model.read.reach import Reach
from tests.support.model.values import text_of

_Part = EdgePattern | Filter


class Matcher:
    def __init__(self, image: Image, evaluator: Evaluator) -> None:
        self._image = image
        self._evaluator = evaluator
        self._reach = Reach(image)

    def solutions(self, pattern: Pattern, given: Assignment) -> Iterator[Assignment]:
        """Every way to extend the given nodes by nodes for the variables of a pattern."""
        parts: list[_Part] = [*pattern.edges, *pattern.own_filters()]
        unready = [part for part in parts if _needs(part) & pattern.types.keys()]
        if not all(self._holds(part, given) for part in parts if part not in unready):
            return
        for nodes in self._extended(list(pattern.types.items()), unready, given):
            if not any(self._has_solution(negation, nodes) for negation in pattern.negations):
                yield nodes

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

    def _holds(self, part: _Part, nodes: Assignment) -> bool:
        if isinstance(part, Filter):
            return self._evaluator.satisfies(part, nodes)
        left, right = nodes[part.left], nodes[part.right]
        return self._reach.leads(part, text_of(left, "id"), text_of(right, "id"))

    def _has_solution(self, negation: Negation, nodes: Assignment) -> bool:
        return any(True for _ in self.solutions(negation.inner, nodes))


def _needs(part: _Part) -> frozenset[str]:
    """The variables that must have nodes before a part can be tried."""
    return part.variables if isinstance(part, Filter) else frozenset({part.left, part.right})
