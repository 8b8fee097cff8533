"""A server process to measure, and clients that cost little: raw sockets in processes of their own."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

_RUN = "import sys; from omnigraph.server.command import run; sys.exit(run(sys.argv[1:]))"
Address: TypeAlias = tuple[str, int]
Ask: TypeAlias = Callable[[int, int], tuple[str, str, dict[str, Any], str | None]]
"""From a client and the number of its request to a kind, a path, a body and a token."""


class ServerProcess:
    """A server on the loopback interface. It can be killed and started again on its port."""

    def __init__(self, folder: Path, *arguments: str, env: Mapping[str, str]) -> None:
        self._folder = folder
        self._arguments = arguments
        self._env = {**os.environ, **env}
        self.address: Address = ("127.0.0.1", 0)
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        host, port = self.address
        command = [sys.executable, "-c", _RUN, *self._arguments, "--bind", f"{host}:{port}"]
        with (self._folder / "server.log").open("a") as log:
            self._process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, env=self._env
            )
        if port == 0:
            assert self._process.stdout is not None
            written = self._process.stdout.readline().strip().rpartition(":")[2]
            self.address = (host, int(written))
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(self.address) == 0:
                    return
            time.sleep(0.05)
        raise RuntimeError("the server did not start; see server.log")

    def kill(self) -> None:
        """As a power cut would end it."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(timeout=60)
        if self._process.stdout is not None:
            self._process.stdout.close()


@contextmanager
def server_process(
    folder: Path, *arguments: str, env: Mapping[str, str]
) -> Iterator[ServerProcess]:
    server = ServerProcess(folder, *arguments, env=env)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def request_bytes(path: str, body: dict[str, Any], token: str | None) -> bytes:
    content = json.dumps(body).encode()
    bearer = f"Authorization: Bearer {token}\r\n" if token else ""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{bearer}"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


class OneConnection:
    """A client that blocks: the smallest one there is."""

    def __init__(self, address: Address) -> None:
        self._socket = socket.create_connection(address)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def call(self, sent: bytes) -> int:
        """Send a request and read its answer; the result is its status."""
        self._socket.sendall(sent)
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._socket.recv(65_536)
        head, _, body = received.partition(b"\r\n\r\n")
        missing = _length(head) - len(body)
        while missing > 0:
            missing -= len(self._socket.recv(65_536))
        return int(head[9:12])

    def close(self) -> None:
        self._socket.close()


@dataclass(slots=True)
class Outcome:
    """What clients saw: seconds by kind of request, answers by kind and status."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    acknowledged: list[str] = field(default_factory=list)
    broken: int = 0
    """Requests whose connection ended before the answer."""

    def add(self, other: Outcome) -> None:
        for kind, found in other.seconds.items():
            self.seconds.setdefault(kind, []).extend(found)
        self.statuses += other.statuses
        self.acknowledged += other.acknowledged
        self.broken += other.broken

    @property
    def total(self) -> int:
        return sum(len(found) for found in self.seconds.values())


def drive(address: Address, ask: Ask, clients: int, seconds: float, processes: int = 2) -> Outcome:
    """Every client sends one request after the other. `ask` has to be importable."""
    context = multiprocessing.get_context("spawn")
    found = Outcome()
    with context.Pool(processes) as pool:
        shares = [range(first, clients, processes) for first in range(processes)]
        running = [pool.apply_async(_drive, (address, ask, share, seconds)) for share in shares]
        for one in running:
            found.add(one.get())
    return found


def _drive(address: Address, ask: Ask, clients: range, seconds: float) -> Outcome:
    found = Outcome()

    async def all_clients() -> None:
        deadline = time.perf_counter() + seconds
        await asyncio.gather(*(_client(address, ask, one, deadline, found) for one in clients))

    asyncio.run(all_clients())
    return found


async def _client(address: Address, ask: Ask, client: int, deadline: float, found: Outcome) -> None:
    number = 0
    connection: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
    while time.perf_counter() < deadline:
        kind, path, body, token = ask(client, number)
        number += 1
        began = time.perf_counter()
        try:
            if connection is None:
                connection = await asyncio.open_connection(*address)
            status = await _exchange(*connection, request_bytes(path, body, token))
        except (OSError, asyncio.IncompleteReadError):
            found.broken += 1
            if connection is not None:
                connection[1].close()
            connection = None
            await asyncio.sleep(0.05)
            continue
        found.seconds.setdefault(kind, []).append(time.perf_counter() - began)
        found.statuses[kind, status] += 1
        if status == 200 and kind == "write":
            found.acknowledged.append(body["params"]["slug"])
    if connection is not None:
        connection[1].close()


async def _exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sent: bytes) -> int:
    writer.write(sent)
    head = await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(_length(head))
    return int(head[9:12])


def _length(head: bytes) -> int:
    found = head.lower().partition(b"content-length:")[2]
    return int(found.partition(b"\r\n")[0])
