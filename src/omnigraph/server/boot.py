"""What a server serves: the graphs, policies and stored queries that its options and the project file name.

Tests: tests/server/test_several_graphs.py, tests/server/test_policies.py.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from omnigraph.api.graph import open as open_graph
from omnigraph.api.schema import accepted_catalog
from omnigraph.config.legacy import LegacyConfig, StoredQueryFile
from omnigraph.errors import ServerConfigError
from omnigraph.graph.gate import Gate, OpenGate
from omnigraph.policy.document import PolicyKind
from omnigraph.policy.gate import PolicyGate, open_gate
from omnigraph.server.graphs import (
    DEFAULT_ID,
    Access,
    ReadsOnly,
    ServedGraph,
    ServedGraphs,
    check_graph_id,
    refuse_same_address,
)
from omnigraph.stored_queries.registry import QueryEntry, StoredQueries, read_registry

log = logging.getLogger("omnigraph.server")

OPENED_AT_ONCE: Final = 4


@dataclass(frozen=True, slots=True)
class GraphSource:
    """A graph to serve."""

    id: str
    uri: str
    policy_file: Path | None = None
    queries: Mapping[str, StoredQueryFile] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BootSource:
    """Everything that a server opens."""

    graphs: tuple[GraphSource, ...]
    is_multi: bool = False
    server_policy_file: Path | None = None

    @property
    def has_policy(self) -> bool:
        files = [self.server_policy_file, *(graph.policy_file for graph in self.graphs)]
        return any(file is not None for file in files)


def choose_source(
    uri: str | None, target: str | None, config: LegacyConfig, *, is_explicit: bool
) -> BootSource:
    """The graphs to serve. `is_explicit`: an option names the project file.

    Raises `ServerConfigError`.
    """
    if uri is not None and target is not None:
        raise ServerConfigError("a URI and --target are exclusive; pass one of them")
    if uri is not None:
        return BootSource((GraphSource(DEFAULT_ID, uri, config.policy_file, config.queries),))
    name = target or config.server_graph
    if name is not None:
        return BootSource((_named(name, config),))
    if is_explicit and config.graphs:
        for block in _top_level(config):
            raise ServerConfigError(
                f"the top-level {block} is not honored with several graphs; move it to "
                "graphs.<graph_id>, or to server.policy.file"
            )
        graphs = tuple(_source(name, config) for name in config.graphs)
        refuse_same_address((graph.id, graph.uri) for graph in graphs)
        return BootSource(graphs, is_multi=True, server_policy_file=config.server_policy_file)
    raise ServerConfigError(
        "no graph to serve; pass the address of a graph as URI, or --target or --config"
    )


def _named(name: str, config: LegacyConfig) -> GraphSource:
    if name not in config.graphs:
        known = ", ".join(sorted(config.graphs)) or "none"
        raise ServerConfigError(f"graph '{name}' is not in the project file (graphs: {known})")
    for block in _top_level(config):
        raise ServerConfigError(
            f"the top-level {block} does not apply to the named graph '{name}'; move it to "
            f"graphs.{name}"
        )
    return _source(name, config)


def _source(name: str, config: LegacyConfig) -> GraphSource:
    check_graph_id(name)
    graph = config.graphs[name]
    if graph.uri.startswith(("http://", "https://")):
        raise ServerConfigError(f"graph '{name}' is served by another server; name its storage")
    return GraphSource(name, graph.uri, graph.policy_file, graph.queries)


def _top_level(config: LegacyConfig) -> Iterator[str]:
    if config.policy_file is not None:
        yield "policy.file"
    if config.queries:
        yield "queries"


def read_policies(source: BootSource) -> tuple[dict[str, PolicyGate], PolicyGate | None]:
    """The gates of graphs by id, and that of the server. Raises `PolicyInvalid`."""
    gates = {
        graph.id: open_gate(graph.policy_file, resource=graph.id)
        for graph in source.graphs
        if graph.policy_file is not None
    }
    server = source.server_policy_file
    gate = None if server is None else open_gate(server, PolicyKind.SERVER, "server")
    for one in (*gates.values(), *(() if gate is None else (gate,))):
        one.prepare()
    return gates, gate


def read_stored_queries(source: BootSource) -> dict[str, StoredQueries]:
    """The stored queries of graphs by id. Raises `StoredQueriesInvalid`."""
    return {graph.id: read_registry(_entries(graph.queries)) for graph in source.graphs}


def _entries(queries: Mapping[str, StoredQueryFile]) -> Iterable[QueryEntry]:
    for name, stored in queries.items():
        yield QueryEntry(name, stored.file, stored.expose, stored.tool_name)


def open_graphs(
    source: BootSource,
    access: Access,
    gates: Mapping[str, Gate],
    queries: Mapping[str, StoredQueries],
) -> ServedGraphs:
    """Open all graphs. The first failure is raised, after the others were closed again."""

    def opened(graph: GraphSource) -> ServedGraph:
        gate = gates.get(graph.id) or (OpenGate() if access is Access.OPEN else ReadsOnly())
        handle = open_graph(graph.uri, policy=gate)
        try:
            queries[graph.id].require_valid(graph.id, accepted_catalog(handle))
        except BaseException:
            handle.close()
            raise
        return ServedGraph(graph.id, graph.uri, handle, gate, queries[graph.id])

    with ThreadPoolExecutor(OPENED_AT_ONCE) as pool:
        opening = [pool.submit(opened, graph) for graph in source.graphs]
    served = [one.result() for one in opening if one.exception() is None]
    if len(served) < len(opening):
        for one in served:
            one.graph.close()
        raise next(error for one in opening if (error := one.exception()) is not None)
    return ServedGraphs(served, is_multi=source.is_multi)


class ProjectBoot:
    """The graphs of a command line or project file, opened before the port is."""

    def __init__(self, source: BootSource) -> None:
        self._source = source
        self._gates, self.server_gate = read_policies(source)
        self._queries = read_stored_queries(source)
        self.has_policy = source.has_policy

    def open(self, access: Access, *, require_all: bool) -> ServedGraphs:
        """Open all graphs, whatever is required."""
        graphs = open_graphs(self._source, access, self._gates, self._queries)
        for graph in graphs:
            log.info("graph '%s' at %s, %d stored queries", graph.id, graph.uri, len(graph.queries))
        return graphs

    def begin(self, graphs: ServedGraphs) -> None:
        """The port is open; there is nothing left to do."""
