"""The solutions of a clause list: all combinations of nodes for which every clause holds.

A combination occurs once, so what a solution is does not depend on the order of the clauses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from omnigraph.plan.checked import (
    CheckedBinding,
    CheckedClause,
    CheckedNegation,
    CheckedTraversal,
)
from omnigraph.plan.ir import Filter, variables_of
from omnigraph.testing.model.image import Image
from omnigraph.testing.model.read.expressions import Assignment, Evaluator
from omnigraph.testing.model.read.reach import Reach
from omnigraph.testing.model.values import text_of

_Plain = CheckedBinding | CheckedTraversal | Filter


class Matcher:
    def __init__(self, image: Image, evaluator: Evaluator) -> None:
        self._image = image
        self._evaluator = evaluator
        self._reach = Reach(image)

    def solutions(
        self, clauses: Sequence[CheckedClause], given: Assignment
    ) -> Iterator[Assignment]:
        """Every way to extend the given nodes by nodes for the variables the clauses introduce."""
        types = {name: kind for name, kind in _variables(clauses) if name not in given}
        plain = [clause for clause in clauses if not isinstance(clause, CheckedNegation)]
        negations = [clause for clause in clauses if isinstance(clause, CheckedNegation)]
        unready = [clause for clause in plain if _needs(clause) & types.keys()]
        if not all(self._holds(clause, given) for clause in plain if clause not in unready):
            return
        for nodes in self._extended(list(types.items()), unready, given):
            if not any(self._has_solution(negation, nodes) for negation in negations):
                yield nodes

    def _extended(
        self, types: list[tuple[str, str]], clauses: list[_Plain], given: Assignment
    ) -> Iterator[Assignment]:
        """One variable after the other; a clause is tried as soon as all its variables have nodes."""
        if not types:
            yield given
            return
        (variable, type_name), rest = types[0], types[1:]
        waiting = {name for name, _ in rest}
        ready = [clause for clause in clauses if not _needs(clause) & waiting]
        later = [clause for clause in clauses if _needs(clause) & waiting]
        for row in self._image.tables[f"node:{type_name}"].values():
            nodes = {**given, variable: row}
            if all(self._holds(clause, nodes) for clause in ready):
                yield from self._extended(rest, later, nodes)

    def _holds(self, clause: _Plain, nodes: Assignment) -> bool:
        match clause:
            case CheckedBinding():
                row = nodes[clause.variable]
                return all(self._evaluator.fits(row, match) for match in clause.matches)
            case CheckedTraversal():
                left, right = nodes[clause.left], nodes[clause.right]
                return self._reach.leads(clause, text_of(left, "id"), text_of(right, "id"))
            case Filter():
                return self._evaluator.satisfies(clause, nodes)
            case _:
                assert_never(clause)

    def _has_solution(self, negation: CheckedNegation, nodes: Assignment) -> bool:
        return any(True for _ in self.solutions(negation.clauses, nodes))


def _variables(clauses: Sequence[CheckedClause]) -> Iterator[tuple[str, str]]:
    """Variables of bindings and traversals with their node types, in text order."""
    for clause in clauses:
        if isinstance(clause, CheckedBinding):
            yield clause.variable, clause.node_type
        elif isinstance(clause, CheckedTraversal):
            yield clause.left, clause.left_type
            yield clause.right, clause.right_type


def _needs(clause: _Plain) -> frozenset[str]:
    """The variables that must have nodes before a clause can be tried."""
    if isinstance(clause, Filter):
        return variables_of(clause.left) | variables_of(clause.right)
    return frozenset(name for name, _ in _variables([clause]))
