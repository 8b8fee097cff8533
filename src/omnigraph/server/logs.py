"""What a server writes to standard error: lines of text, or one JSON document a line.

Everything that is logged while a request is answered has the id of the request. Tokens, bodies and the
values of parameters are never logged.
Tests: tests/server/test_logs.py.
"""

from __future__ import annotations

import logging
import re
import secrets
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final, Literal

import msgspec

LogFormat = Literal["text", "json"]
LOG_FORMATS: Final = ("text", "json")
REQUEST_ID: Final = "X-Request-Id"
"""The header of a request and of its answer."""

_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}\Z")
_TEXT: Final = "%(asctime)s %(levelname)s %(name)s %(message)s"
_encoder: Final = msgspec.json.Encoder(enc_hook=str)

access_log: Final = logging.getLogger("omnigraph.server.access")
slow_log: Final = logging.getLogger("omnigraph.server.slow")

request_id: Final[ContextVar[str | None]] = ContextVar("omnigraph_request_id", default=None)
"""The id of the request that is being answered."""


def id_of(given: bytes | None) -> str:
    """The id that a client or a proxy gave a request, if it is one; otherwise a new one."""
    if given is not None and _ID.match(given):
        return given.decode("ascii")
    return secrets.token_hex(8)


def configure(level: str, format: LogFormat) -> None:
    """Log to standard error from now on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if format == "json" else logging.Formatter(_TEXT))
    logging.basicConfig(level=level.upper(), handlers=[handler])


def fields(**given: object) -> dict[str, dict[str, object]]:
    """The `extra` of a log call, with the members that its JSON document has besides."""
    return {"fields": {name: value for name, value in given.items() if value is not None}}


class JsonFormatter(logging.Formatter):
    """One JSON document per record: time, level, logger, message, and the fields of the record."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC)
        document: dict[str, Any] = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if (id := request_id.get()) is not None:
            document["request_id"] = id
        more: Mapping[str, object] = getattr(record, "fields", {})
        document |= more
        if record.exc_info:
            document["exception"] = self.formatException(record.exc_info)
        return _encoder.encode(document).decode()
