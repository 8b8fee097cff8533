"""What the operations of an open graph work with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from omnigraph.graph.schema_cache import SchemaCache
from omnigraph.read.text_indexes import TextIndexStore
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.branches import Branches
from omnigraph.versioning.commit_sequence import CommitSequence
from omnigraph.versioning.contract import SchemaContract
from omnigraph.versioning.locks import WriterLocks
from omnigraph.versioning.manifest import Manifest, ManifestState
from omnigraph.versioning.recovery.recover import Recovery
from omnigraph.versioning.snapshot import Snapshot


class SnapshotOf(Protocol):
    """Makes the snapshot of a state, under the schema as it is stored now.

    A caller that has just read the schema passes it on, and it is used if the state was made under it: on an
    object store, reading it is three requests.
    """

    def __call__(
        self, state: ManifestState, contract: SchemaContract | None = None
    ) -> Snapshot: ...


@dataclass(frozen=True, slots=True)
class GraphParts:
    """The parts of one open graph. Its handle makes them; every operation is given all of them."""

    tables: TableStore
    objects: ObjectStore
    manifest: Manifest
    branches: Branches
    schemas: SchemaCache
    locks: WriterLocks
    recovery: Recovery
    texts: TextIndexStore
    snapshot_of: SnapshotOf

    @property
    def sequence(self) -> CommitSequence:
        """What makes the operations of writers visible."""
        return CommitSequence(self.manifest, self.recovery)
