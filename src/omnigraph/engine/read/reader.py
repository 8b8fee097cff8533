"""Reads of one graph: compile under a view, run on one snapshot, hand over the result."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from time import time_ns
from typing import Any

from omnigraph.catalog.model import Catalog
from omnigraph.engine.queries import Queries
from omnigraph.engine.read.budget import QueryBudget
from omnigraph.engine.read.cache import ByteCache
from omnigraph.engine.read.execute import StepReport
from omnigraph.engine.read.explain import Explanation, explain
from omnigraph.engine.read.run import arrange_read, execute_read
from omnigraph.engine.read.source import GraphSource
from omnigraph.engine.read.view import ReadView
from omnigraph.engine.result import Result
from omnigraph.limits import CACHE_SHARE
from omnigraph.plan.ir import NOW_PARAMETER, ReadPlan
from omnigraph.plan.params import bind_host_values
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot


class Reader:
    """Runs reads. Thread-safe; all its reads share one cache."""

    def __init__(self, tables: TableStore) -> None:
        self._tables = tables
        self._cache = ByteCache(int(_memory() * CACHE_SHARE))
        self.queries = Queries()

    def compile(
        self, query: str | Path, name: str | None, catalog: Catalog, view: ReadView
    ) -> ReadPlan:
        """The plan of a read. Names the view hides do not exist."""
        if view.sees_all:
            return self.queries.compile(query, name, catalog).read_plan()
        return Queries().compile(query, name, view.restrict(catalog)).read_plan()

    def run(
        self,
        plan: ReadPlan,
        parameters: Mapping[str, object],
        snapshot: Snapshot,
        *,
        target: str | None,
        view: ReadView,
        budget: QueryBudget,
    ) -> Result:
        """Run a compiled read. `target` is the commit that was asked for, if not a branch."""
        source = GraphSource(snapshot, self._tables, self._cache, view)
        table = execute_read(plan, _bound(plan, parameters), source, budget)
        return Result(
            plan.name,
            table,
            tuple(column.expression.type for column in plan.columns),
            branch=snapshot.branch if target is None else None,
            snapshot=target,
            commit_id=snapshot.commit_id,
        )

    def explain(
        self, plan: ReadPlan, snapshot: Snapshot, parameters: Mapping[str, object] | None
    ) -> Explanation:
        """The steps of a read. With parameters it is run, and each step says what came of it."""
        source = GraphSource(snapshot, self._tables, self._cache, ReadView.ALL)
        arrangement = arrange_read(plan, source)
        if parameters is None:
            return explain(plan.name, arrangement, None)
        reports: list[StepReport] = []
        bound = _bound(plan, parameters)
        execute_read(plan, bound, source, QueryBudget(), arrangement, reports.append)
        return explain(plan.name, arrangement, reports)


def _bound(plan: ReadPlan, parameters: Mapping[str, object]) -> dict[str, Any]:
    bound: dict[str, Any] = bind_host_values(plan.parameters, parameters)
    bound.setdefault(NOW_PARAMETER, time_ns() // 1_000_000)
    return bound


def _memory() -> int:
    """Bytes of memory this machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
