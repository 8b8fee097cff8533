"""A proxy in front of an object store that counts what passes through it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}


@dataclass
class Traffic:
    """Requests by kind, and the bytes of their bodies."""

    requests: Counter[str] = field(default_factory=Counter)
    sent: int = 0
    received: int = 0

    def __sub__(self, earlier: Traffic) -> Traffic:
        counted = Counter(self.requests)
        counted.subtract(earlier.requests)
        return Traffic(+counted, self.sent - earlier.sent, self.received - earlier.received)

    def copy(self) -> Traffic:
        return Traffic(Counter(self.requests), self.sent, self.received)


@contextmanager
def counting_proxy(endpoint: str) -> Iterator[tuple[str, Traffic]]:
    """The address of a proxy to a server, and the traffic so far."""
    traffic = Traffic()
    server = _Server(("127.0.0.1", 0), _handler(urlsplit(endpoint).netloc, traffic))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", traffic
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Clients hang up when they are done; that is no news."""


def _handler(target: str, traffic: Traffic) -> type[BaseHTTPRequestHandler]:
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            connection = HTTPConnection(target)
            headers = {k: v for k, v in self.headers.items() if k.lower() not in _HOP}
            connection.request(self.command, self.path, body, headers)
            answer = connection.getresponse()
            content = answer.read()
            connection.close()
            with lock:
                traffic.requests[_kind(self.command, self.path)] += 1
                traffic.sent += len(body)
                traffic.received += len(content)
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

        do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _forward

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


def _kind(method: str, path: str) -> str:
    """The method, with the listing of objects told apart from reading one."""
    return "LIST" if method == "GET" and "list-type" in parse_qs(urlsplit(path).query) else method
