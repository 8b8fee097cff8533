"""A table that is ahead of what the graph knows: what to tell the writer that meets it.

Nothing is interpreted as harmless. The conflict is always raised; only the advice differs.
Tests: tests/crash/recovery/test_drift.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from omnigraph.errors import OmnigraphError, RecoveryQuarantined, TableDrift
from omnigraph.storage.table import Table
from omnigraph.versioning.commits import OperationId
from omnigraph.versioning.manifest import Manifest
from omnigraph.versioning.recovery.classify import late_operations
from omnigraph.versioning.recovery.quarantine import Quarantined
from omnigraph.versioning.recovery.sidecar import Sidecars, UnreadableSidecar
from omnigraph.versioning.rows import Pin
from omnigraph.versioning.snapshot import SnapshotEntry

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
    manifest: Manifest, branch: str | None, table: Table, pin: Pin
) -> Sequence[tuple[int, OperationId]] | None:
    """The settled operations that moved a table too late, if they alone explain its version."""
    operations = late_operations(table, pin)
    if operations is None:
        return None
    newest = manifest.open(branch)
    for operation_id in {operation for _, operation in operations}:
        if manifest.operation_outcome(newest, operation_id) is None:
            return None
    return operations


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
