"""Running one read: arrange its pattern, find it, and finish the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from omnigraph.engine.read.budget import QueryBudget
from omnigraph.engine.read.execute import Executor, StepReport
from omnigraph.engine.read.expressions import Expressions
from omnigraph.engine.read.frame import everything
from omnigraph.engine.read.source import GraphSource
from omnigraph.engine.read.tail import finish
from omnigraph.plan.ir import ReadPlan
from omnigraph.plan.physical.arrange import arrange
from omnigraph.plan.physical.estimate import Sizes
from omnigraph.plan.physical.steps import Arrangement


def sizes_of(source: GraphSource) -> Sizes:
    """How many rows each type has, as the snapshot says."""
    entries = source.snapshot.entries.values()
    return Sizes({entry.table_key: entry.row_count for entry in entries}, source.catalog)


def arrange_read(plan: ReadPlan, source: GraphSource) -> Arrangement:
    return arrange(plan, sizes_of(source))


def execute_read(
    plan: ReadPlan,
    parameters: Mapping[str, Any],
    source: GraphSource,
    budget: QueryBudget,
    arrangement: Arrangement | None = None,
    report: Callable[[StepReport], None] | None = None,
) -> pa.Table:
    """The result of a read: one column per projection, in the types of the language."""
    meter = budget.start()
    expressions = Expressions(source, parameters)
    executor = Executor(source, expressions, meter, report)
    steps = (arrangement or arrange_read(plan, source)).steps
    found = executor.run(steps, everything())
    meter.check(found.total() if not plan.is_aggregate and plan.limit is None else 0)
    return finish(plan, found, expressions)
