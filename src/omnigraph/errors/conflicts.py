"""Errors about concurrent or contradictory changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from omnigraph.errors.base import OmnigraphError, Retry

_SHOWN_CONFLICTS: Final = 3
"""Merge conflicts named in the message; the rest are counted."""


class ConflictError(OmnigraphError):
    """Another change, branch or setting conflicts with this one."""

    code = "OG-C-000"
    kind = "conflict"
    retry = Retry.PREPARE_AGAIN


class AlreadyInitialized(ConflictError):
    """The location holds a graph, or an unfinished one."""

    code = "OG-C-001"
    retry = Retry.NEVER

    def __init__(self, uri: str, *, is_complete: bool = True) -> None:
        self.uri = uri
        self.is_complete = is_complete
        super().__init__(
            f"'{uri}' is already initialized; open it or choose another location"
            if is_complete
            else f"'{uri}' holds an unfinished graph; if no other init is running, "
            "retry with force=True"
        )


class HeadMoved(ConflictError):
    """The branch head is not the commit the caller expected."""

    code = "OG-C-002"

    def __init__(self, branch: str, expected: str, actual: str) -> None:
        self.branch = branch
        self.expected = expected
        self.actual = actual
        super().__init__(f"branch '{branch}' is at {actual}, expected {expected}")


class ExpectedVersionMismatch(ConflictError):
    """A table changed between a writer's read and its publish."""

    code = "OG-C-003"

    def __init__(self, table: str, expected: int, actual: int) -> None:
        self.table = table
        self.expected = expected
        self.actual = actual
        super().__init__(
            f"stale view of '{table}': expected version {expected}, found {actual}; "
            "refresh and retry"
        )


class PublishContention(ConflictError):
    """Concurrent writers won every attempt within the time allowed for a publish."""

    code = "OG-C-004"
    retry = Retry.AS_IS

    def __init__(self, branch: str, attempts: int) -> None:
        self.branch = branch
        self.attempts = attempts
        super().__init__(
            f"branch '{branch}' is busy: lost {attempts} publish attempts to other writers; "
            "retry later"
        )


class OperationFenced(ConflictError):
    """Recovery has rolled back this operation; none of its changes are visible."""

    code = "OG-C-005"

    def __init__(self, operation_id: str) -> None:
        self.operation_id = operation_id
        super().__init__(
            f"recovery rolled back operation {operation_id}; no changes were kept, run it again"
        )


class BranchExists(ConflictError):
    """A branch of this name exists."""

    code = "OG-C-006"

    def __init__(self, branch: str) -> None:
        self.branch = branch
        super().__init__(f"branch '{branch}' already exists")


class TagExists(ConflictError):
    """A tag of this name exists; tags and branches share one namespace."""

    code = "OG-C-050"

    def __init__(self, tag: str) -> None:
        self.tag = tag
        super().__init__(f"tag '{tag}' already exists; choose another name or delete the tag first")


class RefUnderOtherSchema(ConflictError):
    """A commit has an older schema than the graph and cannot be the state of a branch."""

    code = "OG-C-051"

    def __init__(self, commit_id: str, what: str) -> None:
        self.commit_id = commit_id
        super().__init__(
            f"{what}: the schema has changed since commit '{commit_id}'; the commit is read-only"
        )


class BranchInUse(ConflictError):
    """Other branches, tags or this handle need the branch, so it cannot be deleted."""

    code = "OG-C-007"

    def __init__(self, branch: str, reason: str) -> None:
        self.branch = branch
        super().__init__(f"cannot delete branch '{branch}': {reason}")


class BranchLocked(ConflictError):
    """Another writer held the branch lock for the whole waiting time.

    `operation` is the one that was refused, `holder` the operation that holds the lock and `owner`
    the process that runs it; both are None if unknown.
    """

    code = "OG-C-010"
    retry = Retry.AS_IS

    def __init__(
        self, branch: str, operation: str, holder: str | None = None, owner: str | None = None
    ) -> None:
        self.branch = branch
        self.operation = operation
        self.holder = holder
        self.owner = owner
        super().__init__(self._message())

    def _message(self) -> str:
        by = " by another writer" if self.holder is None else f", {self.holder} is in progress"
        return f"{self.operation}: branch '{self.branch}' is locked{by}; retry later"


class BranchLockLost(BranchLocked):
    """Another writer took over the branch and finishes or undoes this operation."""

    code = "OG-C-012"
    retry = Retry.NEVER

    @property
    def reason(self) -> str:
        """The message without its advice."""
        return f"{self.operation} lost its write lease on branch '{self.branch}' and stopped"

    def _message(self) -> str:
        return f"{self.reason}; recovery will finish or undo it, so check the head before retrying"


class LoadIdReused(ConflictError):
    """The load id belongs to an earlier load with another mode, or to another kind of write."""

    code = "OG-C-008"
    retry = Retry.NEVER

    def __init__(self, load_id: str, commit_id: str, mode: str | None = None) -> None:
        self.load_id = load_id
        self.commit_id = commit_id
        self.mode = mode
        super().__init__(
            f"load id '{load_id}' was already used by commit {commit_id} "
            + (
                "for another write; use a new id"
                if mode is None
                else f"in mode '{mode}'; use a new id or that mode"
            )
        )


class IdempotencyKeyReused(ConflictError):
    """The idempotency key belongs to an earlier write with other arguments."""

    code = "OG-C-013"
    retry = Retry.NEVER

    def __init__(self, key: str, commit_id: str) -> None:
        self.key = key
        self.commit_id = commit_id
        super().__init__(
            f"idempotency key '{key}' was already used by commit {commit_id} for another write; "
            "use a new key"
        )


class TableDrift(ConflictError):
    """A table has changes that were never published."""

    code = "OG-C-011"
    retry = Retry.NEVER

    def __init__(self, table_key: str, pinned: int, found: int, advice: str) -> None:
        self.table_key = table_key
        self.pinned = pinned
        self.found = found
        self.advice = advice
        super().__init__(
            f"'{table_key}' has unpublished changes (table version {found}, published {pinned}): "
            f"{advice}"
        )


class SchemaContractBroken(ConflictError):
    """The schema files of a graph do not match the accepted schema."""

    code = "OG-C-009"
    retry = Retry.NEVER

    def __init__(self, cause: str) -> None:
        super().__init__(f"{cause}; manual coordination is required")


class TableExists(ConflictError):
    """A table exists at the location of the one to create."""

    code = "OG-C-020"
    retry = Retry.NEVER

    def __init__(self, table: str, advice: str = "") -> None:
        self.table = table
        self.advice = advice
        super().__init__(f"table '{table}' already exists{'; ' if advice else ''}{advice}")


class SchemaMoved(ConflictError):
    """The schema changed while a write was prepared, so its validation is out of date."""

    code = "OG-C-030"

    def __init__(self) -> None:
        super().__init__(
            "the schema changed while the write was prepared; nothing was written, run it again"
        )


class SchemaApplyBlocked(ConflictError):
    """A schema change needs a graph whose only branch is main."""

    code = "OG-C-031"
    retry = Retry.NEVER

    def __init__(self, branches: Sequence[str]) -> None:
        self.branches = tuple(branches)
        super().__init__(
            f"schema apply requires a graph with only main, found {', '.join(branches)}; "
            f"merge or delete {'it' if len(branches) == 1 else 'them'} first"
        )


class SchemaApplyRunning(ConflictError):
    """Another process is changing the schema."""

    code = "OG-C-032"
    retry = Retry.AS_IS

    def __init__(self) -> None:
        super().__init__("schema apply is already in progress; retry later")


class TableConflict(ConflictError):
    """A change was refused because the table changed first; the table was left as it is."""

    code = "OG-C-021"

    def __init__(self, table: str, version: int, cause: str) -> None:
        self.table = table
        self.version = version
        super().__init__(f"table '{table}' changed after version {version}: {cause}")


class InsertConflict(ConflictError):
    """Nothing was inserted: a concurrent insert came first."""

    code = "OG-C-022"

    def __init__(self, table: str, cause: str) -> None:
        self.table = table
        super().__init__(
            f"nothing inserted into '{table}': a concurrent insert came first ({cause})"
        )


class ForkExists(ConflictError):
    """A table has a branch of this name, or leftover files of one."""

    code = "OG-C-023"

    def __init__(self, table: str, branch: str) -> None:
        self.table = table
        self.branch = branch
        super().__init__(f"table '{table}' already has branch '{branch}' or leftover files of it")


class ForkInUse(ConflictError):
    """Other branches of a table depend on this one, so it cannot be deleted."""

    code = "OG-C-024"

    def __init__(self, table: str, branch: str) -> None:
        self.table = table
        self.branch = branch
        super().__init__(
            f"cannot delete branch '{branch}' of table '{table}': other branches depend on it"
        )


@dataclass(frozen=True, slots=True)
class MergeConflict:
    """One reason why two branches cannot be merged.

    If both sides changed a row: the row at the merge base, in the target and in the source; None
    where it does not exist.
    """

    table_key: str
    row_id: str | None
    kind: str
    message: str
    base: Mapping[str, Any] | None = None
    ours: Mapping[str, Any] | None = None
    theirs: Mapping[str, Any] | None = None

    @property
    def is_about_a_row(self) -> bool:
        """Whether a strategy or a resolution can resolve it."""
        return self.kind in ("divergent_insert", "divergent_update", "delete_vs_update")

    @property
    def order(self) -> tuple[str, str, str, str]:
        return (self.table_key, self.row_id or "", self.kind, self.message)

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = {
            "table_key": self.table_key,
            "row_id": self.row_id,
            "kind": self.kind,
            "message": self.message,
        }
        if self.is_about_a_row:
            document |= {"base": self.base, "ours": self.ours, "theirs": self.theirs}
        return document


ChangesReason = Literal["parentless_commit", "schema_boundary", "unknown"]


class ChangesNotShown(ConflictError):
    """The changes of a commit cannot be listed row by row; `reason` says why."""

    code = "OG-C-052"
    retry = Retry.NEVER

    def __init__(
        self, commit_id: str, reason: ChangesReason, why: str, type_name: str | None = None
    ) -> None:
        self.commit_id = commit_id
        self.reason = reason
        self.type_name = type_name
        super().__init__(f"the changes of commit '{commit_id}' cannot be shown: {why}")


class MergeConflicts(ConflictError):
    """Both sides changed the same rows, or their combined changes break a rule of the schema.

    Nothing was written. `conflicts` has the first conflicts, `total` counts all of them.
    """

    code = "OG-C-040"
    retry = Retry.NEVER

    def __init__(
        self,
        conflicts: Sequence[MergeConflict],
        total: int | None = None,
        *,
        are_partly_hidden: bool = False,
    ) -> None:
        self.conflicts = tuple(conflicts)
        self.total = len(self.conflicts) if total is None else total
        shown = [
            f"{c.table_key}{'' if c.row_id is None else ':' + c.row_id} ({c.kind})"
            for c in self.conflicts[:_SHOWN_CONFLICTS]
        ]
        if self.total > _SHOWN_CONFLICTS:
            shown.append(f"and {self.total - _SHOWN_CONFLICTS} more")
        if are_partly_hidden:
            shown.append("and others in what is hidden from you")
        super().__init__(f"merge conflicts: {'; '.join(shown)}")
