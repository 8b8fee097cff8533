"""The typed plan of a query: frozen nodes, no source text, no names left to resolve.

A read is a pattern of nodes and edges, then projection, grouping, order and limit. Everything carries
the types the checker found. Mutations are in `omnigraph.plan.changes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from functools import cached_property
from typing import Final

from msgspec import Struct

from omnigraph.language.query.ast import AggregateFunction, Junction, Operator, TextFunction
from omnigraph.language.types import PropType, Scalar

NOW_PARAMETER: Final = "__nanograph_now"
"""The reserved parameter that holds the one time of a query's execution."""

ID_TYPE: Final = PropType(Scalar.STRING)
MATCH_TYPE: Final = PropType(Scalar.BOOL)
SCORE_TYPE: Final = PropType(Scalar.F64, nullable=True)
DATETIME_TYPE: Final = PropType(Scalar.DATETIME)
BOOL_TYPE: Final = PropType(Scalar.BOOL, nullable=True)

ROW: Final = ""
"""The variable of the row that a mutation changes: its properties are bare words in the text."""

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
    """An aggregate over the rows of a group. `distinct`: each value once."""

    function: AggregateFunction
    argument: Expr
    type: PropType
    distinct: bool = False


class Null(Struct, frozen=True):
    """`null`, with the type its context gives it."""

    type: PropType


class SystemField(Struct, frozen=True):
    """`type` of a node or edge variable, `src` or `dst` of an edge variable, or a part of a path.

    The id of a variable is `EntityId`.
    """

    variable: str
    field: str
    type: PropType


class Comparison(Struct, frozen=True):
    """A comparison, containment or membership: null if a side is null."""

    left: Expr
    operator: Operator
    right: Expr
    type: PropType = BOOL_TYPE


class NullTest(Struct, frozen=True):
    """Whether a value, or a node or edge (`EntityId`), is null; never null itself."""

    operand: Expr
    negated: bool = False
    type: PropType = MATCH_TYPE


class Not(Struct, frozen=True):
    operand: Expr
    type: PropType = BOOL_TYPE


class Logical(Struct, frozen=True):
    """Operands joined by `and` or `or`, in three-valued logic."""

    junction: Junction
    operands: tuple[Expr, ...]
    type: PropType = BOOL_TYPE


class Compute(Struct, frozen=True):
    """A function of values. Arithmetic is a function with the symbol as its name."""

    function: str
    arguments: tuple[Expr, ...]
    type: PropType


class Case(Struct, frozen=True):
    """The value of the first branch whose condition is true."""

    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr | None
    type: PropType


class MakeList(Struct, frozen=True):
    items: tuple[Expr, ...]
    type: PropType


class MakeObject(Struct, frozen=True):
    """Named values of one variable as one value; null when the variable is unbound."""

    variable: str
    fields: tuple[tuple[str, Expr], ...]
    type: PropType


class BlockValue(Struct, frozen=True, eq=False):
    """An aggregate of the solutions of a block, or, without a function, whether there are any.

    Two are equal if they have one name, which is unique in a query.
    """

    name: str
    block: Block
    function: AggregateFunction | None
    argument: Expr | None
    distinct: bool
    type: PropType

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BlockValue) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


Expr = (
    Prop
    | EntityId
    | SystemField
    | Param
    | Constant
    | Null
    | TextMatch
    | Nearest
    | Bm25
    | Rrf
    | Aggregated
    | Comparison
    | NullTest
    | Not
    | Logical
    | Compute
    | Case
    | MakeList
    | MakeObject
    | BlockValue
)

RANKS = (Nearest, Bm25, Rrf)
"""Expressions whose value is a score: rows may lack one."""


def parts_of(expression: Expr) -> tuple[Expr, ...]:
    """The expressions an expression is made of."""
    match expression:
        case TextMatch(_, field, query, edits):
            return (field, query) if edits is None else (field, query, edits)
        case Nearest(field, query) | Bm25(field, query):
            return (field, query)
        case Rrf(first, second, k):
            return (first, second) if k is None else (first, second, k)
        case Aggregated(_, argument):
            return (argument,)
        case Comparison(left, _, right):
            return (left, right)
        case NullTest(operand) | Not(operand):
            return (operand,)
        case Logical(_, operands):
            return operands
        case Compute(_, arguments):
            return arguments
        case Case(branches, otherwise):
            parts = tuple(part for branch in branches for part in branch)
            return parts if otherwise is None else (*parts, otherwise)
        case MakeList(items):
            return items
        case MakeObject(_, fields):
            return tuple(value for _, value in fields)
        case _:
            return ()


def walk(expression: Expr) -> Iterator[Expr]:
    """An expression and all parts of it, outermost first."""
    waiting = [expression]
    while waiting:
        found = waiting.pop()
        yield found
        waiting.extend(reversed(parts_of(found)))


def variables_of(expression: Expr) -> frozenset[str]:
    """The variables of the pattern that an expression reads."""
    named = (Prop, EntityId, SystemField, MakeObject)
    found = {part.variable for part in walk(expression) if isinstance(part, named)}
    blocks = (part.block.outer for part in walk(expression) if isinstance(part, BlockValue))
    return frozenset(found.union(*blocks))


def has_aggregate(expression: Expr) -> bool:
    """Whether an aggregate is part of an expression."""
    return any(isinstance(part, Aggregated) for part in walk(expression))


def conjuncts(condition: Expr) -> Iterator[Expr]:
    """The conditions that a Boolean expression requires, each alone."""
    if isinstance(condition, Logical) and condition.junction is Junction.AND:
        for operand in condition.operands:
            yield from conjuncts(operand)
    else:
        yield condition


# -- read patterns ------------------------------------------------------------------------------


class Direction(Enum):
    OUT = "out"
    IN = "in"

    @property
    def reversed(self) -> Direction:
        return Direction.IN if self is Direction.OUT else Direction.OUT


class Filter(Struct, frozen=True, dict=True):
    """Keeps solutions for which a Boolean expression is true. It is no `and`: those are split."""

    condition: Expr

    @cached_property
    def variables(self) -> frozenset[str]:
        return variables_of(self.condition)

    @property
    def comparison(self) -> Comparison | None:
        """The condition, if it compares two values."""
        return self.condition if isinstance(self.condition, Comparison) else None


Member = tuple[str, Direction]
"""An edge type, and the direction in which its edges are followed."""


def reverse(members: tuple[Member, ...]) -> tuple[Member, ...]:
    """The same edges, followed the other way."""
    return tuple((edge, direction.reversed) for edge, direction in members)


class Shortest(Struct, frozen=True):
    """One shortest path per pair of ends: with the fewest edges, or the least sum of a weight."""

    variable: str | None
    weight: str | None


class EdgePattern(Struct, frozen=True):
    """A traversal between two variables over any member; directions lead from `left` to `right`.

    With a `variable` every edge is a solution of its own, else every pair of nodes is one.
    """

    left: str
    right: str
    members: tuple[Member, ...]
    low: int = 1
    high: int = 1
    variable: str | None = None
    shortest: Shortest | None = None

    @property
    def edge_types(self) -> tuple[str, ...]:
        """The distinct edge types of the members, in order."""
        return tuple(dict.fromkeys(edge for edge, _ in self.members))

    @property
    def named(self) -> tuple[str, ...]:
        """The edge or path variable, if there is one."""
        path = self.shortest.variable if self.shortest else None
        return tuple(name for name in (self.variable, path) if name is not None)

    def other(self, variable: str) -> str:
        return self.right if variable == self.left else self.left

    def members_from(self, variable: str) -> tuple[Member, ...]:
        return self.members if variable == self.left else reverse(self.members)


class Block(Struct, frozen=True):
    """A pattern inside another. `outer` are variables of enclosing patterns that it mentions."""

    outer: tuple[str, ...]
    inner: Pattern


class Pattern(Struct, frozen=True, dict=True):
    """What one clause list matches, in text order; the order of execution is chosen later.

    `types` has the node type of every variable that the list introduces, `edge_types` the types of
    every edge variable. `conditions` are filters on one variable, which may belong to an enclosing
    pattern. `filters` are about several variables or none, or they have blocks. Blocks of `negations`
    must have no solution, those of `requirements` must have one. Those of `optionals` extend each row
    by their solutions, or by nulls if there are none.
    """

    types: dict[str, str]
    conditions: dict[str, tuple[Filter, ...]]
    edges: tuple[EdgePattern, ...]
    filters: tuple[Filter, ...]
    negations: tuple[Block, ...] = ()
    requirements: tuple[Block, ...] = ()
    optionals: tuple[Block, ...] = ()
    edge_types: dict[str, tuple[str, ...]] = {}

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

    def conditions_of(self, variable: str | None) -> tuple[Filter, ...]:
        return () if variable is None else self.conditions.get(variable, ())

    def own_filters(self) -> Iterator[Filter]:
        """All filters of the pattern, without those of its blocks."""
        for conditions in self.conditions.values():
            yield from conditions
        yield from self.filters

    def blocks(self) -> Iterator[Block]:
        """The blocks of the pattern that are clauses."""
        yield from self.negations
        yield from self.requirements
        yield from self.optionals

    @cached_property
    def optional_types(self) -> dict[str, str | tuple[str, ...]]:
        """The variables that optional blocks introduce; a path variable has no types."""
        found: dict[str, str | tuple[str, ...]] = {}
        for block in self.optionals:
            found |= block.inner.introduced
        return found

    @cached_property
    def introduced(self) -> dict[str, str | tuple[str, ...]]:
        """All variables of the pattern and its optional blocks, with their node or edge types."""
        paths = (edge.shortest.variable for edge in self.edges if edge.shortest)
        named = {name: () for name in paths if name is not None}
        return {**self.types, **self.edge_types, **named, **self.optional_types}

    def outer_variables(self) -> set[str]:
        """Variables of enclosing patterns that the pattern mentions, also in its blocks."""
        mentioned = {variable for edge in self.edges for variable in (edge.left, edge.right)}
        mentioned.update(*(condition.variables for condition in self.own_filters()))
        mentioned.update(*(block.outer for block in self.blocks()))
        return mentioned - self.introduced.keys()


class Column(Struct, frozen=True, dict=True):
    """One result column."""

    name: str
    expression: Expr
    has_alias: bool = False

    @cached_property
    def is_aggregate(self) -> bool:
        return has_aggregate(self.expression)


class SortKey(Struct, frozen=True):
    """`nulls_first` is None where nothing is written: first ascending, last descending."""

    expression: Expr
    descending: bool
    nulls_first: bool | None = None

    @property
    def is_rank(self) -> bool:
        """Whether the key is a score; rows without one come last in either direction."""
        return isinstance(self.expression, RANKS)


class ParameterSpec(Struct, frozen=True):
    """`default` is a constant expression for a parameter that is not given.

    One that no text declares `is_inferred`: it may be null, but has to be given.
    """

    name: str
    type: PropType
    default: Expr | None = None
    is_inferred: bool = False


class ReadPlan(Struct, frozen=True, dict=True):
    """A pattern and what is returned of it.

    `results` are further results of the same matched rows, each with its own name. A parameter as
    offset or limit is replaced by its value before the plan runs (`omnigraph.read.bounds`).
    """

    name: str
    parameters: tuple[ParameterSpec, ...]
    pattern: Pattern
    columns: tuple[Column, ...]
    order: tuple[SortKey, ...]
    limit: int | Param | None
    variables: tuple[tuple[str, str | tuple[str, ...]], ...]
    """The named node and edge variables of the pattern, without those of blocks, with their node type or
    edge types, sorted."""
    having: tuple[Expr, ...] = ()
    distinct: bool = False
    offset: int | Param | None = None
    results: tuple[ReadPlan, ...] = ()

    @cached_property
    def is_aggregate(self) -> bool:
        return any(has_aggregate(e) for e in self.expressions())

    @property
    def is_grouped(self) -> bool:
        """Whether rows of the result stand for groups of matched rows."""
        return self.distinct or self.is_aggregate

    @property
    def all_results(self) -> tuple[ReadPlan, ...]:
        return (self, *self.results)

    @property
    def stop(self) -> int | None:
        """The number of first rows that are wanted, those that the offset drops too."""
        if not isinstance(self.limit, int):
            return None
        return self.limit + (self.offset if isinstance(self.offset, int) else 0)

    @property
    def start(self) -> int:
        return self.offset if isinstance(self.offset, int) else 0

    def expressions(self) -> Iterator[Expr]:
        """What this result returns, keeps or sorts by."""
        yield from (column.expression for column in self.columns)
        yield from self.having
        yield from (key.expression for key in self.order)

    @cached_property
    def fused_ranks(self) -> frozenset[Rrf]:
        """The fused ranks that the result shows, aggregates, tests or is ordered by."""
        return frozenset(p for e in self.expressions() for p in walk(e) if isinstance(p, Rrf))

    @cached_property
    def is_plain(self) -> bool:
        """Whether the read neither searches nor ranks, in its pattern and in all results."""
        returned = (e for result in self.all_results for e in result.expressions())
        found = (part for e in (*returned, *_compared(self.pattern)) for part in walk(e))
        return not any(isinstance(part, (TextMatch, *RANKS)) for part in found)

    @cached_property
    def spelled_paths(self) -> frozenset[str]:
        """The path variables whose nodes or edges are read, not only lengths or costs."""
        returned = (e for result in self.all_results for e in result.expressions())
        found = _with_blocks((*returned, *_compared(self.pattern)))
        fields = (part for part in found if isinstance(part, SystemField))
        return frozenset(part.variable for part in fields if part.field in ("nodes", "edges"))

    @property
    def drops_unscored(self) -> bool:
        """A rank as first order key keeps only rows that have a score."""
        return bool(self.order) and self.order[0].is_rank


def _with_blocks(expressions: Iterable[Expr]) -> Iterator[Expr]:
    """All parts of expressions, those inside of blocks too."""
    for part in (part for expression in expressions for part in walk(expression)):
        yield part
        if isinstance(part, BlockValue):
            argument = () if part.argument is None else (part.argument,)
            yield from _with_blocks((*argument, *_compared(part.block.inner)))


def _compared(pattern: Pattern) -> Iterator[Expr]:
    """The conditions of all filters of a pattern, those of its blocks too."""
    for condition in pattern.own_filters():
        yield condition.condition
    for block in pattern.blocks():
        yield from _compared(block.inner)
