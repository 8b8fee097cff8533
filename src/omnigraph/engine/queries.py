"""Compiling queries against the accepted schema, whichever that is when a query is run."""

from __future__ import annotations

from pathlib import Path
from threading import Lock

from omnigraph.catalog.model import Catalog
from omnigraph.engine.source_files import query_source
from omnigraph.plan.compile import CompiledQuery, QueryCompiler


class Queries:
    """The compiled queries of one graph. A new schema starts with none. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._compiler: QueryCompiler | None = None

    def compile(self, query: str | Path, name: str | None, catalog: Catalog) -> CompiledQuery:
        """Compile the named query of a text or file, or its only one. Raises `LanguageError`."""
        source = query_source(query)
        with self._lock:
            if self._compiler is None or self._compiler.catalog is not catalog:
                self._compiler = QueryCompiler(catalog)
            compiler = self._compiler
        return compiler.compile(source, name)
