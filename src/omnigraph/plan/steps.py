"""Steps of a physical plan: frozen values an executor runs in order on a table of bindings.

A binding table has a column per variable, of numbered nodes, and a weight per row: how many rows of
the full result it stands for. Variables nobody looks at again are counted, not spelled out.
"""

from __future__ import annotations

from msgspec import Struct

from omnigraph.plan.ir import Direction, Filter, Prop


class Scan(Struct, frozen=True):
    """All nodes of a type that meet the conditions; a cross product with rows that exist.

    `enough`, if given, is how many of them will do.
    """

    variable: str
    node_type: str
    conditions: tuple[Filter, ...]
    estimate: float
    enough: int | None = None


class Join(Struct, frozen=True):
    """Extend each row by the nodes of a type that meet the conditions and have an equal value.

    `bound` is a property of a variable that is there already, `property` the one it must equal. With
    `only_whether`, rows that have such a node are kept as they are, and the node is not bound.
    """

    variable: str
    node_type: str
    conditions: tuple[Filter, ...]
    bound: Prop
    property: Prop
    only_whether: bool
    estimate: float


class Hop(Struct, frozen=True):
    """One way along an edge type: between `low` and `high` edges, to nodes of a type."""

    edge: str
    direction: Direction
    low: int
    high: int
    node_type: str


class Follow(Struct, frozen=True):
    """Extend each row by the nodes a hop leads to that meet the conditions."""

    source: str
    target: str
    hop: Hop
    conditions: tuple[Filter, ...]
    estimate: float


class Connected(Struct, frozen=True):
    """Keep rows whose two nodes are joined by a hop."""

    source: str
    target: str
    hop: Hop
    estimate: float


class Branch(Struct, frozen=True):
    """A part of the pattern that hangs on one variable: the hop to it and what hangs on that."""

    hop: Hop
    variable: str
    conditions: tuple[Filter, ...]
    branches: tuple[Branch, ...] = ()
    without: tuple[Branch, ...] = ()


class Count(Struct, frozen=True):
    """Multiply each row's weight by the number of solutions of a branch; none drops the row."""

    source: str
    branch: Branch
    estimate: float


class Has(Struct, frozen=True):
    """Keep rows whose node has a solution of a branch, where nobody counts how many."""

    source: str
    branch: Branch
    estimate: float


class Check(Struct, frozen=True):
    """Keep rows for which a comparison is true."""

    filter: Filter
    estimate: float


class Lacks(Struct, frozen=True):
    """Keep rows whose node has no solution of a branch: a negation about one variable."""

    source: str
    branch: Branch
    estimate: float


class Without(Struct, frozen=True):
    """Keep rows for which the inner steps, started with that row, find nothing."""

    outer: tuple[str, ...]
    inner: tuple[Step, ...]
    estimate: float


Step = Scan | Join | Follow | Connected | Count | Has | Check | Lacks | Without


class Arrangement(Struct, frozen=True):
    """The steps of a read. `kept` are the variables its rows spell out in the end.

    `enough`, if given, is how many rows will do, whichever they are.
    """

    steps: tuple[Step, ...]
    kept: tuple[str, ...]
    enough: int | None = None
