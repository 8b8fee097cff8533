"""How far an interrupted operation got, table by table.

Judged by the operation id in the table commits first and by version numbers second. Only looks; the
caller holds the branch's lock, so that nothing moves meanwhile.
Tests: tests/crash/recovery/test_classification.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import zip_longest
from typing import Final

from omnigraph.errors import StorageError, TableMissing
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.storage.versions import Operation, VersionRecord
from omnigraph.versioning.commits import OperationId
from omnigraph.versioning.manifest import ManifestState
from omnigraph.versioning.recovery.sidecar import PinnedTable, Sidecar, WriterKind
from omnigraph.versioning.rows import Pin

_INDEX_WORK: Final[frozenset[Operation]] = frozenset(["create_index"])
_UPKEEP: Final[frozenset[Operation]] = frozenset(["create_index", "rewrite", "unnamed"])
"""Operations the table library commits by itself, which cannot carry an operation id."""


class Standing(Enum):
    """How a table stands in relation to the operation that was to move it."""

    NO_MOVEMENT = "not moved"
    WRITTEN = "written"
    PARTIAL = "partly written"
    FOREIGN = "moved by something else"
    IMPOSSIBLE = "behind the graph"


@dataclass(frozen=True, slots=True)
class Problem:
    """One table of a sidecar: the graph's version, the newest one, and up to where it is ours."""

    table: PinnedTable
    standing: Standing
    pin: int
    head: int
    own_head: int
    beyond: tuple[str | None, ...] = ()
    """The operation ids of the versions after `own_head`."""

    @property
    def has_moved(self) -> bool:
        return self.standing is not Standing.NO_MOVEMENT

    def describe(self) -> str:
        return (
            f"{self.table.table_key} is {self.standing.value}"
            f" (the graph knows version {self.pin}, the table is at {self.head})"
        )


def classify(tables: TableStore, state: ManifestState, sidecar: Sidecar) -> list[Problem]:
    """Judge every table of a sidecar against the present state of its branch."""
    return [_judge(tables, state, sidecar, table) for table in sidecar.tables]


def _judge(
    tables: TableStore, state: ManifestState, sidecar: Sidecar, table: PinnedTable
) -> Problem:
    pin = pinned_version(state, table)
    head = _head(tables, table)
    if head is None:
        return Problem(table, Standing.NO_MOVEMENT, pin, pin, pin)
    if head.version < pin:
        return Problem(table, Standing.IMPOSSIBLE, pin, head.version, head.version)
    records = [_record(head, version) for version in range(pin + 1, head.version + 1)]
    if not records:
        forked = table.forks and table.data_commits == 0
        standing = Standing.WRITTEN if forked else Standing.NO_MOVEMENT
        return Problem(table, standing, pin, pin, pin)
    own = _leading_own(records, sidecar, expected=table.before.version == pin)
    own_head = pin + len(own)
    beyond = tuple(r.operation_id if r else None for r in records[len(own) :])
    standing = _standing(table, pin, own)
    return Problem(table, standing, pin, head.version, own_head, beyond)


def _standing(table: PinnedTable, pin: int, own: list[VersionRecord]) -> Standing:
    if not own or (table.before.version != pin and not table.forks):
        return Standing.FOREIGN
    # A restore means that somebody had begun to undo the operation and did not get through.
    if any(record.operation == "restore" for record in own):
        return Standing.PARTIAL
    data = sum(record.operation not in _UPKEEP for record in own)
    return Standing.WRITTEN if data >= table.data_commits else Standing.PARTIAL


def pinned_version(state: ManifestState, table: PinnedTable) -> int:
    """The version of a table that the graph has, or that its line is forked from."""
    if table.forks:
        return table.before.version
    entry = state.tables.get(table.table_id)
    return entry.version if entry else 0


def _head(tables: TableStore, table: PinnedTable) -> Table | None:
    """The newest version of the line; None while the operation has not made it."""
    try:
        return tables.open(table.location, table.branch)
    except TableMissing:
        if table.branch is None:
            raise
        return None


def _record(table: Table, version: int) -> VersionRecord | None:
    """What made a version; None when it cannot be read, which makes it nobody's."""
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
    return expected and record.operation in (_UPKEEP if keeps_content else _INDEX_WORK)


def late_operations(table: Table, pin: Pin) -> list[tuple[int, OperationId]] | None:
    """The operations that moved a table beyond its pin; None if one of the versions names none."""
    found: list[tuple[int, OperationId]] = []
    for version in range(pin.version + 1, table.version + 1):
        record = _record(table, version)
        if record is None or record.operation_id is None:
            return None
        found.append((version, OperationId(record.operation_id)))
    return found
