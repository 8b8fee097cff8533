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
from omnigraph.engine.write.background import (
    AFTER_COMPACTION,
    BEFORE_COMPACTION,
    BEFORE_PUBLISH,
    rewritten_tables,
)
from omnigraph.errors import OmnigraphError
from omnigraph.storage.table import Table
from omnigraph.versioning.commit_sequence import Operation
from omnigraph.versioning.commits import CommitRecord
from omnigraph.versioning.locks import HeldLock
from omnigraph.versioning.manifest import ManifestState
from omnigraph.versioning.publish import Publication
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

        def commit_tables() -> list[Publication]:
            for entry in due:
                self._rewrite(entry, heads[entry.table_key])
            moved = [(e, self.done[e.table_key]) for e in due if e.table_key in self.done]
            return rewritten_tables(self.sidecar.draft, state, moved)

        operation = Operation(self.sidecar, commit_tables, BEFORE_PUBLISH)
        commits = self.parts.sequence.run(operation, self.lock)
        return commits[0] if commits else None

    def extend_texts(self, catalog: Catalog) -> None:
        """Bring indexes of texts up to date. They are no part of the graph, so no lock is needed."""
        for key, table in self.done.items():
            for intent in index_intents(catalog.entity(key)):
                if intent.kind is IndexKind.TEXT:
                    self.parts.texts.extend(table, intent.column)

    def _rewrite(self, entry: SnapshotEntry, table: Table) -> None:
        self.lock.check()
        try:
            BEFORE_COMPACTION.hit(table=entry.table_key)
            rewritten = self.improved(entry.table_key, table)
        except OmnigraphError as error:
            _log.warning("%s is not stored better completely: %s", entry.table_key, error)
            self.errors.append(error)
            rewritten = self.parts.tables.open(entry.location, entry.branch)
        AFTER_COMPACTION.hit(table=entry.table_key)
        if rewritten.version != table.version:
            self.done[entry.table_key] = rewritten
