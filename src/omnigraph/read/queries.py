"""Compiled queries and physical plans of one graph, cached."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from omnigraph.catalog.model import Catalog
from omnigraph.limits import COMPILE_CACHE_ENTRIES, RESTRICTED_SCHEMAS
from omnigraph.plan.arrange import arrange
from omnigraph.plan.compile import CompiledQuery, QueryCompiler
from omnigraph.plan.cost import Sizes, hops_of, node_types
from omnigraph.plan.ir import ReadPlan
from omnigraph.plan.steps import Arrangement
from omnigraph.read.source_files import query_source
from omnigraph.read.view import ReadView
from omnigraph.versioning.snapshot import Snapshot

_Hidden = tuple[frozenset[str], frozenset[tuple[str, str]]]


class QueryCache:
    """The compiled queries of one graph, per visible part of its schema.

    A new schema starts with none. Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._catalog: Catalog | None = None
        self._compilers: OrderedDict[_Hidden, QueryCompiler] = OrderedDict()

    def compile(
        self,
        query: str | Path,
        name: str | None,
        catalog: Catalog,
        view: ReadView = ReadView.ALL,
    ) -> CompiledQuery:
        """Compile the named query of a text or file, or its only one. Raises `LanguageError`."""
        hidden = view.hidden_types, view.hidden_properties
        with self._lock:
            if self._catalog is not catalog:
                self._catalog = catalog
                self._compilers.clear()
            found = self._compilers.get(hidden)
            if found is None:
                found = self._compilers[hidden] = QueryCompiler(view.restrict(catalog))
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
            if found is not None and found.magnitudes == _magnitudes(found.tables, snapshot):
                self._entries.move_to_end(id(plan))
                return found.physical
        sizes = sizes_of(snapshot)
        physical = arrange(plan, sizes, check)
        nodes = {f"node:{name}" for name in node_types(physical.steps, sizes)}
        tables = tuple(sorted(nodes | {f"edge:{hop.edge}" for hop in hops_of(physical.steps)}))
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
