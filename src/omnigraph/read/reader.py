"""Reads of one graph: compile under a view, choose an access path, execute on one snapshot.

Compiled queries and physical plans of a graph are cached."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from threading import Lock
from time import perf_counter, time_ns
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import pyarrow as pa

from omnigraph.catalog.model import Catalog
from omnigraph.errors import StoreCallFailed
from omnigraph.instruments import Step, looked_up, timed
from omnigraph.limits import CACHE_SHARE, COMPILE_CACHE_ENTRIES, RESTRICTED_SCHEMAS
from omnigraph.plan.arrange import arrange
from omnigraph.plan.compile import CompiledQuery, QueryCompiler
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
    NOW_PARAMETER,
    Bm25,
    Direction,
    EntityId,
    Expr,
    Nearest,
    Prop,
    ReadPlan,
    walk,
)
from omnigraph.plan.params import bind_host_values, check_names
from omnigraph.plan.steps import Arrangement
from omnigraph.read.bounds import with_bounds
from omnigraph.read.budget import (
    LookupLedger,
    LookupsTooCostly,
    LookupWork,
    Meter,
    TraversalMode,
    TraversalSettings,
)
from omnigraph.read.cache import ByteCache, GuestCache
from omnigraph.read.execute import execute_read
from omnigraph.read.result import Result
from omnigraph.read.source import AccessPath, GraphSource
from omnigraph.read.source_files import query_source
from omnigraph.read.text_indexes import TextIndexStore
from omnigraph.read.view import HiddenNames, ReadView
from omnigraph.storage.failures import is_vanished_file
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot

if TYPE_CHECKING:
    from omnigraph.read.explain import Explanation, Reports


T = TypeVar("T")


class QueryCache:
    """The compiled queries of one graph, per visible part of its schema.

    A new schema starts with none. Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._catalog: Catalog | None = None
        self._compilers: OrderedDict[HiddenNames, QueryCompiler] = OrderedDict()

    def compile(
        self,
        query: str | Path,
        name: str | None,
        catalog: Catalog,
        view: ReadView = ReadView.ALL,
    ) -> CompiledQuery:
        """Compile the named query of a text or file, or its only one. Raises `LanguageError`."""
        hidden = view.names
        with self._lock:
            if self._catalog is not catalog:
                self._catalog = catalog
                self._compilers.clear()
            found = self._compilers.get(hidden)
            if found is None:
                found = self._compilers[hidden] = QueryCompiler(
                    view.restrict(catalog),
                    looked_up=lambda found: looked_up("queries", found=found),
                )
                if len(self._compilers) > RESTRICTED_SCHEMAS:
                    self._compilers.popitem(last=False)
            self._compilers.move_to_end(hidden)
        return found.compile(query_source(query), name)


def sizes_of(snapshot: Snapshot) -> Sizes:
    """The row counts of all types in a snapshot."""
    rows = {key: entry.row_count for key, entry in snapshot.entries.items()}
    return Sizes(rows, snapshot.catalog)


@dataclass(frozen=True, slots=True)
class _CachedPlan:
    plan: ReadPlan
    physical: Arrangement
    tables: tuple[str, ...]
    magnitudes: tuple[int, ...]


class PhysicalPlanCache:
    """The physical plans of one graph's reads, least recently used out first. Thread-safe.

    A physical plan stays valid while its tables keep about their size. The compiler returns one plan per
    query and schema, so a plan is identified by its object identity.
    """

    def __init__(self, capacity: int = COMPILE_CACHE_ENTRIES) -> None:
        self._capacity = capacity
        self._entries: OrderedDict[int, _CachedPlan] = OrderedDict()
        self._lock = Lock()

    def get(
        self, plan: ReadPlan, snapshot: Snapshot, check: Callable[[], None] = lambda: None
    ) -> Arrangement:
        """The physical plan for tables of about these sizes.

        Planning calls `check` repeatedly, which raises when the query is out of time.
        """
        with self._lock:
            found = self._entries.get(id(plan))
            if found is not None and found.magnitudes != _magnitudes(found.tables, snapshot):
                found = None
            if found is not None:
                self._entries.move_to_end(id(plan))
        looked_up("plans", found=found is not None)
        if found is not None:
            return found.physical
        sizes = sizes_of(snapshot)
        physical = arrange(plan, sizes, check)
        nodes = {f"node:{name}" for name in node_types(physical.all_steps)}
        tables = tuple(
            sorted(
                nodes
                | {f"edge:{edge}" for hop in hops_of(physical.all_steps) for edge in hop.edge_types}
            )
        )
        # Holding the plan keeps its identity from being reused.
        cached = _CachedPlan(plan, physical, tables, _magnitudes(tables, snapshot))
        with self._lock:
            self._entries[id(plan)] = cached
            self._entries.move_to_end(id(plan))
            if len(self._entries) > self._capacity:
                self._entries.popitem(last=False)
        return physical


def _magnitudes(tables: tuple[str, ...], snapshot: Snapshot) -> tuple[int, ...]:
    """The bit lengths of row counts; plans rarely differ within one.

    An earlier snapshot may lack a table; execution reports that.
    """
    entries = (snapshot.entries.get(key) for key in tables)
    return tuple(entry.row_count.bit_length() if entry else 0 for entry in entries)


MAX_UNCOMPARED_COST: Final = 30_000.0
"""Cost of reading into memory, about 20 ms, up to which look-ups are not considered."""

MAX_KEPT_BLOCK_BYTES: Final = (32 << 20) - (64 << 10)
"""The largest freed block that glibc learns from, less its own overhead."""


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """One read: its plan, snapshot, view, and a meter that has been running since compilation.

    `target` is the requested commit, if it was not a branch. With `exact`, nearest vectors are found by
    comparing all of them. `mode` is that of the text, if it sets one.
    """

    plan: ReadPlan
    snapshot: Snapshot
    target: str | None
    view: ReadView
    meter: Meter
    exact: bool = False
    mode: TraversalMode | None = None

    @property
    def branch(self) -> str | None:
        return self.snapshot.branch if self.target is None else None


class Reader:
    """Runs reads. Thread-safe; all its reads share one cache."""

    def __init__(
        self,
        tables: TableStore,
        settings: TraversalSettings | None = None,
        texts: TextIndexStore | None = None,
    ) -> None:
        """Raises `InputError` for an unknown traversal mode in the environment."""
        keep_freed_memory()
        self._tables = tables
        self._texts = texts
        self._settings = settings or TraversalSettings.from_environment()
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        self._cache = ByteCache(int(memory * CACHE_SHARE))
        self._ledger = LookupLedger()
        self._plans = PhysicalPlanCache()
        self.queries = QueryCache()

    @property
    def cached_bytes(self) -> int:
        """Memory used by cached data."""
        return self._cache.nbytes

    def compile(
        self, query: str | Path, name: str | None, catalog: Catalog, view: ReadView
    ) -> ReadPlan:
        """The plan of a read. Names that the view hides do not exist."""
        return self.queries.compile(query, name, catalog, view).read_plan()

    def run(self, request: ReadRequest, parameters: Mapping[str, object]) -> Result:
        """Run a compiled read."""
        plan, snapshot = request.plan, request.snapshot
        physical = self._plans.get(plan, snapshot, request.meter.check)
        bound = _bind(plan, parameters)
        request = replace(request, plan=with_bounds(plan, bound))
        tables = self._execute(request, physical, bound)

        def result(part: ReadPlan, table: pa.Table) -> Result:
            return Result(
                part.name,
                table,
                tuple(column.expression.type for column in part.columns),
                branch=request.branch,
                snapshot=request.target,
                commit_id=snapshot.commit_id,
                entities=_entities(part),
                scores=_scores(part),
            )

        main = result(plan, tables[0])
        main.results = {
            part.name: result(part, table)
            for part, table in zip(plan.results, tables[1:], strict=True)
        }
        return main

    def rows(self, request: ReadRequest, bound: Mapping[str, Any]) -> pa.Table:
        """The rows of a read whose parameters are bound, in the types of the language."""
        physical = self._plans.get(request.plan, request.snapshot, request.meter.check)
        return self._execute(request, physical, bound)[0]

    def explain(
        self, request: ReadRequest, parameters: Mapping[str, object] | None, *, analyze: bool = True
    ) -> Explanation:
        """The steps of a read. With parameters it is run, and each step has measurements.

        Without `analyze` it is not run, and only parameter names are checked.
        """
        from omnigraph.read.explain import Reports, explain

        plan = request.plan
        if parameters is not None and not analyze:
            check_names(plan.parameters, parameters)
            parameters = None
        physical = self._plans.get(plan, request.snapshot, request.meter.check)
        # Chosen before the run, which fills the cache.
        first = next(self._sources(request, physical))
        reports = None
        if parameters is not None:
            reports = Reports()
            bound = _bind(plan, parameters)
            started = perf_counter()
            request = replace(request, plan=with_bounds(plan, bound))
            table, *_ = self._execute(request, physical, bound, reports)
            reports.finish(table, perf_counter() - started)
        return explain(
            plan,
            physical,
            reports,
            branch=request.branch,
            snapshot=request.target,
            commit_id=request.snapshot.commit_id,
            looks_up=first.looks_up,
        )

    def use_source(
        self,
        snapshot: Snapshot,
        target: str | None,
        view: ReadView,
        use: Callable[[GraphSource], T],
    ) -> T:
        """Let a function read a snapshot, with all of it in memory. It may be called twice."""
        cache = self._cache if target is None else GuestCache(self._cache, target)
        access = AccessPath(TraversalSettings(TraversalMode.CSR), ledger=self._ledger)

        def attempt() -> T:
            return use(GraphSource(snapshot, self._tables, cache, view, access, self._texts))

        try:
            return attempt()
        except StoreCallFailed as error:
            if not is_vanished_file(error) or not self._cache.clear():
                raise
            return attempt()

    def _execute(
        self,
        request: ReadRequest,
        physical: Arrangement,
        parameters: Mapping[str, Any],
        reports: Reports | None = None,
    ) -> list[pa.Table]:
        with timed(Step.READ):
            try:
                return self._attempt(request, physical, parameters, reports)
            except StoreCallFailed as error:
                # A cached version cannot be patched if it belonged to a branch that was deleted.
                if not is_vanished_file(error) or not self._cache.clear():
                    raise
                return self._attempt(request, physical, parameters, reports)

    def _attempt(
        self,
        request: ReadRequest,
        physical: Arrangement,
        parameters: Mapping[str, Any],
        reports: Reports | None,
    ) -> list[pa.Table]:
        for source in self._sources(request, physical):
            if reports is not None:
                reports.start(source.work)
            try:
                return execute_read(
                    request.plan, physical, parameters, source, request.meter, reports
                )
            except LookupsTooCostly:
                continue
            finally:
                self._ledger.add(source.work)
        raise AssertionError("the last source sets no limit to its work")

    def _sources(self, request: ReadRequest, physical: Arrangement) -> Iterator[GraphSource]:
        """The access paths in the order to try them; look-ups may be abandoned for memory."""
        settings, ledger = self._settings, self._ledger
        if request.mode is not None:
            settings = replace(settings, mode=request.mode)
        in_memory = self._source(request, AccessPath(settings, ledger=ledger))
        sizes = sizes_of(request.snapshot)
        max_cost = max_lookup_cost(request.plan, physical, in_memory, sizes, settings, ledger)
        if max_cost is not None:
            properties = small_properties(request.plan)
            access = AccessPath(settings, True, properties, LookupWork(max_cost), ledger)
            yield self._source(request, access)
        yield in_memory

    def _source(self, request: ReadRequest, access: AccessPath) -> GraphSource:
        cache = self._cache
        if request.target is not None:
            cache = GuestCache(cache, request.target)
        return GraphSource(
            request.snapshot, self._tables, cache, request.view, access, self._texts, request.exact
        )


def _bind(plan: ReadPlan, parameters: Mapping[str, object]) -> dict[str, Any]:
    bound: dict[str, Any] = bind_host_values(plan.parameters, parameters)
    bound.setdefault(NOW_PARAMETER, time_ns() // 1_000_000)
    if any(parameter.default is not None for parameter in plan.parameters):
        from omnigraph.read.defaults import with_defaults

        bound = with_defaults(plan.parameters, bound)
    return bound


@cache
def keep_freed_memory() -> None:
    """Make the allocator of this process reuse freed blocks of all sizes.

    By default glibc returns freed blocks above 128 KiB to the system and requests them again at once. The
    arrays of a search are then fresh pages each time, which can take half of its time and blocks other
    threads. glibc raises its threshold to the largest block freed so far, up to 32 MiB.
    """
    np.empty(MAX_KEPT_BLOCK_BYTES, np.uint8)


# -- access paths -------------------------------------------------------------------------------


def max_lookup_cost(
    plan: ReadPlan,
    physical: Arrangement,
    source: GraphSource,
    sizes: Sizes,
    settings: TraversalSettings,
    ledger: LookupLedger,
) -> float | None:
    """The most that answering by look-ups may cost; None if memory is expected to be faster."""
    if settings.mode is TraversalMode.CSR or not plan.is_plain:
        return None
    if settings.mode is TraversalMode.INDEXED:
        return float("inf")
    in_memory = _memory_cost(physical, source, sizes, ledger)
    if in_memory < MAX_UNCOMPARED_COST:
        return None
    lookups = lookup_cost(physical, sizes)
    if lookups.frontier > settings.max_frontier or lookups.hops > settings.max_hops:
        return None
    cost = lookups.units
    if cost < in_memory:
        cost += SCANNED_COST * sum(_scanned_rows(physical, source, sizes))
    return in_memory if cost < in_memory else None


def _memory_cost(
    physical: Arrangement, source: GraphSource, sizes: Sizes, ledger: LookupLedger
) -> float:
    """The cost of reading what a plan needs and what is not cached yet."""
    cost = 0.0
    for name in node_types(physical.all_steps):
        if not source.has_nodes(name):
            path = source.table_path(source.catalog.nodes[name])
            cost += ledger.remaining(path, 2 * LOOKUP_COST + NODE_COST * sizes.nodes(name))
    if cost == 0:
        return cost
    for edge, direction in {
        member for hop in hops_of(physical.all_steps) for member in hop.members
    }:
        if not source.has_edges(edge, direction):
            path = source.table_path(source.catalog.edges[edge])
            cost += ledger.remaining(path, LOOKUP_COST + sizes.edges(edge))
    return cost


def _scanned_rows(physical: Arrangement, source: GraphSource, sizes: Sizes) -> Iterator[float]:
    """Rows that look-ups scan because no index covers them."""
    for hop in hops_of(physical.all_steps):
        for name, direction in hop.members:
            column = "src" if direction is Direction.OUT else "dst"
            yield source.scanned_rows(source.catalog.edges[name], column)
        yield source.scanned_rows(source.catalog.nodes[hop.node_type], "id")


def small_properties(plan: ReadPlan) -> dict[str, tuple[str, ...]]:
    """The properties that a read returns or sorts by, without large ones, by node type or edge table."""
    types = dict(plan.variables)
    wanted: dict[str, dict[str, None]] = {}
    for expression in (part for returned in _returned(plan) for part in walk(returned)):
        if not isinstance(expression, Prop) or expression.variable not in types:
            continue
        kind = expression.type
        if not (kind.is_vector or kind.is_blob or kind.list):
            found = types[expression.variable]
            keys = [found] if isinstance(found, str) else [f"edge:{name}" for name in found]
            for key in keys:
                wanted.setdefault(key, {})[expression.property] = None
    return {key: tuple(names) for key, names in wanted.items()}


def _returned(plan: ReadPlan) -> Iterator[Expr]:
    """What the results of a read return, test or sort by."""
    for result in plan.all_results:
        yield from result.expressions()


def _scores(plan: ReadPlan) -> dict[str, str]:
    """The score columns without an alias, with names that say what they score."""
    found: dict[str, str] = {}
    for column in plan.columns:
        match column.expression:
            case Nearest(field=field) if not column.has_alias:
                found[column.name] = f"{field.variable}._distance"
            case Bm25(field=Prop() as field) if not column.has_alias:
                found[column.name] = f"{field.variable}._score"
    return found


def _entities(plan: ReadPlan) -> dict[str, str]:
    """The columns that are variables themselves, with the types of their nodes."""
    types = dict(plan.variables)
    found = {
        column.name: types[column.expression.variable]
        for column in plan.columns
        if isinstance(column.expression, EntityId)
    }
    return {name: kind for name, kind in found.items() if isinstance(kind, str)}
