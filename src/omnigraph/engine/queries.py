"""Compiling queries against the accepted schema, whichever that is when a query is run."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from threading import Lock

from omnigraph.catalog.model import Catalog
from omnigraph.engine.read.view import ReadView
from omnigraph.engine.source_files import query_source
from omnigraph.limits import RESTRICTED_SCHEMAS
from omnigraph.plan.compile import CompiledQuery, QueryCompiler

_Hidden = tuple[frozenset[str], frozenset[tuple[str, str]]]


class Queries:
    """The compiled queries of one graph, per part of its schema that a reader may see.

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
        return self._compiler(catalog, view).compile(query_source(query), name)

    def _compiler(self, catalog: Catalog, view: ReadView) -> QueryCompiler:
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
        return found
