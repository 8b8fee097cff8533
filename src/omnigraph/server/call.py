"""One request as a handler sees it, and what a handler returns.

Handlers are plain functions that run in a worker thread: they ask the gate, reserve their share of an
actor's writes, call the engine and return an answer. Nothing here knows routes or sockets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeVar

from omnigraph.errors import PolicyError, PolicyUndecided
from omnigraph.graph.gate import Action, Gate, Request
from omnigraph.history.commits import WriteResult
from omnigraph.read.budget import CancelToken, QueryBudget
from omnigraph.server.admission import Admission
from omnigraph.server.graphs import ServedGraph, ServedGraphs, UnavailableGraph
from omnigraph.server.metrics import ServerMetrics
from omnigraph.server.problems import HttpProblem
from omnigraph.server.uploads import Uploads
from omnigraph.wire.contracts import ALL_FIELDS, CONTRACT_07, CONTRACT_13, Contract

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph
    from omnigraph.cluster.serving import ServingSnapshot
    from omnigraph.server.deployments import Deployments
    from omnigraph.spark.choice import EngineArgument

MAIN: Final = "main"
ARROW_STREAM: Final = "application/vnd.apache.arrow.stream"

SLOW_QUERY_SECONDS: Final = 5.0
"""Reads that take longer are logged with their plan."""

W = TypeVar("W", bound=WriteResult)

Write = Callable[[bytes], None]
"""Sends a part of a streamed answer; blocks while the client is slow."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer: a document, or bytes with their type."""

    document: object = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    media_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Stream:
    """An answer that is sent in parts. Everything that can be refused was refused before."""

    produce: Callable[[Write], None]
    media_type: str
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


class ServerState:
    """What all requests share."""

    def __init__(
        self,
        graphs: ServedGraphs,
        *,
        admission: Admission | None = None,
        server_gate: Gate | None = None,
        engine: EngineArgument = "inline",
        shutdown_grace_seconds: int = 25,
        source_version: str | None = None,
        requires_token: bool = False,
        cluster: ServingSnapshot | None = None,
        slow_query_seconds: float = SLOW_QUERY_SECONDS,
    ) -> None:
        self.graphs = graphs
        self.admission = admission or Admission()
        self.server_gate = server_gate
        self.engine = engine
        self.shutdown_grace_seconds = shutdown_grace_seconds
        self.source_version = source_version
        self.requires_token = requires_token
        self.cluster = cluster
        self._installing = Lock()
        self.deployments: Deployments | None = None
        self.is_draining = False
        self.budget = QueryBudget.from_environment()
        self.slow_query_seconds = slow_query_seconds
        self.metrics = ServerMetrics()
        self.metrics.watch_admission(self.admission)
        self.metrics.watch_open_graphs(lambda: len(self.graphs))
        self.uploads = Uploads()

    def install(
        self,
        graphs: Iterable[ServedGraph],
        unavailable: Iterable[UnavailableGraph],
        server_gate: Gate | None,
        cluster: ServingSnapshot,
    ) -> list[ServedGraph]:
        """Serve another revision of a cluster from now on; the open graphs that it replaces."""
        with self._installing:
            replaced = self.graphs.replace(graphs, unavailable)
            self.server_gate, self.cluster = server_gate, cluster
            return replaced


@dataclass(slots=True)
class Call:
    """A request that was authenticated, routed and decoded."""

    state: ServerState
    contract: Contract
    actor: str | None
    served: ServedGraph | None
    path: Mapping[str, str]
    query: Mapping[str, Sequence[str]]
    headers: Mapping[str, str]
    body: Any = None
    is_head: bool = False
    cancel: CancelToken = field(default_factory=CancelToken)
    branch: str | None = None
    """The branch that the gate was asked about last."""
    rows: int | None = None
    """How many rows the answer has, if it has rows."""

    @property
    def is_13(self) -> bool:
        return self.contract.version == CONTRACT_13.version

    @property
    def documents(self) -> Contract:
        """What writes the answer: the contract, unless the client accepts documents with all fields."""
        return CONTRACT_07 if wants_all_fields(self.headers.get("accept")) else self.contract

    @property
    def target(self) -> ServedGraph:
        """The graph that the path names."""
        assert self.served is not None, "only routes of graphs ask for one"
        return self.served

    @property
    def graph(self) -> Graph:
        """A handle that writes in the name of the caller."""
        return self.target.graph.as_actor(self.actor)

    @property
    def uri(self) -> str:
        return self.target.uri

    # -- what the caller may do -------------------------------------------------------------

    def allow(
        self, action: Action, branch: str | None = None, target_branch: str | None = None
    ) -> None:
        """Raises `PolicyError`."""
        self.branch = branch
        self.target.gate.check(Request(self.actor, action, branch, target_branch))

    def may(
        self, action: Action, branch: str | None = None, target_branch: str | None = None
    ) -> bool:
        """As `allow`, but a denial is False. Raises `PolicyUndecided`."""
        try:
            self.allow(action, branch, target_branch)
        except PolicyUndecided:
            raise
        except PolicyError:
            return False
        return True

    def admit(self, estimate: int) -> AbstractContextManager[None]:
        """Reserve a write of the caller. Raises `TooManyRequests`."""
        return self.state.admission.admit(self.actor, estimate)

    def noted(self, done: W) -> W:
        """Count the commit of a write, if it made one."""
        receipt = done.receipt
        if receipt.graph_commit_id is not None and not receipt.replayed:
            self.state.metrics.add_commit(self.target.id, receipt.operation.value)
        return done

    # -- parameters -------------------------------------------------------------------------

    def one(self, name: str) -> str | None:
        """A parameter of the query string that may be given once. Raises `HttpProblem` 400."""
        given = self.query.get(name, ())
        if len(given) > 1:
            raise HttpProblem(400, f"query parameter '{name}' is given {len(given)} times")
        return given[0] if given else None

    def only(self, *known: str) -> None:
        """Raises `HttpProblem` 400 for a parameter of the query string that is not known."""
        for name in self.query:
            if name not in known:
                listed = ", ".join(known) or "none"
                raise HttpProblem(400, f"unknown query parameter '{name}' (known: {listed})")

    def integer(self, name: str, default: int) -> int:
        text = self.one(name)
        if text is None:
            return default
        if not (text.isascii() and text.isdigit() and len(text) <= 18):
            raise HttpProblem(400, f"query parameter '{name}' must be a whole number")
        return int(text)

    def switch(self, name: str) -> bool:
        text = self.one(name)
        if text not in (None, "true", "false"):
            raise HttpProblem(400, f"query parameter '{name}' must be true or false")
        return text == "true"

    @property
    def idempotency_key(self) -> str | None:
        return self.headers.get("idempotency-key")


def wants_all_fields(accept: str | None) -> bool:
    """Whether an `Accept` header names our own media type."""
    return accept is not None and ALL_FIELDS in accept


def branch_of(given: str | None) -> str:
    """A branch name as the policy and the engine see it: trimmed, by default `main`."""
    name = MAIN if given is None else given.strip()
    if not name:
        raise HttpProblem(400, "branch name cannot be empty")
    return name


def source_text(given: str) -> str:
    """A query or a schema as text. With a line break it is never taken for the path of a file."""
    return given if "\n" in given else given + "\n"
