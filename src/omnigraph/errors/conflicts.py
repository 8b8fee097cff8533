"""Errors about somebody else's change, or an interrupted one, in the way."""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.diagnostics import counted
from omnigraph.errors.base import OmnigraphError, Retry


class ConflictError(OmnigraphError):
    """Another change, branch or setting stands in the way."""

    code = "OG-C-000"
    kind = "conflict"
    retry = Retry.PREPARE_AGAIN


class AlreadyInitialized(ConflictError):
    """There is a graph at this address already, or the beginning of one."""

    code = "OG-C-001"
    retry = Retry.NEVER

    def __init__(self, uri: str, *, is_complete: bool = True) -> None:
        self.uri = uri
        self.is_complete = is_complete
        if is_complete:
            advice = "is already initialized; open it, or choose another location"
        else:
            advice = (
                "holds an unfinished graph: an init is running or was interrupted; "
                "if none is running, init it with force"
            )
        super().__init__(f"'{uri}' {advice}")


class HeadMoved(ConflictError):
    """The head of the branch is another commit than the caller required."""

    code = "OG-C-002"

    def __init__(self, branch: str, expected: str, actual: str) -> None:
        self.branch = branch
        self.expected = expected
        self.actual = actual
        super().__init__(f"branch '{branch}' is at {actual}, expected {expected}")


class ExpectedVersionMismatch(ConflictError):
    """A table moved between the moment a writer looked at it and its publish."""

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
    """Other writers won every attempt until the time for a publish was used up."""

    code = "OG-C-004"
    retry = Retry.AS_IS

    def __init__(self, branch: str, attempts: int) -> None:
        self.branch = branch
        self.attempts = attempts
        super().__init__(
            f"branch '{branch}' is busy: {attempts} attempts to publish lost against other "
            "writers; retry later"
        )


class OperationFenced(ConflictError):
    """Recovery has rolled this operation back; nothing of it is visible."""

    code = "OG-C-005"

    def __init__(self, operation_id: str) -> None:
        self.operation_id = operation_id
        super().__init__(
            f"operation {operation_id} was rolled back by recovery; nothing of it is visible, "
            "start it anew"
        )


class BranchExists(ConflictError):
    """The name of a new branch is taken."""

    code = "OG-C-006"

    def __init__(self, branch: str) -> None:
        self.branch = branch
        super().__init__(f"branch '{branch}' already exists")


class TagExists(ConflictError):
    """The name of a new tag or branch is that of a tag."""

    code = "OG-C-050"

    def __init__(self, tag: str) -> None:
        self.tag = tag
        super().__init__(f"tag '{tag}' already exists; choose another name or delete the tag first")


class RefUnderOtherSchema(ConflictError):
    """A state made under another schema than the present one, where rows would have to fit it."""

    code = "OG-C-051"

    def __init__(self, commit_id: str, what: str) -> None:
        self.commit_id = commit_id
        super().__init__(
            f"{what}: commit '{commit_id}' was made under another schema than the graph has now; "
            "it can only be read"
        )


class BranchInUse(ConflictError):
    """A branch that other branches, tags or this handle need cannot be deleted."""

    code = "OG-C-007"

    def __init__(self, branch: str, reason: str) -> None:
        self.branch = branch
        super().__init__(f"cannot delete branch '{branch}': {reason}")


class BranchLocked(ConflictError):
    """Another writer held the branch for the whole waiting time.

    `operation` is what was refused, `holder` the operation that was in the way and `owner` the
    process that runs it, both None when nobody knows.
    """

    code = "OG-C-010"
    retry = Retry.AS_IS

    def __init__(
        self,
        branch: str,
        operation: str,
        holder: str | None = None,
        owner: str | None = None,
    ) -> None:
        self.branch = branch
        self.operation = operation
        self.holder = holder
        self.owner = owner
        super().__init__(self._message())

    def _message(self) -> str:
        refused = f"{self.operation}: branch '{self.branch}' is locked"
        if self.holder is not None:
            return f"{refused}, {self.holder} is in progress; retry later"
        return f"{refused} by another writer; retry later"


class BranchLockLost(BranchLocked):
    """Another writer took the branch over. Who holds it now may finish this operation or undo it."""

    code = "OG-C-012"
    retry = Retry.NEVER

    def _message(self) -> str:
        return (
            f"{self.operation} lost its write lease of branch '{self.branch}' and stopped before "
            "its next change"
        )


class LoadIdReused(ConflictError):
    """A load id was used before, for a load of another kind."""

    code = "OG-C-008"
    retry = Retry.NEVER

    def __init__(self, load_id: str, commit_id: str) -> None:
        self.load_id = load_id
        self.commit_id = commit_id
        super().__init__(
            f"load id '{load_id}' was already used by commit {commit_id} with another mode; "
            "use a new id"
        )


class IdempotencyKeyReused(ConflictError):
    """An idempotency key was used before, for a write that asked for something else."""

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
    """A table is ahead of what the graph knows: a write moved it and was never published."""

    code = "OG-C-011"
    retry = Retry.NEVER

    def __init__(self, table_key: str, pinned: int, found: int, advice: str) -> None:
        self.table_key = table_key
        self.pinned = pinned
        self.found = found
        self.advice = advice
        super().__init__(
            f"'{table_key}' is at version {found}, but the graph knows version {pinned}: {advice}"
        )


class SchemaContractBroken(ConflictError):
    """The schema files of a graph no longer describe the schema that was accepted."""

    code = "OG-C-009"
    retry = Retry.NEVER

    def __init__(self, cause: str) -> None:
        super().__init__(f"{cause}; manual coordination is required")


class TableExists(ConflictError):
    """There is a table at the place of the one to be created."""

    code = "OG-C-020"
    retry = Retry.NEVER

    def __init__(self, table: str, advice: str = "") -> None:
        self.table = table
        self.advice = advice
        super().__init__(f"table '{table}' already exists{'; ' if advice else ''}{advice}")


class SchemaMoved(ConflictError):
    """The schema changed while a write was prepared, so what was checked no longer holds."""

    code = "OG-C-030"
    retry = Retry.PREPARE_AGAIN

    def __init__(self) -> None:
        super().__init__("the schema has changed meanwhile; run it again")


class SchemaApplyBlocked(ConflictError):
    """A schema changes for a whole graph, so there must be no branch besides main."""

    code = "OG-C-031"
    retry = Retry.NEVER

    def __init__(self, branches: Sequence[str]) -> None:
        self.branches = tuple(branches)
        super().__init__(
            "schema apply requires a graph with only main, but there is also "
            f"{', '.join(branches)}; merge or delete {'it' if len(branches) == 1 else 'them'} first"
        )


class SchemaApplyRunning(ConflictError):
    """Another schema apply is at work on the graph."""

    code = "OG-C-032"
    retry = Retry.AS_IS

    def __init__(self) -> None:
        super().__init__("schema apply is already in progress")


class TableConflict(ConflictError):
    """A change to a table was refused because the table changed first. The table did not move."""

    code = "OG-C-021"

    def __init__(self, table: str, version: int, cause: str) -> None:
        self.table = table
        self.version = version
        super().__init__(f"table '{table}' changed after version {version}: {cause}")


class KeyTaken(ConflictError):
    """Nothing was inserted: another insert was made since the version that this one is built on."""

    code = "OG-C-022"

    def __init__(self, table: str, cause: str) -> None:
        self.table = table
        super().__init__(f"an insert into '{table}' came too late: {cause}")


class ForkExists(ConflictError):
    """A table has a branch of this name, or left-overs of one, so none can be made."""

    code = "OG-C-023"

    def __init__(self, table: str, branch: str) -> None:
        self.table = table
        self.branch = branch
        super().__init__(f"table '{table}' already has something of branch '{branch}'")


class ForkInUse(ConflictError):
    """A branch of a table that other branches of it refer to cannot be removed."""

    code = "OG-C-024"

    def __init__(self, table: str, branch: str) -> None:
        self.table = table
        self.branch = branch
        super().__init__(f"other branches of table '{table}' refer to branch '{branch}'")


class RecoveryError(OmnigraphError):
    """An interrupted write that cannot be judged or finished automatically."""

    code = "OG-R-000"
    kind = "conflict"


class TableOvertaken(RecoveryError):
    """A change was built on one version of a table but landed on top of a later one.

    The table now holds both changes. Its writer must not publish it; recovery decides.
    """

    code = "OG-R-001"

    def __init__(self, table: str, expected: int, actual: int) -> None:
        self.table = table
        self.expected = expected
        self.actual = actual
        super().__init__(
            f"a change to table '{table}' was to become version {expected} "
            f"but became version {actual}"
        )


class RecoveryQuarantined(RecoveryError):
    """A table belongs to an interrupted write that nobody but an operator can judge."""

    code = "OG-R-002"
    retry = Retry.NEVER

    def __init__(self, table_key: str, sidecar: str, reason: str) -> None:
        self.table_key = table_key
        self.sidecar = sidecar
        self.reason = reason
        super().__init__(
            f"'{table_key}' cannot be written: sidecar {sidecar} is quarantined ({reason}); "
            "a repair has to decide about it"
        )


class RepairRefused(RecoveryError):
    """A repair left tables alone because nobody can vouch for what happened to them."""

    code = "OG-R-004"
    retry = Retry.NEVER

    def __init__(self, table_keys: Sequence[str]) -> None:
        self.table_keys = tuple(table_keys)
        super().__init__(
            f"repair refused {counted(len(table_keys), 'table')} ({', '.join(table_keys)}): no "
            "known operation explains the changes; force accepts them, force with rollback "
            "discards them"
        )


class RecoveryPending(RecoveryError):
    """Maintenance found an interrupted write that has to be settled first."""

    code = "OG-R-003"

    def __init__(self, operation: str, sidecars: Sequence[str]) -> None:
        self.operation = operation
        self.sidecars = tuple(sidecars)
        super().__init__(
            f"{operation} requires a clean recovery state, but there is {', '.join(sidecars)}; "
            "open the graph for writing; if that does not settle it, a repair has to"
        )
