"""A read query after checking: clauses with resolved names, types and directions, in text order."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.plan.ir import Column, Direction, Filter, Match, SortKey


@dataclass(frozen=True, slots=True)
class CheckedBinding:
    """`outer` marks a variable of an enclosing clause list that is only given more conditions."""

    variable: str
    node_type: str
    matches: tuple[Match, ...]
    outer: bool


@dataclass(frozen=True, slots=True)
class CheckedTraversal:
    """`direction` is how the edge is followed from `left` to `right`."""

    left: str
    left_type: str
    right: str
    right_type: str
    edge: str
    direction: Direction
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class CheckedNegation:
    clauses: tuple[CheckedClause, ...]


CheckedClause = CheckedBinding | CheckedTraversal | Filter | CheckedNegation


@dataclass(frozen=True, slots=True)
class CheckedRead:
    clauses: tuple[CheckedClause, ...]
    columns: tuple[Column, ...]
    order: tuple[SortKey, ...]
    limit: int | None
    variables: tuple[tuple[str, str], ...]
