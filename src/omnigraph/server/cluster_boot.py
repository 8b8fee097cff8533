"""A server for the applied revision of a cluster.

Policies and stored queries come from the snapshot. The port opens first; graphs are opened behind it, a few at a
time. One with a problem is blocked, and the others are served. Tests: tests/server/test_cluster_boot.py.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from omnigraph.api.graph import open as open_graph
from omnigraph.api.schema import accepted_catalog
from omnigraph.cluster.config import ProviderDeclaration
from omnigraph.cluster.documents import Diagnostics
from omnigraph.cluster.serving import ServingGraph, ServingSnapshot, not_ready, read_snapshot
from omnigraph.errors import (
    OmnigraphError,
    PolicyError,
    PolicyInvalid,
    StoredQueriesBroken,
    StoredQueriesInvalid,
)
from omnigraph.graph.gate import Gate, OpenGate, Request
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
from omnigraph.stored_queries.registry import registry_of_texts

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
        self.cluster = cluster
        self.snapshot = snapshot
        self.server_gate = server_gate
        self.has_policy = snapshot.has_policy
        self._opening: Opening | None = None

    @classmethod
    def read(cls, cluster: str) -> ClusterBoot:
        """Raises `ServerConfigError` or `PolicyInvalid`."""
        return cls.of_snapshot(cluster, read_snapshot(cluster))

    @classmethod
    def of_snapshot(cls, cluster: str, snapshot: ServingSnapshot) -> ClusterBoot:
        """Raises `ServerConfigError` or `PolicyInvalid`."""
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
        opening = Opening(access)
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
            raise not_ready(self.cluster, problems)
        return graphs

    def begin(self, graphs: ServedGraphs) -> None:
        """The port is open: open the graphs behind it."""
        if self._opening is not None:
            self._opening.open_all(self.snapshot.graphs, graphs).shutdown(wait=False)


class Opening:
    """Opens graphs in threads and notes why some cannot be served."""

    def __init__(self, access: Access) -> None:
        self._default: Gate = OpenGate() if access is Access.OPEN else ReadsOnly()
        self._gates: dict[str, Gate] = {}
        self.failed: dict[str, tuple[str, str]] = {}

    def open_all(self, waiting: Iterable[ServingGraph], graphs: ServedGraphs) -> ThreadPoolExecutor:
        """Begin to open graphs that are `waiting`, a few at a time."""

        def open_one(graph: ServingGraph) -> None:
            opened = self.open(graph)
            if isinstance(opened, ServedGraph):
                graphs.add(opened)
            else:
                graphs.block(opened)

        pool = ThreadPoolExecutor(OPENED_AT_ONCE, "omnigraph-open")
        for graph in waiting:
            pool.submit(open_one, graph)
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

    def open(self, graph: ServingGraph) -> ServedGraph | UnavailableGraph:
        """Open one graph that is `waiting`, or say why it is blocked."""
        if graph.id in self.failed:
            return self._blocked(graph, "invalid_policy", self.failed[graph.id][1])
        if (problem := graph.problem) is not None:
            return self._blocked(graph, "invalid_configuration", problem.message, problem.code)
        gate = self._gates[graph.id]
        try:
            settings = graph_settings(graph.provider, graph.external_blobs)
            queries = registry_of_texts(graph.queries)
            handle = open_graph(graph.uri, policy=gate)
            try:
                queries.require_valid(graph.id, accepted_catalog(handle))
            except BaseException:
                handle.close()
                raise
        except SecretMissing as error:
            return self._blocked(graph, "invalid_configuration", str(error))
        except (StoredQueriesBroken, StoredQueriesInvalid) as error:
            return self._blocked(graph, "invalid_stored_queries", str(error))
        except PolicyInvalid as error:
            # Its read rules do not fit the schema.
            return self._blocked(graph, "invalid_policy", str(error))
        except OmnigraphError as error:
            return self._blocked(graph, "open_failed", str(error))
        except Exception as error:
            # What a library raises for a damaged file is not ours, and the graph is blocked all the same.
            return self._blocked(graph, "open_failed", f"{type(error).__name__}: {error}")
        log.info("graph '%s' at %s, %d stored queries", graph.id, graph.uri, len(queries))
        return ServedGraph(graph.id, graph.uri, handle, gate, queries, settings)

    def _blocked(
        self, graph: ServingGraph, failure: Failure, message: str, code: str | None = None
    ) -> UnavailableGraph:
        log.error("graph '%s' at %s is blocked: %s: %s", graph.id, graph.uri, failure, message)
        self.failed[graph.id] = (code or failure, message)
        return UnavailableGraph(graph.id, graph.uri, self._gates[graph.id], "blocked", failure)


class SecretMissing(ValueError):
    """The variable with the key of an embedding provider is not set."""


def graph_settings(
    provider: ProviderDeclaration | None, external_blobs: tuple[str, ...] | None
) -> dict[str, Any]:
    """The settings of a graph: its embedding provider, and where its external blobs may be.

    Raises `SecretMissing`.
    """
    settings: dict[str, Any] = {}
    if external_blobs is not None:
        settings["external_blobs"] = ",".join(external_blobs)
    if provider is None:
        return settings
    secret = None
    if provider.api_key is not None:
        secret = read_secret(provider.api_key)
        if secret is None:
            raise SecretMissing(f"the embedding provider needs the variable {provider.api_key}")
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
