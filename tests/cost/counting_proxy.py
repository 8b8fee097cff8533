"""A proxy in front of an object store that records what passes through it, and can be slow."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}


@dataclass(frozen=True, slots=True)
class Request:
    """One request, with the times at which it came and was answered."""

    kind: str
    """The method; LIST for a listing of objects."""
    path: str
    status: int
    sent: int
    received: int
    started: float
    ended: float

    def __str__(self) -> str:
        return f"{self.kind:<6} {self.status} {self.path}"


@dataclass(frozen=True)
class Traffic:
    """Requests in the order of their answers."""

    requests: Sequence[Request] = ()
    seconds: float = 0.0
    """How long the call took that made them."""

    def __len__(self) -> int:
        return len(self.requests)

    @property
    def kinds(self) -> Counter[str]:
        return Counter(request.kind for request in self.requests)

    @property
    def sent(self) -> int:
        return sum(request.sent for request in self.requests)

    @property
    def received(self) -> int:
        return sum(request.received for request in self.requests)

    @property
    def in_sequence(self) -> int:
        """The length of the longest chain of requests that each began after the one before ended."""
        length, free_at = 0, float("-inf")
        for request in sorted(self.requests, key=lambda request: request.ended):
            if request.started >= free_at:
                length, free_at = length + 1, request.ended
        return length

    def __str__(self) -> str:
        """A line for each request, in the order in which they came."""
        if not self.requests:
            return "no requests"
        ordered = sorted(self.requests, key=lambda request: request.started)
        first = ordered[0].started
        return "\n".join(f"{(r.started - first) * 1000:7.0f} ms  {r}" for r in ordered)


@dataclass
class CountingProxy:
    """A running proxy. `delay_s` is added to every request, before it is passed on."""

    endpoint: str
    delay_s: float = 0.0
    _seen: list[Request] = field(default_factory=list)

    def record(self, request: Request) -> None:
        self._seen.append(request)

    def counted(self, call: Callable[[], object]) -> Traffic:
        """What a call costs. The caller makes sure that nothing else uses the proxy."""
        before, started = len(self._seen), time.monotonic()
        call()
        seconds = time.monotonic() - started
        return Traffic(tuple(self._seen[before:]), seconds)


@contextmanager
def counting_proxy(server: str) -> Iterator[CountingProxy]:
    """A proxy to the server of an address."""
    http = _Server(("127.0.0.1", 0), BaseHTTPRequestHandler)
    proxy = CountingProxy(f"http://127.0.0.1:{http.server_port}")
    http.RequestHandlerClass = _handler(urlsplit(server).netloc, proxy)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield proxy
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients hang up when they are done, which is not worth a message."""


def _handler(target: str, proxy: CountingProxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def _forward(self) -> None:
            started = time.monotonic()
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            time.sleep(proxy.delay_s)
            connection = HTTPConnection(target)
            headers = {k: v for k, v in self.headers.items() if k.lower() not in _HOP}
            connection.request(self.command, self.path, body, headers)
            answer = connection.getresponse()
            content = answer.read()
            connection.close()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in _HOP or (
                    self.command == "HEAD" and name == "Content-Length"
                ):
                    self.send_header(name, value)
            if self.command != "HEAD":
                self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            # Recorded before the client has the answer, so that a caller finds it when it returns.
            kind, path = _kind(self.command, self.path)
            ended = time.monotonic()
            proxy.record(
                Request(kind, path, answer.status, len(body), len(content), started, ended)
            )
            self.wfile.flush()

        do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _forward

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


def _kind(method: str, target: str) -> tuple[str, str]:
    """The method and the path, with the listing of objects told apart from reading one."""
    parts = urlsplit(target)
    query = parse_qs(parts.query)
    if method == "GET" and "list-type" in query:
        return "LIST", unquote(query.get("prefix", [""])[0])
    return method, unquote(parts.path).split("/", 2)[-1]
