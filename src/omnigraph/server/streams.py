"""Answers that are sent while they are made.

A worker thread makes the parts, the event loop sends them. Between the two wait at most two parts, so a
slow client slows the thread down and a client that has gone ends it.
Tests: tests/server/test_slow_readers.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import CancelledError, Executor
from contextvars import copy_context
from typing import Final

from omnigraph.server.call import Write

PART_BYTES: Final = 262_144
WAITING_PARTS: Final = 2


class ReaderGone(Exception):
    """The client has closed the connection."""


class _Pipe:
    """Hands parts from a thread to the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._queue: asyncio.Queue[bytes | BaseException | None] = asyncio.Queue(WAITING_PARTS)
        self._is_closed = False

    def write(self, data: bytes) -> None:
        """Called by the thread. Raises `ReaderGone`."""
        view = memoryview(data)
        for start in range(0, len(view), PART_BYTES):
            self._put(bytes(view[start : start + PART_BYTES]))

    def run(self, produce: Callable[[Write], None]) -> None:
        """Called by the thread: make all parts, then say how it ended."""
        ended: BaseException | None = None
        try:
            produce(self.write)
        except ReaderGone:
            return
        except BaseException as error:
            ended = error
        try:
            self._put(ended)
        except ReaderGone:
            return

    def _put(self, item: bytes | BaseException | None) -> None:
        if self._is_closed:
            raise ReaderGone
        try:
            asyncio.run_coroutine_threadsafe(self._queue.put(item), self._loop).result()
        except (RuntimeError, CancelledError):
            # The event loop has ended, and with it the connection.
            raise ReaderGone from None
        if self._is_closed:
            raise ReaderGone

    async def parts(self) -> AsyncIterator[bytes]:
        """Called by the event loop."""
        try:
            while True:
                item = await self._queue.get()
                if item is None:
                    return
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            self._is_closed = True
            while not self._queue.empty():
                self._queue.get_nowait()


def streamed(produce: Callable[[Write], None], executor: Executor) -> AsyncIterator[bytes]:
    """The parts that `produce` writes, made in a thread of the executor from now on."""
    loop = asyncio.get_running_loop()
    pipe = _Pipe(loop)
    loop.run_in_executor(executor, copy_context().run, pipe.run, produce)
    return pipe.parts()
