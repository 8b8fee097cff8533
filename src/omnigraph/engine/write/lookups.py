"""The indexes that keep look-ups by id quick, built by the write that first makes them worthwhile."""

from __future__ import annotations

import logging
from typing import Final

from omnigraph.catalog.indexes import IndexKind, index_intents
from omnigraph.catalog.model import EntityType
from omnigraph.errors import OmnigraphError
from omnigraph.limits import INDEX_MIN_ROWS
from omnigraph.storage.indexes import stage_btree_index, uncovered_fragments
from omnigraph.storage.stage import commit_staged
from omnigraph.storage.table import Table

_LOOKUPS: Final = ("id", "src", "dst")

_log = logging.getLogger(__name__)


def index_lookups(
    table: Table, declared: EntityType, *, operation_id: str, writer_kind: str
) -> tuple[Table, tuple[str, ...]]:
    """Build missing look-up indexes on a table that was just written.

    Returns the table and the columns whose index could not be built, which never fails a write.
    """
    pending: list[str] = []
    if table.row_count() < INDEX_MIN_ROWS:
        return table, ()
    for intent in index_intents(declared):
        if intent.column not in _LOOKUPS or intent.kind is not IndexKind.BTREE:
            continue
        try:
            if uncovered_fragments(table, intent.column) is None:
                staged = stage_btree_index(table, intent.column)
                if staged is not None:
                    table = commit_staged(
                        table, staged, operation_id=operation_id, writer_kind=writer_kind
                    )
        except OmnigraphError as error:
            _log.warning("%s.%s stays without an index: %s", declared.name, intent.column, error)
            pending.append(intent.column)
    return table, tuple(pending)
