"""Rows of every type, as a reader sees them."""

from __future__ import annotations

from omnigraph.engine.read.view import ReadView
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot


def visible_counts(snapshot: Snapshot, tables: TableStore, view: ReadView) -> dict[str, int]:
    """The number of rows by type name, edge types first. Only a view with row filters reads rows."""
    catalog = view.restrict(snapshot.catalog)
    by_key = {declared.table_key: declared.name for declared in catalog}
    if not view.rows:
        return {
            by_key[key]: entry.row_count for key, entry in snapshot.entries.items() if key in by_key
        }
    from omnigraph.engine.read.scan import scan_type

    return {
        name: sum(
            batch.num_rows
            for batch in scan_type(snapshot, tables, name, columns=("id",), view=view)
        )
        for key, name in sorted(by_key.items())
    }
