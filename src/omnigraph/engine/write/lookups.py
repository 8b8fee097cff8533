"""The indexes that keep look-ups quick, built by the write that first makes them worthwhile.

Those of texts and vectors take too long for that; `ensure_indices` makes them.
"""

from __future__ import annotations

import logging

from omnigraph.catalog.indexes import IndexKind, index_intents
from omnigraph.catalog.model import EntityType
from omnigraph.errors import OmnigraphError
from omnigraph.limits import INDEX_MIN_ROWS
from omnigraph.storage.indexes import (
    BuiltIndex,
    build_btree,
    stage_indexes,
    uncovered_fragments,
)
from omnigraph.storage.stage import commit_staged
from omnigraph.storage.table import Table

_log = logging.getLogger(__name__)


def index_lookups(
    table: Table, declared: EntityType, *, operation_id: str, writer_kind: str
) -> tuple[Table, tuple[str, ...]]:
    """Build missing look-up indexes on a table that was just written.

    Returns the table and the columns whose index could not be built, which never fails a write.
    """
    if table.row_count() < INDEX_MIN_ROWS:
        return table, ()
    built: dict[str, BuiltIndex] = {}
    pending: list[str] = []
    for intent in index_intents(declared):
        if intent.kind is not IndexKind.BTREE or intent.column not in table.schema.names:
            continue
        try:
            if uncovered_fragments(table, intent.column) is None:
                built[intent.column] = build_btree(table, intent.column)
        except OmnigraphError as error:
            _log.warning("%s.%s stays without an index: %s", declared.name, intent.column, error)
            pending.append(intent.column)
    if not built:
        return table, tuple(pending)
    try:
        staged = stage_indexes(table, list(built.values()))
        table = commit_staged(table, staged, operation_id=operation_id, writer_kind=writer_kind)
    except OmnigraphError as error:
        _log.warning("%s stays without indexes: %s", declared.name, error)
        pending += built
    return table, tuple(pending)
