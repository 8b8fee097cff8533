"""Preparing a write on the newest state of its branch.

Tests: tests/behaviour/test_cleanup.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from omnigraph.engine.parts import GraphParts
from omnigraph.errors import HistoryRemoved
from omnigraph.versioning.branches import BranchRef
from omnigraph.versioning.contract import SchemaContract
from omnigraph.versioning.snapshot import Snapshot

Prepared = TypeVar("Prepared")


def prepare_on_newest(
    parts: GraphParts,
    branch: BranchRef,
    contract: SchemaContract,
    prepare: Callable[[Snapshot], Prepared],
) -> tuple[Snapshot, Prepared]:
    """The state a write was prepared on, and the prepared write.

    If `cleanup` removes the state meanwhile, another commit has replaced it: that one is used.
    """
    snapshot = parts.snapshot_of(parts.manifest.current(branch.physical), contract)
    try:
        return snapshot, prepare(snapshot)
    except HistoryRemoved:
        newest = parts.snapshot_of(parts.manifest.current(branch.physical))
        if newest.commit_id == snapshot.commit_id:
            raise
    return newest, prepare(newest)
