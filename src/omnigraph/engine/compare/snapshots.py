"""Comparing two snapshots: in this process, or as Spark tasks when much may differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from omnigraph.catalog.model import NodeType
from omnigraph.engine.compare.changes import Op, TableChanges
from omnigraph.engine.compare.comparison import ComparedTable, Comparison
from omnigraph.engine.compare.diff import ChangeFilter, Changes
from omnigraph.engine.compare.sight import Turned
from omnigraph.progress import SILENT, Progress
from omnigraph.spark.choice import INLINE, EngineChoice, compares_on_spark, session_of


def compare_snapshots(
    comparison: Comparison,
    wanted: ChangeFilter,
    engine: EngineChoice = INLINE,
    progress: Progress = SILENT,
) -> Changes:
    """What leads from one snapshot to the other, as far as it is wanted and seen."""
    first, then = _in_order(comparison, wanted)
    found = _compare(comparison, first, engine, progress)
    if comparison.view.rows:
        comparison = replace(comparison, turned=_turned(found))
    found += _compare(comparison, then, engine, progress)
    chosen = [wanted.select(table) for table in found if wanted.wants(table.declared)]
    told = (table for table in chosen if len(table))
    ordered = sorted(told, key=lambda table: table.declared.table_key)
    return Changes(tuple(ordered), comparison.after.version)


def _in_order(
    comparison: Comparison, wanted: ChangeFilter
) -> tuple[list[ComparedTable], list[ComparedTable]]:
    """The tables to compare. Nodes come first where the sight of them decides about edges."""
    is_limited = comparison.view.rows
    first, then = [], []
    for table in comparison.all_tables():
        is_node = isinstance(table.shown, NodeType)
        if is_limited and is_node and (wanted.wants(table.shown) or table.shown.name in is_limited):
            first.append(table)
        elif wanted.wants(table.shown):
            then.append(table)
    return first, then


def _turned(found: Sequence[TableChanges]) -> Turned:
    """The nodes that are seen in one of the snapshots only."""
    return {
        table.declared.name: table.ids.filter(
            pa.array(table.mask(Op.INSERT) | table.mask(Op.DELETE))
        )
        for table in found
    }


def _compare(
    comparison: Comparison,
    tables: Sequence[ComparedTable],
    engine: EngineChoice,
    progress: Progress,
) -> list[TableChanges]:
    tables = [table for table in tables if comparison.may_differ(table)]
    if not tables:
        return []
    progress.stage("find rows")
    sides = [comparison.sides(table) for table in tables]
    sizes = [len(before.ids) + len(after.ids) for before, after in sides]
    progress.stage("compare rows", sum(sizes))
    if not compares_on_spark(engine, sum(sizes), shared=comparison.tables.is_shared):
        both = zip(tables, sides, strict=True)
        return [comparison.changes(table, pair, progress) for table, pair in both]
    from omnigraph.engine.compare.spread import compare_on_spark

    spread = list(zip(tables, sizes, strict=True))
    found = compare_on_spark(session_of(engine), comparison, spread)
    progress.advance(sum(sizes))
    return found
