"""What to type after an error. Errors are worded for every caller; only these lines name commands.

Tests: tests/unit/cli/test_hints.py.
"""

from __future__ import annotations

from shlex import quote

from omnigraph.errors import (
    AlreadyInitialized,
    CommitStateUnknown,
    DanglingEdges,
    GraphNotFound,
    MissingExtra,
    OmnigraphError,
    RecoveryPending,
    RecoveryQuarantined,
    RepairRefused,
    TableDrift,
    UnknownParameter,
)


def hint_for(error: OmnigraphError) -> str | None:
    """The command that leads on, if there is one that is right for everybody."""
    match error:
        case GraphNotFound(uri=uri):
            return f"`omnigraph init --schema FILE {quote(uri)}` creates one"
        case AlreadyInitialized(is_complete=False):
            return "`omnigraph init --force` replaces what an unfinished init left"
        case AlreadyInitialized():
            return "--force replaces what an unfinished init left, never a graph"
        case CommitStateUnknown(is_load=True, idempotency_key=key):
            return f"repeat the command with --load-id {quote(key)}"
        case CommitStateUnknown(idempotency_key=key):
            return f"if the command has --idempotency-key, repeat it with {quote(key)} there"
        case DanglingEdges():
            return "--cascade deletes the edges"
        case UnknownParameter():
            return "--params and --params-file take a JSON object, one key per declared parameter"
        case MissingExtra(missing="the extra 'spark'", feature="engine 'spark'"):
            return "--engine inline works without it"
        case TableDrift() | RecoveryQuarantined() | RecoveryPending():
            return "`omnigraph repair` shows what it would do"
        case RepairRefused():
            return (
                "`omnigraph repair --confirm --force` accepts what is there, "
                "`omnigraph repair --confirm --force --rollback` discards it"
            )
    return None
