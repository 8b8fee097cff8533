"""One open graph as its handles share it: stores, manifest, schemas, locks, caches, snapshots.

Handles on other branches or for other actors (`omnigraph.api`) use the same core, so they share
caches and the one background compactor. What only writers need is made when the first one comes.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property, partial
from threading import RLock
from time import monotonic
from typing import TYPE_CHECKING, Protocol, cast

from omnigraph.catalog.model import Catalog
from omnigraph.errors import GraphNotFound, OmnigraphError, TableMissing
from omnigraph.graph.gate import Gate, OpenGate
from omnigraph.graph.schema_cache import KnownSchema, SchemaCache
from omnigraph.read.reader import Reader
from omnigraph.read.text_indexes import TextIndexStore
from omnigraph.side_by_side import both
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uris import GraphRoot
from omnigraph.versioning.branches import Branches, BranchRef
from omnigraph.versioning.contract import SchemaContract
from omnigraph.versioning.manifest import HeadNotes, Manifest, ManifestState
from omnigraph.versioning.snapshot import Snapshot

if TYPE_CHECKING:
    from omnigraph.commit.writer import TableWriter
    from omnigraph.graph.parts import GraphParts
    from omnigraph.history.refs import Ref, ResolvedRef
    from omnigraph.read.view import ReadView
    from omnigraph.versioning.locks import WriterLocks
    from omnigraph.versioning.recovery.recover import Recovery


if TYPE_CHECKING:
    made_once = cached_property
else:

    class made_once(cached_property):
        """A cached property of which threads that ask at the same time get the same value."""

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            with instance._making:
                return super().__get__(instance, owner)


class ReadPolicy(Protocol):
    """A gate that also limits what actors read."""

    limits_reads: bool

    def view(self, actor: str | None, catalog: Catalog) -> ReadView: ...

    def check_reads(self, catalog: Catalog) -> None: ...


def _read_policy(gate: Gate) -> ReadPolicy | None:
    return cast("ReadPolicy", gate) if getattr(gate, "limits_reads", False) else None


def head_notes(objects: ObjectStore) -> HeadNotes | None:
    """Where notes of branch heads are found: with the leases of an object store."""
    if not objects.is_remote:
        return None
    from omnigraph.versioning.locks.lease_object import read_head

    return partial(read_head, objects)


class GraphCore:
    """The shared state of all handles on one graph. Thread-safe."""

    def __init__(
        self,
        root: GraphRoot,
        objects: ObjectStore,
        tables: TableStore,
        *,
        manifest: Manifest | None = None,
        schemas: SchemaCache | None = None,
        locks: WriterLocks | None = None,
        gate: Gate | None = None,
    ) -> None:
        self.root = root
        self.objects = objects
        self.tables = tables
        self.manifest = manifest or Manifest(tables, head_notes(objects))
        self.branches = Branches(self.manifest, tables, objects)
        self.schemas = schemas or SchemaCache(objects)
        self.texts = TextIndexStore(objects)
        self.reader = Reader(tables, texts=self.texts)
        self.gate: Gate = gate or OpenGate()
        self.read_policy = _read_policy(self.gate)
        self._given_locks = locks
        self._making = RLock()
        self._found_branches: dict[str, tuple[float, BranchRef]] = {}
        self._last_snapshots: dict[str | None, tuple[ManifestState, Catalog, Snapshot]] = {}

    # -- what only writers need -------------------------------------------------------------

    @made_once
    def locks(self) -> WriterLocks:
        from omnigraph.versioning.locks import WriterLocks

        manifest = self.manifest
        describe = manifest.head_note if self.objects.is_remote else manifest.handover
        return self._given_locks or WriterLocks(self.root, self.objects, describe=describe)

    @made_once
    def recovery(self) -> Recovery:
        from omnigraph.versioning.recovery.recover import Recovery

        return Recovery(self.tables, self.objects, self.manifest, self.branches, self.locks)

    @made_once
    def parts(self) -> GraphParts:
        """What every operation is given."""
        from omnigraph.graph.parts import GraphParts

        return GraphParts(
            tables=self.tables,
            objects=self.objects,
            manifest=self.manifest,
            branches=self.branches,
            schemas=self.schemas,
            locks=self.locks,
            recovery=self.recovery,
            texts=self.texts,
            snapshot_of=self.snapshot_of,
        )

    @made_once
    def writer(self) -> TableWriter:
        from omnigraph.commit.writer import TableWriter

        return TableWriter(self.parts)

    def wait_for_compaction(self) -> None:
        """Return when no table is being compacted in the background."""
        # A core that never wrote has no writer, and need not make one to wait for it.
        writer = self.__dict__.get("writer")
        if writer is not None:
            writer.wait()

    # -- branches and commits ---------------------------------------------------------------

    def find_branch(self, name: str, max_staleness: float = 0.0) -> BranchRef:
        """A branch by name, as stored now or at most that many seconds ago.

        Raises `BranchNotFound`, or `GraphNotFound` without any.
        """
        asked_at = monotonic()
        known = self._found_branches.get(name)
        if known is not None and asked_at - known[0] < max_staleness:
            return known[1]
        try:
            found = self.branches.find(name)
        except TableMissing:
            raise GraphNotFound(self.root.uri) from None
        self._found_branches[name] = (asked_at, found)
        return found

    # -- snapshots --------------------------------------------------------------------------

    def snapshot(self, ref: BranchRef, max_staleness: float = 0.0) -> Snapshot:
        """The newest state of a branch, or the newest state of at most that many seconds ago."""
        return self.snapshot_of(self.manifest.current(ref.physical, max_staleness=max_staleness))

    def newest_snapshot(self, bound: BranchRef, max_staleness: float) -> Snapshot:
        """The newest state of a branch that was found before, and may have been deleted since.

        On an object store both questions are asked at once.
        """
        if bound.physical is None:
            return self.snapshot(bound, max_staleness)

        def read_state() -> None:
            with suppress(OmnigraphError):  # If the branch is still there, it is asked again.
                self.manifest.current(bound.physical, max_staleness=max_staleness)

        asked_at = monotonic()
        if not self.objects.is_remote:
            return self.snapshot(self.find_branch(bound.public, max_staleness), max_staleness)
        found, _ = both(lambda: self.find_branch(bound.public, max_staleness), read_state)
        # What was asked for meanwhile is as new as this call demands.
        return self.snapshot(found, max(max_staleness, monotonic() - asked_at))

    def contract(self, ref: BranchRef | None = None) -> SchemaContract:
        """The accepted schema of a branch, which is that of main.

        On an object store its files are read only if the newest commit was made under another one.
        """
        if not self.objects.is_remote:
            return self.schemas.contract()
        state = self.manifest.current(None if ref is None else ref.physical)
        return self.schemas.contract_of(self._schema_ref(state))

    def known_schema(self, ref: BranchRef) -> KnownSchema | None:
        """What is known of a branch on an object store, though it may have moved since."""
        state = self.manifest.known_state(ref.physical)
        contract = None if state is None else self.schemas.known(self._schema_ref(state))
        return None if state is None or contract is None else KnownSchema(state, contract)

    def resolve(self, ref: Ref, bound: BranchRef, argument: str) -> Snapshot:
        """The state a ref names."""
        found = self.resolve_ref(ref, bound, argument)
        return (
            self.snapshot_of(found.state)
            if found.is_branch_head
            else self.past_snapshot(found.state)
        )

    def resolve_ref(self, ref: Ref, bound: BranchRef, argument: str) -> ResolvedRef:
        """The commit a ref names. Raises `InputError` that names the argument."""
        from omnigraph.history.refs import resolve_ref

        return resolve_ref(self.parts, bound, ref, argument=argument)

    def limit(self, actor: str | None, snapshot: Snapshot | None = None) -> ReadView | None:
        """What the policy shows an actor; None if it has no read rules.

        That depends on the present schema, which is that of the newest state of any branch. Raises
        `PolicyUndecided`.
        """
        if self.read_policy is None:
            return None
        catalog = self.contract().catalog if snapshot is None else snapshot.catalog
        return self.read_policy.view(actor, catalog)

    def snapshot_of(self, state: ManifestState, contract: SchemaContract | None = None) -> Snapshot:
        """The snapshot of a manifest state, under the schema as it is stored now."""
        made_under = self._schema_ref(state)
        if contract is None or contract.reference != state.schema_ref:
            contract = self.schemas.contract_of(made_under)
        reference = made_under or contract.reference
        # A schema apply replaces its files only after it has published.
        same = reference == contract.reference
        catalog = contract.catalog if same else self.schemas.past(reference)
        known = self._last_snapshots.get(state.branch)
        if known is not None and known[0] is state and known[1] is catalog:
            return known[2]
        snapshot = Snapshot.of(state, catalog)
        if known is not None and known[0].origin is state.origin:
            snapshot.take_over(known[2])
        self._last_snapshots[state.branch] = (state, catalog, snapshot)
        return snapshot

    def past_snapshot(self, state: ManifestState) -> Snapshot:
        """A snapshot of an earlier state: the schema of that time under the names of today.

        Today's schema is that of the newest commit of main.
        """
        reference = self._schema_ref(state)
        present = self._schema_ref(self.manifest.current(None))
        if reference is None or present is None or reference == present:
            return self.snapshot_of(state)
        self.schemas.contract()
        return Snapshot.of(state, self.schemas.past_under(reference, present))

    def _schema_ref(self, state: ManifestState) -> str | None:
        """The schema a state was written under. Checkpoints of converted graphs lack it."""
        if state.schema_ref is not None:
            return state.schema_ref
        head = self.manifest.find_commit(state.branch, state.head)
        return head.draft.schema_ref if head else None
