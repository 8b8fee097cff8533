"""Whether what a write was prepared on still holds when its branch is locked.

Tests: tests/behaviour/test_contended_writes.py, tests/behaviour/test_folding.py.
"""

from __future__ import annotations

from omnigraph.engine.write.change import Change
from omnigraph.errors import ConflictError
from omnigraph.versioning.snapshot import Snapshot


def has_moved(change: Change, checked: Snapshot, current: Snapshot) -> bool:
    """Whether something the write looked at has changed since, so that it is to be prepared again."""
    if checked.commit_id == current.commit_id:
        return False
    if checked.catalog.hash != current.catalog.hash:
        return True
    looked_at = (
        *(write.table_key for write in change.writes),
        *change.reads,
        *(table.entry.table_key for table in change.adopted),
    )
    return any(is_table_moved(key, checked, current) for key in looked_at)


def is_table_moved(table_key: str, checked: Snapshot, current: Snapshot) -> bool:
    """Whether a table has another version than before, be it with the same rows."""
    if table_key not in current.entries:
        raise ConflictError(f"'{table_key}' is gone since the write was prepared; prepare it again")
    return current.entry(table_key).pin != checked.entry(table_key).pin
