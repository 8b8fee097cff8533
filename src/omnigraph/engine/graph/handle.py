"""A graph that is open, bound to one branch: what all its operations share."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from omnigraph.catalog.model import Catalog
from omnigraph.diagnostics import suggest
from omnigraph.engine.gate import Gate, OpenGate
from omnigraph.engine.graph.at_commit import GraphAt
from omnigraph.engine.read.reader import Reader
from omnigraph.engine.read.stored_texts import StoredTexts
from omnigraph.engine.schema_cache import SchemaCache
from omnigraph.errors import (
    BranchNotFound,
    CommitBranchGone,
    CommitNotFound,
    GraphMoved,
    GraphNotFound,
    InputError,
    ReadOnlyHandle,
    TableMissing,
)
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uris import GraphRoot
from omnigraph.versioning.branch_names import BranchName, public_name
from omnigraph.versioning.branches import Branches, BranchRef
from omnigraph.versioning.commits import CommitId, CommitRecord
from omnigraph.versioning.manifest import Manifest, ManifestState
from omnigraph.versioning.snapshot import Snapshot

if TYPE_CHECKING:
    from omnigraph.engine.parts import GraphParts
    from omnigraph.engine.write.commit import TableWriter
    from omnigraph.engine.write.load import Loader
    from omnigraph.engine.write.mutation import Mutator
    from omnigraph.versioning.contract import SchemaContract
    from omnigraph.versioning.locks import WriterLocks
    from omnigraph.versioning.recovery.heal import Recovery
    from omnigraph.versioning.recovery.quarantine import Quarantined


class GraphHandle:
    """What every operation of an open graph works with: its parts, its branch, its snapshots."""

    def __init__(
        self,
        root: GraphRoot,
        objects: ObjectStore,
        tables: TableStore,
        *,
        manifest: Manifest | None = None,
        schemas: SchemaCache | None = None,
        read_only: bool = False,
        gate: Gate | None = None,
        reader: Reader | None = None,
    ) -> None:
        self._root = root
        self._objects = objects
        self._tables = tables
        self._manifest = manifest or Manifest(tables)
        self._branches = Branches(self._manifest, tables, objects)
        self._schemas = schemas or SchemaCache(objects)
        self._texts = StoredTexts(objects)
        self._last_snapshots: dict[str | None, tuple[ManifestState, Catalog, Snapshot]] = {}
        self._gate: Gate = gate or OpenGate()
        self._read_only = read_only
        self._reader = reader or Reader(tables, texts=self._texts)
        self._bound = self._find_bound("main")

    # What writes work with is made when the first one comes.

    @cached_property
    def _locks(self) -> WriterLocks:
        from omnigraph.versioning.locks import WriterLocks

        return WriterLocks(self._root, self._objects)

    def _use_locks(self, locks: WriterLocks) -> None:
        """Write under these locks."""
        for name in ("_recovery", "_parts", "_writer", "_loader", "_mutator"):
            self.__dict__.pop(name, None)
        self._locks = locks

    @cached_property
    def _recovery(self) -> Recovery:
        from omnigraph.versioning.recovery.heal import Recovery

        return Recovery(self._tables, self._objects, self._manifest, self._branches, self._locks)

    @cached_property
    def _parts(self) -> GraphParts:
        from omnigraph.engine.parts import GraphParts

        return GraphParts(
            tables=self._tables,
            objects=self._objects,
            manifest=self._manifest,
            branches=self._branches,
            schemas=self._schemas,
            locks=self._locks,
            recovery=self._recovery,
            texts=self._texts,
            snapshot_of=self._snapshot,
        )

    @cached_property
    def _writer(self) -> TableWriter:
        from omnigraph.engine.write.commit import TableWriter

        return TableWriter(self._parts)

    @cached_property
    def _loader(self) -> Loader:
        from omnigraph.engine.write.load import Loader

        return Loader(self._parts, self._writer)

    @cached_property
    def _mutator(self) -> Mutator:
        from omnigraph.engine.write.mutation import Mutator

        return Mutator(self._parts, self._writer)

    # -- what it is -------------------------------------------------------------------------

    @property
    def uri(self) -> str:
        return self._root.uri

    @property
    def branch(self) -> BranchName:
        """The branch this handle is bound to."""
        return self._bound.public

    @property
    def schema(self) -> str:
        """The accepted schema source."""
        return self._schemas.contract().source

    @property
    def catalog(self) -> Catalog:
        """The accepted schema. Raises `SchemaContractBroken` when its files were tampered with."""
        return self._schemas.contract().catalog

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.uri!r}, branch={self.branch!r})"

    # -- snapshots --------------------------------------------------------------------------

    def snapshot(self, branch: str | None = None) -> Snapshot:
        """The graph as it is now, on the bound branch or another one."""
        return self._snapshot(self._manifest.current(self._ref(branch).physical))

    def snapshot_at_version(self, version: int, branch: str | None = None) -> Snapshot:
        """The graph right after commit number `version` of a branch."""
        return self._past_snapshot(self._manifest.at(self._ref(branch).physical, version))

    def snapshot_of(self, commit_id: str) -> Snapshot:
        """The graph as a commit left it. Raises `CommitNotFound`."""
        commit, branch = self._locate(CommitId(commit_id))
        return self._past_snapshot(self._manifest.at(branch.physical, commit.sequence))

    def snapshot_at(self, target: str | int) -> Snapshot:
        """The graph at a version number, a commit id or the head of a branch."""
        if isinstance(target, int):
            return self.snapshot_at_version(target)
        names = [ref.public for ref in self._branches.list()]
        if target in names:
            return self.snapshot(target)
        try:
            return self.snapshot_of(target)
        except CommitNotFound as error:
            branch = suggest(target, names)
            raise (CommitNotFound(target, branch) if branch else error) from None

    def at(self, target: str | int) -> GraphAt:
        """The graph at a version number, a commit id or the head of a branch, to be asked."""
        return GraphAt(self.snapshot_at(target), self._reader, self._tables)

    def _seen(self, branch: str | None, at: str | int | None) -> GraphAt:
        """What a question is asked of: the newest state of a branch, or an earlier one."""
        if at is None:
            return GraphAt(self.snapshot(branch), self._reader, self._tables, is_newest=True)
        if branch is not None:
            raise InputError(
                "a question is about a branch or a commit; give `branch` or `at`, not both"
            )
        return self.at(at)

    def _snapshot(self, state: ManifestState, contract: SchemaContract | None = None) -> Snapshot:
        if contract is None or contract.reference != state.schema_ref:
            contract = self._schemas.contract()
        reference = self._schema_ref(state) or contract.reference
        # A schema apply that has published puts its files in place only after that.
        same = reference == contract.reference
        catalog = contract.catalog if same else self._schemas.past(reference)
        known = self._last_snapshots.get(state.branch)
        if known is not None and known[0] is state and known[1] is catalog:
            return known[2]
        snapshot = Snapshot.of(state, catalog)
        if known is not None:
            snapshot.take_over(known[2])
        self._last_snapshots[state.branch] = (state, catalog, snapshot)
        return snapshot

    def _past_snapshot(self, state: ManifestState) -> Snapshot:
        """A snapshot of an earlier state, under the schema of that time and the names of today.

        Today's schema is that of the newest commit of main.
        """
        reference = self._schema_ref(state)
        present = self._schema_ref(self._manifest.current(None))
        if reference is None or present is None or reference == present:
            return self._snapshot(state)
        self._schemas.contract()
        return Snapshot.of(state, self._schemas.past_under(reference, present))

    def _schema_ref(self, state: ManifestState) -> str | None:
        """The schema a state was made under. Checkpoints of converted graphs do not say."""
        if state.schema_ref is not None:
            return state.schema_ref
        head = self._manifest.find_commit(state.branch, state.head)
        return head.draft.schema_ref if head else None

    # -- the bound branch -------------------------------------------------------------------

    def sync_branch(self, name: str) -> None:
        """Bind this handle to another branch."""
        self._schemas.contract()
        self._bound = self._branches.find(name)

    def refresh(self) -> None:
        """Settle interrupted writes, of any branch, and look at the bound branch anew."""
        if not self._read_only:
            self._recovery.heal_everywhere()
        self.sync_branch(self.branch)

    def head(self, branch: str | None = None) -> CommitId:
        """The newest commit of a branch."""
        return self._manifest.current(self._ref(branch).physical).head

    def _ref(self, branch: str | None) -> BranchRef:
        """A branch as it is now. The bound one is looked up too, as others may have deleted it."""
        if branch is None and self._bound.physical is None:
            return self._bound
        return self._branches.find(self._bound.public if branch is None else branch)

    def _find_bound(self, name: str) -> BranchRef:
        try:
            return self._branches.find(name)
        except TableMissing:
            raise GraphNotFound(self._root.uri) from None

    def _locate(self, commit_id: CommitId) -> tuple[CommitRecord, BranchRef]:
        """The handle's branch first, then main, then the others: every hit is the same commit."""
        from omnigraph.engine.meant_commits import meant_commit

        listed = self._branches.list()
        elsewhere: GraphMoved | None = None
        for ref in sorted(listed, key=lambda ref: ref.physical != self._bound.physical):
            # A branch that is deleted while we look has nothing for us.
            with suppress(BranchNotFound):
                try:
                    commit = self._manifest.find_commit(ref.physical, commit_id)
                except GraphMoved as moved:
                    elsewhere = moved
                    continue
                if commit is not None:
                    return commit, ref
        brought = self._brought(commit_id, listed)
        if brought is not None:
            raise CommitBranchGone(commit_id, public_name(brought.branch))
        if elsewhere is not None:
            raise elsewhere
        branches = [ref.physical for ref in listed]
        raise CommitNotFound(commit_id, meant_commit(self._manifest, branches, commit_id))

    def _brought(self, commit_id: CommitId, listed: list[BranchRef]) -> CommitRecord | None:
        """A commit that merges have brought to a branch, and whose own branch is gone."""
        for ref in listed:
            with suppress(BranchNotFound, GraphMoved):
                found = self._manifest.find_ancestor(ref.physical, commit_id)
                if found is not None:
                    return found
        return None

    # -- writing ----------------------------------------------------------------------------

    def _writable(self, operation: str) -> None:
        if self._read_only:
            raise ReadOnlyHandle(operation)

    def _recover(self, ref: BranchRef) -> tuple[Quarantined, ...]:
        """Before every write: complete or undo what was interrupted on the branch."""
        return self._recovery.heal_unless_busy(ref.physical).quarantined

    def _require_head(self, ref: BranchRef, expected: CommitId | None) -> None:
        """Raises `HeadMoved` unless the branch is at the commit that the caller expects."""
        if expected is not None:
            self._manifest.require_head(self._manifest.current(ref.physical), expected)
