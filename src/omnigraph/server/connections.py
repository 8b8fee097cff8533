"""One connection: limits on what a client may send around its requests, and for how long.

uvicorn parses requests with httptools and limits neither the size of headers nor the time they take. Both are
limited here, and whatever is refused is refused with the error document of the API. A client that stops reading
its answer is cut off after a while, which frees the thread and the memory that the answer holds.
Tests: tests/server/test_connections.py, tests/server/test_slow_readers.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from omnigraph.wire.errors import ErrorOutput07

log = logging.getLogger("omnigraph.server")

HEAD_SECONDS: Final = 30.0
"""How long a client may take to send the request line and the headers."""

UNREAD_BODY_SECONDS: Final = 30.0
"""How long a client may go on sending a body after its answer."""

READER_SECONDS: Final = 300.0
"""How long a client may read nothing of an answer that waits to be sent."""

_LOOKS: Final = 4
"""How often within that time the server looks whether anything was read."""

MAX_HEAD_BYTES: Final = 65_536
"""Largest request line and headers together; also the largest trailers."""


class Connection(HttpToolsProtocol):
    """A connection of uvicorn with limits."""

    def __init__(
        self,
        *args: Any,
        reader_seconds: float = READER_SECONDS,
        when_cut: Callable[[], None] = lambda: None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._reader_seconds = reader_seconds
        self._when_cut = when_cut
        self._stall: asyncio.TimerHandle | None = None
        self._is_in_head = False
        self._is_in_body = False
        self._is_answering = False
        self._bytes_around_bodies = 0
        self._deadline: asyncio.TimerHandle | None = None

    # -- the connection -------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_within(HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._arrived()
        self._forget_stall()
        super().connection_lost(exc)

    # -- a client that does not read --------------------------------------------------------

    def pause_writing(self) -> None:
        super().pause_writing()
        self._look_later(self.transport.get_write_buffer_size(), self.loop.time())

    def resume_writing(self) -> None:
        self._forget_stall()
        super().resume_writing()

    def _look_later(self, waiting: int, since: float) -> None:
        self._stall = self.loop.call_later(
            self._reader_seconds / _LOOKS, self._look_at_reader, waiting, since
        )

    def _look_at_reader(self, waiting: int, since: float) -> None:
        """Cut the connection if nothing was read since that time, when so many bytes were waiting."""
        now, still = self.loop.time(), self.transport.get_write_buffer_size()
        if still != waiting:
            self._look_later(still, now)
        elif now - since < self._reader_seconds:
            self._look_later(waiting, since)
        else:
            log.warning("cut an answer whose client read nothing for %g seconds", now - since)
            self._when_cut()
            # A transport that is closed would go on waiting for its reader.
            self.transport.abort()

    def _forget_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    # -- what arrives ---------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._bytes_around_bodies += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._bytes_around_bodies > MAX_HEAD_BYTES:
            self._refuse(431, f"the headers are larger than {MAX_HEAD_BYTES:,} bytes")
        elif self._is_in_head and self._deadline is None:
            self._expect_within(HEAD_SECONDS)

    # -- the parser -----------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._is_in_head = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        # A trailer comes after the headers were acted upon, so it is not one of them.
        if self._is_in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._is_in_head, self._is_in_body, self._is_answering = False, True, True
        self._arrived()
        super().on_headers_complete()
        if self.parser.should_upgrade():
            # What follows belongs to a protocol that the server does not speak.
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        self._bytes_around_bodies = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._is_in_body = False
        self._bytes_around_bodies = 0
        self._arrived()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._is_answering = len(self.pipeline) > 0
        super().on_response_complete()
        if self._is_in_body and not self.transport.is_closing():
            self._expect_within(UNREAD_BODY_SECONDS)

    # -- refusals -------------------------------------------------------------------------

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "the request is not valid HTTP")

    def _unsupported_upgrade_warning(self) -> None:
        """Not worth a line: the request is answered, and then the connection is closed."""

    def _expect_within(self, seconds: float) -> None:
        self._arrived()
        self._deadline = self.loop.call_later(seconds, self._too_late)

    def _arrived(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_late(self) -> None:
        self._deadline = None
        if self._is_in_head:
            self._refuse(408, f"the headers did not arrive within {HEAD_SECONDS:g} seconds")
        else:
            self.transport.close()

    def _refuse(self, status: int, message: str) -> None:
        """Answer and close. If an earlier answer has to come first, only close."""
        is_next = not self._is_answering or not self.cycle.response_started
        if is_next and not self.pipeline:
            body = msgspec.json.encode(ErrorOutput07(error=message, code="bad_request"))
            self.transport.write(
                f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
                "content-type: application/json\r\n"
                f"content-length: {len(body)}\r\n"
                "connection: close\r\n\r\n".encode()
                + body
            )
        self.transport.close()
