"""Preparing a write on the state its caller knows, which need not be the newest one.

Tests: tests/behaviour/test_mutations.py, tests/behaviour/test_loads.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from omnigraph.errors import ConstraintError, HistoryRemoved
from omnigraph.versioning.snapshot import Snapshot

Prepared = TypeVar("Prepared")


def prepare_on_known(
    prepare: Callable[[Snapshot], Prepared], known: Snapshot, newest: Callable[[], Snapshot]
) -> Prepared:
    """Prepare a write. A rule counts as broken only if it is broken in the newest state as well.

    What holds there alone still meets the check for stale views when it is committed. So does what
    was prepared there because the known state has been cleaned up.
    """
    try:
        return prepare(known)
    except (ConstraintError, HistoryRemoved):
        current = newest()
        if current.commit_id == known.commit_id:
            raise
    return prepare(current)
