"""The indexes that keep look-ups quick, built by the write that first makes them worthwhile.

Those of texts and vectors take too long for that; `ensure_indices` makes them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from omnigraph.catalog.arrow import IndexKind, index_specs
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


def missing_lookups(table: Table, declared: EntityType) -> tuple[str, ...]:
    """The columns that are looked up and have no index, in a table large enough for one."""
    if table.row_count() < INDEX_MIN_ROWS:
        return ()
    return tuple(
        intent.column
        for intent in index_specs(declared)
        if intent.kind is IndexKind.BTREE
        and intent.column in table.schema.names
        and _lacks_index(table, intent.column)
    )


def index_lookups(
    table: Table, columns: Sequence[str], *, operation_id: str, writer_kind: str
) -> tuple[Table, tuple[str, ...]]:
    """Build look-up indexes of a table that was just written.

    Returns the table and the columns whose index could not be built, which never fails a write.
    """
    built: dict[str, BuiltIndex] = {}
    pending: list[str] = []
    for column in columns:
        try:
            built[column] = build_btree(table, column)
        except OmnigraphError as error:
            _log.warning("%s.%s stays without an index: %s", table.lineage.uri, column, error)
            pending.append(column)
    if not built:
        return table, tuple(pending)
    try:
        staged = stage_indexes(table, list(built.values()))
        table = commit_staged(table, staged, operation_id=operation_id, writer_kind=writer_kind)
    except OmnigraphError as error:
        _log.warning("%s stays without indexes: %s", table.lineage.uri, error)
        pending += built
    return table, tuple(pending)


def _lacks_index(table: Table, column: str) -> bool:
    try:
        return uncovered_fragments(table, column) is None
    except OmnigraphError:
        return True  # Whoever builds it tells what is wrong.
