"""The results of a read: ranks, groups, `having`, projection, distinct rows, order, offset and limit.

The values of columns are fetched last, for the rows that are returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.catalog.arrow import arrow_type
from omnigraph.language.query.ast import AggregateFunction
from omnigraph.plan.ir import (
    ID_TYPE,
    Aggregated,
    Bm25,
    EntityId,
    Expr,
    Filter,
    Nearest,
    ReadPlan,
    Rrf,
    SystemField,
    has_aggregate,
    variables_of,
    walk,
)
from omnigraph.plan.ir import SortKey as OrderKey
from omnigraph.read.aggregate import (
    GroupKey,
    Groups,
    SortKey,
    aggregate,
    all_differ,
    collect,
    distinct_rows,
    group_rows,
    has_ties,
    key_of,
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
    """The rows of one result, from the binding table of its query. Its bounds are numbers."""
    if plan.drops_unscored and not has_aggregate(plan.order[0].expression):
        bound = expressions.bound_rows(plan.order[0].expression, frame)
        frame = frame if bound is None else frame.where(bound)
    best = _best_fused(plan)
    if best is not None:
        frame = expressions.ranks.best_fused(best, frame, plan.stop)
    else:
        ranks = {rank: expressions.fused(rank, frame, plan.stop) for rank in plan.fused_ranks}
        frame = replace(frame, fused=ranks)
    if not plan.is_aggregate:
        frame = _kept(plan, frame, expressions)
    if plan.drops_unscored:
        if not plan.is_grouped and not plan.having:
            frame = _best_rows(plan, frame, expressions)
        scores = expressions.values(plan.order[0].expression, frame)
        frame = frame.where(scores.is_valid().to_numpy(zero_copy_only=False))
    if plan.is_grouped:
        return _grouped(plan, frame, expressions)
    return _projected(plan, frame, expressions)


def _kept(plan: ReadPlan, frame: Frame, expressions: Expressions) -> Frame:
    """The rows, or groups, for which all conditions of `having` are true."""
    for condition in plan.having:
        frame = frame.where(expressions.holds(Filter(condition), frame))
    return frame


def _best_fused(plan: ReadPlan) -> Rrf | None:
    """The only fused rank of a query, if the query wants just the best rows by it."""
    if len(plan.fused_ranks) != 1 or not plan.drops_unscored or plan.is_grouped or plan.having:
        return None
    first = plan.order[0]
    return first.expression if isinstance(first.expression, Rrf) and first.descending else None


def _best_rows(plan: ReadPlan, frame: Frame, expressions: Expressions) -> Frame:
    """The frame without rows that cannot be among the best."""
    first, stop = plan.order[0], plan.stop
    if not isinstance(first.expression, Bm25 | Nearest) or not stop:
        return frame
    if first.descending != isinstance(first.expression, Bm25):
        return frame
    if frame.length <= MAX_UNPRUNED_ROWS or stop > frame.length // 4:
        return frame
    return frame.take(expressions.ranks.best_rows(first.expression, frame, stop))


# -- plain rows ---------------------------------------------------------------------------------


def _projected(plan: ReadPlan, frame: Frame, expressions: Expressions) -> pa.Table:
    if plan.order:
        frame = frame.take(_order_rows(plan, frame, expressions))
    if frame.weights is not None:
        frame = _first(frame, plan.stop).expanded()
    frame = _cut(plan, frame)
    read = [column.expression for column in plan.columns]
    frame = expressions.read_together(read, frame)
    return _table(plan, [expressions.values(expression, frame) for expression in read])


def _cut(plan: ReadPlan, frame: Frame) -> Frame:
    """The rows between offset and limit."""
    stop = frame.length if plan.stop is None else min(plan.stop, frame.length)
    if plan.start == 0 and stop == frame.length:
        return frame
    return frame.take(np.arange(min(plan.start, stop), stop, dtype=np.int64))


def _first(frame: Frame, limit: int | None) -> Frame:
    """Enough weighted rows for a limit."""
    if limit is None or frame.weights is None:
        return frame
    enough = int(np.searchsorted(np.cumsum(frame.weights), limit)) + 1
    return frame.take(np.arange(min(enough, frame.length), dtype=np.int64))


def _identities(plan: ReadPlan) -> list[Expr]:
    """What tells rows apart: the ids of all variables, of edges of several types their type first."""
    found: list[Expr] = []
    for variable, kind in plan.variables:
        if not isinstance(kind, str) and len(kind) > 1:
            found.append(SystemField(variable, "type", ID_TYPE))
        found.append(EntityId(variable))
    return found


def _order_rows(plan: ReadPlan, frame: Frame, expressions: Expressions) -> Positions:
    """The row order: by the keys, then by the ids of all variables in name order."""
    return _order(plan, frame, expressions, _identities(plan))


def _order(
    plan: ReadPlan, frame: Frame, expressions: Expressions, ties: Sequence[Expr]
) -> Positions:
    """The order by the keys, and by other values ascending where all keys are equal."""
    rows = np.arange(frame.length, dtype=np.int64)
    leading = _keys(plan.order[0], frame, expressions)
    if plan.stop is not None and plan.stop < frame.length // 4:
        rows = leading_rows(leading[0], plan.stop)
        frame = frame.take(rows)
    keys = [key[rows] for key in leading]
    for key in plan.order[1:]:
        keys += _keys(key, frame, expressions)
    order = sorted_rows(keys)
    if has_ties(keys, order):
        for expression in ties:
            keys += sort_keys(expressions.values(expression, frame), descending=False)
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
    """The sort keys of values. Unless something else is written, rows without a score come last."""
    nulls_first = False if key.nulls_first is None and key.is_rank else key.nulls_first
    if nulls_first is None or not values.null_count:
        return sort_keys(values, descending=key.descending)
    missing = values.is_null().to_numpy(zero_copy_only=False).astype(np.int64)
    ranks = sort_keys(values, descending=key.descending)[-1]
    return [1 - missing if nulls_first else missing, ranks]


# -- groups -------------------------------------------------------------------------------------


def _grouped(plan: ReadPlan, frame: Frame, expressions: Expressions) -> pa.Table:
    """Rows that stand for groups: with aggregates, or each distinct row once."""
    keys = [column.expression for column in plan.columns if not column.is_aggregate]
    groups = _groups(keys, frame, expressions)
    if not plan.having and not (plan.distinct and plan.is_aggregate):
        leading = _leading_groups(plan, frame, groups, expressions)
        if leading is not None:
            rows, groups = groups.only(leading)
            frame = frame.take(rows)
    group = _group_frame(plan, frame, groups, expressions)
    if plan.is_aggregate:
        group = _kept(plan, group, expressions)
    ties = keys
    if plan.distinct and plan.is_aggregate:
        ties = [column.expression for column in plan.columns]
        same = group_rows([key_of(expressions.values(e, group)) for e in ties], group.length)
        if same.example is not None:
            group = group.take(np.sort(same.example))
    if plan.order:
        group = group.take(_order(plan, group, expressions, ties))
    group = _cut(plan, group)
    return _table(plan, [expressions.values(column.expression, group) for column in plan.columns])


def _group_frame(plan: ReadPlan, frame: Frame, groups: Groups, expressions: Expressions) -> Frame:
    """One row per group: the first of its rows, with the aggregates of all of them."""
    parts = (part for expression in plan.expressions() for part in walk(expression))
    aggregates = dict.fromkeys(part for part in parts if isinstance(part, Aggregated))
    given: dict[Expr, pa.Array] = {
        a: _aggregate(a, plan, frame, groups, expressions) for a in aggregates
    }
    first = frame if groups.example is None else frame.take(groups.example)
    fused = {
        rank: FusedRanks(first.fused[rank].scores, *_best_ranks(ranks, groups))
        for rank, ranks in frame.fused.items()
    }
    # A group without rows has no first row, and nothing but aggregates and constants to show.
    columns = first.columns if first.length == groups.count else {}
    return Frame(
        groups.count, columns, first.types, None, fused, optional=first.optional, given=given
    )


def _groups(keys: Sequence[Expr], frame: Frame, expressions: Expressions) -> Groups:
    """Group rows. Properties of a node that is itself a key need no key of their own."""
    named = (expressions.named_node(expression, frame) for expression in keys)
    nodes = dict.fromkeys(name for name in named if name is not None)
    found = [GroupKey(frame.columns[name], expressions.node_count(name, frame)) for name in nodes]
    if any(map(all_differ, found)):
        return Groups(None, frame.length, None)
    for expression in dict.fromkeys(keys):
        read = variables_of(expression)
        # A constant is the same in all groups, also in the only one of no rows.
        if read and read.isdisjoint(nodes):
            found.append(expressions.group_key(expression, frame))
    if keys and not found:
        found.append(GroupKey(np.zeros(frame.length, np.int64), 1))
    return group_rows(found, frame.length)


def _leading_groups(
    plan: ReadPlan, frame: Frame, groups: Groups, expressions: Expressions
) -> Positions | None:
    """The groups that can be among the first by the first order key; None for all."""
    if not plan.order or plan.stop is None or plan.stop >= groups.count // 4:
        return None
    first = plan.order[0]
    if isinstance(first.expression, Aggregated):
        values = _aggregate(first.expression, plan, frame, groups, expressions)
    elif has_aggregate(first.expression):
        return None
    else:
        examples = frame if groups.example is None else frame.take(groups.example)
        values = expressions.values(first.expression, examples)
    return leading_rows(_value_keys(first, values)[0], plan.stop)


def _aggregate(
    wanted: Aggregated, plan: ReadPlan, frame: Frame, groups: Groups, expressions: Expressions
) -> pa.Array:
    """An aggregate, one value per group."""
    argument, function = wanted.argument, wanted.function
    values: pa.Array | None
    if function is AggregateFunction.COLLECT:
        return _collected(wanted, plan, frame, groups, expressions)
    counts_rows = function is AggregateFunction.COUNT and not wanted.distinct
    if counts_rows and isinstance(argument, EntityId):
        is_optional = argument.variable in frame.optional
        values = expressions.presence(argument, frame) if is_optional else None
    elif argument.type.is_blob:
        values = expressions.presence(argument, frame)
    else:
        values = expressions.values(argument, frame)
    weights = frame.weights
    if wanted.distinct and values is not None:
        rows, groups = distinct_rows(values, groups)
        values, weights = values.take(pa.array(rows)), None
        return aggregate(function, values, groups, weights, len(rows))
    return aggregate(function, values, groups, weights, frame.length)


def _collected(
    wanted: Aggregated, plan: ReadPlan, frame: Frame, groups: Groups, expressions: Expressions
) -> pa.Array:
    """The values of each group as a list, in the order of the ids of all variables."""
    keys: list[SortKey] = []
    for identity in _identities(plan):
        keys += sort_keys(expressions.values(identity, frame), descending=False)
    order = sorted_rows(keys) if keys else np.arange(frame.length, dtype=np.int64)
    values = expressions.values(wanted.argument, frame)
    codes = np.arange(frame.length, dtype=np.int64) if groups.codes is None else groups.codes
    if wanted.distinct:
        placed = Groups(codes[order], groups.count, None)
        rows, _ = distinct_rows(values.take(pa.array(order)), placed)
        order = order[np.sort(rows)]
    elif frame.weights is not None:
        order = np.repeat(order, frame.weights[order])
    return collect(values, codes, groups.count, order)


def _best_ranks(fused: FusedRanks, groups: Groups) -> tuple[SortKey, SortKey]:
    """The best ranks among the rows of each group, which break ties between groups."""
    if groups.codes is None:
        return fused.first, fused.second
    order = np.lexsort((fused.second, fused.first, groups.codes))
    best = order[np.searchsorted(groups.codes[order], np.arange(groups.count))]
    return fused.first[best], fused.second[best]


def _table(plan: ReadPlan, arrays: Sequence[pa.Array]) -> pa.Table:
    columns = []
    for column, values in zip(plan.columns, arrays, strict=True):
        kind = column.expression.type
        wanted = pa.utf8() if kind.is_blob else arrow_type(kind)
        flat = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        columns.append(flat if flat.type == wanted else flat.cast(wanted))
    return pa.table(columns, names=[column.name for column in plan.columns])
