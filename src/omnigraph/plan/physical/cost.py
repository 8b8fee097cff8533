"""What steps cost when nothing of the graph is in memory: by look-ups, or by reading it as a whole.

The unit is what one edge costs when all edges of a type are read and compressed, a bit less than a
microsecond. Tests: tests/unit/plan/test_cost.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, assert_never

from omnigraph.plan.ir import Constant, Filter, Param, Prop
from omnigraph.plan.physical.estimate import Sizes
from omnigraph.plan.physical.steps import (
    Arrangement,
    Branch,
    Check,
    Connected,
    Count,
    Follow,
    Has,
    Hop,
    Join,
    Lacks,
    Scan,
    Step,
    Without,
)

LOOKUP_COST: Final = 3000.0
ID_COST: Final = 15.0
ROW_COST: Final = 40.0
"""A look-up by an index costs something itself, per value it asks for and per row it finds."""

SCANNED_COST: Final = 0.1
FOUND_COST: Final = 2.0
"""A filtered scan, per row it looks at and per row it finds."""

NODE_COST: Final = 0.5
"""Reading the nodes of a type into memory, per node: their numbers and a column or two."""


@dataclass(slots=True)
class LookupCost:
    """What look-ups are expected to cost, the most nodes one asks for, and the most hops in a row."""

    units: float = 0.0
    frontier: float = 0.0
    hops: int = 1


def lookup_cost(arrangement: Arrangement, sizes: Sizes) -> LookupCost:
    """What it costs to find the rows of an arrangement and one property of each by look-ups."""
    total = LookupCost()
    rows = _pipeline(total, arrangement.steps, sizes, 1.0)
    if arrangement.enough is not None:
        rows = min(rows, arrangement.enough)
    total.units += LOOKUP_COST + ROW_COST * rows
    return total


def _pipeline(total: LookupCost, steps: Iterable[Step], sizes: Sizes, rows: float) -> float:
    """Add the cost of steps run on so many rows; returns how many rows they leave."""
    start = rows
    for step in steps:
        left = start * step.estimate
        match step:
            case Scan():
                _scan(total, step, sizes)
            case Join():
                total.units += LOOKUP_COST + SCANNED_COST * sizes.nodes(step.node_type) + rows
            case Follow():
                _hop(total, step.hop, sizes, rows)
            case Connected():
                _edges(total, step.hop, sizes, rows)
            case Count() | Has() | Lacks():
                _branch(total, step.branch, sizes, rows)
            case Without():
                _pipeline(total, step.inner, sizes, rows)
            case Check():
                pass
            case _:
                assert_never(step)
        rows = left
    return rows


def _scan(total: LookupCost, step: Scan, sizes: Sizes) -> None:
    if any(_is_about_key(condition, step, sizes) for condition in step.conditions):
        total.units += LOOKUP_COST + ID_COST + ROW_COST
        return
    found = sizes.nodes(step.node_type) * sizes.selectivity(step.node_type, step.conditions)
    looked_at = sizes.nodes(step.node_type)
    if step.enough is not None:
        looked_at *= min(step.enough / max(found, 1.0), 1.0)
        found = min(found, step.enough)
    total.units += LOOKUP_COST + SCANNED_COST * looked_at + FOUND_COST * found


def _is_about_key(condition: Filter, step: Scan, sizes: Sizes) -> bool:
    left, right = condition.left, condition.right
    key = sizes.catalog.nodes[step.node_type].key
    return (
        condition.operator.value == "="
        and isinstance(left, Prop)
        and isinstance(right, Constant | Param)
        and key == (left.property,)
    )


def _hop(total: LookupCost, hop: Hop, sizes: Sizes, rows: float) -> None:
    """The edges of each step of a hop and the nodes they lead to."""
    total.hops = max(total.hops, hop.high)
    degree = sizes.degree(hop)
    last = hop.high if sizes.catalog.edges[hop.edge].is_self_typed else 1
    frontier = rows
    for _ in range(min(last, 6)):
        _edges(total, hop, sizes, frontier)
        frontier = min(frontier * degree, sizes.nodes(hop.node_type))
        total.units += LOOKUP_COST + (ID_COST + ROW_COST) * frontier


def _edges(total: LookupCost, hop: Hop, sizes: Sizes, frontier: float) -> None:
    frontier = min(frontier, sizes.nodes(sizes.start_type(hop)))
    total.frontier = max(total.frontier, frontier)
    total.units += LOOKUP_COST + (ID_COST + ROW_COST * sizes.degree(hop)) * frontier


def _branch(total: LookupCost, branch: Branch, sizes: Sizes, rows: float) -> None:
    _hop(total, branch.hop, sizes, rows)
    reached = min(rows * sizes.fan_out(branch.hop), sizes.nodes(branch.hop.node_type))
    if branch.conditions:
        total.units += LOOKUP_COST + ROW_COST * reached
    for further in (*branch.branches, *branch.without):
        _branch(total, further, sizes, reached)


def hops_of(steps: Iterable[Step]) -> Iterator[Hop]:
    """Every hop that steps take, those of branches and negations too."""
    for step in steps:
        match step:
            case Follow() | Connected():
                yield step.hop
            case Count() | Has() | Lacks():
                yield from _branch_hops(step.branch)
            case Without():
                yield from hops_of(step.inner)
            case Scan() | Join() | Check():
                pass
            case _:
                assert_never(step)


def _branch_hops(branch: Branch) -> Iterator[Hop]:
    yield branch.hop
    for further in (*branch.branches, *branch.without):
        yield from _branch_hops(further)


def node_types(steps: Iterable[Step], sizes: Sizes) -> frozenset[str]:
    """The node types steps look at."""
    found: set[str] = set()
    for step in steps:
        match step:
            case Scan() | Join():
                found.add(step.node_type)
            case Without():
                found |= node_types(step.inner, sizes)
            case _:
                pass
    for hop in hops_of(steps):
        edge = sizes.catalog.edges[hop.edge]
        found |= {edge.from_type, edge.to_type}
    return frozenset(found)
