"""The return clause of a read: projection or aggregation, then order and limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.catalog.arrow import arrow_type
from omnigraph.language.query.ast import AggregateFunction
from omnigraph.plan.ir import (
    Aggregated,
    Bm25,
    EntityId,
    Expr,
    Nearest,
    ReadPlan,
    Rrf,
    variables_of,
)
from omnigraph.plan.ir import SortKey as OrderKey
from omnigraph.read.aggregate import (
    GroupKey,
    Groups,
    SortKey,
    aggregate,
    all_differ,
    group_rows,
    has_ties,
    leading_rows,
    sort_keys,
    sorted_rows,
)
from omnigraph.read.expressions import Expressions
from omnigraph.read.frame import Frame, FusedRanks
from omnigraph.read.positions import Positions

MAX_UNPRUNED_ROWS: Final = 1000
"""Rows up to which all scores are computed, without pruning."""


def project_rows(plan: ReadPlan, frame: Frame, expressions: Expressions) -> pa.Table:
    """The result rows of a query, from its binding table."""
    best = _best_fused(plan)
    if best is not None:
        frame = expressions.ranks.best_fused(best, frame, plan.limit)
    else:
        ranks = {
            rank: expressions.ranks.fuse(rank, frame, plan.limit) for rank in plan.fused_ranks()
        }
        frame = replace(frame, fused=ranks)
    if plan.drops_unscored:
        if not plan.is_aggregate:
            frame = _best_rows(plan, frame, expressions)
        scores = expressions.values(plan.order[0].expression, frame)
        frame = frame.where(scores.is_valid().to_numpy(zero_copy_only=False))
    if plan.is_aggregate:
        return _aggregated(plan, frame, expressions)
    return _projected(plan, frame, expressions)


def _best_fused(plan: ReadPlan) -> Rrf | None:
    """The only fused rank of a query, if the query wants just the best rows by it."""
    if len(plan.fused_ranks()) != 1 or not plan.drops_unscored or plan.is_aggregate:
        return None
    first = plan.order[0]
    return first.expression if isinstance(first.expression, Rrf) and first.descending else None


def _best_rows(plan: ReadPlan, frame: Frame, expressions: Expressions) -> Frame:
    """The frame without rows that cannot be among the best."""
    first = plan.order[0]
    if not isinstance(first.expression, Bm25 | Nearest) or not plan.limit:
        return frame
    if first.descending != isinstance(first.expression, Bm25):
        return frame
    if frame.length <= MAX_UNPRUNED_ROWS or plan.limit > frame.length // 4:
        return frame
    return frame.take(expressions.ranks.best_rows(first.expression, frame, plan.limit))


# -- plain rows ---------------------------------------------------------------------------------


def _projected(plan: ReadPlan, frame: Frame, expressions: Expressions) -> pa.Table:
    if plan.order:
        frame = frame.take(_order_rows(plan, frame, expressions))
    if frame.weights is not None:
        frame = _first(frame, plan.limit).expanded()
    if plan.limit is not None and frame.length > plan.limit:
        frame = frame.take(np.arange(plan.limit, dtype=np.int64))
    arrays = [expressions.values(column.expression, frame) for column in plan.columns]
    return _table(plan, arrays)


def _first(frame: Frame, limit: int | None) -> Frame:
    """Enough weighted rows for a limit."""
    if limit is None or frame.weights is None:
        return frame
    enough = int(np.searchsorted(np.cumsum(frame.weights), limit)) + 1
    return frame.take(np.arange(min(enough, frame.length), dtype=np.int64))


def _order_rows(plan: ReadPlan, frame: Frame, expressions: Expressions) -> Positions:
    """The row order: by the keys, then by the ids of all variables in name order."""
    rows = np.arange(frame.length, dtype=np.int64)
    leading = _keys(plan.order[0], frame, expressions)
    if plan.limit is not None and plan.limit < frame.length // 4:
        rows = leading_rows(leading[0], plan.limit)
        frame = frame.take(rows)
    keys = [key[rows] for key in leading]
    for key in plan.order[1:]:
        keys += _keys(key, frame, expressions)
    order = sorted_rows(keys)
    if has_ties(keys, order):
        for variable, _ in plan.variables:
            ids = expressions.values(EntityId(variable), frame)
            keys += sort_keys(ids, descending=False)
        order = sorted_rows(keys)
    return rows[order]


def _keys(key: OrderKey, frame: Frame, expressions: Expressions) -> list[SortKey]:
    """The sort keys of one order key."""
    values = expressions.values(key.expression, frame)
    keys = _value_keys(key, values)
    if isinstance(key.expression, Rrf):
        fused = frame.fused[key.expression]
        keys += [fused.first, fused.second]
    return keys


def _value_keys(key: OrderKey, values: pa.Array) -> list[SortKey]:
    """The sort keys of values; rows without a score come last in both directions."""
    if not key.is_rank or not values.null_count:
        return sort_keys(values, descending=key.descending)
    missing = values.is_null().to_numpy(zero_copy_only=False).astype(np.int64)
    filled = values.fill_null(0.0)
    return [missing, *sort_keys(filled, descending=key.descending)]


# -- groups -------------------------------------------------------------------------------------


def _aggregated(plan: ReadPlan, frame: Frame, expressions: Expressions) -> pa.Table:
    keys = [column.expression for column in plan.columns if not column.is_aggregate]
    groups = _groups(keys, frame, expressions)
    leading = _leading_groups(plan, frame, groups, expressions)
    if leading is not None:
        rows, groups = groups.only(leading)
        frame = frame.take(rows)
    examples = frame if groups.example is None else frame.take(groups.example)
    arrays = [_column(c.expression, frame, examples, groups, expressions) for c in plan.columns]
    if plan.order:
        order = _order_groups(plan, arrays, frame, groups)[: plan.limit]
        arrays = [values.take(pa.array(order)) for values in arrays]
    table = _table(plan, arrays)
    return table if plan.limit is None else table.slice(0, min(plan.limit, table.num_rows))


def _groups(keys: Sequence[Expr], frame: Frame, expressions: Expressions) -> Groups:
    """Group rows. Properties of a node that is itself a key need no key of their own."""
    named = (expressions.named_node(expression, frame) for expression in keys)
    nodes = dict.fromkeys(name for name in named if name is not None)
    found = [GroupKey(frame.columns[name], expressions.node_count(name, frame)) for name in nodes]
    if any(map(all_differ, found)):
        return Groups(None, frame.length, None)
    for expression in dict.fromkeys(keys):
        if variables_of(expression).isdisjoint(nodes):
            found.append(expressions.group_key(expression, frame))
    return group_rows(found, frame.length)


def _leading_groups(
    plan: ReadPlan, frame: Frame, groups: Groups, expressions: Expressions
) -> Positions | None:
    """The groups that can be among the first by the first order key; None for all."""
    if not plan.order or plan.limit is None or plan.limit >= groups.count // 4:
        return None
    first = plan.order[0]
    examples = frame
    if groups.example is not None and not isinstance(first.expression, Aggregated):
        examples = frame.take(groups.example)
    values = _column(first.expression, frame, examples, groups, expressions)
    return leading_rows(_value_keys(first, values)[0], plan.limit)


def _column(
    expression: Expr,
    frame: Frame,
    examples: Frame,
    groups: Groups,
    expressions: Expressions,
) -> pa.Array:
    """The values of an expression, one per group; `examples` has a row of each."""
    if not isinstance(expression, Aggregated):
        return expressions.values(expression, examples)
    argument, function = expression.argument, expression.function
    values: pa.Array | None
    if function is AggregateFunction.COUNT and isinstance(argument, EntityId):
        values = None
    elif argument.type.is_blob:
        values = expressions.presence(argument, frame)
    else:
        values = expressions.values(argument, frame)
    return aggregate(function, values, groups, frame.weights, frame.length)


def _order_groups(
    plan: ReadPlan, arrays: Sequence[pa.Array], frame: Frame, groups: Groups
) -> Positions:
    """By the keys, then by the group keys ascending in projection order."""
    values = dict(zip((column.expression for column in plan.columns), arrays, strict=True))
    keys: list[SortKey] = []
    for key in plan.order:
        keys += _value_keys(key, values[key.expression])
        if isinstance(key.expression, Rrf):
            keys += _best_ranks(frame.fused[key.expression], groups)
    order = sorted_rows(keys)
    if not has_ties(keys, order):
        return order
    for number, column in enumerate(plan.columns):
        if not column.is_aggregate:
            keys += sort_keys(arrays[number], descending=False)
    return sorted_rows(keys)


def _best_ranks(fused: FusedRanks, groups: Groups) -> list[SortKey]:
    """The best ranks among the rows of each group, which break ties between groups."""
    if groups.codes is None:
        return [fused.first, fused.second]
    order = np.lexsort((fused.second, fused.first, groups.codes))
    best = order[np.searchsorted(groups.codes[order], np.arange(groups.count))]
    return [fused.first[best], fused.second[best]]


def _table(plan: ReadPlan, arrays: Sequence[pa.Array]) -> pa.Table:
    columns = []
    for column, values in zip(plan.columns, arrays, strict=True):
        wanted = _result_type(column.expression)
        flat = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        columns.append(flat if flat.type == wanted else flat.cast(wanted))
    return pa.table(columns, names=[column.name for column in plan.columns])


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
