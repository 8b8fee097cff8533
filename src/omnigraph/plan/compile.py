"""From query text to plan, once: the compiler keeps what it has compiled."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock
from typing import Final

from omnigraph.catalog.model import Catalog
from omnigraph.diagnostics import Diagnostic, did_you_mean
from omnigraph.errors import QuerySelectionError, TypeCheckError, WrongQueryKind
from omnigraph.language.query.ast import Query, QueryFile
from omnigraph.language.query.parse import parse_text
from omnigraph.language.syntax import Source
from omnigraph.limits import COMPILE_CACHE_ENTRIES
from omnigraph.plan.changes import (
    MutationPlan,
    Plan,
)
from omnigraph.plan.check_read import check_read
from omnigraph.plan.constants import ask_for_declaration
from omnigraph.plan.ir import ReadPlan

MAX_LISTED_QUERIES: Final = 8
"""Names in the message of a query that was not found."""
_PARAMETER: Final = re.compile(r"\$(\w+)(?![\w.])")
"""A name without a property behind it."""


@dataclass(frozen=True)
class CompiledQuery:
    """The plan of a query, and its syntax tree with the notes for users and tools."""

    plan: Plan
    query: Query

    @cached_property
    def text(self) -> str:
        """The query in the standard layout, without comments: what two requests are compared by."""
        from omnigraph.language.query.print_file import print_queries

        return print_queries(QueryFile((self.query,)))

    @property
    def name(self) -> str:
        return self.plan.name

    @property
    def is_mutation(self) -> bool:
        return isinstance(self.plan, MutationPlan)

    def read_plan(self) -> ReadPlan:
        """The plan of a read. A mutation is refused: it belongs to the mutation entry point."""
        if not isinstance(self.plan, ReadPlan):
            raise WrongQueryKind(self.name, is_mutation=True)
        return self.plan

    def mutation_plan(self) -> MutationPlan:
        """The plan of a mutation. A read is refused: it belongs to the read entry point."""
        if not isinstance(self.plan, MutationPlan):
            raise WrongQueryKind(self.name, is_mutation=False)
        return self.plan


def compile_checked(source: Source, catalog: Catalog, query: Query) -> CompiledQuery:
    """Compile one parsed query."""
    try:
        return _checked(source, catalog, query)
    except TypeCheckError as error:
        if not query.anonymous:
            raise
        raise TypeCheckError([_asking(source, one) for one in error.diagnostics]) from None


def _asking(source: Source, diagnostic: Diagnostic) -> Diagnostic:
    """A diagnostic that asks for declarations where a parameter's type was taken from its first use."""
    place = diagnostic.position
    text = source.text.encode(errors="surrogatepass")[place.start : place.end].decode(
        errors="replace"
    )
    names = _PARAMETER.findall(text)
    if diagnostic.hint is not None or diagnostic.code != "T7" or not names:
        return diagnostic
    first = "an undeclared parameter has the type of its first use"
    return replace(diagnostic, hint=f"{first}; {ask_for_declaration(names[-1])}")


def _checked(source: Source, catalog: Catalog, query: Query) -> CompiledQuery:
    plan: Plan
    if query.is_mutation:
        from omnigraph.plan.check_mutation import check_mutation

        plan = check_mutation(source, catalog, query)
    else:
        plan = check_read(source, catalog, query)
    return CompiledQuery(plan, query)


def compile_query(source: Source, catalog: Catalog, name: str | None = None) -> CompiledQuery:
    """Compile the named query of a source, or its only one. Raises `LanguageError`."""
    file = parse_text(source)
    if file.statement is not None:
        raise QuerySelectionError("the text is a statement, not a query")
    return compile_checked(source, catalog, select_query(file, name))


def select_query(file: QueryFile, name: str | None) -> Query:
    """Pick a query by name; without a name the file must hold exactly one."""
    if name is None:
        if len(file.queries) == 1:
            return file.queries[0]
        if not file.queries:
            raise QuerySelectionError("query file contains no queries")
        raise QuerySelectionError(
            f"query file contains multiple queries; pass --name ({_listed(file)})"
        )
    names = [q.name.text for q in file.queries]
    if name not in names:
        hint = did_you_mean(name, names) or f"the file has {_listed(file)}"
        raise QuerySelectionError(f"query '{name}' not found; {hint}")
    return file.queries[names.index(name)]


def _listed(file: QueryFile) -> str:
    """The names of the first queries of a file."""
    names = [query.name.text for query in file.queries]
    rest = len(names) - MAX_LISTED_QUERIES
    if rest > 0:
        return f"{', '.join(names[:MAX_LISTED_QUERIES])} and {rest} more"
    return ", ".join(names) or "no queries"


class QueryCompiler:
    """Compiles against one catalog and remembers the results, least recently used out first.

    Thread-safe. Two threads that miss on the same text compile it twice, to equal results.
    """

    def __init__(
        self,
        catalog: Catalog,
        capacity: int = COMPILE_CACHE_ENTRIES,
        looked_up: Callable[[bool], None] = lambda found: None,
    ) -> None:
        """`looked_up` is told of every look into the cache whether it found something."""
        self.catalog = catalog
        self._looked_up = looked_up
        self._capacity = capacity
        self._lock = Lock()
        self._entries: OrderedDict[tuple[str, str, str | None], CompiledQuery] = OrderedDict()

    def compile(self, source: Source, name: str | None = None) -> CompiledQuery:
        """As `compile_query`, from the cache when the same source was compiled before."""
        key = (source.name, source.text, name)
        with self._lock:
            compiled = self._entries.get(key)
            if compiled is not None:
                self._entries.move_to_end(key)
        self._looked_up(compiled is not None)
        if compiled is not None:
            return compiled
        compiled = compile_query(source, self.catalog, name)
        with self._lock:
            self._entries[key] = compiled
            if len(self._entries) > self._capacity:
                self._entries.popitem(last=False)
        return compiled
