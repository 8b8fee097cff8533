"""Small HTTP servers that answer what a test tells them, and remember what they were asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

STAMP = "Omnigraph-Http-Api"


@dataclass
class Answer:
    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    media_type: str = "application/json"
    is_stamped: bool = True

    @property
    def content(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return json.dumps({} if self.body is None else self.body).encode()


@dataclass
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Fake:
    """`answer` is called with every request but the probe."""

    def __init__(self, stamp: str | None, answer: Callable[[Asked], Answer]) -> None:
        self.stamp = stamp
        self.answer = answer
        self.asked: list[Asked] = []
        self.url = ""

    @property
    def calls(self) -> list[Asked]:
        return [one for one in self.asked if one.path != "/healthz"]


@contextmanager
def fake(stamp: str | None, answer: Callable[[Asked], Answer]) -> Iterator[Fake]:
    """A server whose `/healthz` has this stamp."""
    running = Fake(stamp, answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.command, self.path, headers, self.rfile.read(length))
            running.asked.append(asked)
            given = Answer() if self.path == "/healthz" else running.answer(asked)
            self.send_response(given.status)
            if running.stamp is not None and given.is_stamped:
                self.send_header(STAMP, running.stamp)
            for name, value in given.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", given.media_type)
            self.send_header("Content-Length", str(len(given.content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(given.content)

        do_GET = do_POST = do_HEAD = do_DELETE = _serve

        def log_message(self, *_args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield running
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
