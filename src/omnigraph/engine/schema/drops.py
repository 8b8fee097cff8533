"""Remove hard-dropped data, so that no earlier version can be read with it.

Runs after the change is visible. Whatever fails is removed later by optimize and cleanup. Tables that
lost columns are first rewritten without them, in a commit that changes no row.
Tests: tests/behaviour/test_schema_drops.py, tests/spark/test_schema_changes.py.
"""

from __future__ import annotations

import logging
from functools import partial

from omnigraph.engine.maintain.optimize import TableRewrite
from omnigraph.engine.parts import GraphParts
from omnigraph.engine.schema.tables import FragmentRunner, SchemaWork
from omnigraph.engine.write.fold import optimize_draft, optimize_sidecar
from omnigraph.errors import OmnigraphError
from omnigraph.storage.compact import commit_rewritten
from omnigraph.storage.dropped_columns import fragments_with_dropped, rewrite_fragment
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.removal import remove_versions, stored_versions
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.branch_names import MAIN
from omnigraph.versioning.branches import BranchRef
from omnigraph.versioning.commits import CommitDraft
from omnigraph.versioning.locks import HeldLock
from omnigraph.versioning.retention import Needed
from omnigraph.versioning.snapshot import Snapshot, table_id

_log = logging.getLogger(__name__)


def rewrite_without_dropped(
    parts: GraphParts, work: SchemaWork, applied: CommitDraft, each: FragmentRunner, lock: HeldLock
) -> None:
    """Rewrite tables that lost columns, so that their current files do not contain them."""
    lost = {table_id(change.declared) for change in work.changed if change.dropped}
    state = parts.recovery.state(None)
    snapshot = parts.snapshot_of(state)
    heads = {
        entry.table_key: parts.recovery.head_of(entry.location, entry.branch)
        for entry in snapshot.entries.values()
        if entry.table_id in lost
    }
    entries = [snapshot.entry(key) for key, head in heads.items() if fragments_with_dropped(head)]
    if not entries:
        return
    draft = optimize_draft(applied.schema_ir_hash, applied.schema_ref, applied.actor_id)
    sidecar = optimize_sidecar(BranchRef(MAIN, None), state, entries, draft)
    rewrite = TableRewrite(parts, sidecar, lock, partial(_without_dropped, each))
    rewrite.run(state, entries, heads)
    rewrite.extend_texts(snapshot.catalog)


def _without_dropped(each: FragmentRunner, key: str, table: Table) -> Table:
    numbers = fragments_with_dropped(table)
    return commit_rewritten(table, each.run(f"rewrite {key}", table, numbers, rewrite_fragment))


def remove_dropped(
    tables: TableStore,
    objects: ObjectStore,
    work: SchemaWork,
    before: Snapshot,
    retained: Needed,
    lock: HeldLock,
) -> None:
    """Remove tables of dropped types, and all earlier versions of tables that lost columns.

    Tagged versions stay.
    """
    locations = {entry.table_id: entry.location for entry in before.entries.values()}
    for declared in work.dropped:
        if retained.versions.get(table_id(declared)):
            continue
        try:
            lock.check()
            tables.remove(locations[table_id(declared)], objects)
        except OmnigraphError as error:
            _log.warning("removal of %s postponed: %s", declared.table_key, error)
    for change in work.changed:
        if not change.dropped:
            continue
        kept = retained.versions.get(table_id(change.declared), {})
        try:
            lock.check()
            table = tables.open(locations[table_id(change.declared)])
            stored = [version.number for version in stored_versions(table)]
            remove_versions(table, [v for v in stored if v < table.version and v not in kept])
        except OmnigraphError as error:
            name = change.declared.table_key
            _log.warning("removal of earlier versions of %s postponed: %s", name, error)
