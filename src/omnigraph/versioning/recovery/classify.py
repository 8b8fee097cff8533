"""How far an interrupted operation got, and whether recovery completes or undoes it.

Tables are classified one by one: by the operation id in the table commits first, by version numbers
second. Nothing is changed here; the caller holds the branch lock, so nothing moves meanwhile. The
decision covers the whole operation: all of it, or nothing of it.

`refuse_drift` tells a writer about a table that is ahead of the graph. The conflict is always raised,
however harmless the change looks; only the advice differs.
Tests: tests/crash/recovery/test_classification.py, test_drift.py,
tests/unit/versioning/test_recovery_decisions.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import zip_longest
from typing import Final

from omnigraph.errors import (
    OmnigraphError,
    RecoveryQuarantined,
    StorageError,
    TableDrift,
    TableMissing,
)
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.storage.versions import Operation, VersionRecord
from omnigraph.versioning.commits import OperationId
from omnigraph.versioning.manifest import Manifest, ManifestState
from omnigraph.versioning.recovery.sidecar import (
    Quarantined,
    Sidecar,
    Sidecars,
    SidecarTable,
    UnreadableSidecar,
    WriterKind,
)
from omnigraph.versioning.rows import VersionRef
from omnigraph.versioning.snapshot import SnapshotEntry

_INDEX_WORK: Final[frozenset[Operation]] = frozenset(["create_index"])
_MAINTENANCE: Final[frozenset[Operation]] = frozenset(["create_index", "rewrite", "unnamed"])
"""Operations the table library commits by itself, which cannot carry an operation id."""


class TableProgress(Enum):
    """How a table stands in relation to the operation that was to move it."""

    NO_MOVEMENT = "not moved"
    WRITTEN = "written"
    PARTIAL = "partly written"
    FOREIGN = "moved by something else"
    IMPOSSIBLE = "behind the graph"


@dataclass(frozen=True, slots=True)
class Finding:
    """One table of a sidecar: the graph's version, the newest one, and up to where it is ours."""

    table: SidecarTable
    progress: TableProgress
    published: int
    head: int
    own_head: int
    beyond: tuple[str | None, ...] = ()
    """The operation ids of the versions after `own_head` that other operations made."""
    is_on_top: bool = False
    """Whether the operation made versions after those of others."""

    @property
    def has_moved(self) -> bool:
        return self.progress is not TableProgress.NO_MOVEMENT

    def describe(self) -> str:
        return (
            f"{self.table.table_key} is {self.progress.value}"
            f" (the graph knows version {self.published}, the table is at {self.head})"
        )


def classify(tables: TableStore, state: ManifestState, sidecar: Sidecar) -> list[Finding]:
    """Classify every table of a sidecar against the current state of its branch."""
    return [_decide(tables, state, sidecar, table) for table in sidecar.tables]


def _decide(
    tables: TableStore, state: ManifestState, sidecar: Sidecar, table: SidecarTable
) -> Finding:
    published = published_version(state, table)
    head = _head(tables, table)
    if head is None:
        return Finding(table, TableProgress.NO_MOVEMENT, published, published, published)
    if head.version < published:
        return Finding(table, TableProgress.IMPOSSIBLE, published, head.version, head.version)
    records = [_record(head, version) for version in range(published + 1, head.version + 1)]
    if not records:
        forked = table.forks and table.data_commits == 0
        progress = TableProgress.WRITTEN if forked else TableProgress.NO_MOVEMENT
        return Finding(table, progress, published, published, published)
    own = _leading_own(records, sidecar, expected=table.before.version == published)
    own_head = published + len(own)
    above = [record.operation_id if record else None for record in records[len(own) :]]
    beyond = tuple(operation for operation in above if operation != sidecar.operation_id)
    progress = _progress(table, published, own)
    is_on_top = len(beyond) < len(above)
    return Finding(table, progress, published, head.version, own_head, beyond, is_on_top)


def _progress(table: SidecarTable, published: int, own: list[VersionRecord]) -> TableProgress:
    if not own:
        return TableProgress.FOREIGN
    # An operation that was pending before this one began has been completed since: nothing of this one
    # was checked against that. A restore means that an undo of the operation was interrupted.
    is_overtaken = table.before.version != published and not table.forks
    if is_overtaken or any(record.operation == "restore" for record in own):
        return TableProgress.PARTIAL
    data = sum(record.operation not in _MAINTENANCE for record in own)
    return TableProgress.WRITTEN if data >= table.data_commits else TableProgress.PARTIAL


def published_version(state: ManifestState, table: SidecarTable) -> int:
    """The version of a table that the graph has, or that its line is forked from."""
    if table.forks:
        return table.before.version
    entry = state.tables.get(table.table_id)
    return entry.version if entry else 0


def _head(tables: TableStore, table: SidecarTable) -> Table | None:
    """The newest version of the line; None while the operation has not made it."""
    try:
        return tables.open(table.location, table.branch)
    except TableMissing:
        if table.branch is None:
            raise
        return None


def _record(table: Table, version: int) -> VersionRecord | None:
    """What made a version; None when it cannot be read, which assigns it to no operation."""
    try:
        return table.record(version)
    except StorageError:
        return None


def _leading_own(
    records: list[VersionRecord | None], sidecar: Sidecar, *, expected: bool
) -> list[VersionRecord]:
    own: list[VersionRecord] = []
    for record, following in zip_longest(records, records[1:]):
        if record is None and following is not None and following.operation == "rewrite":
            # A compaction makes two versions at once. A power loss may take the first, which says
            # nothing but that fragments will come, and leave the second.
            record = VersionRecord(following.version - 1, "unnamed", {})
        if record is None or not _is_own(record, sidecar, expected=expected):
            break
        own.append(record)
    return own


def _is_own(record: VersionRecord, sidecar: Sidecar, *, expected: bool) -> bool:
    if record.operation_id is not None:
        return record.operation_id == sidecar.operation_id
    keeps_content = sidecar.writer_kind in (WriterKind.OPTIMIZE, WriterKind.ENSURE_INDICES)
    return expected and record.operation in (_MAINTENANCE if keeps_content else _INDEX_WORK)


def late_operations(table: Table, published: VersionRef) -> list[tuple[int, OperationId]] | None:
    """The operations that moved a table beyond its published version; None if one of the versions names none."""
    found: list[tuple[int, OperationId]] = []
    for version in range(published.version + 1, table.version + 1):
        record = _record(table, version)
        if record is None or record.operation_id is None:
            return None
        found.append((version, OperationId(record.operation_id)))
    return found


class Decision(Enum):
    UNTOUCHED = "nothing happened"
    ROLL_FORWARD = "finish it"
    ROLL_BACK = "undo it"
    QUARANTINE = "leave it to an operator"


@dataclass(frozen=True, slots=True)
class RecoveryDecision:
    """A decision with its grounds."""

    decision: Decision
    findings: tuple[Finding, ...]
    reason: str = ""


def decide(
    findings: Sequence[Finding], pending: Collection[str], ended: Collection[str] = ()
) -> RecoveryDecision:
    """The one decision for all tables of a sidecar.

    `pending` are the operations of all sidecars that still wait. Their versions may lie on top of this
    operation's, and go with them when it is undone; so may its own, where undoing it was begun.
    `ended` are operations that were recovered before: what they did to a table later does not count.
    """
    grounds = tuple(_without_late(finding, ended) for finding in findings)
    standings = [finding.progress for finding in grounds]
    unclear = [
        f for f in grounds if f.progress in (TableProgress.FOREIGN, TableProgress.IMPOSSIBLE)
    ]
    if unclear:
        return _quarantine(grounds, unclear)
    if standings and all(s is TableProgress.NO_MOVEMENT for s in standings):
        return RecoveryDecision(Decision.UNTOUCHED, grounds)
    if all(s is TableProgress.WRITTEN for s in standings):
        return RecoveryDecision(Decision.ROLL_FORWARD, grounds)
    return undo(grounds, {*pending, *ended})


def _without_late(finding: Finding, ended: Collection[str]) -> Finding:
    """How far the operation got, where only operations that were recovered before came first.

    What these did is undone by the next write, or together with this operation.
    """
    is_late = finding.beyond and all(operation in ended for operation in finding.beyond)
    if finding.progress is not TableProgress.FOREIGN or not is_late:
        return finding
    progress = TableProgress.PARTIAL if finding.is_on_top else TableProgress.NO_MOVEMENT
    return replace(finding, progress=progress)


def undo(findings: Sequence[Finding], pending: Collection[str]) -> RecoveryDecision:
    """Undo an operation, unless that would remove a change no operation accounts for."""
    grounds = tuple(findings)
    covered = [f for f in grounds if any(operation not in pending for operation in f.beyond)]
    if covered:
        return _quarantine(grounds, covered)
    return RecoveryDecision(Decision.ROLL_BACK, grounds)


def _quarantine(findings: tuple[Finding, ...], culprits: Sequence[Finding]) -> RecoveryDecision:
    reason = "; ".join(finding.describe() for finding in culprits)
    return RecoveryDecision(Decision.QUARANTINE, findings, reason)


REPAIR = "a repair has to decide"


def refuse_drift(
    sidecars: Sidecars,
    entry: SnapshotEntry,
    table: Table,
    quarantined: Sequence[Quarantined],
) -> OmnigraphError:
    """The conflict of a write that finds `table` beyond the version the graph knows."""

    def drift(advice: str) -> TableDrift:
        return TableDrift(entry.table_key, entry.version, table.version, advice)

    for found in quarantined:
        if found.tables is None or found.names(entry.table_id, table.branch):
            return RecoveryQuarantined(entry.table_key, found.name, found.reason)
    try:
        waiting = _waits(sidecars, entry, table.branch)
    except OmnigraphError as error:
        advice = (
            f"could not classify the drift ({error}); {REPAIR}, "
            "or reopen the graph read-write once storage answers again"
        )
        return drift(advice)
    if waiting:
        return drift("a pending recovery sidecar covers it; retry, or reopen the graph read-write")
    return drift(f"no unfinished write explains it; {REPAIR}")


def refuse_quarantined(
    entry: SnapshotEntry, branch: str | None, quarantined: Iterable[Quarantined]
) -> None:
    """Raises `RecoveryQuarantined` for a table that a sidecar left to an operator names."""
    for found in quarantined:
        if found.names(entry.table_id, branch):
            raise RecoveryQuarantined(entry.table_key, found.name, found.reason)


def late_drift(
    manifest: Manifest, branch: str | None, table: Table, published: VersionRef
) -> Sequence[tuple[int, OperationId]] | None:
    """The recovered operations that moved a table too late, if they alone explain its version."""
    operations = late_operations(table, published)
    if operations is None:
        return None
    named = {operation for _, operation in operations}
    return operations if ended_operations(manifest, branch, named) == named else None


def ended_operations(
    manifest: Manifest, branch: str | None, operations: Collection[str]
) -> set[str]:
    """Those of some operations whose outcome a branch records."""
    if not operations:
        return set()
    newest = manifest.open(branch)
    return {
        operation
        for operation in operations
        if manifest.operation_outcome(newest, OperationId(operation)) is not None
    }


def _waits(sidecars: Sidecars, entry: SnapshotEntry, branch: str | None) -> bool:
    for name in sidecars.names():
        try:
            sidecar = sidecars.read(name)
        except UnreadableSidecar:
            continue
        if sidecar is not None and any(
            (t.table_id, t.branch) == (entry.table_id, branch) for t in sidecar.tables
        ):
            return True
    return False
