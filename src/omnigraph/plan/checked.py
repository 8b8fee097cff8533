"""A read query after checking: clauses with resolved names, types and directions, in text order."""

from __future__ import annotations

from msgspec import Struct

from omnigraph.plan.ir import Column, Direction, Filter, Match, SortKey


class CheckedBinding(Struct, frozen=True):
    """`outer` marks a variable of an enclosing clause list that is only given more conditions."""

    variable: str
    node_type: str
    matches: tuple[Match, ...]
    outer: bool


class CheckedTraversal(Struct, frozen=True):
    """`direction` is how the edge is followed from `left` to `right`."""

    left: str
    left_type: str
    right: str
    right_type: str
    edge: str
    direction: Direction
    low: int
    high: int


class CheckedNegation(Struct, frozen=True):
    clauses: tuple[CheckedClause, ...]


CheckedClause = CheckedBinding | CheckedTraversal | Filter | CheckedNegation


class CheckedRead(Struct, frozen=True):
    clauses: tuple[CheckedClause, ...]
    columns: tuple[Column, ...]
    order: tuple[SortKey, ...]
    limit: int | None
    variables: tuple[tuple[str, str], ...]
