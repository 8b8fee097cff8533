"""Whether what a write was prepared on still holds when its branch is locked.

Tests: tests/behaviour/test_contended_writes.py, tests/behaviour/test_folding.py.
"""

from __future__ import annotations

from omnigraph.engine.write.change import Change, TableWrite
from omnigraph.errors import ConflictError, ExpectedVersionMismatch
from omnigraph.versioning.manifest import Manifest
from omnigraph.versioning.snapshot import Snapshot


def has_moved(
    manifest: Manifest, branch: str | None, change: Change, checked: Snapshot, current: Snapshot
) -> bool:
    """Whether something the write looked at has changed since. Raises for what cannot be rebased."""
    if checked.commit_id == current.commit_id:
        return False
    moved = checked.catalog.hash != current.catalog.hash
    for write in change.writes:
        if is_table_moved(write.table_key, checked, current):
            _refuse_if_strict(manifest, branch, write, checked, current)
            moved = True
    looked_at = (*change.reads, *(table.entry.table_key for table in change.adopted))
    return moved or any(is_table_moved(key, checked, current) for key in looked_at)


def is_table_moved(table_key: str, checked: Snapshot, current: Snapshot) -> bool:
    """Whether a table has another version than before, be it with the same rows."""
    if table_key not in current.entries:
        raise ConflictError(f"'{table_key}' is gone since the write was prepared; prepare it again")
    return current.entry(table_key).pin != checked.entry(table_key).pin


def _refuse_if_strict(
    manifest: Manifest,
    branch: str | None,
    write: TableWrite,
    checked: Snapshot,
    current: Snapshot,
) -> None:
    """Rows that were chosen are chosen again only where they are the same as they were."""
    if not write.strict:
        return
    before, now = checked.entry(write.table_key), current.entry(write.table_key)
    since = (checked.commit_id, checked.version)
    if not manifest.kept_rows(branch, now.table_id, since, current.version):
        raise ExpectedVersionMismatch(write.table_key, before.version, now.version)
