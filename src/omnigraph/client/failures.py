"""Error answers as the exceptions of the tree.

A body names the class, the code and the fields of the exception that the engine raised; the same exception
is made from them. An answer without them becomes an error by its status. Tests: tests/unit/client.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from omnigraph import errors
from omnigraph.diagnostics import Diagnostic, shortened
from omnigraph.errors import LoadProblem, MergeConflict, OmnigraphError
from omnigraph.json_structs import described
from omnigraph.wire.errors import ExceptionOutput

_KINDS: Final[Mapping[str, Any]] = {
    "diagnostic": Diagnostic | None,
    "diagnostics": tuple[Diagnostic, ...],
    "queries": tuple[errors.BrokenQuery, ...],
    "edges": tuple[errors.EdgesOfType, ...],
    "properties": tuple[errors.UnknownProperty, ...],
    "load_errors": tuple[LoadProblem, ...],
    "conflicts": tuple[MergeConflict, ...],
}
"""Fields that hold values of our own classes."""


class ErrorBody(msgspec.Struct, kw_only=True):
    """What the client reads of an error body, in either contract."""

    error: str
    code: str | None = None
    exception: ExceptionOutput | None = None
    load_errors: list[dict[str, Any]] = []
    load_errors_total: int = 0
    merge_conflicts: list[dict[str, Any]] = []


def failure(server: str, status: int, headers: Mapping[str, str], content: bytes) -> OmnigraphError:
    """The exception of an answer whose status says that the call failed."""
    try:
        body = msgspec.json.decode(content, type=described(ErrorBody))
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = shortened(content.decode("utf-8", "replace").strip(), 200)
        return _by_status(server, status, text or f"HTTP status {status}", headers)
    if body.exception is not None and status != 401:
        rebuilt = _rebuilt(body, body.exception)
        if rebuilt is not None:
            if isinstance(rebuilt, errors.TooManyRequests):
                rebuilt.retry_after = _seconds(headers)
            return rebuilt
    return _by_status(server, status, body.error, headers)


def _rebuilt(body: ErrorBody, described: ExceptionOutput) -> OmnigraphError | None:
    cls = getattr(errors, described.type, None)
    if not inspect.isclass(cls) or not issubclass(cls, OmnigraphError):
        return None
    fields = dict(described.fields)
    if issubclass(cls, errors.LoadError):
        fields["load_errors"] = body.load_errors
        fields["load_errors_total"] = body.load_errors_total
        fields["alike"] = {}
    if issubclass(cls, errors.MergeConflicts):
        fields["conflicts"] = [_conflict_07(one) for one in body.merge_conflicts]
    try:
        state = {name: _value(name, value) for name, value in fields.items()}
    except msgspec.ValidationError:
        return None
    return restored(cls, described.message or body.error, state)


def restored(cls: type[OmnigraphError], message: str, fields: Mapping[str, Any]) -> OmnigraphError:
    """An exception with the message and the fields it had elsewhere."""
    error = cls.__new__(cls, message)
    error.args = (message,)
    error.__dict__.update(fields, message=message)
    return error


def _value(name: str, value: Any) -> Any:
    kind = _KINDS.get(name)
    if kind is not None:
        return msgspec.convert(value, described(kind))
    return tuple(value) if isinstance(value, list) else value


def _conflict_07(conflict: dict[str, Any]) -> dict[str, Any]:
    """A conflict of contract 0.13 in the names of 0.7."""
    if "entity_kind" not in conflict:
        return conflict
    renamed = dict(conflict)
    renamed["table_key"] = f"{renamed.pop('entity_kind')}:{renamed.pop('type_name')}"
    renamed["row_id"] = renamed.pop("entity_id")
    return renamed


def _by_status(
    server: str, status: int, message: str, headers: Mapping[str, str]
) -> OmnigraphError:
    """An answer that names no exception: HTTP rules, a proxy, another version of the server."""
    match status:
        case 401:
            return errors.Unauthenticated(server, message, status)
        case 403:
            return errors.PolicyError(message)
        case 404 | 410:
            return errors.NotFoundError(message)
        case 400 | 405 | 408 | 411 | 413 | 414 | 415 | 416 | 422:
            return errors.InputError(message)
        case 409 | 412:
            return errors.ConflictError(message)
        case 429:
            return errors.TooManyRequests(message, _seconds(headers))
    return errors.RemoteError(server, message, status)


def _seconds(headers: Mapping[str, str]) -> int | None:
    text = headers.get("retry-after", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
