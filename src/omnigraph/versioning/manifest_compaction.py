"""Compact the manifest and maintain its indexes.

Best effort and invisible: graph versions, rows and commits do not change, and an acknowledged publish
does not fail because the compaction after it did.
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
    """Rebuild damaged indexes of a branch's manifest. The caller holds the branch lock.

    Best effort: without them, look-ups scan.
    """
    try:
        damaged = damaged_indexes(table)
        columns = [column for column in INDEXED_COLUMNS if f"{column}_idx" in damaged]
        if not columns:
            return table
        _log.warning("rebuilding damaged indexes of %s: %s", table.lineage.uri, damaged)
        staged = stage_indexes(table, [build_btree(table, column) for column in columns])
        return commit_staged(table, staged, operation_id=new_ulid(), writer_kind="Optimize")
    except OmnigraphError as error:
        _log.warning("could not rebuild the manifest's indexes: %s", error)
        return table


def compact_whole_manifest(manifest: Manifest, branch: str | None) -> None:
    """Compact a branch's manifest completely. Raises the error if that fails."""
    compact_with_indexes(rebuild_damaged_indexes(manifest.open(branch)), MANIFEST_FRAGMENT_ROWS)


def is_manifest_due(manifest: Manifest, branch: str | None) -> bool:
    """Whether publishes through this manifest have left it with too many small fragments."""
    return manifest.small_fragment_count(branch) > MANIFEST_SMALL_FRAGMENTS


def compact_if_overdue(table: Table) -> bool:
    """Compact a branch's manifest if background compaction is long overdue.

    Returns whether the manifest may have moved.
    """
    overdue = MANIFEST_OVERDUE * MANIFEST_SMALL_FRAGMENTS
    is_overdue = small_fragments(table, MANIFEST_SMALL_ROWS) > overdue
    if is_overdue:
        compact_manifest(table)
    return is_overdue


def compact_manifest(table: Table) -> None:
    """Compact a branch's manifest once it has many small fragments."""
    try:
        if small_fragments(table, MANIFEST_SMALL_ROWS) > MANIFEST_SMALL_FRAGMENTS:
            if not list_indexes(table) and not damaged_indexes(table):
                # A conversion from an older format was interrupted before it came to them.
                table = index_manifest(table, new_ulid())
            compact_with_indexes(
                rebuild_damaged_indexes(table), MANIFEST_FRAGMENT_ROWS, INDEX_LAG_ROWS
            )
    except OmnigraphError as error:
        _log.warning("compaction of the manifest postponed: %s", error)
