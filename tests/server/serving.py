"""Server processes on the loopback interface, and the library graph that they serve."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

import omnigraph as og
from tests.support.fork_server import ForkedProcess, fork_server

H = {"Omnigraph-Http-Api": "0.13"}
"""The header of contract 0.13."""

SCHEMA = """\
node Author {
    slug: String @key
    born: I32?
}
node Book {
    isbn: String @key
    title: String
}
edge Wrote: Author -> Book {
    year: I32?
}
edge Cites: Book -> Book
"""

ROWS = (
    '{"type":"Author","data":{"slug":"ada","born":1815}}\n'
    '{"type":"Author","data":{"slug":"bob","born":1970}}\n'
    '{"type":"Author","data":{"slug":"cy"}}\n'
    '{"type":"Book","data":{"isbn":"b1","title":"Notes"}}\n'
    '{"type":"Book","data":{"isbn":"b2","title":"Replies"}}\n'
    '{"edge":"Wrote","from":"ada","to":"b1","data":{"year":1843}}\n'
    '{"edge":"Wrote","from":"bob","to":"b2","data":{"year":2001}}\n'
    '{"edge":"Cites","from":"b2","to":"b1"}\n'
)

LIB = """\
query by_slug($slug: String) { match { $a: Author { slug: $slug } } return { $a.slug, $a.born } }
query all_authors() { match { $a: Author } return { $a.slug } order { $a.slug asc } }
query add_author($slug: String, $born: I32) { insert Author { slug: $slug, born: $born } }
query set_born($slug: String, $born: I32) { update Author set { born: $born } where slug = $slug }
"""

COMMAND = (
    "-c",
    "import sys; from omnigraph.server.command import run; sys.exit(run(sys.argv[1:]))",
)
"""The server as a command of its own, where the process itself is tested."""

_CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("OMNIGRAPH_")}
START_SECONDS = 30


def library(folder: Path) -> Path:
    """A graph with the library."""
    root = folder / "library.omni"
    with og.init(root, schema=SCHEMA) as graph:
        graph.load(ROWS.encode(), "overwrite")
    return root


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    return _CLEAN | {"OMNIGRAPH_DURABILITY": "none"} | dict(extra or {})


Process = subprocess.Popen[bytes] | ForkedProcess


class Server:
    """A running server process and a client of it."""

    def __init__(self, process: Process, address: str, log: Path) -> None:
        self.process = process
        self.address = address
        self._log = log
        self.client = httpx.Client(base_url=f"http://{address}", timeout=60)

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8")

    def get(self, path: str, **given: Any) -> httpx.Response:
        return self.client.get(path, **given)

    def post(self, path: str, body: Any = None, **given: Any) -> httpx.Response:
        return self.client.post(path, json={} if body is None else body, **given)

    def post13(self, path: str, body: Any = None, **headers: str) -> httpx.Response:
        given = H | {name.replace("_", "-"): value for name, value in headers.items()}
        return self.post(f"/graphs/default{path}", body, headers=given)

    def get13(self, path: str, **given: Any) -> httpx.Response:
        return self.get(f"/graphs/default{path}", headers=H, **given)

    def read(self, name: str, params: Any = None, **more: Any) -> httpx.Response:
        return self.post("/query", {"query": LIB, "name": name, "params": params} | more)

    def mutate(self, name: str, params: Any = None, **more: Any) -> httpx.Response:
        return self.post("/mutate", {"query": LIB, "name": name, "params": params} | more)

    def slugs(self, branch: str = "main") -> list[str]:
        """The authors of a branch."""
        found = self.read("all_authors", branch=branch)
        assert found.status_code == 200, found.text
        return [row["a.slug"] for row in found.json()["rows"]]

    def head(self, branch: str = "main") -> str:
        """The newest commit of a branch."""
        commit: str = self.read("all_authors", branch=branch).json()["graph_commit_id"]
        return commit

    def branch(self, name: str, source: str = "main") -> str:
        made = self.post("/branches", {"name": name, "from": source})
        assert made.status_code == 200, made.text
        return name

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=60)


@contextmanager
def serving(
    folder: Path,
    *arguments: str | Path,
    env: Mapping[str, str] | None = None,
    command: tuple[str, ...] | None = None,
) -> Iterator[Server]:
    """A server on a free port; it is ended with the block.

    It is a fork of a process that has imported everything, unless `command` tells Python what to run.
    """
    out, log = folder / "server.out", folder / "server.log"
    process = _start([*map(str, arguments), "--bind", "127.0.0.1:0"], out, log, env, command)
    try:
        while not (line := out.read_text()).endswith("\n"):
            assert process.poll() is None, log.read_text(encoding="utf-8")
            time.sleep(0.005)
        name, _, address = line.strip().partition("=")
        assert name == "OMNIGRAPH_LISTEN_ADDR", log.read_text(encoding="utf-8")
        server = Server(process, address, log)
        with server.client:
            yield server
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=START_SECONDS)
        except (subprocess.TimeoutExpired, TimeoutError):
            process.kill()
            process.wait()


def _start(
    arguments: list[str],
    out: Path,
    err: Path,
    env: Mapping[str, str] | None,
    command: tuple[str, ...] | None,
) -> Process:
    out.write_bytes(b"")
    err.write_bytes(b"")
    if command is None:
        given = [arguments, str(out), str(err), os.getcwd()]
        return fork_server().start("tests.server.starting:start", given, environment(env))
    with out.open("wb") as output, err.open("wb") as errors:
        return subprocess.Popen(
            [sys.executable, *command, *arguments],
            stdout=output,
            stderr=errors,
            env=environment(env),
        )


def refused(*arguments: str | Path, env: Mapping[str, str] | None = None) -> str:
    """What a server says that does not start."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        given = [*map(str, arguments), "--bind", "127.0.0.1:0"]
        process = _start(given, out, err, env, command=None)
        try:
            code = process.wait(START_SECONDS)
        finally:
            process.kill()
        assert (code, out.read_text()) == (1, ""), err.read_text()
        return err.read_text()


def lines(response: httpx.Response) -> list[dict[str, Any]]:
    """The records of a JSON Lines answer."""
    return [json.loads(line) for line in response.text.splitlines()]
