"""Running one read: choose the way to the data, find the pattern, and finish the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from omnigraph.engine.read.access import Ledger, TraversalMode, TraversalSettings
from omnigraph.engine.read.budget import Meter
from omnigraph.engine.read.execute import Executor, StepReport
from omnigraph.engine.read.expressions import Expressions
from omnigraph.engine.read.source import GraphSource
from omnigraph.engine.read.tail import finish
from omnigraph.plan.cost import (
    LOOKUP_COST,
    NODE_COST,
    SCANNED_COST,
    Sizes,
    hops_of,
    lookup_cost,
    node_types,
)
from omnigraph.plan.ir import (
    Aggregated,
    Constant,
    EntityId,
    Expr,
    Param,
    Pattern,
    Prop,
    ReadPlan,
)
from omnigraph.plan.steps import Arrangement

_SMALL: Final = 30_000.0
"""What reading may cost without a thought about look-ups: some twenty milliseconds."""


def execute_read(
    plan: ReadPlan,
    arrangement: Arrangement,
    parameters: Mapping[str, Any],
    source: GraphSource,
    meter: Meter,
    report: Callable[[StepReport], None] | None = None,
) -> pa.Table:
    """The result of a read: one column per projection, in the types of the language."""
    expressions = Expressions(source, parameters)
    executor = Executor(source, expressions, meter, report)
    found = executor.run_for(arrangement.steps, arrangement.enough)
    meter.check(found.total() if not plan.is_aggregate and plan.limit is None else 0)
    return finish(plan, found, expressions)


def lookups_may_cost(
    plan: ReadPlan,
    arrangement: Arrangement,
    source: GraphSource,
    sizes: Sizes,
    settings: TraversalSettings,
    ledger: Ledger,
) -> float | None:
    """The most that looking up everything may cost; None if memory is expected to be quicker."""
    if settings.mode is TraversalMode.CSR or not _is_plain(plan):
        return None
    if settings.mode is TraversalMode.INDEXED:
        return float("inf")
    in_memory = _cost_in_memory(arrangement, source, sizes, ledger)
    if in_memory < _SMALL:
        return None
    looked_up = lookup_cost(arrangement, sizes)
    if looked_up.frontier > settings.max_frontier or looked_up.hops > settings.max_hops:
        return None
    cost = looked_up.units
    if cost < in_memory:
        cost += SCANNED_COST * sum(_scanned_rows(arrangement, source, sizes))
    return in_memory if cost < in_memory else None


def _cost_in_memory(
    arrangement: Arrangement, source: GraphSource, sizes: Sizes, ledger: Ledger
) -> float:
    """What it costs to read what an arrangement needs and nobody has read yet."""
    cost = 0.0
    for name in node_types(arrangement.steps, sizes):
        if not source.has_nodes(name):
            path = source.table_path(source.catalog.nodes[name])
            cost += ledger.left(path, 2 * LOOKUP_COST + NODE_COST * sizes.nodes(name))
    if cost == 0:
        return cost
    for edge, direction in {(hop.edge, hop.direction) for hop in hops_of(arrangement.steps)}:
        if not source.has_edges(edge, direction):
            path = source.table_path(source.catalog.edges[edge])
            cost += ledger.left(path, LOOKUP_COST + sizes.edges(edge))
    return cost


def _scanned_rows(arrangement: Arrangement, source: GraphSource, sizes: Sizes) -> Iterator[float]:
    """Rows that look-ups scan because no index covers them."""
    for hop in hops_of(arrangement.steps):
        edge = source.catalog.edges[hop.edge]
        column = "src" if sizes.start_type(hop) == edge.from_type else "dst"
        yield source.scanned_rows(edge, column)
        yield source.scanned_rows(source.catalog.nodes[hop.node_type], "id")


def wanted_properties(plan: ReadPlan) -> dict[str, tuple[str, ...]]:
    """The properties of each node type a read looks at and that are small."""
    types = dict(plan.variables)
    wanted: dict[str, dict[str, None]] = {}
    for expression in _expressions(plan):
        if isinstance(expression, Aggregated):
            expression = expression.argument
        if not isinstance(expression, Prop) or expression.variable not in types:
            continue
        kind = expression.type
        if not (kind.is_vector or kind.is_blob or kind.list):
            wanted.setdefault(types[expression.variable], {})[expression.property] = None
    return {node_type: tuple(names) for node_type, names in wanted.items()}


def _is_plain(plan: ReadPlan) -> bool:
    """Whether a read neither searches nor ranks."""
    simple = (Prop, EntityId, Param, Constant)
    return all(
        isinstance(e.argument if isinstance(e, Aggregated) else e, simple)
        for e in (*_expressions(plan), *_compared(plan.pattern))
    )


def _expressions(plan: ReadPlan) -> Iterator[Expr]:
    """What the end of a read evaluates."""
    yield from (column.expression for column in plan.columns)
    yield from (key.expression for key in plan.order)


def _compared(pattern: Pattern) -> Iterator[Expr]:
    """What the filters of a pattern evaluate, those of its negations too."""
    for condition in pattern.own_filters():
        yield from (condition.left, condition.right)
    for negation in pattern.negations:
        yield from _compared(negation.inner)
