"""What a tool returns: JSON in the case that clients of the protocol expect, bounded in rows and bytes.

Tests: tests/unit/mcp/test_documents.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from omnigraph.mcp.backend import ToolReply

MAX_BYTES: Final = 262_144
"""Most bytes of an answer. A larger one would fill the context of the model that reads it."""

MAX_ERROR_CHARACTERS: Final = 4_000
"""Of the message of an error, which may show a line of a query."""

MAX_ERROR_BYTES: Final = 65_536
"""Of the document of an error, which is left out if it is larger."""

_DATA: Final = frozenset(
    ["rows", "columns", "params", "data", "properties", "values", "before", "after"]
)
"""Members whose keys are names of the graph, not of the document."""

_LISTS: Final = ("rows", "changes", "commits", "queries")
"""Members that are cut when an answer is too large."""


_CURSORS: Final = frozenset(["cursor", "next_cursor", "next_page_token"])
"""Members that continue a list behind its last element."""


def camel_case(document: Any) -> Any:
    """A document with its own keys in camel case; keys that come from the graph stay as they are."""
    if isinstance(document, list):
        return [camel_case(one) for one in document]
    if not isinstance(document, dict):
        return document
    return {
        _camel(key): value if key in _DATA else camel_case(value) for key, value in document.items()
    }


def _camel(key: str) -> str:
    head, *tail = key.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in tail)


def bounded(document: Any, max_rows: int | None = None) -> Any:
    """A document with at most `max_rows` rows and about `MAX_BYTES` bytes.

    One that was cut says so in `truncated` and how many are shown in `shown`. A cursor behind the
    elements that are missing would skip them, so there is none.
    """
    if not isinstance(document, dict):
        return document
    name = next((one for one in _LISTS if isinstance(document.get(one), list)), None)
    if name is None:
        return document
    elements = document[name]
    kept = elements if max_rows is None else elements[:max_rows]
    room = MAX_BYTES - len(msgspec.json.encode({**document, name: []}))
    total = 0
    for count, element in enumerate(kept):
        total += len(msgspec.json.encode(element)) + 1
        if total > room:
            kept = kept[:count]
            break
    if len(kept) == len(elements):
        return document
    shown = {key: value for key, value in document.items() if key not in _CURSORS}
    return {**shown, name: kept, "truncated": True, "shown": len(kept)}


def text_of(document: Any) -> str:
    """The one text of a result."""
    return document if isinstance(document, str) else msgspec.json.encode(document).decode()


def too_large(text: str) -> bool:
    return len(text.encode()) > 2 * MAX_BYTES


def error_document(reply: ToolReply) -> dict[str, Any]:
    """A failed request, with what its caller needs to decide whether to repeat it."""
    body: Mapping[str, Any] = reply.body if isinstance(reply.body, dict) else {}
    is_small = len(msgspec.json.encode(reply.body)) <= MAX_ERROR_BYTES
    return {
        "error": str(body.get("error") or reply.body)[:MAX_ERROR_CHARACTERS],
        "status": reply.status or None,
        "code": body.get("code"),
        "requestId": reply.request_id,
        "requestDispatched": reply.was_sent,
        "outcomeUnknown": reply.is_outcome_unknown,
        "body": camel_case(reply.body) if is_small else None,
    }
