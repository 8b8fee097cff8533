"""Tables of main that are written anew with the same rows: from the sidecar to one publish.

The library commits such work by itself, in several versions without an operation's id. As any of them
has the same content, the sidecar may be finished whatever it got to.
Tests: tests/behaviour/test_optimize.py, tests/behaviour/test_schema_drops.py, tests/crash.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from omnigraph.catalog.indexes import IndexKind, index_intents
from omnigraph.catalog.model import Catalog
from omnigraph.engine.parts import GraphParts
from omnigraph.engine.write.fold import AFTER_FOLD, BEFORE_FOLD, BEFORE_PUBLISH
from omnigraph.errors import CommitStateUnknown, OmnigraphError
from omnigraph.faults import InjectedFault
from omnigraph.storage.table import Table
from omnigraph.versioning.commits import CommitRecord
from omnigraph.versioning.locks import HeldLock
from omnigraph.versioning.manifest import ManifestState
from omnigraph.versioning.publish import Publication, publish
from omnigraph.versioning.recovery.act import table_version
from omnigraph.versioning.recovery.sidecar import Sidecar
from omnigraph.versioning.snapshot import SnapshotEntry

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TableRewrite:
    """One such operation, under the lock of main. One table's error keeps no other back."""

    parts: GraphParts
    sidecar: Sidecar
    lock: HeldLock
    improved: Callable[[str, Table], Table]
    """What becomes of the table of a key; the one that was given if nothing does."""
    done: dict[str, Table] = field(default_factory=dict)
    """Tables that moved, by key."""
    errors: list[OmnigraphError] = field(default_factory=list)

    def run(
        self, state: ManifestState, due: Sequence[SnapshotEntry], heads: Mapping[str, Table]
    ) -> CommitRecord | None:
        """The commit; None if no table moved."""
        self.lock.check()
        self.parts.recovery.begin(self.sidecar)
        try:
            for entry in due:
                self._rewrite(entry, heads[entry.table_key])
            commit = self._publish(state, [e for e in due if e.table_key in self.done])
        except (InjectedFault, CommitStateUnknown):
            raise
        except Exception as error:
            self.parts.recovery.undo_own(self.sidecar, self.lock, error)
            raise
        self.parts.recovery.end(self.sidecar)
        return commit

    def extend_texts(self, catalog: Catalog) -> None:
        """Bring indexes of texts up to date. They are no part of the graph, so no lock is needed."""
        for key, table in self.done.items():
            for intent in index_intents(catalog.entity(key)):
                if intent.kind is IndexKind.TEXT:
                    self.parts.texts.extend(table, intent.column)

    def _rewrite(self, entry: SnapshotEntry, table: Table) -> None:
        self.lock.check()
        try:
            BEFORE_FOLD.hit(table=entry.table_key)
            rewritten = self.improved(entry.table_key, table)
        except InjectedFault:
            raise
        except OmnigraphError as error:
            _log.warning("%s is not stored better completely: %s", entry.table_key, error)
            self.errors.append(error)
            rewritten = self.parts.tables.open(entry.location, entry.branch)
        AFTER_FOLD.hit(table=entry.table_key)
        if rewritten.version != table.version:
            self.done[entry.table_key] = rewritten

    def _publish(self, state: ManifestState, moved: Sequence[SnapshotEntry]) -> CommitRecord | None:
        if not moved:
            return None
        BEFORE_PUBLISH.hit(branch=None)
        publication = Publication(
            draft=self.sidecar.draft,
            versions=tuple(table_version(e.table_id, self.done[e.table_key]) for e in moved),
            expected={entry.table_id: entry.pin for entry in moved},
            begun_at=state.sequence,
        )
        return publish(self.parts.manifest, None, publication, self.lock.check)
