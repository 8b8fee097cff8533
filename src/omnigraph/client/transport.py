"""HTTP calls to a server, on the standard library.

Every thread keeps one connection. Redirects are not followed. A request is sent a second time only if a kept
connection turns out to be closed and the request is a read or has an idempotency key. The token is sent in
one header and appears nowhere else. This module imports neither Lance nor Arrow, so that a command answers
quickly. Tests: tests/unit/client/test_transport.py.
"""

from __future__ import annotations

import http.client
import os
import select
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar
from urllib.parse import urlencode
from weakref import WeakSet, finalize

import msgspec
from msgspec import Struct

from omnigraph._version import __version__
from omnigraph.client.addresses import checked_token, parsed_address, path_segment
from omnigraph.client.failures import failure
from omnigraph.diagnostics import shortened
from omnigraph.errors import (
    AnswerLost,
    CommitStateUnknown,
    InputError,
    OmnigraphError,
    QueryCancelled,
    ServerUnreachable,
    UnexpectedAnswer,
)
from omnigraph.json_structs import described
from omnigraph.settings import read_settings

if TYPE_CHECKING:
    import ssl

T = TypeVar("T")

ContractVersion = Literal["0.7", "0.13"]
Body = bytes | Iterable[bytes]

HEADER: Final = "Omnigraph-Http-Api"
KEY_HEADER: Final = "Idempotency-Key"
JSON: Final = "application/json"
TIMEOUT_SECONDS: Final = 300.0
"""How long a call waits for the server to send something."""
CONNECT_SECONDS: Final = 10.0
PART_BYTES: Final = 262_144
CANCEL_SECONDS: Final = 0.02
"""How often a call that can be cancelled looks whether it was."""

_CHECK_ADDRESS: Final = "check the address and the server"
_NOT_CONNECTED: Final = (OSError, http.client.HTTPException)


class Reply(Struct, frozen=True):
    """A complete answer. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    server: str

    def json(self, kind: type[T]) -> T:
        """The document. Raises `UnexpectedAnswer` if it is not one of this kind."""
        try:
            return msgspec.json.decode(self.content, type=described(kind))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            problem = f"the answer is not the expected document: {error}"
            raise UnexpectedAnswer(self.server, problem, self.status) from None


class Write(Struct, frozen=True):
    """What is known of a request that changes something.

    With a key a lost answer is a `CommitStateUnknown` that names it, without one an `AnswerLost`.
    """

    key: str | None = None
    is_load: bool = False


class _Request(Struct, frozen=True):
    method: str
    target: str
    body: Body | None
    headers: Mapping[str, str]
    write: Write | None
    timeout: float | None
    cancelled: Callable[[], bool] | None

    @property
    def is_repeatable(self) -> bool:
        """Whether it may be sent a second time."""
        is_safe = self.write is None or self.write.key is not None
        return is_safe and (self.body is None or isinstance(self.body, bytes))


class Transport:
    """Calls to one server, or to one graph of a server for several. Thread-safe."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        graph: str | None = None,
        contract: ContractVersion = "0.7",
        timeout: float | None = TIMEOUT_SECONDS,
    ) -> None:
        """Connects when the first call is made. Raises `InputError` for a wrong address or token."""
        self._scheme, self._host, self._port, self._prefix = parsed_address(url)
        self._token = checked_token(token)
        self.graph = graph
        self.contract: ContractVersion = contract
        self.timeout = timeout
        self._local = threading.local()
        self._open: WeakSet[_Kept] = WeakSet()
        self._tls: ssl.SSLContext | None = None

    @property
    def server(self) -> str:
        """The address of the server."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        usual = 443 if self._scheme == "https" else 80
        port = "" if self._port == usual else f":{self._port}"
        return f"{self._scheme}://{host}{port}{self._prefix}"

    @property
    def uri(self) -> str:
        """The address of the graph."""
        return self.server + ("" if self.graph is None else f"/graphs/{path_segment(self.graph)}")

    def __repr__(self) -> str:
        return f"Transport({self.uri!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """The token stays here."""
        return _without_token, (self.server, self.graph, self.contract, self.timeout)

    def close(self) -> None:
        """Close the connections of all threads. A later call opens a new one."""
        for kept in list(self._open):
            kept.close()

    def release(self) -> None:
        self._drop()

    # -- calls ------------------------------------------------------------------------------

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Iterable[tuple[str, str]] = (),
        body: object = None,
        content: Body | None = None,
        content_type: str | None = None,
        headers: Mapping[str, str] | None = None,
        accept: str = JSON,
        write: Write | None = None,
        on_server: bool = False,
        passes: Collection[int] = (),
        timeout: float | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> Reply:
        """Send a request and return its answer.

        `path` is that of a graph, or with `on_server` one of the server. `body` is sent as JSON, `content`
        as it is. `write` says that the request changes something. `cancelled` is asked while the call
        waits; it ends a read. Raises the exception of a failed call, except for the statuses in
        `passes`.
        """
        request = self._request(
            method,
            path,
            query,
            body,
            content,
            content_type,
            headers,
            accept,
            write,
            on_server,
            timeout,
            cancelled,
        )
        answer = self._send(request)
        try:
            data = _read_all(answer)
        except _NOT_CONNECTED as error:
            answer.close()
            self._drop()
            raise self._lost(request, error, "the answer ended early") from error
        return self._checked(request, answer, data, passes)

    @contextmanager
    def stream(
        self,
        method: str,
        path: str,
        *,
        query: Iterable[tuple[str, str]] = (),
        body: object = None,
        content: Body | None = None,
        content_type: str | None = None,
        headers: Mapping[str, str] | None = None,
        accept: str = JSON,
        on_server: bool = False,
        timeout: float | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> Iterator[Incoming]:
        """Send a read and give its answer while it arrives. At most one part is in memory.

        The thread may make other calls meanwhile; they use another connection.
        """
        request = self._request(
            method,
            path,
            query,
            body,
            content,
            content_type,
            headers,
            accept,
            None,
            on_server,
            timeout,
            cancelled,
        )
        answer = self._send(request)
        kept = self._take()
        incoming = Incoming(answer, self.server)
        try:
            if not 200 <= answer.status < 300:
                self._checked(request, answer, incoming.read(), ())
            self._require_stamp(request, answer)
            yield incoming
        finally:
            if incoming.is_complete and not answer.will_close:
                self._keep(kept)
            else:
                answer.close()
                kept.close()

    # -- requests ---------------------------------------------------------------------------

    def _request(
        self,
        method: str,
        path: str,
        query: Iterable[tuple[str, str]],
        body: object,
        content: Body | None,
        content_type: str | None,
        headers: Mapping[str, str] | None,
        accept: str,
        write: Write | None,
        on_server: bool,
        timeout: float | None,
        cancelled: Callable[[], bool] | None,
    ) -> _Request:
        sent = {"Accept": accept, "User-Agent": f"omnigraph-py/{__version__}", **(headers or {})}
        if body is not None:
            content, content_type = msgspec.json.encode(body), JSON
        if content_type is not None:
            sent["Content-Type"] = content_type
        if self.contract != "0.7":
            sent[HEADER] = self.contract
        if write is not None and write.key is not None:
            sent[KEY_HEADER] = write.key
        for name, value in sent.items():
            if not (value.isascii() and value.isprintable()):
                what = "idempotency_key" if name == KEY_HEADER else f"header {name}"
                raise InputError(f"{what} must be printable ASCII text")
        if self._token is not None:
            sent["Authorization"] = f"Bearer {self._token}"
        nested = "" if on_server or self.graph is None else f"/graphs/{path_segment(self.graph)}"
        asked = urlencode(list(query))
        target = f"{self._prefix}{nested}{path}" + (f"?{asked}" if asked else "")
        seconds = self.timeout if timeout is None else timeout
        return _Request(method, target, content, sent, write, seconds, cancelled)

    def _send(self, request: _Request) -> http.client.HTTPResponse:
        """Send a request and read the head of its answer."""
        connection, is_kept = self._connection(request)
        try:
            return _exchange(connection, request)
        except QueryCancelled:
            self._drop()
            raise
        except _NOT_CONNECTED as error:
            self._drop()
            if not (is_kept and request.is_repeatable and isinstance(error, ConnectionError)):
                raise self._lost(request, error, "no valid answer") from error
        try:
            connection, _ = self._connection(request)
        except ServerUnreachable as error:
            # The first attempt may have arrived.
            raise self._unknown(request, "the connection was lost", ServerUnreachable) from error
        try:
            return _exchange(connection, request)
        except _NOT_CONNECTED as error:
            self._drop()
            raise self._lost(request, error, "no valid answer") from error

    def _checked(
        self,
        request: _Request,
        answer: http.client.HTTPResponse,
        content: bytes,
        passes: Collection[int],
    ) -> Reply:
        status, headers = answer.status, _headers(answer)
        if status not in passes and 300 <= status < 400:
            where = shortened(headers.get("location", "nowhere"), 200)
            problem = f"the server redirects to {where}; redirects are not followed"
            raise UnexpectedAnswer(self.server, problem, status)
        self._require_stamp(request, answer)
        if 200 <= status < 300 or status in passes:
            return Reply(status, headers, content, self.server)
        raise failure(self.server, status, headers, content)

    def _require_stamp(self, request: _Request, answer: http.client.HTTPResponse) -> None:
        """Contract 0.13 marks all its answers."""
        if self.contract == "0.7":
            return
        found = answer.headers.get_all(HEADER) or []
        if found != [self.contract]:
            shown = shortened(", ".join(found) or "none")
            problem = f"the answer has contract {shown} instead of {self.contract}"
            raise self._unknown(request, problem, UnexpectedAnswer)

    # -- failures ---------------------------------------------------------------------------

    def _lost(self, request: _Request, error: Exception, broken: str) -> OmnigraphError:
        """A request that was sent and has no answer."""
        if isinstance(error, TimeoutError):
            problem = "no answer in time"
        elif isinstance(error, OSError):
            problem = f"the connection was lost ({_reason(error)})"
        else:
            problem = f"{broken} ({shortened(str(error) or type(error).__name__, 200)})"
            return self._unknown(request, problem, UnexpectedAnswer)
        return self._unknown(request, problem, ServerUnreachable)

    def _unknown(
        self, request: _Request, problem: str, otherwise: type[ServerUnreachable | UnexpectedAnswer]
    ) -> OmnigraphError:
        write = request.write
        if write is None:
            return otherwise(self.server, problem)
        if write.key is None:
            return AnswerLost(self.server, f"{problem}; the change may have been made")
        reason = f"{self.server}: {problem}"
        return CommitStateUnknown(None, None, write.key, is_load=write.is_load, reason=reason)

    # -- connections ------------------------------------------------------------------------

    def _connection(self, request: _Request) -> tuple[http.client.HTTPConnection, bool]:
        """The connection of this thread, and whether it was used before."""
        kept = self._kept
        if kept is not None and kept.is_usable:
            kept.connection.sock.settimeout(request.timeout)
            return kept.connection, True
        self._drop()
        made = _Kept(self._connected())
        made.connection.sock.settimeout(request.timeout)
        self._keep(made)
        return made.connection, False

    def _connected(self) -> http.client.HTTPConnection:
        """A new connection. Nothing was sent if it fails."""
        made: http.client.HTTPConnection
        if self._scheme == "https":
            made = http.client.HTTPSConnection(
                self._host, self._port, timeout=CONNECT_SECONDS, context=self._context()
            )
        else:
            made = http.client.HTTPConnection(self._host, self._port, timeout=CONNECT_SECONDS)
        try:
            made.connect()
        except (OSError, UnicodeError) as error:
            made.close()
            is_unknown = "CERTIFICATE_VERIFY_FAILED" in str(error)
            advice = "name its authority in OMNIGRAPH_CA_FILE" if is_unknown else _CHECK_ADDRESS
            problem = f"cannot connect ({_reason(error)}); {advice}"
            raise ServerUnreachable(self.server, problem) from error
        return made

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            import ssl

            file = read_settings().ca_file
            try:
                self._tls = ssl.create_default_context(cafile=file)
            except OSError as error:
                problem = f"OMNIGRAPH_CA_FILE names {file}, which cannot be read: {_reason(error)}"
                raise InputError(problem) from None
        return self._tls

    @property
    def _kept(self) -> _Kept | None:
        return getattr(self._local, "kept", None)

    def _keep(self, kept: _Kept) -> None:
        """Keep a connection for the next call of this thread, unless it has one already."""
        if self._kept is not None:
            kept.close()
            return
        self._local.kept = kept
        self._open.add(kept)

    def _take(self) -> _Kept:
        """The connection of this thread, which is from now on in use."""
        kept = self._kept
        assert kept is not None, "a request was sent on it"
        self._local.kept = None
        return kept

    def _drop(self) -> None:
        kept = self._kept
        self._local.kept = None
        if kept is not None:
            kept.close()


class _Kept:
    """An open connection, closed with the thread or the transport that keeps it."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self.connection = connection
        self._process = os.getpid()
        # A finalizer runs before the socket itself is collected, which would warn.
        finalize(self, connection.close)

    @property
    def is_usable(self) -> bool:
        """False if it was closed, has bytes that were not asked for, or belongs to a parent process."""
        socket = self.connection.sock
        if self._process != os.getpid() or socket is None:
            return False
        try:
            waiting, _, _ = select.select([socket], [], [], 0)
        except (OSError, ValueError):
            return False
        return not waiting

    def close(self) -> None:
        # A forked process closes only its copy of the socket.
        self.connection.close()


class Incoming:
    """An answer that is read in parts: iterate over it, or use it as a binary file."""

    def __init__(self, answer: http.client.HTTPResponse, server: str) -> None:
        self._answer = answer
        self._server = server
        self._left = answer.length if not answer.chunked else None
        self.status = answer.status
        self.headers = _headers(answer)
        self.is_complete = False
        self.closed = False

    def read(self, size: int | None = -1) -> bytes:
        """Up to `size` bytes. Raises `UnexpectedAnswer` if the answer ends early."""
        try:
            data = self._answer.read() if size is None or size < 0 else self._answer.read(size)
        except _NOT_CONNECTED as error:
            raise UnexpectedAnswer(self._server, "the answer ended early") from error
        if self._left is not None:
            self._left -= len(data)
        if size is None or size < 0 or (size > 0 and not data):
            if self._left:
                raise UnexpectedAnswer(self._server, "the answer ended early")
            self.is_complete = True
        return data

    def __iter__(self) -> Iterator[bytes]:
        while part := self.read(PART_BYTES):
            yield part

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True


# -- one exchange ---------------------------------------------------------------------------


def _exchange(
    connection: http.client.HTTPConnection, request: _Request
) -> http.client.HTTPResponse:
    is_chunked = request.body is not None and not isinstance(request.body, bytes)
    headers = dict(request.headers)
    if is_chunked:
        headers["Transfer-Encoding"] = "chunked"
    try:
        connection.request(
            request.method, request.target, request.body, headers, encode_chunked=is_chunked
        )
    except (BrokenPipeError, ConnectionResetError):
        # A server that refuses a body may answer and close before it has read all of it.
        if request.body is None:
            raise
    if request.cancelled is not None:
        _wait(connection, request.cancelled, request.timeout)
    return connection.getresponse()


def _wait(
    connection: http.client.HTTPConnection, cancelled: Callable[[], bool], timeout: float | None
) -> None:
    """Return when an answer begins. A server ends a read whose client has gone."""
    ends = None if timeout is None else time.monotonic() + timeout
    while not select.select([connection.sock], [], [], CANCEL_SECONDS)[0]:
        if cancelled():
            raise QueryCancelled
        if ends is not None and time.monotonic() > ends:
            raise TimeoutError


def _read_all(answer: http.client.HTTPResponse) -> bytes:
    """The whole body. Raises `IncompleteRead` if it is shorter than announced."""
    expected = None if answer.chunked else answer.length
    data = answer.read()
    if expected is not None and len(data) < expected:
        raise http.client.IncompleteRead(data, expected - len(data))
    return data


def _headers(answer: http.client.HTTPResponse) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in answer.headers.items():
        key = name.lower()
        found[key] = f"{found[key]}, {value}" if key in found else value
    return found


def _reason(error: BaseException) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return shortened(text, 200)


def _without_token(url: str, graph: str | None, contract: ContractVersion, timeout: Any) -> Any:
    return Transport(url, graph=graph, contract=contract, timeout=timeout)
