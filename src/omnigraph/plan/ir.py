"""The typed plan of a query: frozen nodes, no source text, no names left to resolve.

A read is a pattern of nodes and edges, then projection, grouping, order and limit. A mutation is a
sequence of statements. Everything carries the types the checker found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from functools import cached_property
from typing import Final

from msgspec import Struct

from omnigraph.language.query.ast import AggregateFunction, Operator, TextFunction
from omnigraph.language.types import PropType, Scalar

NOW_PARAMETER: Final = "__nanograph_now"
"""The reserved parameter that holds the one time of a query's execution."""

ID_TYPE: Final = PropType(Scalar.STRING)
MATCH_TYPE: Final = PropType(Scalar.BOOL)
SCORE_TYPE: Final = PropType(Scalar.F64, nullable=True)
DATETIME_TYPE: Final = PropType(Scalar.DATETIME)

# -- expressions --------------------------------------------------------------------------------

LiteralValue = str | int | float | bool | tuple["LiteralValue", ...]
"""Dates are days and datetimes milliseconds since the epoch; lists are tuples."""


class Prop(Struct, frozen=True):
    """A property of a bound variable."""

    variable: str
    property: str
    type: PropType


class EntityId(Struct, frozen=True):
    """A bound variable itself: its id."""

    variable: str
    type: PropType = ID_TYPE


class Param(Struct, frozen=True):
    name: str
    type: PropType


class Constant(Struct, frozen=True):
    value: LiteralValue
    type: PropType


class TextMatch(Struct, frozen=True):
    """Whether a field matches a full-text query."""

    function: TextFunction
    field: Expr
    query: Expr
    edits: Expr | None = None
    type: PropType = MATCH_TYPE


class Nearest(Struct, frozen=True):
    """Cosine distance of a vector property to a query vector or text."""

    field: Prop
    query: Expr
    model: str | None = None
    """The model that computes vectors of this property, if the schema names one."""
    type: PropType = SCORE_TYPE


class Bm25(Struct, frozen=True):
    field: Expr
    query: Expr
    type: PropType = SCORE_TYPE


class Rrf(Struct, frozen=True):
    """Two rankings fused by reciprocal rank."""

    first: Nearest | Bm25
    second: Nearest | Bm25
    k: Expr | None = None
    type: PropType = SCORE_TYPE


class Aggregated(Struct, frozen=True):
    function: AggregateFunction
    argument: Expr
    type: PropType


Expr = Prop | EntityId | Param | Constant | TextMatch | Nearest | Bm25 | Rrf | Aggregated

RANKS = (Nearest, Bm25, Rrf)
"""Expressions whose value is a score: rows may lack one."""


def variables_of(expression: Expr) -> frozenset[str]:
    """The node variables an expression reads."""
    parts: tuple[Expr | None, ...]
    match expression:
        case Prop() | EntityId():
            return frozenset({expression.variable})
        case Param() | Constant():
            return frozenset()
        case TextMatch():
            parts = (expression.field, expression.query, expression.edits)
        case Nearest() | Bm25():
            parts = (expression.field, expression.query)
        case Rrf():
            parts = (expression.first, expression.second, expression.k)
        case Aggregated():
            parts = (expression.argument,)
    return frozenset[str]().union(*(variables_of(part) for part in parts if part is not None))


# -- read patterns ------------------------------------------------------------------------------


class Direction(Enum):
    OUT = "out"
    IN = "in"

    @property
    def reversed(self) -> Direction:
        return Direction.IN if self is Direction.OUT else Direction.OUT


class Filter(Struct, frozen=True):
    left: Expr
    operator: Operator
    right: Expr

    @property
    def variables(self) -> frozenset[str]:
        return variables_of(self.left) | variables_of(self.right)


class EdgePattern(Struct, frozen=True):
    """A traversal between two variables; `direction` is the way from `left` to `right`."""

    left: str
    right: str
    edge_type: str
    direction: Direction
    low: int
    high: int

    def other(self, variable: str) -> str:
        return self.right if variable == self.left else self.left

    def direction_from(self, variable: str) -> Direction:
        return self.direction if variable == self.left else self.direction.reversed


class Negation(Struct, frozen=True):
    """A pattern that must have no solution. `outer` are variables of enclosing patterns in it."""

    outer: tuple[str, ...]
    inner: Pattern


class Pattern(Struct, frozen=True, dict=True):
    """What one clause list matches, in text order; the order of execution is chosen later.

    `types` has the node type of every variable that the list introduces. `conditions` are filters
    on one variable, which may belong to an enclosing pattern. `filters` are about several variables
    or none.
    """

    types: dict[str, str]
    conditions: dict[str, tuple[Filter, ...]]
    edges: tuple[EdgePattern, ...]
    filters: tuple[Filter, ...]
    negations: tuple[Negation, ...]

    @cached_property
    def _edges_of(self) -> dict[str, list[EdgePattern]]:
        found: dict[str, list[EdgePattern]] = {}
        for edge in self.edges:
            for variable in {edge.left, edge.right}:
                found.setdefault(variable, []).append(edge)
        return found

    def edges_of(self, variable: str) -> Sequence[EdgePattern]:
        """The edges that touch a variable, in text order."""
        return self._edges_of.get(variable, ())

    def conditions_of(self, variable: str) -> tuple[Filter, ...]:
        return self.conditions.get(variable, ())

    def own_filters(self) -> Iterator[Filter]:
        """All filters of the pattern, without those of its negations."""
        for conditions in self.conditions.values():
            yield from conditions
        yield from self.filters

    def outer_variables(self) -> set[str]:
        """Variables of enclosing patterns that the pattern mentions, also in its negations."""
        mentioned = {variable for edge in self.edges for variable in (edge.left, edge.right)}
        mentioned.update(*(condition.variables for condition in self.own_filters()))
        mentioned.update(*(negation.outer for negation in self.negations))
        return mentioned - self.types.keys()


class Column(Struct, frozen=True):
    """One result column."""

    name: str
    expression: Expr
    has_alias: bool = False

    @property
    def is_aggregate(self) -> bool:
        return isinstance(self.expression, Aggregated)


class SortKey(Struct, frozen=True):
    expression: Expr
    descending: bool

    @property
    def is_rank(self) -> bool:
        """Whether the key is a score; rows without one come last in either direction."""
        return isinstance(self.expression, RANKS)


class ParameterSpec(Struct, frozen=True):
    name: str
    type: PropType


class ReadPlan(Struct, frozen=True):
    name: str
    parameters: tuple[ParameterSpec, ...]
    pattern: Pattern
    columns: tuple[Column, ...]
    order: tuple[SortKey, ...]
    limit: int | None
    variables: tuple[tuple[str, str], ...]
    """The named variables of the pattern, without those of negations, with their types, sorted."""

    @property
    def is_aggregate(self) -> bool:
        return any(c.is_aggregate for c in self.columns)

    def fused_ranks(self) -> frozenset[Rrf]:
        """The fused ranks that a result shows, aggregates or is ordered by."""
        shown = [part.expression for part in self.columns]
        shown += [part.expression for part in self.order]
        shown += [part.argument for part in shown if isinstance(part, Aggregated)]
        return frozenset(part for part in shown if isinstance(part, Rrf))

    @property
    def drops_unscored(self) -> bool:
        """A rank as first order key keeps only rows that have a score."""
        return bool(self.order) and self.order[0].is_rank


# -- mutations ----------------------------------------------------------------------------------


class Assign(Struct, frozen=True):
    property: str
    value: Constant | Param
    type: PropType


class Condition(Struct, frozen=True):
    """The predicate of an update or delete; `property` may be `src` or `dst` on edges."""

    property: str
    operator: Operator
    value: Constant | Param
    type: PropType


class InsertNode(Struct, frozen=True):
    node_type: str
    assignments: tuple[Assign, ...]


class InsertEdge(Struct, frozen=True):
    edge_type: str
    source: Constant | Param
    target: Constant | Param
    assignments: tuple[Assign, ...]


class UpdateNodes(Struct, frozen=True):
    node_type: str
    assignments: tuple[Assign, ...]
    condition: Condition


class DeleteNodes(Struct, frozen=True):
    node_type: str
    condition: Condition


class DeleteEdges(Struct, frozen=True):
    edge_type: str
    condition: Condition


StatementPlan = InsertNode | InsertEdge | UpdateNodes | DeleteNodes | DeleteEdges


class MutationPlan(Struct, frozen=True):
    name: str
    parameters: tuple[ParameterSpec, ...]
    statements: tuple[StatementPlan, ...]


Plan = ReadPlan | MutationPlan
