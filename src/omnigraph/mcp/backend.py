"""Where the requests of tools go: to an application in this process, or to a server.

Both speak the HTTP API, so a tool is the same request whichever of them answers it.
Tests: tests/server/test_mcp.py.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol
from urllib.parse import quote, urlencode

import msgspec

from omnigraph.errors import CommitStateUnknown, OmnigraphError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message

    from omnigraph.client.transport import Transport

HEADER: Final = b"omnigraph-http-api"
KEY_HEADER: Final = "Idempotency-Key"

ContractVersion = Literal["0.7", "0.13"]


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A request below the path of a graph, or of the server with `is_server`."""

    method: str
    path: tuple[str, ...]
    query: Mapping[str, Any] = field(default_factory=dict)
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_server: bool = False
    is_write: bool = False
    contract: ContractVersion = "0.13"

    @property
    def encoded_path(self) -> str:
        return "/" + "/".join(quote(segment, safe="") for segment in self.path)

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """The query string, one pair for each element of a list."""
        pairs = []
        for name, value in self.query.items():
            for one in value if isinstance(value, list) else [value]:
                if one is not None:
                    pairs.append((name, one if isinstance(one, str) else json.dumps(one)))
        return pairs


@dataclass(frozen=True, slots=True)
class ToolReply:
    """The answer to a request: a status and a document, or text that is not JSON."""

    status: int
    body: Any
    request_id: str | None = None
    was_sent: bool = True
    is_outcome_unknown: bool = False

    @property
    def is_error(self) -> bool:
        return self.status >= 400 or not self.was_sent or self.is_outcome_unknown


class Backend(Protocol):
    """Answers the requests of one caller about one graph."""

    async def send(self, request: ToolRequest) -> ToolReply: ...


class AppBackend:
    """Requests to an application in this process, with the token of the caller."""

    def __init__(
        self, app: ASGIApp, graph_id: str, *, is_multi: bool, authorization: bytes | None = None
    ) -> None:
        self._app = app
        self._graph_id = graph_id
        self._is_multi = is_multi
        self._authorization = authorization

    async def send(self, request: ToolRequest) -> ToolReply:
        headers = [(k.lower().encode(), v.encode()) for k, v in request.headers.items()]
        if request.contract == "0.13":
            headers.append((HEADER, b"0.13"))
        if self._authorization is not None:
            headers.append((b"authorization", self._authorization))
        content = b"" if request.body is None else msgspec.json.encode(request.body)
        if content:
            headers.append((b"content-type", b"application/json"))
        headers.append((b"content-length", str(len(content)).encode()))
        path = self._path(request)
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": request.method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": urlencode(request.parameters).encode(),
            "headers": headers,
            "client": None,
            "server": None,
        }
        status, parts, answered = 0, [], {}
        incoming = iter([{"type": "http.request", "body": content, "more_body": False}])
        never = asyncio.Event()

        async def receive() -> Message:
            for message in incoming:
                return message
            await never.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            nonlocal status, answered
            if message["type"] == "http.response.start":
                status = message["status"]
                answered = {name.lower(): value for name, value in message["headers"]}
            else:
                parts.append(message.get("body", b""))

        await self._app(scope, receive, send)
        request_id = answered.get(b"x-request-id")
        return ToolReply(
            status, _document(b"".join(parts)), None if request_id is None else request_id.decode()
        )

    def _path(self, request: ToolRequest) -> str:
        if request.is_server or (request.contract == "0.7" and not self._is_multi):
            return request.encoded_path
        return f"/graphs/{quote(self._graph_id, safe='')}{request.encoded_path}"


class ServerBackend:
    """Requests to a server."""

    def __init__(self, transport: Transport, transport_07: Transport) -> None:
        """Two connections to one graph, by contract."""
        self._transports = {"0.13": transport, "0.7": transport_07}

    async def send(self, request: ToolRequest) -> ToolReply:
        return await asyncio.to_thread(self._sent, request)

    def _sent(self, request: ToolRequest) -> ToolReply:
        from omnigraph.client.transport import Write

        key = request.headers.get(KEY_HEADER) or uuid.uuid4().hex
        others = {name: value for name, value in request.headers.items() if name != KEY_HEADER}
        try:
            reply = self._transports[request.contract].call(
                request.method,
                request.encoded_path,
                query=request.parameters,
                body=request.body,
                headers=others,
                write=Write(key) if request.is_write else None,
                on_server=request.is_server,
                passes=range(200, 600),
            )
        except CommitStateUnknown as error:
            return ToolReply(0, _failure(error), is_outcome_unknown=True)
        except OmnigraphError as error:
            return ToolReply(0, _failure(error), was_sent=False)
        return ToolReply(reply.status, _document(reply.content), reply.headers.get("x-request-id"))


def _failure(error: OmnigraphError) -> dict[str, Any]:
    return {"error": error.message, "code": error.code}


def _document(content: bytes) -> Any:
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return content.decode("utf-8", "replace")
