"""Reads of one graph: compile under a view, run on one snapshot, hand over the result."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, time_ns
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.catalog.model import Catalog
from omnigraph.engine.queries import Queries
from omnigraph.engine.read.access import Ledger, TooMuchWork, TraversalSettings, Work
from omnigraph.engine.read.arrangements import Arrangements, sizes_of
from omnigraph.engine.read.budget import Meter
from omnigraph.engine.read.cache import ByteCache, GuestCache
from omnigraph.engine.read.memory import keep_freed_memory
from omnigraph.engine.read.run import execute_read, lookups_may_cost, wanted_properties
from omnigraph.engine.read.source import GraphSource, Traversal
from omnigraph.engine.read.stored_texts import StoredTexts
from omnigraph.engine.read.view import ReadView
from omnigraph.engine.result import Result
from omnigraph.errors import StoreCallFailed
from omnigraph.limits import CACHE_SHARE
from omnigraph.plan.ir import NOW_PARAMETER, ReadPlan
from omnigraph.plan.params import bind_host_values, check_names
from omnigraph.plan.physical.steps import Arrangement
from omnigraph.storage.failures import is_vanished_file
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot

if TYPE_CHECKING:
    from omnigraph.engine.read.explain import Explanation, Reports


@dataclass(frozen=True, slots=True)
class Reading:
    """One read: a plan, the state it reads, as whom, and within which limits, of which compiling has
    used some already.

    `target` is the commit that was asked for, if it was not a branch. With `exact` the nearest
    vectors are those of all, however many there are.
    """

    plan: ReadPlan
    snapshot: Snapshot
    target: str | None
    view: ReadView
    meter: Meter
    exact: bool = False

    @property
    def branch(self) -> str | None:
        return self.snapshot.branch if self.target is None else None


class Reader:
    """Runs reads. Thread-safe; all its reads share one cache."""

    def __init__(
        self,
        tables: TableStore,
        settings: TraversalSettings | None = None,
        texts: StoredTexts | None = None,
    ) -> None:
        """Raises `InputError` when the environment sets no usable way to follow edges."""
        keep_freed_memory()
        self._tables = tables
        self._texts = texts
        self._settings = settings or TraversalSettings.from_environment()
        self._cache = ByteCache(int(_memory() * CACHE_SHARE))
        self._ledger = Ledger()
        self._arrangements = Arrangements()
        self.queries = Queries()

    @property
    def cached_bytes(self) -> int:
        """The memory that everything takes which is kept for the next read."""
        return self._cache.nbytes

    def compile(
        self, query: str | Path, name: str | None, catalog: Catalog, view: ReadView
    ) -> ReadPlan:
        """The plan of a read. Names the view hides do not exist."""
        return self.queries.compile(query, name, catalog, view).read_plan()

    def run(self, reading: Reading, parameters: Mapping[str, object]) -> Result:
        """Run a compiled read."""
        plan, snapshot = reading.plan, reading.snapshot
        arrangement = self._arrangements.of(plan, snapshot, reading.meter.check)
        table = self._execute(reading, arrangement, _bound(plan, parameters))
        return Result(
            plan.name,
            table,
            tuple(column.expression.type for column in plan.columns),
            branch=reading.branch,
            snapshot=reading.target,
            commit_id=snapshot.commit_id,
        )

    def explain(
        self, reading: Reading, parameters: Mapping[str, object] | None, *, analyze: bool = True
    ) -> Explanation:
        """The steps of a read. With parameters it is run, and each step says what came of it.

        Without `analyze` it is not run, and parameters are checked by their names.
        """
        from omnigraph.engine.read.explain import Explained, Reports, explain

        if parameters is not None and not analyze:
            check_names(reading.plan.parameters, parameters)
            parameters = None
        arrangement = self._arrangements.of(reading.plan, reading.snapshot, reading.meter.check)
        # Before a run: it leaves in memory what it has read.
        first = next(self._sources(reading, arrangement))
        reports = None
        if parameters is not None:
            reports = Reports()
            bound = _bound(reading.plan, parameters)
            started = perf_counter()
            table = self._execute(reading, arrangement, bound, reports)
            reports.finish(table, perf_counter() - started)
        read = Explained(
            reading.plan,
            arrangement,
            reading.branch,
            reading.target,
            reading.snapshot.commit_id,
            first.looks_up,
        )
        return explain(read, reports)

    def _execute(
        self,
        reading: Reading,
        arrangement: Arrangement,
        parameters: Mapping[str, Any],
        reports: Reports | None = None,
    ) -> pa.Table:
        try:
            return self._attempt(reading, arrangement, parameters, reports)
        except StoreCallFailed as error:
            # What is in memory of an earlier version cannot be carried on if that version was one of
            # a branch which is deleted.
            if not is_vanished_file(error) or not self._cache.clear():
                raise
            return self._attempt(reading, arrangement, parameters, reports)

    def _attempt(
        self,
        reading: Reading,
        arrangement: Arrangement,
        parameters: Mapping[str, Any],
        reports: Reports | None,
    ) -> pa.Table:
        meter = reading.meter
        for source in self._sources(reading, arrangement):
            if reports is not None:
                reports.start(source.work)
            try:
                return execute_read(reading.plan, arrangement, parameters, source, meter, reports)
            except TooMuchWork:
                continue
            finally:
                self._ledger.note(source.work)
        raise AssertionError("the last source sets no limit to its work")

    def _sources(self, reading: Reading, arrangement: Arrangement) -> Iterator[GraphSource]:
        """The ways to the data, in the order to try them: one by look-ups may be given up."""
        plan, snapshot, settings = reading.plan, reading.snapshot, self._settings
        in_memory = self._source(reading, Traversal(settings, ledger=self._ledger))
        most = lookups_may_cost(
            plan, arrangement, in_memory, sizes_of(snapshot), settings, self._ledger
        )
        if most is not None:
            wanted = wanted_properties(plan)
            yield self._source(reading, Traversal(settings, True, wanted, Work(most), self._ledger))
        yield in_memory

    def _source(self, reading: Reading, traversal: Traversal) -> GraphSource:
        cache = self._cache
        if reading.target is not None:
            cache = GuestCache(cache, reading.target)
        return GraphSource(
            reading.snapshot,
            self._tables,
            cache,
            reading.view,
            traversal,
            self._texts,
            reading.exact,
        )


def _bound(plan: ReadPlan, parameters: Mapping[str, object]) -> dict[str, Any]:
    bound: dict[str, Any] = bind_host_values(plan.parameters, parameters)
    bound.setdefault(NOW_PARAMETER, time_ns() // 1_000_000)
    return bound


def _memory() -> int:
    """Bytes of memory this machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
