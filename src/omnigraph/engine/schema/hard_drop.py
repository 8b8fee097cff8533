"""Removing what a hard drop took out of the graph, so that nobody can go back to it.

Best effort after the change is visible: what cannot be removed now, `cleanup` removes later.
Tests: tests/behaviour/test_schema_apply.py.
"""

from __future__ import annotations

import logging

from omnigraph.engine.schema.work import SchemaWork
from omnigraph.errors import OmnigraphError
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.removal import remove_versions, stored_versions
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.locks import HeldLock
from omnigraph.versioning.retention import Needed
from omnigraph.versioning.snapshot import Snapshot, table_id

_log = logging.getLogger(__name__)


def remove_dropped(
    tables: TableStore,
    objects: ObjectStore,
    work: SchemaWork,
    before: Snapshot,
    needed: Needed,
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
