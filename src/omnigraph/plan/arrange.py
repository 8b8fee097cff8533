"""The physical planner: from a pattern to the order of steps that find its rows.

It starts with few nodes and follows the edges that multiply rows least. A part of the pattern that
is connected to the rest by one edge, and whose nodes are not read later, is a subpattern: it is counted
on degrees instead of being enumerated. Tests: tests/unit/plan/test_arrange.py.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from omnigraph.language.query.ast import AggregateFunction
from omnigraph.plan.cost import Sizes
from omnigraph.plan.ir import (
    Aggregated,
    EntityId,
    Expr,
    Param,
    ReadPlan,
    has_aggregate,
    parts_of,
    variables_of,
    walk,
)
from omnigraph.plan.pattern_steps import Arranger
from omnigraph.plan.steps import Arrangement, Scan


def arrange(plan: ReadPlan, sizes: Sizes, check: Callable[[], None] = lambda: None) -> Arrangement:
    """Choose the steps that find all rows of a read, in time proportional to the pattern.

    `check` is called between decisions and may raise.
    """
    arranger = Arranger(sizes, check)
    wanted, counted = _wanted(plan), not _ignores_repetition(plan)
    steps, kept, rows = arranger.steps(plan.pattern, wanted=wanted, outer={}, counted=counted)
    # A fused rank depends on all rows, also on those that a limit cuts off.
    needs_all = plan.order or plan.is_grouped or plan.fused_ranks or plan.having or plan.results
    # The value of a parameter is not known yet.
    enough = None if needs_all or isinstance(plan.offset, Param) else plan.stop
    if enough is not None and len(steps) == 1 and isinstance(steps[0], Scan):
        estimate = min(steps[0].estimate, float(enough))
        steps = [replace(steps[0], enough=enough, estimate=estimate)]
    optional = frozenset(plan.pattern.optional_types)
    shown = [e for result in plan.all_results for e in result.expressions()]
    values = arranger.values(shown, dict(plan.pattern.introduced), optional, rows)
    return Arrangement(tuple(steps), kept, enough, tuple(values))


def _ignores_repetition(plan: ReadPlan) -> bool:
    """Whether no result depends on how often each row is found."""
    return all(_ignores_in(result) for result in plan.all_results)


def _ignores_in(plan: ReadPlan) -> bool:
    extremes = (AggregateFunction.MIN, AggregateFunction.MAX)
    parts = (part for e in plan.expressions() for part in walk(e))
    aggregates = [part for part in parts if isinstance(part, Aggregated)]
    return plan.is_grouped and all(a.function in extremes or a.distinct for a in aggregates)


def _wanted(plan: ReadPlan) -> frozenset[str]:
    """Variables that the results read."""
    return frozenset[str]().union(*(_wanted_in(result) for result in plan.all_results))


def _wanted_in(plan: ReadPlan) -> frozenset[str]:
    wanted = frozenset[str]().union(*(_read_by(e) for e in plan.expressions()))
    collects = any(
        isinstance(part, Aggregated) and part.function is AggregateFunction.COLLECT
        for expression in plan.expressions()
        for part in walk(expression)
    )
    # Equal keys, and the items of a list, are ordered by the ids of all variables.
    if collects or (plan.order and not plan.is_grouped):
        return wanted | {name for name, _ in plan.variables}
    return wanted


def _read_by(expression: Expr) -> frozenset[str]:
    """The variables an expression reads; counting rows reads none."""
    if isinstance(expression, Aggregated):
        is_count = expression.function is AggregateFunction.COUNT and not expression.distinct
        if is_count and isinstance(expression.argument, EntityId):
            return frozenset()
    if has_aggregate(expression):
        return frozenset[str]().union(*map(_read_by, parts_of(expression)))
    return variables_of(expression)
