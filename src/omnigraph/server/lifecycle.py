"""Running the application: listening, and ending without losing a write.

At SIGTERM or SIGINT the server refuses new work, answers `/readyz` with 503 and ends when everything that
runs has ended. What still runs after the grace time is left to recovery, and the exit code is 2.
Tests: tests/server/test_shutdown.py.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from functools import partial
from types import FrameType
from typing import Final

import uvicorn

from omnigraph.server.app import App
from omnigraph.server.connections import READER_SECONDS, Connection

log = logging.getLogger("omnigraph.server")

SUCCESS: Final = 0
UNFINISHED: Final = 2
"""The exit code when requests were still running after the grace time."""

BACKLOG: Final = 2048


class _Server(uvicorn.Server):
    """A uvicorn server whose signals begin to drain the application."""

    def __init__(self, config: uvicorn.Config, app: App, grace_seconds: float) -> None:
        super().__init__(config)
        self._app = app
        self._grace_seconds = grace_seconds
        self._draining: asyncio.Task[None] | None = None
        self.has_finished = True

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        await super().serve(sockets)
        await self._app.close()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._draining is None:
            log.info("shutting down: waiting for running requests")
            self._draining = asyncio.get_running_loop().create_task(self._drain())
        else:
            self.has_finished = False
            self.should_exit = self.force_exit = True

    async def _drain(self) -> None:
        try:
            async with asyncio.timeout(self._grace_seconds):
                await self._app.drained()
        except TimeoutError:
            log.warning("requests are still running after %g seconds", self._grace_seconds)
            self.has_finished = False
            self.force_exit = True
        self.should_exit = True


def listen(host: str, port: int) -> socket.socket:
    """A socket that accepts connections. Raises `OSError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small answers at once only on sockets that say they are TCP; otherwise each waits 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        # Connections wait in the backlog from now on, before the first request is read.
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    listener.set_inheritable(True)
    return listener


def serve(
    app: App,
    listener: socket.socket,
    grace_seconds: float,
    reader_seconds: float = READER_SECONDS,
) -> int:
    """Serve until a signal ends the process; the result is its exit code."""
    cut = app.state.metrics.add_cut_answer
    connection = partial(Connection, reader_seconds=reader_seconds, when_cut=cut)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        backlog=BACKLOG,
        http=connection,  # type: ignore[arg-type]  # called as the class is
        proxy_headers=False,
        server_header=False,
    )
    server = _Server(config, app, grace_seconds)
    server.run(sockets=[listener])
    if server.has_finished:
        return SUCCESS
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads that still write would keep the process alive.
    os._exit(UNFINISHED)
