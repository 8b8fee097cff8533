"""The graphs that a server has opened, and who may do what with them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from threading import Condition, Lock
from typing import TYPE_CHECKING, Any, Final, Literal

from omnigraph.errors import PolicyError, ServerConfigError
from omnigraph.graph.gate import Action, Gate, OpenGate, Request
from omnigraph.server.problems import HttpProblem
from omnigraph.storage.uris import normalise_root
from omnigraph.stored_queries.registry import StoredQueries

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph

DEFAULT_ID: Final = "default"
"""How contract 0.13 names the graph of a server that serves one without a name."""

_ID: Final = re.compile(r"[A-Za-z0-9-]{1,64}\Z")
_RESERVED_IDS: Final = frozenset(["policies", "healthz", "openapi", "graphs"])


class Access(Enum):
    """What requests may do, as the start of the server has decided it."""

    OPEN = "open"
    DEFAULT_DENY = "default-deny"
    POLICY = "policy"


class ReadsOnly:
    """The gate of a graph without a policy on a server with tokens: only reads are allowed."""

    def check(self, request: Request) -> None:
        if request.action is not Action.READ:
            raise PolicyError(
                f"action '{request.action.value}' is denied for actor '{request.actor}': the graph "
                "has no policy, so tokens only allow reads"
            )


class Uses:
    """Counts the requests that use an open graph. Thread-safe."""

    def __init__(self) -> None:
        self._running = 0
        self._changed = Condition()

    def begin(self) -> None:
        with self._changed:
            self._running += 1

    def end(self) -> None:
        with self._changed:
            self._running -= 1
            if not self._running:
                self._changed.notify_all()

    def wait_idle(self, seconds: float) -> bool:
        """Whether no request uses the graph, at the latest after that time."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._running, seconds)


@dataclass(frozen=True, slots=True)
class ServedGraph:
    """One open graph: its id, its address as configured, its gate and its stored queries."""

    id: str
    uri: str
    graph: Graph
    gate: Gate = field(default_factory=OpenGate)
    queries: StoredQueries = field(default_factory=StoredQueries)
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings that have other values for this graph."""
    uses: Uses = field(default_factory=Uses)

    @property
    def is_remote(self) -> bool:
        """Whether it is on an object store."""
        return self.uri.startswith("s3://")


Failure = Literal[
    "invalid_configuration",
    "invalid_policy",
    "invalid_external_blob_policy",
    "open_failed",
    "invalid_stored_queries",
]


@dataclass(frozen=True, slots=True)
class UnavailableGraph:
    """A graph that is being opened or changed, or that cannot be served."""

    id: str
    uri: str
    gate: Gate
    state: Literal["loading", "transitioning", "blocked"]
    failure: Failure | None = None

    def is_known_to(self, actor: str | None, server_gate: Gate | None) -> bool:
        """Whether an actor may learn that there is such a graph."""
        asked = [(self.gate, Action.READ)]
        if server_gate is not None:
            asked.append((server_gate, Action.GRAPH_LIST))
        for gate, action in asked:
            try:
                gate.check(Request(actor, action))
            except PolicyError:
                continue
            return True
        return False


def check_graph_id(graph_id: str) -> None:
    """Raises `ServerConfigError` for an id that no path can name."""
    if not is_graph_id(graph_id) or graph_id in _RESERVED_IDS:
        raise ServerConfigError(
            f"invalid graph id '{graph_id}': use 1 to 64 letters, digits and '-', and none of "
            f"{', '.join(sorted(_RESERVED_IDS))}"
        )


def is_graph_id(text: str) -> bool:
    return _ID.match(text) is not None


def refuse_same_address(uris: Iterable[tuple[str, str]]) -> None:
    """Raises `ServerConfigError` when two ids name one graph."""
    known: dict[str, str] = {}
    for graph_id, uri in uris:
        root = normalise_root(uri).uri
        if root in known:
            problem = f"graphs '{known[root]}' and '{graph_id}' have the same address '{root}'"
            raise ServerConfigError(f"{problem}; serve it under one id")
        known[root] = graph_id


class ServedGraphs:
    """The graphs of a server, one under flat paths or several under `/graphs/{id}`.

    Those of a cluster are opened behind the port, and deployments replace them. Thread-safe.
    """

    def __init__(
        self,
        graphs: Iterable[ServedGraph],
        *,
        is_multi: bool,
        unavailable: Iterable[UnavailableGraph] = (),
    ) -> None:
        self._by_id = {served.id: served for served in graphs}
        self._unavailable = {one.id: one for one in unavailable}
        self._lock = Lock()
        self.is_multi = is_multi

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[ServedGraph]:
        """The open graphs, by id."""
        with self._lock:
            return iter([self._by_id[graph_id] for graph_id in sorted(self._by_id)])

    def unavailable(self) -> list[UnavailableGraph]:
        """The other graphs, by id."""
        with self._lock:
            return [self._unavailable[graph_id] for graph_id in sorted(self._unavailable)]

    def add(self, served: ServedGraph) -> None:
        """A graph is open now."""
        with self._lock:
            self._by_id[served.id] = served
            self._unavailable.pop(served.id, None)

    def block(self, graph: UnavailableGraph) -> None:
        """A graph cannot be served."""
        with self._lock:
            self._unavailable[graph.id] = graph

    def withdraw(self, graph_id: str) -> ServedGraph | None:
        """Refuse requests to a graph that is about to change; the graph, if it was open."""
        with self._lock:
            served = self._by_id.pop(graph_id, None)
            if served is not None:
                self._unavailable[graph_id] = UnavailableGraph(
                    served.id, served.uri, served.gate, "transitioning"
                )
            return served

    def replace(
        self, graphs: Iterable[ServedGraph], unavailable: Iterable[UnavailableGraph]
    ) -> list[ServedGraph]:
        """Serve other graphs from now on; those that were open and are no longer served."""
        with self._lock:
            before = self._by_id
            self._by_id = {served.id: served for served in graphs}
            self._unavailable = {one.id: one for one in unavailable}
            kept = {id(served) for served in self._by_id.values()}
            return [served for served in before.values() if id(served) not in kept]

    def only(self) -> ServedGraph:
        """The graph of a server for one graph, until `uses.end()` is called."""
        (served,) = self._by_id.values()
        served.uses.begin()
        return served

    def find(self, graph_id: str) -> ServedGraph | UnavailableGraph:
        """A graph; an open one until `uses.end()` is called.

        Raises `HttpProblem` 400 for an id that is none, 404 for an unknown one.
        """
        if not is_graph_id(graph_id):
            raise HttpProblem(400, f"invalid graph id '{graph_id[:64]}'")
        with self._lock:
            served = self._by_id.get(graph_id)
            if served is not None:
                # Under the lock, so that a graph that is withdrawn has no new use.
                served.uses.begin()
                return served
            other = self._unavailable.get(graph_id)
        if other is None:
            raise unknown_graph(graph_id)
        return other

    def gate_of(self, graph_id: str) -> Gate | None:
        """The policy in force on a graph, open or not."""
        with self._lock:
            found = self._by_id.get(graph_id) or self._unavailable.get(graph_id)
        return None if found is None else found.gate


def unknown_graph(graph_id: str) -> HttpProblem:
    """The answer for a graph that does not exist, or that the caller may not know of."""
    return HttpProblem(404, f"graph '{graph_id[:64]}' not found")
