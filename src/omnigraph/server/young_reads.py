"""The order in which reads begin: a few at a time, as long as they are short.

Threads of one process take turns in the interpreter. Many short reads at once all end late, take it
from the thread that talks to the clients, and together get less done than a few. A read that has run for a
while reads much or waits for something. It does not count any more, and from then on its client is watched.
Tests: tests/server/test_young_reads.py.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Final

YOUNG_READS: Final = max(1, (os.cpu_count() or 1) - 1)
"""Reads that begin at a time: with the thread of the event loop, one thread for every core."""

YOUNG_SECONDS: Final = 0.05
"""A read that takes longer lets the next one begin, and is ended when its client goes away."""


class YoungRead:
    """A read that has begun. A context manager: the block is its run."""

    def __init__(self, reads: YoungReads, *, counts: bool) -> None:
        self.when_old: Callable[[], None] | None = None
        """Called once it has run for a while."""
        self.began = reads.now()
        self._reads = reads
        self._counts = counts

    def __enter__(self) -> YoungRead:
        self._reads.watch(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._reads.forget(self)
        self.leave()

    def leave(self) -> None:
        """It does not count any more."""
        if self._counts:
            self._counts = False
            self._reads.let_next()

    def grow_old(self) -> None:
        self.leave()
        if self.when_old is not None:
            self.when_old()


class YoungReads:
    """Reads that run and count, and those that wait to begin. For the thread of the event loop alone."""

    def __init__(self, most: int, seconds: float = YOUNG_SECONDS) -> None:
        self._most = most
        self._seconds = seconds
        self._counted = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._watched: dict[YoungRead, None] = {}
        self._is_looking = False

    @property
    def waiting(self) -> int:
        """How many reads wait to begin."""
        return len(self._waiting)

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def begin(self, *, counts: bool = True) -> YoungRead:
        """Wait until a read may begin, in order of arrival; one that does not count begins at once."""
        if counts and self._counted < self._most:
            self._counted += 1
        elif counts:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self.let_next()
                raise
        return YoungRead(self, counts=counts)

    def let_next(self) -> None:
        """Give the room of a read that counted to the one that has waited longest."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._counted -= 1

    def watch(self, read: YoungRead) -> None:
        self._watched[read] = None
        if not self._is_looking:
            self._look_later()

    def forget(self, read: YoungRead) -> None:
        self._watched.pop(read, None)

    def _look_later(self) -> None:
        # One timer for all reads: making one for each takes longer than a read may wait for it.
        self._is_looking = True
        asyncio.get_running_loop().call_later(self._seconds, self._look)

    def _look(self) -> None:
        self._is_looking = False
        since = self.now() - self._seconds
        for read in [read for read in self._watched if read.began <= since]:
            self.forget(read)
            read.grow_old()
        if self._watched:
            self._look_later()
