"""The typed plan of a mutation: a sequence of statements, some of them behind a pattern."""

from __future__ import annotations

from msgspec import Struct

from omnigraph.language.types import PropType
from omnigraph.plan.ir import Column, Expr, ParameterSpec, ReadPlan


class Assign(Struct, frozen=True):
    """A property and its value, which in an update may read the row (`ROW`)."""

    property: str
    value: Expr
    type: PropType


class Returning(Struct, frozen=True):
    """What a statement returns of each row it wrote, which is the variable `ROW`."""

    columns: tuple[Column, ...]
    distinct: bool = False


class InsertNode(Struct, frozen=True):
    """`variable` stands for the id of the new node in later statements."""

    node_type: str
    assignments: tuple[Assign, ...]
    variable: str | None = None
    returning: Returning | None = None


class InsertEdge(Struct, frozen=True):
    edge_type: str
    source: Expr
    target: Expr
    assignments: tuple[Assign, ...]
    variable: str | None = None
    returning: Returning | None = None


class Upsert(Struct, frozen=True):
    """Change the assigned properties of the entity with a key or identity, or insert it.

    The ends of an edge are among the assignments, as `src` and `dst`.
    """

    table_key: str
    assignments: tuple[Assign, ...]
    variable: str | None = None
    returning: Returning | None = None


class UpdateNodes(Struct, frozen=True):
    node_type: str
    assignments: tuple[Assign, ...]
    condition: Expr
    returning: Returning | None = None


class UpdateEdges(Struct, frozen=True):
    edge_type: str
    assignments: tuple[Assign, ...]
    condition: Expr
    returning: Returning | None = None


class DeleteNodes(Struct, frozen=True):
    node_type: str
    condition: Expr
    returning: Returning | None = None


class DeleteEdges(Struct, frozen=True):
    edge_type: str
    condition: Expr
    returning: Returning | None = None


class UpdateMatched(Struct, frozen=True):
    """Assign to the entities of a variable of a match, which are of one of several tables."""

    variable: str
    table_keys: tuple[str, ...]
    assignments: tuple[Assign, ...]
    returning: Returning | None = None


class DeleteMatched(Struct, frozen=True):
    """Delete the entities of some variables of a match, each with the tables they may be of."""

    targets: tuple[tuple[str, tuple[str, ...]], ...]
    returning: Returning | None = None


Action = InsertNode | InsertEdge | Upsert | UpdateMatched | DeleteMatched
"""A change for each row of a match. Values are about variables of the match, not about `ROW`."""


class MatchChange(Struct, frozen=True):
    """A pattern, and the changes that are made for all of its rows, one change after the other.

    The columns of `match` are what the actions read of a row, each with its own expression. In
    `made` are the variables that an insert of an action binds per row.
    """

    match: ReadPlan
    actions: tuple[Action, ...]
    made: tuple[str, ...] = ()


PlainStatement = (
    InsertNode | InsertEdge | Upsert | UpdateNodes | UpdateEdges | DeleteNodes | DeleteEdges
)
StatementPlan = PlainStatement | MatchChange


class MutationPlan(Struct, frozen=True):
    name: str
    parameters: tuple[ParameterSpec, ...]
    statements: tuple[StatementPlan, ...]

    @property
    def has_match(self) -> bool:
        """Whether a statement changes what a pattern matches."""
        return any(isinstance(statement, MatchChange) for statement in self.statements)


Plan = ReadPlan | MutationPlan
