"""Errors of the store, and of recovery of interrupted writes."""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.diagnostics import counted
from omnigraph.errors.base import OmnigraphError, Retry


class StorageError(OmnigraphError):
    """The store failed; the outcome of a running write may be unknown."""

    code = "OG-F-000"
    kind = "storage"
    retry = Retry.AS_IS


class CommitStateUnknown(StorageError):
    """A write was started and left to recovery, which will complete or undo it.

    Repeating the call with `idempotency_key` is always safe: if the write was published, its
    receipt comes back. A call that `takes_key` is False for, such as `optimize`, is repeated as it
    is, after a recovery. `reason` is what interrupted the write, if known. A client that lost the
    answer of a server knows neither the operation nor the commit; both are None then.
    """

    code = "OG-F-001"
    retry = Retry.WITH_KEY

    def __init__(
        self,
        operation_id: str | None,
        commit_id: str | None,
        idempotency_key: str,
        *,
        is_load: bool = False,
        takes_key: bool = True,
        reason: str | None = None,
    ) -> None:
        self.operation_id = operation_id
        self.commit_id = commit_id
        self.idempotency_key = idempotency_key
        self.is_load = is_load
        self.takes_key = takes_key
        self.reason = reason
        if not takes_key:
            self.retry = Retry.AS_IS
            advice = "graph.maintenance.recover() completes or undoes it; then repeat the call"
        else:
            # Inserts and upserts are loads, too.
            argument = f"load_id='{idempotency_key}' (idempotency_key for insert and upsert)"
            if not is_load:
                argument = f"idempotency_key='{idempotency_key}'"
            advice = f"repeat the call with {argument}: it returns the receipt if the commit was published"
        what = "the write" if commit_id is None else f"commit {commit_id}"
        super().__init__(
            f"could not confirm {what}{'' if reason is None else f' ({reason})'}; {advice}"
        )


class ManifestDamaged(StorageError):
    """The manifest contradicts itself or is incomplete."""

    code = "OG-F-002"
    retry = Retry.NEVER


class StoreCallFailed(StorageError):
    """One call to the store failed. If it was a write, its outcome may be unknown."""

    code = "OG-F-003"

    def __init__(self, action: str, uri: str, cause: str) -> None:
        self.action = action
        self.uri = uri
        self.cause = cause
        super().__init__(f"storage {action} failed for '{uri}': {cause}")


class SyncFailed(StoreCallFailed):
    """Data was written, but the disk did not confirm that it is durable."""

    code = "OG-F-008"
    retry = Retry.NEVER


class ObjectMissing(StoreCallFailed):
    """The object to read or rename does not exist."""

    code = "OG-F-004"
    retry = Retry.NEVER


class TableMissing(StoreCallFailed):
    """A table, a branch of it or one of its versions does not exist."""

    code = "OG-F-006"
    retry = Retry.NEVER


class TornVersion(StoreCallFailed):
    """The newest version of a table is unreadable, as after a power loss; it was not acknowledged.

    `version` is the unreadable one, `previous` the newest one before it, if any.
    """

    code = "OG-F-007"
    retry = Retry.NEVER

    def __init__(self, uri: str, version: int, previous: int | None, cause: str) -> None:
        self.version = version
        self.previous = previous
        super().__init__("open", uri, f"version {version} was not written completely ({cause})")


class FileDamaged(StoreCallFailed):
    """A stored file has its full size but cannot be read; its content was acknowledged.

    `uri` is the file, `what` the version or branch it belongs to.
    """

    code = "OG-F-009"
    retry = Retry.NEVER

    def __init__(self, uri: str, what: str, cause: str) -> None:
        self.what = what
        StorageError.__init__(
            self, f"file '{uri}' of {what} is damaged ({cause}); restore it from a backup"
        )
        self.action, self.uri, self.cause = "open", uri, cause


class GraphMoved(StorageError):
    """The graph was moved or copied after a branch was created, so the branch's files are missing."""

    code = "OG-F-010"
    kind = "conflict"
    retry = Retry.NEVER

    def __init__(self, branch: str, made_at: str, found_at: str) -> None:
        self.branch = branch
        self.made_at = made_at
        self.found_at = found_at
        super().__init__(
            f"cannot use branch '{branch}' at '{found_at}': it was created when the graph was at "
            f"'{made_at}' and refers to files there; delete the branch or move the graph back"
        )


class UnsafeStore(StorageError):
    """The store does not prevent writers from overwriting each other, so it cannot hold a graph."""

    code = "OG-F-005"
    kind = "bad_request"
    retry = Retry.NEVER

    def __init__(self, uri: str, check: str, problem: str) -> None:
        self.uri = uri
        self.check = check
        super().__init__(f"cannot store a graph at '{uri}': {problem} (failed check: {check})")


class RecoveryError(OmnigraphError):
    """An interrupted write cannot be recovered automatically."""

    code = "OG-R-000"
    kind = "conflict"


class TableOvertaken(RecoveryError):
    """A change was built on one version of a table but landed on top of a later one.

    The table then holds both changes, so the writer does not publish its own and undoes it.
    """

    code = "OG-R-001"
    retry = Retry.AS_IS

    def __init__(self, table: str, expected: int, actual: int) -> None:
        self.table = table
        self.expected = expected
        self.actual = actual
        super().__init__(
            f"commit to table '{table}' landed at version {actual} instead of {expected}, "
            "on top of another change; it will not be published"
        )


class RecoveryQuarantined(RecoveryError):
    """An interrupted write of the table needs an operator's decision."""

    code = "OG-R-002"

    def __init__(self, table_key: str, sidecar: str, reason: str) -> None:
        self.table_key = table_key
        self.sidecar = sidecar
        self.reason = reason
        super().__init__(
            f"cannot write '{table_key}': sidecar {sidecar} is quarantined ({reason}); "
            "inspect it with graph.maintenance.repair()"
        )


class RecoveryPending(RecoveryError):
    """Maintenance must wait until an interrupted write is recovered."""

    code = "OG-R-003"

    def __init__(self, operation: str, sidecars: Sequence[str]) -> None:
        self.operation = operation
        self.sidecars = tuple(sidecars)
        pending = ", ".join(sidecars)
        super().__init__(
            f"{operation} requires a clean recovery state; pending: {pending}. Call "
            f"graph.maintenance.recover(); if {'it remains' if len(sidecars) == 1 else 'any remains'}, "
            "call graph.maintenance.repair()"
        )


class RepairRefused(RecoveryError):
    """A repair left tables unchanged because their changes match no known operation."""

    code = "OG-R-004"

    def __init__(self, table_keys: Sequence[str]) -> None:
        self.table_keys = tuple(table_keys)
        super().__init__(
            f"repair refused {counted(len(table_keys), 'table')} ({', '.join(table_keys)}): the "
            "changes match no known operation; pass force=True to accept them, or force=True and "
            "rollback=True to discard them"
        )
