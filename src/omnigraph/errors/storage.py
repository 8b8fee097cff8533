"""Errors of the store."""

from __future__ import annotations

from omnigraph.errors.base import OmnigraphError, Retry


class StorageError(OmnigraphError):
    """The store failed; the outcome of a write in flight may be unknown."""

    code = "OG-F-000"
    kind = "storage"
    retry = Retry.AS_IS


class CommitStateUnknown(StorageError):
    """A write was begun and left to recovery, which may complete it or undo it.

    Repeating the call with `idempotency_key` is safe whatever became of it: if the write landed, its
    receipt comes back.
    """

    code = "OG-F-001"
    retry = Retry.WITH_KEY

    def __init__(
        self,
        operation_id: str,
        commit_id: str,
        idempotency_key: str,
        *,
        is_load: bool = False,
        cause: str | None = None,
    ) -> None:
        self.operation_id = operation_id
        self.commit_id = commit_id
        self.idempotency_key = idempotency_key
        name = "load id" if is_load else "idempotency key"
        super().__init__(
            f"{'' if cause is None else f'{cause}; '}"
            f"the outcome of operation {operation_id} is unknown: commit {commit_id} may still "
            f"appear; repeat the call with {name} '{idempotency_key}', "
            "which does not write twice"
        )


class ManifestDamaged(StorageError):
    """The manifest contradicts itself or lacks something it must have."""

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
    """Something was written, but the disk would not confirm that it is there for good."""

    code = "OG-F-008"
    retry = Retry.NEVER


class ObjectMissing(StoreCallFailed):
    """The object that was to be read or renamed is not there."""

    code = "OG-F-004"
    retry = Retry.NEVER


class TableMissing(StoreCallFailed):
    """A table, a branch of it or one of its versions is not there."""

    code = "OG-F-006"
    retry = Retry.NEVER


class TornVersion(StoreCallFailed):
    """The newest version of a table is unreadable, as after a power loss; it was never acknowledged.

    `version` is the unreadable one, `previous` the newest one before it, if any.
    """

    code = "OG-F-007"
    retry = Retry.NEVER

    def __init__(self, uri: str, version: int, previous: int | None, cause: str) -> None:
        self.version = version
        self.previous = previous
        super().__init__("open", uri, f"version {version} was not written completely ({cause})")


class FileDamaged(StoreCallFailed):
    """A stored file is there to its end and cannot be read: what it says was acknowledged.

    `uri` is the file, `what` is what it belongs to.
    """

    code = "OG-F-009"
    retry = Retry.NEVER

    def __init__(self, uri: str, what: str, cause: str) -> None:
        self.what = what
        StorageError.__init__(
            self,
            f"the file '{uri}' of {what} is damaged ({cause}); restore it from a backup",
        )
        self.action, self.uri, self.cause = "open", uri, cause


class GraphMoved(StorageError):
    """A branch of a graph that was moved or copied since: its files are looked for at the old place."""

    code = "OG-F-010"
    kind = "conflict"
    retry = Retry.NEVER

    def __init__(self, branch: str, made_at: str, found_at: str) -> None:
        self.branch = branch
        self.made_at = made_at
        self.found_at = found_at
        super().__init__(
            f"branch '{branch}' cannot be used at '{found_at}': it was made when the graph was at "
            f"'{made_at}' and refers to files there; delete the branch, or put the graph back"
        )


class UnsafeStore(StorageError):
    """The store lets two writers overwrite each other, so no graph may be kept there."""

    code = "OG-F-005"
    kind = "bad_request"
    retry = Retry.NEVER

    def __init__(self, uri: str, check: str, problem: str) -> None:
        self.uri = uri
        self.check = check
        super().__init__(f"'{uri}' cannot hold a graph: {problem} (failed check: {check})")
