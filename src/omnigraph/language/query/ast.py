"""The syntax tree of a query file."""

from __future__ import annotations

from enum import Enum

from omnigraph.language.query.file_statements import FileStatement, Reset, Setting
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


class NullLiteral(Syntax, frozen=True):
    span: Span = NOWHERE


class ListLiteral(Syntax, frozen=True):
    """A list whose items are all literals."""

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
"""Constants as written. `null` is none of them: it has no type of its own."""


class Variable(Syntax, frozen=True):
    """`$name`: a bound node, edge or path, or a parameter."""

    name: str
    span: Span = NOWHERE


class Now(Syntax, frozen=True):
    span: Span = NOWHERE


class PropertyAccess(Syntax, frozen=True):
    variable: Variable
    property: Name
    span: Span = NOWHERE


class SystemAccess(Syntax, frozen=True):
    """`$x.@field`; the name has no `@`."""

    variable: Variable
    field: Name
    span: Span = NOWHERE


class WholeEntity(Syntax, frozen=True):
    """`$x.*`"""

    variable: Variable
    span: Span = NOWHERE


class AliasReference(Syntax, frozen=True):
    """A bare word: an alias in a read, a property of the changed row in a mutation."""

    name: Name

    @property
    def span(self) -> Span:
        return self.name.span


class SystemReference(Syntax, frozen=True):
    """`@field` of the changed row, in a mutation; the name has no `@`."""

    field: Name
    span: Span = NOWHERE


class AggregateFunction(Enum):
    COUNT = "count"
    SUM = "sum"
    AVG = "avg"
    MIN = "min"
    MAX = "max"
    COLLECT = "collect"


class Aggregate(Syntax, frozen=True):
    function: AggregateFunction
    argument: Expression
    distinct: bool = False
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


class Call(Syntax, frozen=True):
    """A function of values; the checker knows which functions there are."""

    function: Name
    arguments: tuple[Expression, ...]
    span: Span = NOWHERE


class ListExpression(Syntax, frozen=True):
    """A list with an item that is no literal."""

    items: tuple[Expression, ...]
    span: Span = NOWHERE


class When(Syntax, frozen=True):
    condition: Expression
    value: Expression


class Case(Syntax, frozen=True):
    branches: tuple[When, ...]
    otherwise: Expression | None = None
    span: Span = NOWHERE


class Exists(Syntax, frozen=True):
    """`exists { … }`: whether the clauses have a solution."""

    clauses: tuple[Clause, ...]
    span: Span = NOWHERE


class AggregateBlock(Syntax, frozen=True):
    """`count { … }`, `sum(distinct x) { … }`: an aggregate of the solutions of the clauses."""

    function: AggregateFunction
    clauses: tuple[Clause, ...]
    argument: Expression | None = None
    distinct: bool = False
    span: Span = NOWHERE


class Operator(Enum):
    """Operators that compare two values."""

    GE = ">="
    LE = "<="
    NE = "!="
    GT = ">"
    LT = "<"
    EQ = "="
    CONTAINS = "contains"
    STARTS_WITH = "starts_with"
    ENDS_WITH = "ends_with"
    IN = "in"


class Comparison(Syntax, frozen=True):
    left: Expression
    operator: Operator
    right: Expression
    span: Span = NOWHERE


class NullTest(Syntax, frozen=True):
    """`is null`, or `is not null` if negated."""

    operand: Expression
    negated: bool = False
    span: Span = NOWHERE


class Not(Syntax, frozen=True):
    operand: Expression
    span: Span = NOWHERE


class Junction(Enum):
    AND = "and"
    OR = "or"


class Logical(Syntax, frozen=True):
    """Two or more operands joined by one word; `(a and b) and c` is nested."""

    junction: Junction
    operands: tuple[Expression, ...]
    span: Span = NOWHERE


class ArithmeticOperator(Enum):
    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    REMAINDER = "%"


class Arithmetic(Syntax, frozen=True):
    left: Expression
    operator: ArithmeticOperator
    right: Expression
    span: Span = NOWHERE


class Negative(Syntax, frozen=True):
    """A minus sign before anything but a written number, which takes it itself."""

    operand: Expression
    span: Span = NOWHERE


Expression = (
    Now
    | NearestCall
    | TextCall
    | Bm25Call
    | RrfCall
    | Aggregate
    | PropertyAccess
    | SystemAccess
    | SystemReference
    | WholeEntity
    | Variable
    | Literal
    | NullLiteral
    | ListExpression
    | AliasReference
    | Call
    | Case
    | Exists
    | AggregateBlock
    | Comparison
    | NullTest
    | Not
    | Logical
    | Arithmetic
    | Negative
)


# -- read queries -------------------------------------------------------------------------------


class PropertyMatch(Syntax, frozen=True):
    property: Name
    value: Expression
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


class EdgeName(Syntax, frozen=True):
    """An edge as a traversal names it. Only a quoted name is never taken for an operator."""

    text: str
    quoted: bool = False
    span: Span = NOWHERE

    def __str__(self) -> str:
        return self.text


class EdgeSelection(Syntax, frozen=True):
    """Which edges a traversal follows; without names it is `*`. `undirected`: either way."""

    names: tuple[EdgeName, ...]
    undirected: bool = False
    span: Span = NOWHERE

    @property
    def only(self) -> EdgeName | None:
        """The name, if the selection is one edge followed in one direction."""
        return self.names[0] if len(self.names) == 1 and not self.undirected else None


class Traversal(Syntax, frozen=True):
    """`variable` names the edge, or the path of a `shortest` traversal; `by` is its weight.

    `$a in $b` is a traversal only if there is such an edge: see `junction_or_membership`.
    """

    left: Variable
    edges: EdgeSelection
    right: Variable
    hops: Hops | None = None
    variable: Variable | None = None
    shortest: bool = False
    by: Name | None = None
    span: Span = NOWHERE


class Filter(Syntax, frozen=True):
    """Keeps solutions for which a Boolean expression is true."""

    condition: Expression
    span: Span = NOWHERE


class Negation(Syntax, frozen=True):
    clauses: tuple[Clause, ...]
    span: Span = NOWHERE


class Optional(Syntax, frozen=True):
    clauses: tuple[Clause, ...]
    span: Span = NOWHERE


Clause = Negation | Optional | Binding | Traversal | Filter


def junction_or_membership(traversal: Traversal) -> Filter | None:
    """What `$a and $b`, `$a or $b` and `$a in $b` mean if there is no edge of that name."""
    edge = traversal.edges.only
    plain = traversal.hops is None and traversal.variable is None and not traversal.shortest
    if edge is None or edge.quoted or not plain:
        return None
    left, right, span = traversal.left, traversal.right, traversal.span
    if edge.text == Operator.IN.value:
        return Filter(Comparison(left, Operator.IN, right, span), span)
    if edge.text in ("and", "or"):
        return Filter(Logical(Junction(edge.text), (left, right), span), span)
    return None


class Projection(Syntax, frozen=True):
    expression: Expression
    alias: Name | None = None
    span: Span = NOWHERE


class OrderKey(Syntax, frozen=True):
    """`descending` and `nulls_first` are None when unwritten: the default depends on the key."""

    expression: Expression
    descending: bool | None = None
    nulls_first: bool | None = None
    span: Span = NOWHERE


class Result(Syntax, frozen=True):
    """A `return` block and its tail. The spans reach from a keyword to the end of its part."""

    projections: tuple[Projection, ...]
    distinct: bool = False
    having: tuple[Expression, ...] = ()
    order: tuple[OrderKey, ...] = ()
    offset: int | Variable | None = None
    limit: int | Variable | None = None
    name: Name | None = None
    return_span: Span = NOWHERE
    having_span: Span = NOWHERE
    order_span: Span = NOWHERE
    offset_span: Span = NOWHERE
    limit_span: Span = NOWHERE


class ReadBody(Syntax, frozen=True):
    """`further` are the named results."""

    clauses: tuple[Clause, ...]
    result: Result
    further: tuple[Result, ...] = ()
    match_span: Span = NOWHERE


# -- mutations ----------------------------------------------------------------------------------


class Assignment(Syntax, frozen=True):
    property: Name
    value: Expression
    span: Span = NOWHERE


class Returning(Syntax, frozen=True):
    """`return { … }` of a change."""

    projections: tuple[Projection, ...]
    distinct: bool = False
    span: Span = NOWHERE


class Insert(Syntax, frozen=True):
    """`variable` names the new entity for what follows."""

    type: Name
    assignments: tuple[Assignment, ...]
    variable: Variable | None = None
    returning: Returning | None = None
    span: Span = NOWHERE


class Upsert(Syntax, frozen=True):
    type: Name
    assignments: tuple[Assignment, ...]
    variable: Variable | None = None
    returning: Returning | None = None
    span: Span = NOWHERE


class Update(Syntax, frozen=True):
    type: Name
    assignments: tuple[Assignment, ...]
    condition: Expression
    returning: Returning | None = None
    span: Span = NOWHERE


class Delete(Syntax, frozen=True):
    type: Name
    condition: Expression
    returning: Returning | None = None
    span: Span = NOWHERE


class UpdateMatched(Syntax, frozen=True):
    """`update $x { … }` of what a pattern matched."""

    variable: Variable
    assignments: tuple[Assignment, ...]
    returning: Returning | None = None
    span: Span = NOWHERE


class DeleteMatched(Syntax, frozen=True):
    variables: tuple[Variable, ...]
    returning: Returning | None = None
    span: Span = NOWHERE


Action = Insert | Upsert | UpdateMatched | DeleteMatched


class MatchStatement(Syntax, frozen=True):
    """`match { … }` and the changes for its rows: one, or several in `do { … }`."""

    clauses: tuple[Clause, ...]
    actions: tuple[Action, ...]
    match_span: Span = NOWHERE
    span: Span = NOWHERE


Statement = Insert | Upsert | Update | Delete | MatchStatement


class MutationBody(Syntax, frozen=True):
    statements: tuple[Statement, ...]


# -- files --------------------------------------------------------------------------------------


class Parameter(Syntax, frozen=True):
    variable: Variable
    type: TypeRef
    default: Expression | None = None
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
    anonymous: bool = False
    """A body given without `query name(…) { … }` around it: its parameters are inferred."""
    span: Span = NOWHERE

    @property
    def is_mutation(self) -> bool:
        return isinstance(self.body, MutationBody)

    def note(self, name: str) -> str | None:
        return next((n.text for n in self.notes if n.name.text == name), None)


class QueryFile(Syntax, frozen=True):
    """Queries, or one statement instead of them; settings come before either."""

    queries: tuple[Query, ...] = ()
    settings: tuple[Setting | Reset, ...] = ()
    statement: FileStatement | None = None
