"""Steps of a physical plan: frozen values an executor runs in order on a table of bindings.

A binding table has a column of numbered nodes per variable, and a weight per row: the number of
result rows it stands for. Variables that are not read later are counted, not enumerated.
"""

from __future__ import annotations

from msgspec import Struct

from omnigraph.language.query.ast import AggregateFunction
from omnigraph.plan.ir import Expr, Filter, Member, Prop


class Scan(Struct, frozen=True):
    """Cross product of the rows with all nodes of a type that meet the conditions.

    `enough`, if given, is the number of nodes after which the scan may stop.
    """

    variable: str
    node_type: str
    conditions: tuple[Filter, ...]
    estimate: float
    enough: int | None = None


class Join(Struct, frozen=True):
    """Extend each row by the nodes of a type that meet the conditions and have an equal value.

    `bound` is a property of a bound variable, `property` the one it must equal. With `only_whether`,
    rows that have such a node are kept as they are, and the node is not bound.
    """

    variable: str
    node_type: str
    conditions: tuple[Filter, ...]
    bound: Prop
    property: Prop
    only_whether: bool
    estimate: float


class Hop(Struct, frozen=True):
    """A traversal of `low` to `high` edges, each of any member, to nodes of a type.

    It reaches distinct nodes, unless it has `edges_apart`: then every edge counts, and an edge that joins
    a node with itself counts once whatever the members.
    """

    members: tuple[Member, ...]
    start_type: str
    node_type: str
    low: int = 1
    high: int = 1
    edges_apart: bool = False

    @property
    def edge_types(self) -> tuple[str, ...]:
        """The distinct edge types of the members, in order."""
        return tuple(dict.fromkeys(edge for edge, _ in self.members))

    @property
    def chains(self) -> bool:
        """Whether edges can follow each other."""
        return self.start_type == self.node_type

    @property
    def is_single(self) -> bool:
        """Whether one edge is all that it follows."""
        return self.low <= 1 and (self.high == 1 or not self.chains)

    @property
    def only(self) -> Member | None:
        """The only member; None if there are several."""
        return self.members[0] if len(self.members) == 1 else None


class EdgeRow(Struct, frozen=True):
    """Which edges of a hop count, and the variable to bind them to; None if nothing reads it."""

    variable: str | None
    types: tuple[str, ...]
    conditions: tuple[Filter, ...] = ()


class Follow(Struct, frozen=True):
    """Extend each row by the nodes a hop reaches that meet the conditions.

    With an `edge`, each row is extended by the edges that meet its conditions, and their nodes.
    """

    source: str
    target: str
    hop: Hop
    conditions: tuple[Filter, ...]
    estimate: float
    edge: EdgeRow | None = None


class Connected(Struct, frozen=True):
    """Keep rows whose two nodes are connected by a hop; with an `edge`, one row per edge."""

    source: str
    target: str
    hop: Hop
    estimate: float
    edge: EdgeRow | None = None


class ScanEdges(Struct, frozen=True):
    """Cross product of the rows with all edges of a hop that meet the conditions, and their ends."""

    source: str
    target: str
    hop: Hop
    edge: EdgeRow
    source_conditions: tuple[Filter, ...]
    target_conditions: tuple[Filter, ...]
    estimate: float


class Route(Struct, frozen=True):
    """Extend each row by one shortest path from its source to each node within the bounds.

    `path` is the variable of the path, None if nothing reads it. With `weight`, a property of the
    edges, paths are shortest by its sum. With `joined` both ends are bound. With `backwards` paths
    lead from the target, which the hop reaches, to the source.
    """

    source: str
    target: str
    hop: Hop
    path: str | None
    weight: str | None
    conditions: tuple[Filter, ...]
    joined: bool
    backwards: bool
    estimate: float


class Subpattern(Struct, frozen=True):
    """A tree of the pattern below one variable: the first hop, its node, and further subpatterns."""

    hop: Hop
    variable: str
    conditions: tuple[Filter, ...]
    subpatterns: tuple[Subpattern, ...] = ()
    without: tuple[Subpattern, ...] = ()
    having: tuple[Subpattern, ...] = ()
    edge: EdgeRow | None = None


class Count(Struct, frozen=True):
    """Multiply each row's weight by the number of solutions of a subpattern; none drops the row."""

    source: str
    subpattern: Subpattern
    estimate: float


class Has(Struct, frozen=True):
    """Keep rows whose node has a solution of a subpattern, without counting solutions."""

    source: str
    subpattern: Subpattern
    estimate: float


class Check(Struct, frozen=True):
    """Keep rows for which a comparison is true."""

    filter: Filter
    estimate: float


class Present(Struct, frozen=True):
    """Keep rows in which an optional variable is bound."""

    variable: str
    estimate: float


class Lacks(Struct, frozen=True):
    """Keep rows whose node has no solution of a subpattern: a negation about one variable."""

    source: str
    subpattern: Subpattern
    estimate: float


class Without(Struct, frozen=True):
    """Keep rows for which the inner steps, started with that row, find nothing."""

    outer: tuple[str, ...]
    inner: tuple[Step, ...]
    estimate: float


class With(Struct, frozen=True):
    """Keep rows for which the inner steps, started with that row, find something."""

    outer: tuple[str, ...]
    inner: tuple[Step, ...]
    estimate: float


Introduced = tuple[tuple[str, str | tuple[str, ...]], ...]
"""Variables with their node type or edge types; a path variable has no types."""


class LeftJoin(Struct, frozen=True):
    """Extend each row by what the inner steps find for it, or by nulls if they find nothing."""

    outer: tuple[str, ...]
    inner: tuple[Step, ...]
    introduced: Introduced
    estimate: float


class LeftCount(Struct, frozen=True):
    """As `LeftJoin` of a subpattern whose variables are only counted: weights instead of rows."""

    source: str
    subpattern: Subpattern
    introduced: Introduced
    estimate: float


class Apply(Struct, frozen=True):
    """Make the value of a block known: an aggregate of what it finds for a row.

    It is computed where it is read, for the rows that are left then. `inner` is one subpattern of a
    source if only its solutions are counted. Without a function the value is whether there are any.
    """

    name: str
    outer: tuple[str, ...]
    inner: tuple[Step, ...] | Subpattern
    function: AggregateFunction | None
    argument: Expr | None
    distinct: bool
    estimate: float


Step = (
    Scan
    | Join
    | Follow
    | Connected
    | ScanEdges
    | Route
    | Count
    | Has
    | Check
    | Present
    | Lacks
    | Without
    | With
    | LeftJoin
    | LeftCount
    | Apply
)


class Arrangement(Struct, frozen=True):
    """The steps of a read. `kept` are the variables its rows enumerate in the end.

    `enough`, if given, is the number of rows after which the read may stop. `values` are the blocks
    that `return` and `order` read.
    """

    steps: tuple[Step, ...]
    kept: tuple[str, ...]
    enough: int | None = None
    values: tuple[Step, ...] = ()

    @property
    def all_steps(self) -> tuple[Step, ...]:
        return (*self.steps, *self.values)


def inner_steps(step: Step) -> tuple[Step, ...]:
    """The steps inside a step, which run for its rows."""
    match step:
        case Without() | With() | LeftJoin():
            return step.inner
        case Apply() if not isinstance(step.inner, Subpattern):
            return step.inner
        case _:
            return ()


def subpattern_of(step: Step) -> Subpattern | None:
    """The subpattern that a step counts."""
    match step:
        case Count() | Has() | Lacks() | LeftCount():
            return step.subpattern
        case Apply() if isinstance(step.inner, Subpattern):
            return step.inner
        case _:
            return None


def further_subpatterns(subpattern: Subpattern) -> tuple[Subpattern, ...]:
    """The subpatterns that hang on the node of a subpattern."""
    return (*subpattern.subpatterns, *subpattern.without, *subpattern.having)
