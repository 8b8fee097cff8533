"""The syntax tree of a query file.

A place is left for what comes later: edge variables belong into `Traversal`, alternative and
optional blocks are clauses beside `Negation`.
"""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as attribute
from enum import Enum

from omnigraph.language.nodes import NOWHERE, Name, TypeRef
from omnigraph.language.span import Span

ANONYMOUS = "_"
"""The variable that matches anything and binds nothing."""


# -- values and expressions ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StringLiteral:
    value: str
    spelling: str | None = attribute(default=None, compare=False, repr=False)
    span: Span = attribute(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class IntegerLiteral:
    value: int
    span: Span = attribute(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class FloatLiteral:
    """A float with its digits as written; there is no exponent form."""

    text: str
    span: Span = attribute(default=NOWHERE, compare=False, repr=False)

    @property
    def value(self) -> float:
        return float(self.text)


@dataclass(frozen=True, slots=True)
class BoolLiteral:
    value: bool
    span: Span = attribute(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class DateLiteral:
    """`date("…")`; the text is judged when the query is checked."""

    text: str
    span: Span = attribute(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class DateTimeLiteral:
    """`datetime("…")`; the text is judged when the query is checked."""

    text: str
    span: Span = attribute(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ListLiteral:
    items: tuple[Literal, ...]
    span: Span = attribute(default=NOWHERE, compare=False, repr=False)


Literal = (
    StringLiteral
    | IntegerLiteral
    | FloatLiteral
    | BoolLiteral
    | DateLiteral
    | DateTimeLiteral
    | ListLiteral
)


@dataclass(frozen=True, slots=True)
class Variable:
    """`$name`: a bound node, or a parameter."""

    name: str
    span: Span = attribute(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Now:
    span: Span = attribute(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PropertyAccess:
    variable: Variable
    property: Name
    span: Span = attribute(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AliasReference:
    name: Name

    @property
    def span(self) -> Span:
        return self.name.span


class AggregateFunction(Enum):
    COUNT = "count"
    SUM = "sum"
    AVG = "avg"
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class Aggregate:
    function: AggregateFunction
    argument: Expression
    span: Span = attribute(default=NOWHERE, compare=False, repr=False)


class TextFunction(Enum):
    SEARCH = "search"
    FUZZY = "fuzzy"
    MATCH_TEXT = "match_text"


@dataclass(frozen=True, slots=True)
class TextCall:
    """A full-text predicate; only `fuzzy` may have `edits`."""

    function: TextFunction
    field: Expression
    query: Expression
    edits: Expression | None = None
    span: Span = attribute(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class NearestCall:
    field: PropertyAccess
    query: Expression
    span: Span = attribute(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Bm25Call:
    field: Expression
    query: Expression
    span: Span = attribute(default=NOWHERE, compare=False, repr=False)


RankCall = NearestCall | Bm25Call


@dataclass(frozen=True, slots=True)
class RrfCall:
    first: RankCall
    second: RankCall
    k: Expression | None = None
    span: Span = attribute(default=NOWHERE, compare=False, repr=False)


Expression = (
    Now
    | NearestCall
    | TextCall
    | Bm25Call
    | RrfCall
    | Aggregate
    | PropertyAccess
    | Variable
    | Literal
    | AliasReference
)

Value = Literal | Variable | Now


# -- read queries -------------------------------------------------------------------------------


class Operator(Enum):
    """Comparison and containment operators of filters; mutations know only the comparisons."""

    GE = ">="
    LE = "<="
    NE = "!="
    GT = ">"
    LT = "<"
    EQ = "="
    CONTAINS = "contains"
    STARTS_WITH = "starts_with"


@dataclass(frozen=True, slots=True)
class PropertyMatch:
    property: Name
    value: Value
    span: Span = attribute(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Binding:
    variable: Variable
    type: Name
    matches: tuple[PropertyMatch, ...] = ()
    span: Span = attribute(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Hops:
    """Written hop bounds; a missing maximum is an error the checker reports."""

    low: int
    high: int | None
    span: Span = attribute(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Traversal:
    left: Variable
    edge: Name
    right: Variable
    hops: Hops | None = None
    span: Span = attribute(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Filter:
    left: Expression
    operator: Operator
    right: Expression
    span: Span = attribute(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TextClause:
    call: TextCall

    @property
    def span(self) -> Span:
        return self.call.span


@dataclass(frozen=True, slots=True)
class Negation:
    clauses: tuple[Clause, ...]
    span: Span = attribute(default=NOWHERE, compare=False, repr=False)


Clause = Negation | Binding | Traversal | Filter | TextClause


@dataclass(frozen=True, slots=True)
class Projection:
    expression: Expression
    alias: Name | None = None
    span: Span = attribute(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class OrderKey:
    """`descending` is None when no direction is written: the default depends on the key."""

    expression: Expression
    descending: bool | None = None
    span: Span = attribute(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ReadBody:
    """The spans reach from a block's keyword to its closing brace."""

    clauses: tuple[Clause, ...]
    projections: tuple[Projection, ...]
    order: tuple[OrderKey, ...] = ()
    limit: int | None = None
    match_span: Span = attribute(default=NOWHERE, compare=False, repr=False)
    return_span: Span = attribute(default=NOWHERE, compare=False, repr=False)
    order_span: Span = attribute(default=NOWHERE, compare=False, repr=False)
    limit_span: Span = attribute(default=NOWHERE, compare=False, repr=False)


# -- mutations ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Assignment:
    property: Name
    value: Value
    span: Span = attribute(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Predicate:
    property: Name
    operator: Operator
    value: Value
    span: Span = attribute(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Insert:
    type: Name
    assignments: tuple[Assignment, ...]
    span: Span = attribute(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Update:
    type: Name
    assignments: tuple[Assignment, ...]
    predicate: Predicate
    span: Span = attribute(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Delete:
    type: Name
    predicate: Predicate
    span: Span = attribute(default=NOWHERE, compare=False, repr=False)


Statement = Insert | Update | Delete


@dataclass(frozen=True, slots=True)
class MutationBody:
    statements: tuple[Statement, ...]


# -- files --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Parameter:
    variable: Variable
    type: TypeRef
    span: Span = attribute(default=NOWHERE, compare=False, repr=False)

    @property
    def name(self) -> str:
        return self.variable.name


@dataclass(frozen=True, slots=True)
class Note:
    """`@description` or `@instruction` of a query."""

    name: Name
    text: str
    spelling: str | None = attribute(default=None, compare=False, repr=False)
    span: Span = attribute(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Query:
    name: Name
    parameters: tuple[Parameter, ...]
    notes: tuple[Note, ...]
    body: ReadBody | MutationBody
    span: Span = attribute(default=NOWHERE, compare=False, repr=False)

    @property
    def is_mutation(self) -> bool:
        return isinstance(self.body, MutationBody)

    def note(self, name: str) -> str | None:
        return next((n.text for n in self.notes if n.name.text == name), None)


@dataclass(frozen=True, slots=True)
class QueryFile:
    queries: tuple[Query, ...] = ()
