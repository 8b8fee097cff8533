"""An embedding provider for the example: OpenAI's HTTP API, no model, the same vectors every time.

A vector counts the word stems of a text, hashed to its dimensions, so texts that share words are near
each other. A real provider takes its place by changing the environment, not the graph.
"""

import json
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

DIMENSIONS = 64


def embed(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    vector = [0.0] * dimensions
    for word in re.findall(r"[a-z]{3,}", text.lower()):
        stem = re.sub(r"(?:ing|ed|er|s)$", "", word)
        vector[zlib.crc32(stem.encode()) % dimensions] += 1.0
    length = sum(value * value for value in vector) ** 0.5 or 1.0
    return [value / length for value in vector] if any(vector) else [1.0, *vector[1:]]


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = request["input"] if isinstance(request["input"], list) else [request["input"]]
        vectors = [embed(text, request.get("dimensions", DIMENSIONS)) for text in texts]
        data = [{"index": place, "embedding": vector} for place, vector in enumerate(vectors)]
        body = json.dumps({"data": data, "model": request["model"]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving() -> Iterator[str]:
    """Run the provider on this machine; its address is what the environment has to name."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
