"""The application: from a request to a handler and from its answer to a response.

Checks come in this order: path and method, token, version header, graph, body. The handler then asks the
policy, reserves its share of the actor's writes and calls the engine, all in a worker thread. A read ends
when its client goes away; a write that has begun is finished.
Tests: tests/server.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from omnigraph.errors import QueryCancelled, TooManyRequests
from omnigraph.extras import is_installed
from omnigraph.server.bodies import BODY_SECONDS, check_content_type, decode_body, read_body
from omnigraph.server.call import Answer, Call, ServerState, Stream, Write, wants_all_fields
from omnigraph.server.exchange import UNSTAMPED, Exchange, HttpApi
from omnigraph.server.explorer import EXPLORER
from omnigraph.server.graphs import ServedGraph, unknown_graph
from omnigraph.server.logs import REQUEST_ID, access_log, fields, id_of, request_id
from omnigraph.server.mcp_endpoint import MAX_REQUEST_BYTES, Caller, McpEndpoint
from omnigraph.server.openapi import OPENAPI
from omnigraph.server.problems import HttpProblem, error_answer
from omnigraph.server.router import Match, Router
from omnigraph.server.routes import ONLY_07, ONLY_13, ROUTES, Route
from omnigraph.server.routes import Scope as RouteScope
from omnigraph.server.streams import streamed
from omnigraph.server.tokens import SCHEME, Tokens
from omnigraph.server.young_reads import YOUNG_READS, YoungReads
from omnigraph.settings import scoped_settings
from omnigraph.wire.contracts import (
    ALL_FIELDS,
    CONTRACT_07,
    CONTRACT_13,
    HEADER,
    VERSION_13,
    Contract,
)
from omnigraph.wire.requests import InvokeStoredQueryRequest

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from omnigraph.server.tracing import Tracing

READ_THREADS: Final = 32
WRITE_THREADS: Final = 64
"""Writers of one branch share a turn, so a large number of them can wait together."""
STREAM_THREADS: Final = 1024
"""Each reader of a stream has one as long as it reads, however slowly; more readers are refused."""
_HEADER_NAME: Final = HEADER.lower().encode()
_REQUEST_ID: Final = REQUEST_ID.lower().encode()
_MISMATCH: Final = "exactly one omnigraph-http-api header with value 0.13 is required"
_encoder: Final = msgspec.json.Encoder()


class App:
    """The ASGI application of a server."""

    def __init__(
        self,
        state: ServerState,
        tokens: Tokens,
        *,
        http_api: HttpApi = "both",
        body_seconds: float = BODY_SECONDS,
        tracing: Tracing | None = None,
    ) -> None:
        self.state = state
        self._tracing = tracing
        self._tokens = tokens
        state.requires_token = state.requires_token or len(tokens) > 0
        self._http_api = http_api
        self._body_seconds = body_seconds
        self._readers = ThreadPoolExecutor(READ_THREADS, "omnigraph-read")
        self._young = YoungReads(YOUNG_READS)
        self._writers = ThreadPoolExecutor(WRITE_THREADS, "omnigraph-write")
        self._streams = ThreadPoolExecutor(STREAM_THREADS, "omnigraph-stream")
        self._streaming = 0
        self._running = 0
        self._reading = 0
        state.metrics.watch_inflight("read", lambda: self._reading)
        state.metrics.watch_inflight("stream", lambda: self._streaming)
        state.metrics.watch_waiting_reads(lambda: self._young.waiting)
        self._idle = asyncio.Event()
        self._idle.set()
        routes = (*ROUTES, OPENAPI, *EXPLORER)
        is_multi = state.graphs.is_multi
        self._router_07 = Router(_of(routes, ONLY_07), is_nested=is_multi)
        self._router_13 = Router(_of(routes, ONLY_13), is_nested=True)
        self._mcp: McpEndpoint | None = None
        if http_api != "0.7" and is_installed("mcp"):
            self._mcp = McpEndpoint(
                self, is_multi=is_multi, server_gate=lambda: self.state.server_gate
            )

    # -- the life of the server -------------------------------------------------------------

    async def close(self) -> None:
        """The server has stopped accepting requests, and none is running."""
        if self._mcp is not None:
            await self._mcp.close()
        if self._tracing is not None:
            await asyncio.to_thread(self._tracing.close)

    async def drained(self) -> None:
        """Refuse new work from now on, and return when everything that runs has ended."""
        self.state.is_draining = True
        await self._idle.wait()
        if self.state.deployments is not None:
            await asyncio.to_thread(self.state.deployments.end)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        self._running += 1
        self._idle.clear()
        try:
            await self._respond(scope, receive, send)
        finally:
            self._running -= 1
            if not self._running:
                self._idle.set()

    # -- one request ------------------------------------------------------------------------

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(self._contract_of(scope), self._http_api)
        given = next((value for name, value in scope["headers"] if name == _REQUEST_ID), None)
        exchange.request_id = id_of(given)
        request_id.set(exchange.request_id)
        span: AbstractContextManager[Span | None] = nullcontext()
        if self._tracing is not None:
            span = self._tracing.request(scope["method"], scope["headers"])
        try:
            with span as exchange.span:
                await self._exchanged(scope, receive, send, exchange)
        finally:
            self._streaming -= exchange.is_streaming
            if exchange.served is not None:
                exchange.served.uses.end()

    async def _exchanged(
        self, scope: Scope, receive: Receive, send: Send, exchange: Exchange
    ) -> None:
        began = time.perf_counter()
        request = Request(scope, receive)
        is_head = scope["method"] == "HEAD"
        try:
            if (graph_id := self._mcp_graph(scope)) is not None:
                await self._answer_mcp(graph_id, exchange, scope, receive, send)
                return
            answer = await self._answer(request, exchange)
            response = self._response(answer, exchange, is_head=is_head)
        except Exception as error:
            all_fields = wants_all_fields(request.headers.get("accept"))
            failed = error_answer(error, exchange.contract, all_fields=all_fields)
            if failed.status == 409 and exchange.served is not None:
                self.state.metrics.add_conflict(exchange.served.id)
            body = b"" if is_head else _encoder.encode(failed.body)
            response = Response(
                body, failed.status, exchange.stamped(failed.headers), "application/json"
            )
        self._note(scope, exchange, response.status_code, time.perf_counter() - began)
        await response(scope, receive, send)

    def _note(self, scope: Scope, exchange: Exchange, status: int, seconds: float) -> None:
        """Count and log a request whose answer is about to begin."""
        self.state.metrics.add_request(exchange.operation, status, seconds)
        if exchange.span is not None:
            from omnigraph.server.tracing import describe

            describe(exchange.span, exchange.operation, status, exchange.attributes())
        method, path = scope["method"], _raw_path(scope).decode("latin-1")
        access_log.info(
            "%s %s %s %.1fms actor=%s request=%s",
            method,
            path,
            status,
            seconds * 1e3,
            exchange.actor or "-",
            exchange.request_id,
            extra=fields(
                method=method,
                path=path,
                route=exchange.operation,
                status=status,
                seconds=round(seconds, 6),
                **exchange.known(),
            ),
        )

    def _mcp_graph(self, scope: Scope) -> str | None:
        """The graph whose tools are asked for, if the path is that of the Model Context Protocol."""
        match _raw_path(scope).decode("latin-1").split("/"):
            case ["", "mcp"] if self._mcp is not None and not self.state.graphs.is_multi:
                return self.state.graphs.only().id
            case ["", "graphs", graph_id, "mcp"] if self._mcp is not None:
                return graph_id
        return None

    async def _answer_mcp(
        self, graph_id: str, exchange: Exchange, scope: Scope, receive: Receive, send: Send
    ) -> None:
        exchange.operation = "mcp"
        if self.state.requires_token:
            exchange.actor = self._actor_of(scope)
        if self.state.is_draining:
            raise HttpProblem(503, "the server is shutting down", code=exchange.draining_code)
        self._find_graph(graph_id, exchange)
        assert exchange.served is not None, "or an error was raised"
        authorization = next((v for k, v in scope["headers"] if k == b"authorization"), None)
        assert self._mcp is not None, "only then there are such paths"
        caller = Caller(exchange.served, exchange.actor, authorization)
        # The SDK reads a body for as long as its sender takes, and logs it as a failure if one leaves.
        request = Request(scope, receive)
        content = await read_body(request, MAX_REQUEST_BYTES, self._body_seconds)
        await self._mcp.answer(caller, content, scope, receive, send)

    def _contract_of(self, scope: Scope) -> Contract | None:
        """The contract that the version header asks for; None if its value is not valid."""
        given = [value for name, value in scope["headers"] if name == _HEADER_NAME]
        if self._http_api == "0.7" or (not given and self._http_api == "both"):
            return CONTRACT_07
        return CONTRACT_13 if given == [VERSION_13.encode()] else None

    async def _answer(self, request: Request, exchange: Exchange) -> Answer | Stream:
        match = self._match(request.scope, exchange)
        route = match.route
        exchange.enter(route)
        if route.scope is not RouteScope.PUBLIC:
            if self.state.requires_token:
                exchange.actor = self._actor_of(request.scope)
            if exchange.is_mismatch and route.operation not in UNSTAMPED:
                raise HttpProblem(400, _MISMATCH, code="api_contract_mismatch")
            if self.state.is_draining:
                raise HttpProblem(503, "the server is shutting down", code=exchange.draining_code)
        if route.scope is RouteScope.GRAPH:
            self._find_graph(match.path.get("graph_id"), exchange)
        call = Call(
            state=self.state,
            contract=exchange.contract,
            actor=exchange.actor,
            served=exchange.served,
            path=match.path,
            query=_parameters(request.scope["query_string"]),
            headers=_headers(request.scope["headers"]),
            is_head=request.method == "HEAD",
        )
        exchange.call = call
        kind = route.body_for(exchange.contract.version)
        if kind is not None:
            call.body = await self._body(request, route, kind)
        return await self._run(request, route, call)

    def _match(self, scope: Scope, exchange: Exchange) -> Match:
        raw = _raw_path(scope)
        if exchange.contract is CONTRACT_13 and not exchange.is_mismatch:
            return self._router_13.find(scope["method"], raw)
        if not exchange.is_mismatch:
            return self._router_07.find(scope["method"], raw)
        try:
            return self._router_13.find(scope["method"], raw)
        except HttpProblem:
            return self._router_07.find(scope["method"], raw)

    def _actor_of(self, scope: Scope) -> str:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        text = given[0].decode("latin-1") if len(given) == 1 else ""
        if not text.startswith(SCHEME):
            raise _unauthorized("missing bearer token")
        actor = self._tokens.actor_of(text.removeprefix(SCHEME))
        if actor is None:
            raise _unauthorized("invalid bearer token")
        return actor

    def _find_graph(self, graph_id: str | None, exchange: Exchange) -> None:
        """The graph of a path, which the exchange uses until it ends; a flat path names none."""
        graphs = self.state.graphs
        if graphs.is_multi:
            assert graph_id is not None, "with several graphs, every path of a graph names it"
            found = graphs.find(graph_id)
            if isinstance(found, ServedGraph):
                exchange.served = found
                return
            if not found.is_known_to(exchange.actor, self.state.server_gate):
                raise unknown_graph(found.id)
            message = f"graph '{found.id}' is {found.state}"
            raise HttpProblem(503, message, code=exchange.unavailable_code)
        only = exchange.served = graphs.only()
        if graph_id is not None and graph_id != only.id:
            raise unknown_graph(graph_id)

    async def _body(self, request: Request, route: Route, kind: type[Any]) -> Any:
        content = await read_body(request, route.body_bytes, self._body_seconds)
        if kind is bytes:
            check_content_type(request, route.body_media)
            return content
        if not route.body_required:
            return _optional_body(content, kind)
        check_content_type(request, route.body_media)
        return decode_body(content, kind)

    async def _run(self, request: Request, route: Route, call: Call) -> Answer | Stream:
        """Run the handler in a thread; end a read whose client goes away.

        Public routes read no graph and do not wait for a thread, however many queries are running.
        """
        if route.scope is RouteScope.PUBLIC:
            return _handle(route, call)
        loop = asyncio.get_running_loop()
        handle = partial(copy_context().run, _handle, route, call)
        if route.is_write:
            return await loop.run_in_executor(self._writers, handle)
        # One that waits for an object store leaves the interpreter to others.
        waits = call.served is not None and call.served.is_remote
        with await self._young.begin(counts=not waits) as young:
            running = loop.run_in_executor(self._readers, handle)
            young.when_old = partial(self._watch, request, running, call)
            is_read = route.scope is RouteScope.GRAPH
            self._reading += is_read
            try:
                return await running
            except QueryCancelled:
                raise HttpProblem(400, "the client has closed the connection") from None
            finally:
                self._reading -= is_read

    def _watch(self, request: Request, running: asyncio.Future[Any], call: Call) -> None:
        """End a read as soon as its client has gone."""
        watch = asyncio.get_running_loop().create_task(_until_gone(request))
        watch.add_done_callback(lambda done: None if done.cancelled() else call.cancel.cancel())
        running.add_done_callback(lambda _: watch.cancel())

    def _response(self, answer: Answer | Stream, exchange: Exchange, *, is_head: bool) -> Response:
        headers = exchange.stamped(answer.headers)
        if exchange.successor is not None:
            headers["Deprecation"] = "true"
            headers["Link"] = f'<{exchange.successor}>; rel="successor-version"'
        if isinstance(answer, Stream):
            if self._streaming >= STREAM_THREADS:
                raise TooManyRequests(f"{STREAM_THREADS} streams are being read")
            exchange.is_streaming = True
            self._streaming += 1
            parts = streamed(answer.produce, self._streams)
            return StreamingResponse(
                parts, answer.status, headers=headers, media_type=answer.media_type
            )
        content = answer.content
        assert content is not None, "documents were encoded in the thread"
        if is_head and "Content-Length" not in headers:
            headers["Content-Length"] = str(len(content))
        response = Response(
            b"" if is_head else content, answer.status, media_type=answer.media_type
        )
        if answer.status == 304:
            del response.headers["content-length"]
        response.headers.update(headers)
        return response


def _raw_path(scope: Scope) -> bytes:
    """The path as it was sent, percent-encoded: one segment and one line of the log stay one."""
    raw: bytes = scope["raw_path"]
    return raw.partition(b"?")[0]


def _handle(route: Route, call: Call) -> Answer | Stream:
    """In a thread: call the handler and encode its document."""
    settings = {} if call.served is None else call.served.settings
    with scoped_settings(settings):
        answer = route.handler(call)
    if isinstance(answer, Stream):
        return replace(answer, produce=partial(_produce, settings, answer.produce))
    if answer.content is not None:
        return answer
    content = _encoder.encode(answer.document)
    media_type = answer.media_type if call.documents is call.contract else ALL_FIELDS
    return Answer(None, answer.status, answer.headers, content, media_type)


def _produce(settings: Mapping[str, Any], produce: Callable[[Write], None], write: Write) -> None:
    with scoped_settings(settings):
        produce(write)


async def _until_gone(request: Request) -> None:
    """Return when the client has closed the connection."""
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            return


def _unauthorized(message: str) -> HttpProblem:
    return HttpProblem(401, message, headers={"WWW-Authenticate": "Bearer"})


def _of(routes: Sequence[Route], contract: frozenset[str]) -> list[Route]:
    return [route for route in routes if contract <= route.contracts]


def _optional_body(content: bytes, kind: type[Any]) -> Any:
    if not content.strip() or content.strip() == b"null":
        return InvokeStoredQueryRequest()
    try:
        return decode_body(content, kind)
    except HttpProblem as problem:
        message = f"invalid stored-query invocation body: {problem.message}"
        raise HttpProblem(400, message) from None


def _parameters(query_string: bytes) -> dict[str, list[str]]:
    """The query string by name. Raises `HttpProblem` 400."""
    if not query_string:
        return {}
    try:
        pairs = parse_qsl(
            query_string.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=True,
            errors="strict",
            max_num_fields=256,
        )
    except ValueError:
        raise HttpProblem(400, "the query string is malformed") from None
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


def _headers(raw: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by lower-case name; several lines of one name are joined by commas."""
    found: dict[str, str] = {}
    for name, value in raw:
        key, text = name.decode("latin-1"), value.decode("latin-1")
        found[key] = f"{found[key]}, {text}" if key in found else text
    found.pop("authorization", None)
    return found
