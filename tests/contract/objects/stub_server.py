"""A small S3 server that misbehaves on request: ignores conditions, refuses, is busy, breaks down.

Only what the adapter sends is understood: objects by path, and listings that are always empty.
"""

from __future__ import annotations

import re
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

EMPTY_LISTING = (
    b'<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>'
)
DELETED = b'<?xml version="1.0"?><DeleteResult></DeleteResult>'


@dataclass
class Stub:
    """The state of a stub server, and what is wrong with it."""

    endpoint: str = ""
    ignored: frozenset[str] = frozenset()
    """Names of conditional headers it pays no attention to, in lower case."""
    answer: Callable[[str, str], int | None] = lambda method, key: None
    """A status to answer with instead of doing anything, by method and key."""
    broken_after_put: bool = False
    """Does what a PUT asks for, and then says that it failed."""
    e_tags: bool = True
    objects: dict[str, bytes] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)


@contextmanager
def stub_server(**faults: object) -> Iterator[Stub]:
    stub = Stub(**faults)  # type: ignore[arg-type]  # checked by the dataclass at run time
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(stub))
    stub.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield stub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _tag(content: bytes) -> str:
    return f'"{md5(content).hexdigest()}"'


def _handler(stub: Stub) -> type[BaseHTTPRequestHandler]:
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            pass

        def reply(self, status: int, body: bytes = b"", headers: Mapping[str, str] = {}) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Last-Modified", "Wed, 01 Jan 2025 00:00:00 GMT")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def tagged(self, content: bytes) -> dict[str, str]:
            return {"ETag": _tag(content)} if stub.e_tags else {}

        def serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            key = self.path.partition("?")[0]
            stub.requests.append(f"{self.command} {key}")
            with lock:
                status = stub.answer(self.command, key)
                if status is not None:
                    self.reply(status)
                elif self.command == "PUT":
                    self.put(key, body)
                elif self.command == "POST":
                    for deleted in re.findall(r"<Key>(.*?)</Key>", body.decode()):
                        stub.objects.pop(f"{key}/{deleted}", None)
                    self.reply(200, DELETED)
                elif "list-type" in self.path:
                    self.reply(200, EMPTY_LISTING)
                elif key in stub.objects:
                    self.reply(200, stub.objects[key], self.tagged(stub.objects[key]))
                else:
                    self.reply(404)

        def put(self, key: str, body: bytes) -> None:
            if self.refused(key):
                self.reply(412)
                return
            stub.objects[key] = body
            self.reply(500 if stub.broken_after_put else 200, headers=self.tagged(body))

        def refused(self, key: str) -> bool:
            current = stub.objects.get(key)
            wanted = self.headers.get("If-Match")
            if wanted and "if-match" not in stub.ignored:
                return current is None or _tag(current) != wanted
            once = self.headers.get("If-None-Match")
            return bool(once) and "if-none-match" not in stub.ignored and current is not None

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = serve

    return Handler
