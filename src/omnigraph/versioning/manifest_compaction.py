"""Keeping the manifest quick: its indexes, and folding the many small inserts of its publishes.

Best effort and invisible: graph versions, rows and commits stay as they are, and a publish that was
acknowledged does not fail because the tidying after it did.
"""

from __future__ import annotations

import logging
from typing import Final

from omnigraph.errors import OmnigraphError
from omnigraph.limits import (
    INDEX_LAG_ROWS,
    MANIFEST_FRAGMENT_ROWS,
    MANIFEST_OVERDUE,
    MANIFEST_SMALL_FRAGMENTS,
    MANIFEST_SMALL_ROWS,
)
from omnigraph.storage.compact import compact_with_indexes, small_fragments
from omnigraph.storage.indexes import (
    build_btree,
    damaged_indexes,
    list_indexes,
    stage_btree_index,
    stage_indexes,
)
from omnigraph.storage.stage import commit_staged
from omnigraph.storage.table import Table
from omnigraph.versioning.ids import new_ulid
from omnigraph.versioning.manifest import Manifest
from omnigraph.versioning.rows import KEY_COLUMN

INDEXED_COLUMNS: Final = (KEY_COLUMN, "commit_seq", "table_key")

_log = logging.getLogger(__name__)


def index_manifest(table: Table, operation_id: str) -> Table:
    """Give a new manifest the indexes its look-ups use."""
    for column in INDEXED_COLUMNS:
        staged = stage_btree_index(table, column)
        if staged is not None:
            table = commit_staged(table, staged, operation_id=operation_id, writer_kind="Init")
    return table


def rebuild_damaged_indexes(table: Table) -> Table:
    """Build damaged indexes of a branch's manifest again, under the lock of the branch.

    Best effort: without them, look-ups scan.
    """
    try:
        damaged = damaged_indexes(table)
        columns = [column for column in INDEXED_COLUMNS if f"{column}_idx" in damaged]
        if not columns:
            return table
        _log.warning("damaged indexes of %s are built again: %s", table.lineage.uri, damaged)
        staged = stage_indexes(table, [build_btree(table, column) for column in columns])
        return commit_staged(table, staged, operation_id=new_ulid(), writer_kind="Optimize")
    except OmnigraphError as error:
        _log.warning("the manifest stays without some of its indexes: %s", error)
        return table


def compact_whole_manifest(manifest: Manifest, branch: str | None) -> None:
    """Fold the manifest of a branch as far as it goes. Raises what keeps it from being done."""
    compact_with_indexes(rebuild_damaged_indexes(manifest.open(branch)), MANIFEST_FRAGMENT_ROWS)


def is_manifest_due(manifest: Manifest, branch: str | None) -> bool:
    """Whether a publish that was made through this manifest has left it in many small pieces."""
    return manifest.small_fragment_count(branch) > MANIFEST_SMALL_FRAGMENTS


def compact_if_overdue(table: Table) -> bool:
    """Fold the manifest of a branch if those whose task it is have not come to it for long.

    Whether it may have moved.
    """
    overdue = MANIFEST_OVERDUE * MANIFEST_SMALL_FRAGMENTS
    is_overdue = small_fragments(table, MANIFEST_SMALL_ROWS) > overdue
    if is_overdue:
        compact_manifest(table)
    return is_overdue


def compact_manifest(table: Table) -> None:
    """Fold the manifest of a branch once it consists of many small pieces."""
    try:
        if small_fragments(table, MANIFEST_SMALL_ROWS) > MANIFEST_SMALL_FRAGMENTS:
            if not list_indexes(table) and not damaged_indexes(table):
                # A conversion from an older format was interrupted before it came to them.
                table = index_manifest(table, new_ulid())
            compact_with_indexes(
                rebuild_damaged_indexes(table), MANIFEST_FRAGMENT_ROWS, INDEX_LAG_ROWS
            )
    except OmnigraphError as error:
        _log.warning("the manifest stays as it is for now: %s", error)
