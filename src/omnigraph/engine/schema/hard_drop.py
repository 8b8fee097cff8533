"""Removing what a hard drop took out of the graph, so that nobody can go back to it.

Best effort after the change is visible: what cannot be removed now, `optimize` and `cleanup` remove
later. Tables that lost columns are first written anew without them, as a commit that changes no row.
Tests: tests/behaviour/test_schema_drops.py, tests/spark/test_schema_changes.py.
"""

from __future__ import annotations

import logging
from functools import partial

from omnigraph.engine.maintain.rewrite import TableRewrite
from omnigraph.engine.parts import GraphParts
from omnigraph.engine.schema.fragments import EachFragment
from omnigraph.engine.schema.work import SchemaWork
from omnigraph.engine.write.background import optimize_draft, optimize_sidecar
from omnigraph.errors import OmnigraphError
from omnigraph.storage.cleanup import remove_versions, stored_versions
from omnigraph.storage.columns import fragments_with_dropped, rewrite_fragment
from omnigraph.storage.compact import commit_rewritten
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.branch_names import MAIN
from omnigraph.versioning.branches import BranchRef
from omnigraph.versioning.commits import CommitDraft
from omnigraph.versioning.locks import HeldLock
from omnigraph.versioning.retention import RetainedVersions
from omnigraph.versioning.snapshot import Snapshot, table_id

_log = logging.getLogger(__name__)


def rewrite_without_dropped(
    parts: GraphParts, work: SchemaWork, applied: CommitDraft, each: EachFragment, lock: HeldLock
) -> None:
    """Write tables that lost columns anew, so that the columns are in no file they need."""
    lost = {table_id(change.declared) for change in work.changed if change.dropped}
    state = parts.recovery.state(None)
    snapshot = parts.snapshot_of(state)
    heads = {
        entry.table_key: parts.recovery.head_of(entry.location, entry.branch)
        for entry in snapshot.entries.values()
        if entry.table_id in lost
    }
    due = [snapshot.entry(key) for key, head in heads.items() if fragments_with_dropped(head)]
    if not due:
        return
    draft = optimize_draft(applied.schema_ir_hash, applied.schema_ref, applied.actor_id)
    sidecar = optimize_sidecar(BranchRef(MAIN, None), state, due, draft)
    rewrite = TableRewrite(parts, sidecar, lock, partial(_without_dropped, each))
    rewrite.run(state, due, heads)
    rewrite.extend_texts(snapshot.catalog)


def _without_dropped(each: EachFragment, key: str, table: Table) -> Table:
    numbers = fragments_with_dropped(table)
    return commit_rewritten(table, each.do(f"rewrite {key}", table, numbers, rewrite_fragment))


def remove_dropped(
    tables: TableStore,
    objects: ObjectStore,
    work: SchemaWork,
    before: Snapshot,
    needed: RetainedVersions,
    lock: HeldLock,
) -> None:
    """Remove tables of dropped types, and every earlier version of tables that lost columns.

    What somebody has pinned by name stays.
    """
    entries = {entry.table_id: entry for entry in before.entries.values()}
    for declared in work.dropped:
        if needed.versions.get(table_id(declared)):
            continue
        location = entries[table_id(declared)].location
        try:
            lock.check()
            tables.remove(location, objects)
        except OmnigraphError as error:
            _log.warning("%s stays stored for now: %s", declared.table_key, error)
    for change in work.changed:
        if not change.dropped:
            continue
        location = entries[table_id(change.declared)].location
        kept = needed.versions.get(table_id(change.declared), {})
        try:
            lock.check()
            table = tables.open(location)
            stored = [version.number for version in stored_versions(table)]
            earlier = [v for v in stored if v < table.version and v not in kept]
            remove_versions(table, earlier)
        except OmnigraphError as error:
            name = change.declared.table_key
            _log.warning("earlier versions of %s stay stored for now: %s", name, error)
