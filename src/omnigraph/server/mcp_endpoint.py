"""The Model Context Protocol on a server: `/mcp`, or `/graphs/{id}/mcp`.

A tool is a request to this same application, with the token of the caller, so nothing can be reached this way
that the HTTP API would refuse. Tests: tests/server/test_mcp.py.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from omnigraph.errors import PolicyError
from omnigraph.graph.gate import Action, Gate, OpenGate, Request
from omnigraph.mcp.backend import AppBackend
from omnigraph.mcp.session import AgentSession
from omnigraph.policy.gate import PolicyGate, open_gate
from omnigraph.server.graphs import DEFAULT_ID, ServedGraph, ServedGraphs
from omnigraph.server.tokens import Tokens

if TYPE_CHECKING:
    from pathlib import Path

    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from omnigraph.api.graph import Graph
    from omnigraph.mcp.protocol import SessionOf

MAX_REQUEST_BYTES: Final = 4 * 1024 * 1024

_CALLER: Final = "omnigraph.caller"
_SAMPLE_BRANCHES: Final = ("main", "agent/sample/branch")
"""Rules tell protected branches from others; with a protected one of the policy, these stand for all."""

_WITHOUT_BRANCH: Final = frozenset(
    [Action.INVOKE_QUERY, Action.ADMIN, Action.GRAPH_LIST, Action.CONFIG_MANAGE]
)
_OF_TARGETS: Final = frozenset([Action.SCHEMA_APPLY, Action.BRANCH_DELETE])
_FROM_AND_TO: Final = frozenset([Action.BRANCH_CREATE, Action.BRANCH_MERGE])


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, and about which graph."""

    served: ServedGraph
    actor: str | None
    authorization: bytes | None


class McpEndpoint:
    """Requests of MCP clients, answered by requests to `app`. The SDK is imported by the first one."""

    def __init__(
        self, app: ASGIApp, *, is_multi: bool, server_gate: Callable[[], Gate | None]
    ) -> None:
        self._app = app
        self._is_multi = is_multi
        self._server_gate = server_gate
        self._manager: StreamableHTTPSessionManager | None = None
        self._serving: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self._ending = asyncio.Event()

    async def close(self) -> None:
        """The server ends; no request is running any more."""
        if self._serving is not None:
            self._ending.set()
            await self._serving

    async def answer(
        self, caller: Caller, content: bytes, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer a request of an authenticated caller, whose body has been read."""
        if self._serving is None:
            self._serving = asyncio.create_task(self._serve())
        await self._ready.wait()
        assert self._manager is not None, "it is set before anything is ready"
        incoming = iter([{"type": "http.request", "body": content, "more_body": False}])

        async def receive_body() -> Message:
            for message in incoming:
                return message
            return await receive()

        await self._manager.handle_request({**scope, _CALLER: caller}, receive_body, send)

    async def _serve(self) -> None:
        """Keep the SDK running; one task has to begin and end it."""
        self._manager = await asyncio.to_thread(_manager_for, self._session)
        async with self._manager.run():
            self._ready.set()
            await self._ending.wait()

    def _session(self, request: object) -> AgentSession:
        caller: Caller = request.scope[_CALLER]  # type: ignore[attr-defined]  # the SDK passes on Starlette's
        backend = AppBackend(
            self._app,
            caller.served.id,
            is_multi=self._is_multi,
            authorization=caller.authorization,
        )
        may = partial(may_somewhere, caller.served.gate, self._server_gate(), caller.actor)
        return AgentSession(backend, actor=caller.actor, may=may)


def embedded_session(
    graph: Graph,
    actor: str | None,
    policy: str | Path | None,
    *,
    default_branch: str | None,
    is_read_only: bool,
) -> AgentSession:
    """A session on a graph of this process, through an application that listens on no port."""
    from omnigraph.server.app import App
    from omnigraph.server.call import ServerState

    gate: Gate = OpenGate() if policy is None else open_gate(policy, resource=DEFAULT_ID)
    graphs = ServedGraphs([ServedGraph(DEFAULT_ID, graph.uri, graph, gate)], is_multi=False)
    tokens, authorization = {}, None
    if actor is not None:
        token = secrets.token_urlsafe()
        tokens, authorization = {actor: token}, f"Bearer {token}".encode()
    backend = AppBackend(
        App(ServerState(graphs), Tokens(tokens)),
        DEFAULT_ID,
        is_multi=False,
        authorization=authorization,
    )
    return AgentSession(
        backend,
        actor=actor,
        default_branch=default_branch,
        is_read_only=is_read_only,
        may=partial(may_somewhere, gate, None, actor),
    )


def _manager_for(session_of: SessionOf) -> StreamableHTTPSessionManager:
    from omnigraph.mcp.protocol import http_manager

    return http_manager(session_of, MAX_REQUEST_BYTES)


def may_somewhere(gate: Gate, server_gate: Gate | None, actor: str | None, action: Action) -> bool:
    """Whether a policy allows an action on at least one branch."""
    if action is Action.GRAPH_LIST:
        return server_gate is not None and _allows(server_gate, Request(actor, action))
    branches = list(_SAMPLE_BRANCHES)
    if isinstance(gate, PolicyGate):
        branches += sorted(gate.policy.protected_branches)[:1]
    return any(_allows(gate, request) for request in _requests(actor, action, branches))


def _requests(actor: str | None, action: Action, branches: list[str]) -> list[Request]:
    if action in _WITHOUT_BRANCH:
        return [Request(actor, action)]
    if action in _OF_TARGETS:
        return [Request(actor, action, None, branch) for branch in branches]
    if action in _FROM_AND_TO:
        return [Request(actor, action, a, b) for a in branches for b in branches]
    found = [Request(actor, action, branch) for branch in branches]
    return [*found, Request(actor, action)] if action is Action.READ else found


def _allows(gate: Gate, request: Request) -> bool:
    try:
        gate.check(request)
    except PolicyError:
        return False
    return True
