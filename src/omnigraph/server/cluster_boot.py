"""A server for the applied revision of a cluster.

Policies and stored queries come from the snapshot. The port opens first; graphs are opened behind it, a few at a
time. One with a problem is blocked, and the others are served. Tests: tests/server/test_cluster_boot.py.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from omnigraph.api.graph import open as open_graph
from omnigraph.cluster.documents import Diagnostics
from omnigraph.cluster.serving import ServingGraph, ServingSnapshot, not_ready, read_snapshot
from omnigraph.errors import (
    LanguageError,
    OmnigraphError,
    PolicyError,
    PolicyInvalid,
    StoredQueriesBroken,
    StoredQueriesInvalid,
)
from omnigraph.graph.gate import Gate, OpenGate, Request
from omnigraph.language.query.parse import parse_queries
from omnigraph.language.syntax import Source
from omnigraph.policy.document import PolicyKind
from omnigraph.policy.gate import PolicyGate, open_gate
from omnigraph.server.boot import OPENED_AT_ONCE
from omnigraph.server.graphs import (
    Access,
    Failure,
    ReadsOnly,
    ServedGraph,
    ServedGraphs,
    UnavailableGraph,
    check_graph_id,
)
from omnigraph.settings import read_secret
from omnigraph.stored_queries.registry import QueryEntry, StoredQueries, StoredQuery

log = logging.getLogger("omnigraph.server")


class _Closed:
    """The gate of a graph whose policy cannot be read."""

    def check(self, request: Request) -> None:
        raise PolicyError("the policy of the graph is not valid")


class ClusterBoot:
    """A cluster to serve: its snapshot and the gate of the server."""

    def __init__(
        self, cluster: str, snapshot: ServingSnapshot, server_gate: PolicyGate | None
    ) -> None:
        self.snapshot = snapshot
        self.server_gate = server_gate
        self.has_policy = snapshot.has_policy
        self._cluster = cluster
        self._opening: _Opening | None = None

    @classmethod
    def read(cls, cluster: str) -> ClusterBoot:
        """Raises `ServerConfigError` or `PolicyInvalid`."""
        snapshot = read_snapshot(cluster)
        for graph in snapshot.graphs:
            check_graph_id(graph.id)
        gate = None
        if snapshot.server_policy is not None:
            gate = open_gate(snapshot.server_policy, PolicyKind.SERVER, "server")
            gate.prepare()
        return cls(cluster, snapshot, gate)

    def open(self, access: Access, *, require_all: bool) -> ServedGraphs:
        """The graphs, which `begin` opens; with `require_all` they are open already.

        Raises `ServerConfigError` then, if one of them cannot be served.
        """
        opening = _Opening(access)
        waiting = map(opening.waiting, self.snapshot.graphs)
        graphs = ServedGraphs((), is_multi=True, unavailable=waiting)
        if not require_all:
            self._opening = opening
            return graphs
        opening.open_all(self.snapshot.graphs, graphs).shutdown()
        if opening.failed:
            for served in graphs:
                served.graph.close()
            problems = Diagnostics()
            for graph_id, (code, message) in sorted(opening.failed.items()):
                problems.error(code, f"graph.{graph_id}", message)
            raise not_ready(self._cluster, problems)
        return graphs

    def begin(self, graphs: ServedGraphs) -> None:
        """The port is open: open the graphs behind it."""
        if self._opening is not None:
            self._opening.open_all(self.snapshot.graphs, graphs).shutdown(wait=False)


class _Opening:
    """Opens graphs in threads and notes why some cannot be served."""

    def __init__(self, access: Access) -> None:
        self._default: Gate = OpenGate() if access is Access.OPEN else ReadsOnly()
        self._gates: dict[str, Gate] = {}
        self.failed: dict[str, tuple[str, str]] = {}

    def open_all(self, waiting: Iterable[ServingGraph], graphs: ServedGraphs) -> ThreadPoolExecutor:
        """Begin to open graphs, a few at a time."""
        pool = ThreadPoolExecutor(OPENED_AT_ONCE, "omnigraph-open")
        for graph in waiting:
            pool.submit(self.open, graph, graphs)
        return pool

    def waiting(self, graph: ServingGraph) -> UnavailableGraph:
        """A graph before it is opened, under its own policy."""
        gate = self._gates[graph.id] = self._gate(graph)
        return UnavailableGraph(graph.id, graph.uri, gate, "loading")

    def _gate(self, graph: ServingGraph) -> Gate:
        if graph.policy is None:
            return self._default
        try:
            gate = open_gate(graph.policy, resource=graph.id)
        except PolicyInvalid as error:
            self.failed[graph.id] = ("invalid_policy", str(error))
            return _Closed()
        gate.prepare()
        return gate

    def open(self, graph: ServingGraph, graphs: ServedGraphs) -> None:
        """Open one graph, or block it."""
        gate = self._gates[graph.id]
        if graph.id in self.failed:
            self._block(graph, graphs, gate, "invalid_policy", self.failed[graph.id][1])
            return
        if graph.problem is not None:
            self._block(
                graph,
                graphs,
                gate,
                "invalid_configuration",
                graph.problem.message,
                graph.problem.code,
            )
            return
        try:
            settings = _settings(graph)
            queries = _stored_queries(graph.queries)
            handle = open_graph(graph.uri, policy=gate)
            try:
                queries.require_valid(graph.id, handle.schema.catalog)
            except BaseException:
                handle.close()
                raise
        except _SecretMissing as error:
            self._block(graph, graphs, gate, "invalid_configuration", str(error))
        except (StoredQueriesBroken, StoredQueriesInvalid) as error:
            self._block(graph, graphs, gate, "invalid_stored_queries", str(error))
        except OmnigraphError as error:
            self._block(graph, graphs, gate, "open_failed", str(error))
        except Exception as error:
            # What a library raises for a damaged file is not ours, and the graph is blocked all the same.
            self._block(graph, graphs, gate, "open_failed", f"{type(error).__name__}: {error}")
        else:
            graphs.add(ServedGraph(graph.id, graph.uri, handle, gate, queries, settings))
            log.info("graph '%s' at %s, %d stored queries", graph.id, graph.uri, len(queries))

    def _block(
        self,
        graph: ServingGraph,
        graphs: ServedGraphs,
        gate: Gate,
        failure: Failure,
        message: str,
        code: str | None = None,
    ) -> None:
        log.error("graph '%s' at %s is blocked: %s: %s", graph.id, graph.uri, failure, message)
        self.failed[graph.id] = (code or failure, message)
        graphs.block(UnavailableGraph(graph.id, graph.uri, gate, "blocked", failure))


class _SecretMissing(ValueError):
    pass


def _settings(graph: ServingGraph) -> dict[str, Any]:
    """The settings of a graph: its embedding provider, and where its external blobs may be."""
    settings: dict[str, Any] = {}
    if graph.external_blobs is not None:
        settings["external_blobs"] = ",".join(graph.external_blobs)
    provider = graph.provider
    if provider is None:
        return settings
    secret = None
    if provider.api_key is not None:
        secret = read_secret(provider.api_key)
        if secret is None:
            raise _SecretMissing(f"the embedding provider needs the variable {provider.api_key}")
    settings |= {
        "embeddings_mock": provider.kind == "mock",
        "embed_provider": provider.kind,
        "embed_model": provider.model,
    }
    if provider.kind == "gemini":
        settings |= {"gemini_api_key": secret, "gemini_base_url": provider.base_url}
    else:
        settings |= {"openai_api_key": secret, "embed_base_url": provider.base_url}
    return settings


def _stored_queries(texts: Mapping[str, str]) -> StoredQueries:
    """The registry of texts of the catalog. Raises `StoredQueriesInvalid`."""
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
