"""Embedding servers on loopback that speak the wire formats of real ones, and misbehave when told."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from omnigraph.providers.clients import MockProvider, Task

_MOCK = MockProvider()


@dataclass
class Refuse:
    """Answer with a status instead of vectors."""

    status: int
    body: str = '{"error": {"message": "told to refuse"}}'
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Hang:
    """Answer after a delay."""

    seconds: float


@dataclass
class Say:
    """Answer with this body."""

    body: str


class EmbeddingServer:
    """Answers with mock vectors of the asked length, three times as long as they should be."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.script: list[Refuse | Hang | Say | None] = []
        """What to do with the next requests, one each; None, and all later ones, are answered."""
        self.url = ""
        self._lock = threading.Lock()

    def next_step(
        self, path: str, headers: dict[str, str], body: Any
    ) -> Refuse | Hang | Say | None:
        with self._lock:
            self.requests.append((path, headers, body))
            return self.script.pop(0) if self.script else None


def answer_to(path: str, body: Any) -> Any:
    if path.endswith(":embedContent"):
        text = body["content"]["parts"][0]["text"]
        vector = _MOCK.embed([text], Task.DOCUMENT, body["outputDimensionality"])[0] * 3
        return {"embedding": {"values": vector.tolist()}}
    vectors = _MOCK.embed(body["input"], Task.DOCUMENT, body["dimensions"]) * 3
    data = [{"index": i, "embedding": v.tolist()} for i, v in enumerate(vectors)]
    return {"data": data[::-1]}


@contextmanager
def serving() -> Iterator[EmbeddingServer]:
    server = EmbeddingServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            step = server.next_step(self.path, headers, body)
            if isinstance(step, Hang):
                time.sleep(step.seconds)
            if isinstance(step, Refuse):
                self._send(step.status, step.body, step.headers)
            elif isinstance(step, Say):
                self._send(200, step.body, {})
            else:
                self._send(200, json.dumps(answer_to(self.path, body)), {})

        def _send(self, status: int, body: str, headers: dict[str, str]) -> None:
            content = body.encode()
            try:
                self.send_response(status)
                for name, value in {**headers, "content-length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)
            except (BrokenPipeError, ConnectionResetError):
                return  # The client did not wait.

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.url = f"http://127.0.0.1:{listening.server_port}"
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()
