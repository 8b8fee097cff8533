"""Errors as HTTP answers: status, body and headers, in the shape of each contract.

A request that never reaches the engine fails with `HttpProblem`, everything else with an error of the
tree. Tests: tests/server/test_bodies.py, tests/unit/client/test_failures.py.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from omnigraph import errors as og
from omnigraph.diagnostics import Diagnostic, cut_values
from omnigraph.json_structs import described
from omnigraph.wire import errors as wire
from omnigraph.wire.contracts import CONTRACT_13, Contract, named

log = logging.getLogger("omnigraph.server")

RETRY_AFTER_SECONDS: Final = 60

_CODES: Final[Mapping[int, wire.ErrorCode]] = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "bad_request",
    409: "conflict",
    413: "bad_request",
    415: "bad_request",
    416: "bad_request",
    422: "bad_request",
    429: "too_many_requests",
    500: "internal",
}
"""The `code` of a status, unless the problem has its own or none."""

_SERVER_FAULTS: Final = (og.InvalidSetting, og.NewerFormat, og.ReadOnlyHandle, og.MissingExtra)
"""Input errors that no request causes."""


class HttpProblem(Exception):
    """A request that is refused before the engine sees it, or by a rule of HTTP."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: wire.ErrorCode | None = None,
        headers: Mapping[str, str] | None = None,
        details: Mapping[str, Any] | None = None,
        cause: og.OmnigraphError | None = None,
    ) -> None:
        """`details` are fields of contract 0.13; those of `cause` are in both contracts."""
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.headers = dict(headers or {})
        self.details = dict(details or {})
        self.cause = cause


class ConditionFailed(HttpProblem):
    """The branch is not at the commit that a conditional route requires."""

    def __init__(self, error: og.HeadMoved) -> None:
        failure = wire.PreconditionFailureOutput(expected=error.expected, actual=error.actual)
        super().__init__(412, error.message, details={"precondition_failure": failure}, cause=error)


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """What is sent for an error."""

    status: int
    body: wire.ErrorOutput07 | wire.ErrorOutput13
    headers: dict[str, str] = field(default_factory=dict)


def error_answer(
    error: BaseException, contract: Contract, *, all_fields: bool = False
) -> ErrorAnswer:
    """The answer for an error. An unexpected one is logged and not shown."""
    is_13 = contract.version == CONTRACT_13.version
    if isinstance(error, HttpProblem):
        status = 400 if is_13 and error.status == 422 else error.status
        code = error.code or _CODES.get(status)
        details = error.details if is_13 else {}
        if error.cause is not None:
            details = _additions(error.cause) | details
        return ErrorAnswer(status, _body(is_13, error.message, code, details), error.headers)
    if not isinstance(error, og.OmnigraphError):
        log.error("unexpected error", exc_info=error)
        return ErrorAnswer(500, _body(is_13, "internal server error", "internal", {}))
    status = status_of(error, is_13=is_13)
    if status >= 500:
        log.error("%s [%s]", error, error.code, exc_info=error)
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS)} if status == 429 else {}
    details = _additions(error) | (_details_13(error, all_fields) if is_13 else _details_07(error))
    code = None if is_13 and status in (410, 412, 503) else _code(status)
    return ErrorAnswer(status, _body(is_13, _message(error), code, details), headers)


def status_of(error: og.OmnigraphError, *, is_13: bool) -> int:
    """The status of an error of the engine."""
    match error:
        case og.PolicyUndecided():
            return 500
        case og.PolicyError():
            return 403
        case og.TooManyRequests():
            return 429
        case og.ChangeFeedGap():
            return 410
        case og.HistoryRemoved():
            return 410 if is_13 else 404
        case og.BlobRangeError():
            return 416
        case og.HandleClosed() | og.RecoveryPending() | og.RecoveryQuarantined():
            return 503
        case _ if isinstance(error, _SERVER_FAULTS):
            return 500
        case og.NotFoundError():
            return 404
        case og.ConflictError():
            return 409
        case (
            og.LanguageError()
            | og.InputError()
            | og.SchemaError()
            | og.ConstraintError()
            | og.LimitError()
        ):
            return 400
    return 500


def _code(status: int) -> wire.ErrorCode | None:
    return "internal" if status == 503 else _CODES.get(status)


def _message(error: og.OmnigraphError) -> str:
    if isinstance(error, og.LanguageError):
        return error.wire_message
    return error.message


def _body(
    is_13: bool, message: str, code: wire.ErrorCode | None, details: Mapping[str, Any]
) -> wire.ErrorOutput07 | wire.ErrorOutput13:
    made = wire.ErrorOutput13 if is_13 else wire.ErrorOutput07
    return made(error=message, code=msgspec.UNSET if code is None else code, **details)


def _additions(error: og.OmnigraphError) -> dict[str, Any]:
    """Details that both contracts have."""
    found: dict[str, Any] = {"exception": describe(error)}
    if diagnostics := _diagnostics(error):
        found["diagnostics"] = [
            msgspec.convert(one.to_json(), described(wire.DiagnosticOutput)) for one in diagnostics
        ]
    if isinstance(error, og.LoadError):
        found["load_errors"] = [
            msgspec.convert(one.to_json(), described(wire.LoadErrorOutput))
            for one in error.load_errors
        ]
        found["load_errors_total"] = error.load_errors_total
    if isinstance(error, og.HeadMoved):
        found["head_conflict"] = wire.HeadConflictOutput(
            branch=error.branch, expected=error.expected, actual=error.actual
        )
    if isinstance(error, og.MergeConflicts):
        found["merge_conflicts_total"] = error.total
    return found


def _diagnostics(error: og.OmnigraphError) -> tuple[Diagnostic, ...]:
    match error:
        case og.LanguageError():
            return error.diagnostics
        case og.UnsupportedMigration(diagnostic=Diagnostic() as one):
            return (one,)
        case og.QueriesBroken():
            return tuple(query.diagnostic for query in error.queries)
    return ()


def describe(error: og.OmnigraphError) -> wire.ExceptionOutput:
    """An exception as its class, its code and the values of its fields."""
    fields = {name: value for name, value in vars(error).items() if name not in _SAID_ELSEWHERE}
    return wire.ExceptionOutput(
        type=type(error).__name__,
        code=error.code,
        retry=error.retry.value,
        message=error.message,
        fields=msgspec.to_builtins(fields, enc_hook=str, str_keys=False) if fields else {},
    )


_SAID_ELSEWHERE: Final = frozenset(
    ["message", "load_errors", "load_errors_total", "alike", "conflicts"]
)
"""Fields that the body has already, or that have no JSON form."""


def _details_07(error: og.OmnigraphError) -> dict[str, Any]:
    match error:
        case og.MergeConflicts():
            found = [one.to_json() for one in error.conflicts]
            return {
                "merge_conflicts": [
                    msgspec.convert(one, described(wire.MergeConflictOutput)) for one in found
                ]
            }
        case og.ExpectedVersionMismatch():
            return {
                "manifest_conflict": wire.ManifestConflictOutput(
                    table_key=error.table, expected=error.expected, actual=error.actual
                )
            }
    return {}


def _details_13(error: og.OmnigraphError, all_fields: bool) -> dict[str, Any]:
    match error:
        case og.LanguageError():
            return {"diagnostic": _diagnostic_13(error)}
        case og.MergeConflicts():
            return {
                "merge_conflicts": [
                    wire.MergeConflictOutput13(
                        **named(one.table_key),
                        entity_id=one.row_id,
                        kind=msgspec.convert(one.kind, described(wire.MergeConflictKindOutput)),
                        message=cut_values(one.message),
                        **_sides(one) if all_fields else {},
                    )
                    for one in error.conflicts
                ]
            }
        case og.ExpectedVersionMismatch():
            return {
                "published_dataset_version_conflict": wire.PublishedDatasetVersionConflictOutput(
                    **named(error.table),
                    expected_published_dataset_version=error.expected,
                    actual_published_dataset_version=error.actual,
                )
            }
        case og.ChangeFeedGap():
            unread = error.commit_id
            gap = wire.ChangeFeedGapOutput(cursor=None, first_unreadable_commit_id=unread)
            return {"change_feed_gap": gap}
        case og.ChangesNotShown():
            refusal = wire.ChangeDiffRefusalOutput(
                graph_commit_id=error.commit_id,
                reason=error.reason,
                type_name=error.type_name or msgspec.UNSET,
            )
            return {"change_diff_refusal": refusal}
        case og.BlobRangeError():
            wanted = wire.BlobRangeOutput(start=error.offset, end=None, length=error.size)
            return {"blob_range": wanted}
        case og.RecoveryPending():
            pending = wire.RecoveryRequiredOutput(operation_id=error.sidecars[0])
            return {"recovery_required": pending}
        case og.RecoveryQuarantined():
            return {"recovery_required": wire.RecoveryRequiredOutput(operation_id=error.sidecar)}
    return {}


def _sides(conflict: og.MergeConflict) -> dict[str, Any]:
    """The row before and on both sides, if the conflict is about one."""
    document = conflict.to_json()
    return {side: document[side] for side in ("base", "ours", "theirs") if side in document}


def _diagnostic_13(error: og.LanguageError) -> wire.CompilerDiagnosticOutput:
    first = error.diagnostic
    where = first.position
    return wire.CompilerDiagnosticOutput(
        code=first.code,
        expected=first.message,
        stage=first.category,
        fix=first.hint or msgspec.UNSET,
        position=wire.SourcePositionOutput(line=where.line, column=where.column, byte=where.start),
    )
