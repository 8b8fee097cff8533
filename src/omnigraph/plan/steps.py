"""Steps of a physical plan: frozen values an executor runs in order on a table of bindings.

A binding table has a column of numbered nodes per variable, and a weight per row: the number of
result rows it stands for. Variables that are not read later are counted, not enumerated.
"""

from __future__ import annotations

from msgspec import Struct

from omnigraph.plan.ir import Direction, Filter, Prop


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
    """A traversal of `low` to `high` edges of one type and direction, to nodes of a type."""

    edge: str
    direction: Direction
    low: int
    high: int
    node_type: str


class Follow(Struct, frozen=True):
    """Extend each row by the nodes a hop reaches that meet the conditions."""

    source: str
    target: str
    hop: Hop
    conditions: tuple[Filter, ...]
    estimate: float


class Connected(Struct, frozen=True):
    """Keep rows whose two nodes are connected by a hop."""

    source: str
    target: str
    hop: Hop
    estimate: float


class Subpattern(Struct, frozen=True):
    """A tree of the pattern below one variable: the first hop, its node, and further subpatterns."""

    hop: Hop
    variable: str
    conditions: tuple[Filter, ...]
    subpatterns: tuple[Subpattern, ...] = ()
    without: tuple[Subpattern, ...] = ()


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


Step = Scan | Join | Follow | Connected | Count | Has | Check | Lacks | Without


class Arrangement(Struct, frozen=True):
    """The steps of a read. `kept` are the variables its rows enumerate in the end.

    `enough`, if given, is the number of rows after which the read may stop.
    """

    steps: tuple[Step, ...]
    kept: tuple[str, ...]
    enough: int | None = None
