"""The end of a read: projection or aggregation, then order, then limit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from omnigraph.catalog.arrow import arrow_type
from omnigraph.engine.read.expressions import Expressions
from omnigraph.engine.read.frame import Frame
from omnigraph.engine.read.grouping import Codes, Groups, aggregate, codes_of, group_rows
from omnigraph.engine.read.numbering import Positions
from omnigraph.engine.read.ordering import (
    SortKey,
    has_ties,
    leading_rows,
    sort_keys,
    sorted_rows,
)
from omnigraph.language.query.ast import AggregateFunction
from omnigraph.plan.ir import Aggregated, EntityId, Expr, ReadPlan


def finish(plan: ReadPlan, frame: Frame, expressions: Expressions) -> pa.Table:
    """The result rows of a query whose pattern has been found."""
    if plan.is_aggregate:
        return _aggregated(plan, frame, expressions)
    return _projected(plan, frame, expressions)


# -- plain rows ---------------------------------------------------------------------------------


def _projected(plan: ReadPlan, frame: Frame, expressions: Expressions) -> pa.Table:
    if plan.order:
        frame = frame.take(_order_rows(plan, frame, expressions))
    if frame.weights is not None:
        frame = _first(frame, plan.limit).spelled_out()
    if plan.limit is not None and frame.length > plan.limit:
        frame = frame.take(np.arange(plan.limit, dtype=np.int64))
    arrays = [expressions.values(column.expression, frame) for column in plan.columns]
    return _table(plan, arrays)


def _first(frame: Frame, limit: int | None) -> Frame:
    """Enough rows for a limit, before they are spelled out."""
    if limit is None or frame.weights is None:
        return frame
    enough = int(np.searchsorted(np.cumsum(frame.weights), limit)) + 1
    return frame.take(np.arange(min(enough, frame.length), dtype=np.int64))


def _order_rows(plan: ReadPlan, frame: Frame, expressions: Expressions) -> Positions:
    """The order of rows: by the keys, then by the ids of all variables in the order of their names."""
    rows = np.arange(frame.length, dtype=np.int64)
    first = plan.order[0]
    leading = sort_keys(expressions.values(first.expression, frame), descending=first.descending)
    if plan.limit is not None and plan.limit < frame.length // 4:
        rows = leading_rows(leading[0], plan.limit)
        frame = frame.take(rows)
    keys = [key[rows] for key in leading]
    for key in plan.order[1:]:
        values = expressions.values(key.expression, frame)
        keys += sort_keys(values, descending=key.descending)
    order = sorted_rows(keys)
    if has_ties(keys, order):
        for variable, _ in plan.variables:
            ids = expressions.values(EntityId(variable), frame)
            keys += sort_keys(ids, descending=False)
        order = sorted_rows(keys)
    return rows[order]


# -- groups -------------------------------------------------------------------------------------


def _aggregated(plan: ReadPlan, frame: Frame, expressions: Expressions) -> pa.Table:
    keys = [c.expression for c in plan.columns if not c.is_aggregate]
    found: dict[int, pa.Array] = {}
    codes: list[Codes] = []
    for expression in keys:
        if isinstance(expression, EntityId):
            codes.append(frame.columns[expression.variable])
        else:
            codes.append(codes_of(expressions.values(expression, frame)))
    groups = group_rows(codes, frame.length)
    examples = frame.take(groups.example) if keys else frame
    for number, column in enumerate(plan.columns):
        expression = column.expression
        if isinstance(expression, Aggregated):
            found[number] = _aggregate(expression, frame, groups, expressions)
        else:
            found[number] = expressions.values(expression, examples)
    arrays = [found[number] for number in range(len(plan.columns))]
    table = _table(plan, arrays)
    if plan.order:
        table = table.take(pa.array(_order_groups(plan, arrays)))
    return table if plan.limit is None else table.slice(0, min(plan.limit, table.num_rows))


def _aggregate(
    expression: Aggregated, frame: Frame, groups: Groups, expressions: Expressions
) -> pa.Array:
    argument = expression.argument
    counts_rows = isinstance(argument, EntityId)
    if expression.function is AggregateFunction.COUNT and counts_rows:
        return aggregate(expression.function, None, groups, frame.weights)
    if argument.type.is_blob:
        return aggregate(
            expression.function, expressions.presence(argument, frame), groups, frame.weights
        )
    values = expressions.values(argument, frame)
    return aggregate(expression.function, values, groups, frame.weights)


def _order_groups(plan: ReadPlan, arrays: Sequence[pa.Array]) -> Positions:
    """By the keys, then by the group keys ascending in projection order."""
    place: dict[Expr, int] = {}
    for number, column in enumerate(plan.columns):
        place.setdefault(column.expression, number)
    keys: list[SortKey] = []
    for key in plan.order:
        keys += sort_keys(arrays[place[key.expression]], descending=key.descending)
    for number, column in enumerate(plan.columns):
        if not column.is_aggregate:
            keys += sort_keys(arrays[number], descending=False)
    return sorted_rows(keys)


def _table(plan: ReadPlan, arrays: Sequence[pa.Array]) -> pa.Table:
    columns = []
    for column, values in zip(plan.columns, arrays, strict=True):
        columns.append(_flat(values).cast(_result_type(column.expression)))
    return pa.table(columns, names=[column.name for column in plan.columns])


def _flat(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _result_type(expression: Expr) -> pa.DataType:
    if isinstance(expression, Aggregated):
        match expression.function:
            case AggregateFunction.COUNT:
                return pa.int64()
            case AggregateFunction.SUM | AggregateFunction.AVG:
                return pa.float64()
            case _:
                return arrow_type(expression.argument.type)
    return pa.utf8() if expression.type.is_blob else arrow_type(expression.type)
