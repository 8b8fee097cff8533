"""The syntax tree of a query file."""

from __future__ import annotations

from enum import Enum

from omnigraph.language.syntax import NOWHERE, Name, Span, Syntax, TypeRef

ANONYMOUS = "_"
"""The variable that matches anything and binds nothing."""


# -- values and expressions ---------------------------------------------------------------------


class StringLiteral(Syntax, frozen=True):
    value: str
    spelling: str | None = None
    span: Span = NOWHERE


class IntegerLiteral(Syntax, frozen=True):
    value: int
    span: Span = NOWHERE


class FloatLiteral(Syntax, frozen=True):
    """A float with its digits as written; there is no exponent form."""

    text: str
    span: Span = NOWHERE

    @property
    def value(self) -> float:
        return float(self.text)


class BoolLiteral(Syntax, frozen=True):
    value: bool
    span: Span = NOWHERE


class DateLiteral(Syntax, frozen=True):
    """`date("…")`; the checker validates the text."""

    text: str
    span: Span = NOWHERE


class DateTimeLiteral(Syntax, frozen=True):
    """`datetime("…")`; the checker validates the text."""

    text: str
    span: Span = NOWHERE


class ListLiteral(Syntax, frozen=True):
    items: tuple[Literal, ...]
    span: Span = NOWHERE


Literal = (
    StringLiteral
    | IntegerLiteral
    | FloatLiteral
    | BoolLiteral
    | DateLiteral
    | DateTimeLiteral
    | ListLiteral
)


class Variable(Syntax, frozen=True):
    """`$name`: a bound node, or a parameter."""

    name: str
    span: Span = NOWHERE


class Now(Syntax, frozen=True):
    span: Span = NOWHERE


class PropertyAccess(Syntax, frozen=True):
    variable: Variable
    property: Name
    span: Span = NOWHERE


class AliasReference(Syntax, frozen=True):
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


class Aggregate(Syntax, frozen=True):
    function: AggregateFunction
    argument: Expression
    span: Span = NOWHERE


class TextFunction(Enum):
    SEARCH = "search"
    FUZZY = "fuzzy"
    MATCH_TEXT = "match_text"


class TextCall(Syntax, frozen=True):
    """A full-text predicate; only `fuzzy` may have `edits`."""

    function: TextFunction
    field: Expression
    query: Expression
    edits: Expression | None = None
    span: Span = NOWHERE


class NearestCall(Syntax, frozen=True):
    field: PropertyAccess
    query: Expression
    span: Span = NOWHERE


class Bm25Call(Syntax, frozen=True):
    field: Expression
    query: Expression
    span: Span = NOWHERE


RankCall = NearestCall | Bm25Call


class RrfCall(Syntax, frozen=True):
    first: RankCall
    second: RankCall
    k: Expression | None = None
    span: Span = NOWHERE


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


class PropertyMatch(Syntax, frozen=True):
    property: Name
    value: Value
    span: Span = NOWHERE


class Binding(Syntax, frozen=True):
    variable: Variable
    type: Name
    matches: tuple[PropertyMatch, ...] = ()
    span: Span = NOWHERE


class Hops(Syntax, frozen=True):
    """Written hop bounds; a missing maximum is an error the checker reports."""

    low: int
    high: int | None
    span: Span = NOWHERE


class Traversal(Syntax, frozen=True):
    left: Variable
    edge: Name
    right: Variable
    hops: Hops | None = None
    span: Span = NOWHERE


class Filter(Syntax, frozen=True):
    left: Expression
    operator: Operator
    right: Expression
    span: Span = NOWHERE


class TextClause(Syntax, frozen=True):
    call: TextCall

    @property
    def span(self) -> Span:
        return self.call.span


class Negation(Syntax, frozen=True):
    clauses: tuple[Clause, ...]
    span: Span = NOWHERE


Clause = Negation | Binding | Traversal | Filter | TextClause


class Projection(Syntax, frozen=True):
    expression: Expression
    alias: Name | None = None
    span: Span = NOWHERE


class OrderKey(Syntax, frozen=True):
    """`descending` is None when no direction is written: the default depends on the key."""

    expression: Expression
    descending: bool | None = None
    span: Span = NOWHERE


class ReadBody(Syntax, frozen=True):
    """The spans reach from a block's keyword to its closing brace."""

    clauses: tuple[Clause, ...]
    projections: tuple[Projection, ...]
    order: tuple[OrderKey, ...] = ()
    limit: int | None = None
    match_span: Span = NOWHERE
    return_span: Span = NOWHERE
    order_span: Span = NOWHERE
    limit_span: Span = NOWHERE


# -- mutations ----------------------------------------------------------------------------------


class Assignment(Syntax, frozen=True):
    property: Name
    value: Value
    span: Span = NOWHERE


class Predicate(Syntax, frozen=True):
    property: Name
    operator: Operator
    value: Value
    span: Span = NOWHERE


class Insert(Syntax, frozen=True):
    type: Name
    assignments: tuple[Assignment, ...]
    span: Span = NOWHERE


class Update(Syntax, frozen=True):
    type: Name
    assignments: tuple[Assignment, ...]
    predicate: Predicate
    span: Span = NOWHERE


class Delete(Syntax, frozen=True):
    type: Name
    predicate: Predicate
    span: Span = NOWHERE


Statement = Insert | Update | Delete


class MutationBody(Syntax, frozen=True):
    statements: tuple[Statement, ...]


# -- files --------------------------------------------------------------------------------------


class Parameter(Syntax, frozen=True):
    variable: Variable
    type: TypeRef
    span: Span = NOWHERE

    @property
    def name(self) -> str:
        return self.variable.name


class Note(Syntax, frozen=True):
    """`@description` or `@instruction` of a query."""

    name: Name
    text: str
    spelling: str | None = None
    span: Span = NOWHERE


class Query(Syntax, frozen=True):
    name: Name
    parameters: tuple[Parameter, ...]
    notes: tuple[Note, ...]
    body: ReadBody | MutationBody
    span: Span = NOWHERE

    @property
    def is_mutation(self) -> bool:
        return isinstance(self.body, MutationBody)

    def note(self, name: str) -> str | None:
        return next((n.text for n in self.notes if n.name.text == name), None)


class QueryFile(Syntax, frozen=True):
    queries: tuple[Query, ...] = ()
