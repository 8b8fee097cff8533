"""Request bodies: read within a limit and a time, then decoded into the struct of a route.

Compressed bodies are refused: a few bytes could become gigabytes.
Tests: tests/server/test_bodies.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from starlette.requests import ClientDisconnect, Request

from omnigraph.json_structs import described
from omnigraph.server.problems import HttpProblem
from omnigraph.wire.errors import ResourceLimitOutput

JSON_BODY_BYTES: Final = 1_048_576
LOAD_BODY_BYTES: Final = 33_554_432
DEPLOYMENT_BODY_BYTES: Final = 16_777_216
DRAINED_BYTES: Final = 2 * LOAD_BODY_BYTES
"""A body that is too large is read to its end up to here, so that its sender sees the answer."""

BODY_SECONDS: Final = 60.0
"""How long a client may take to send a body."""

NDJSON: Final = "application/x-ndjson"
MSGPACK: Final = "application/msgpack"
_CLOSE: Final = {"Connection": "close"}
_decoders: dict[type, msgspec.json.Decoder[Any]] = {}


async def read_body(request: Request, limit: int, seconds: float) -> bytes:
    """The body of a request. Raises `HttpProblem` 408, 413 or 415."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    is_compressed = encoding != "identity"
    declared = _declared_length(request.headers)
    if declared is not None and declared > DRAINED_BYTES:
        raise _too_large(limit, declared)
    parts: list[bytes] = []
    received = 0
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                received += len(part)
                if received > DRAINED_BYTES:
                    raise _too_large(limit, received)
                if received > limit or is_compressed:
                    parts.clear()
                else:
                    parts.append(part)
    except TimeoutError:
        message = f"the request body did not arrive within {seconds:g} seconds"
        raise HttpProblem(408, message, headers=_CLOSE) from None
    except ClientDisconnect:
        raise HttpProblem(400, "the client has closed the connection") from None
    if received > limit:
        raise _too_large(limit, received)
    if is_compressed:
        raise HttpProblem(415, "compressed bodies are not supported; send the body as it is")
    return b"".join(parts)


def _declared_length(headers: Mapping[str, str]) -> int | None:
    text = headers.get("content-length", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _too_large(limit: int, actual: int) -> HttpProblem:
    message = f"the request body is larger than {limit:,} bytes; send less at a time"
    exceeded = ResourceLimitOutput(resource="request_body_bytes", limit=limit, actual=actual)
    return HttpProblem(413, message, headers=_CLOSE, details={"resource_limit": exceeded})


def check_content_type(request: Request, wanted: str) -> None:
    """Raises `HttpProblem` 415 unless the body is of the wanted type."""
    written = request.headers.get("content-type", "")
    media = written.partition(";")[0].strip().lower()
    if media == wanted or (wanted == "application/json" and _is_json(media)):
        return
    given = f"not '{media}'" if media else "but it is missing"
    raise HttpProblem(415, f"the content type must be {wanted}, {given}")


def _is_json(media: str) -> bool:
    return media.startswith("application/") and media.endswith("+json")


def decode_body(body: bytes, kind: type[Any]) -> Any:
    """A JSON body as a struct. Raises `HttpProblem` 400 for bad JSON, 422 for a wrong shape."""
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(described(kind))
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise HttpProblem(422, f"the request body is not valid: {error}") from None
    except msgspec.DecodeError as error:
        raise HttpProblem(400, f"the request body is not valid JSON: {error}") from None
    except RecursionError:
        raise HttpProblem(400, "the request body is nested too deeply") from None
    except UnicodeDecodeError:
        raise HttpProblem(400, "the request body is not UTF-8") from None
