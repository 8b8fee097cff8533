"""The registry of a graph's stored queries: reading it, checking it, finding a query for an actor.

An actor who may not invoke stored queries gets the same error as for a query that does not exist.
Tests: tests/unit/stored_queries/test_registry.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from omnigraph.catalog.model import Catalog
from omnigraph.diagnostics import shortened, with_hint
from omnigraph.errors import (
    LanguageError,
    PolicyError,
    PolicyUndecided,
    SourceUnreadable,
    StoredQueriesBroken,
    StoredQueriesInvalid,
    StoredQueryNotFound,
)
from omnigraph.graph.gate import Action, Gate, Request
from omnigraph.language.query.ast import Query, QueryFile
from omnigraph.language.query.parse import parse_queries
from omnigraph.language.query.print_file import print_queries
from omnigraph.language.syntax import Source
from omnigraph.plan.compile import compile_checked
from omnigraph.read.source_files import read_source
from omnigraph.stored_queries.catalog import CatalogEntry, catalog_entry


class QueryEntry(Struct, frozen=True):
    """A declared query: its name, the file that has it, and how tools see it."""

    name: str
    file: Path
    is_exposed: bool = True
    tool_name: str | None = None


class StoredQuery(Struct, frozen=True):
    """A query that is invoked by name. Its file may have others, which are not stored queries."""

    entry: QueryEntry
    file: Source
    query: Query

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def source(self) -> str:
        """The text of the whole file."""
        return self.file.text

    @property
    def is_mutation(self) -> bool:
        return self.query.is_mutation

    def fits(self, shown: Catalog | None) -> bool:
        """Whether it names only what a schema has; None is the schema it was checked with."""
        if shown is None:
            return True
        try:
            compile_checked(self.file, shown, self.query)
        except LanguageError:
            return False
        return True

    @property
    def tool_name(self) -> str:
        return self.entry.tool_name or self.entry.name


class QueryProblem(Struct, frozen=True):
    """What is wrong with one stored query."""

    query: str
    message: str


class RegistryCheck(Struct, frozen=True):
    """Stored queries against a schema: those that do not fit it, and advice."""

    breakages: tuple[QueryProblem, ...]
    warnings: tuple[QueryProblem, ...]


class StoredQueries:
    """The stored queries of one graph, by name."""

    def __init__(self, queries: Iterable[StoredQuery] = ()) -> None:
        self._by_name: Mapping[str, StoredQuery] = {
            query.name: query for query in sorted(queries, key=lambda one: one.name)
        }

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[StoredQuery]:
        return iter(self._by_name.values())

    def find(self, name: str) -> StoredQuery | None:
        """A query by name, exposed or not."""
        return self._by_name.get(name)

    def invocable(self, name: str, actor: str | None, gate: Gate) -> StoredQuery:
        """The query that an actor wants to invoke.

        Raises `StoredQueryNotFound`, the same whether the actor may not invoke queries or there is no such
        query, and `PolicyUndecided` if the policy cannot be evaluated. Running the query asks the gate
        again, for the right to read or change the branch.
        """
        try:
            gate.check(Request(actor, Action.INVOKE_QUERY))
        except PolicyUndecided:
            raise
        except PolicyError:
            raise StoredQueryNotFound from None
        found = self.find(name)
        if found is None:
            raise StoredQueryNotFound
        return found

    def exposed(self, shown: Catalog | None = None) -> list[CatalogEntry]:
        """The catalog: the exposed queries by name, with their typed parameters.

        `shown` is the schema as the caller sees it, if something of it is hidden. Queries that name
        what is hidden do not exist then.
        """
        return [
            catalog_entry(stored.query, stored.tool_name)
            for stored in self
            if stored.entry.is_exposed and stored.fits(shown)
        ]

    def sources(self) -> Sequence[str]:
        """A text per stored query, for `graph.schema.apply(queries=…)`, which keeps them working.

        Other queries of the same files are left out: they cannot be invoked by name.
        """
        return [print_queries(QueryFile((stored.query,))) for stored in self]

    def check(self, catalog: Catalog) -> RegistryCheck:
        """Type-check every query against a schema."""
        return RegistryCheck(tuple(self._breakages(catalog)), tuple(self._warnings()))

    def require_valid(self, graph: str, catalog: Catalog) -> RegistryCheck:
        """As `check`, but raises `StoredQueriesBroken` with all queries that do not fit the schema."""
        found = self.check(catalog)
        if found.breakages:
            raise StoredQueriesBroken(
                graph, [f"query '{one.query}': {one.message}" for one in found.breakages]
            )
        return found

    def _breakages(self, catalog: Catalog) -> Iterator[QueryProblem]:
        for stored in self:
            try:
                compile_checked(stored.file, catalog, stored.query)
            except LanguageError as error:
                yield QueryProblem(stored.name, str(error))

    def _warnings(self) -> Iterator[QueryProblem]:
        for stored in self:
            vectors = [p.name for p in stored.query.parameters if p.type.type.is_vector]
            if stored.entry.is_exposed and vectors:
                listed = ", ".join(f"${name}" for name in vectors)
                yield QueryProblem(
                    stored.name,
                    f"parameter {listed} is a vector, which tools can hardly fill; pass text to "
                    "`nearest`, or do not expose the query",
                )


def read_registry(entries: Iterable[QueryEntry]) -> StoredQueries:
    """Read the declared queries. Raises `StoredQueriesInvalid` with every problem.

    The name of an entry is that of a query in its file, and no two exposed queries have the same tool name.
    """
    problems: list[str] = []
    found: list[StoredQuery] = []
    for entry in entries:
        try:
            found.append(_read(entry))
        except (SourceUnreadable, LanguageError, _WrongEntry) as error:
            problems.append(f"query '{shortened(entry.name)}': {error}")
    problems += _shared_tool_names(found)
    if problems:
        raise StoredQueriesInvalid(problems)
    return StoredQueries(found)


class _WrongEntry(ValueError):
    pass


def _read(entry: QueryEntry) -> StoredQuery:
    source = read_source(entry.file)
    declared = {query.name.text: query for query in parse_queries(source).queries}
    if entry.name in declared:
        return StoredQuery(entry, source, declared[entry.name])
    if not declared:
        raise _WrongEntry(f"{source.name} declares no query; the key must match the query symbol")
    problem = (
        f"{source.name} declares {', '.join(sorted(declared))}; the key must match the query symbol"
    )
    raise _WrongEntry(with_hint(problem, entry.name, declared))


def _shared_tool_names(queries: Iterable[StoredQuery]) -> Iterator[str]:
    users: dict[str, list[str]] = defaultdict(list)
    for stored in queries:
        if stored.entry.is_exposed:
            users[stored.tool_name].append(stored.name)
    for tool, names in users.items():
        if len(names) > 1:
            listed = " and ".join(f"'{name}'" for name in sorted(names))
            yield f"queries {listed} have the same tool name '{shortened(tool)}'"


def registry_of_texts(texts: Mapping[str, str]) -> StoredQueries:
    """The registry of query texts by name, as a cluster keeps them. Raises `StoredQueriesInvalid`."""
    found, problems = [], []
    for name, text in texts.items():
        source = Source(f"{name}.gq", text)
        try:
            queries = {query.name.text: query for query in parse_queries(source).queries}
        except LanguageError as error:
            problems.append(f"query '{name}': {error}")
            continue
        if name in queries:
            entry = QueryEntry(name, Path(source.name))
            found.append(StoredQuery(entry, source, queries[name]))
        else:
            problems.append(f"query '{name}': its content does not declare it")
    if problems:
        raise StoredQueriesInvalid(problems)
    return StoredQueries(found)
