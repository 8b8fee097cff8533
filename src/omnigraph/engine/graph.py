"""The graph: one object for everything that can be done with one.

A handle is bound to one branch. It is synchronous and thread-safe, starts no event loop and never
forks. Reads always look at storage, so another writer's commits are seen without a refresh.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from omnigraph.catalog.model import Catalog
from omnigraph.engine.export import export_snapshot
from omnigraph.engine.gate import Action, Gate, OpenGate, Request
from omnigraph.engine.receipts import Receipt, receipt_of
from omnigraph.engine.schema_cache import SchemaCache
from omnigraph.engine.source_files import schema_source
from omnigraph.engine.write.commit import TableWriter
from omnigraph.engine.write.load import Loader, LoadOptions, LoadResult, check_load_options
from omnigraph.errors import (
    BranchInUse,
    BranchNotFound,
    CommitNotFound,
    GraphNotFound,
    InputError,
    ReadOnlyHandle,
    TableMissing,
)
from omnigraph.limits import MAX_LOAD_ERRORS
from omnigraph.storage.durability import durability_from_environment
from omnigraph.storage.objects import ObjectStore, open_store
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uris import GraphRoot, normalise_root
from omnigraph.versioning.branch_names import BranchName, physical_name
from omnigraph.versioning.branches import Branches, BranchRef, new_branch_name
from omnigraph.versioning.commits import CommitId, CommitRecord
from omnigraph.versioning.genesis import create_graph
from omnigraph.versioning.manifest import Manifest, ManifestState
from omnigraph.versioning.snapshot import Snapshot
from omnigraph.versioning.writer_lock import writer_lock, writer_locks


def init(uri: str | Path, schema: str | Path, *, force: bool = False) -> Graph:
    """Create a graph and open it. `schema` is schema text or the path of a schema file."""
    root = normalise_root(str(uri))
    durability = durability_from_environment()
    objects, tables = open_store(root, durability), TableStore(root, durability)
    create_graph(root, objects, tables, schema_source(schema), force=force)
    return Graph(root, objects, tables)


def open(uri: str | Path, *, branch: str = "main", read_only: bool = False) -> Graph:
    """Open a graph. Raises `GraphNotFound` or `BranchNotFound`."""
    root = normalise_root(str(uri))
    # The store takes its time to find out that a file holds no graph.
    if root.kind == "local" and not Path(root.uri).is_dir():
        raise GraphNotFound(root.uri)
    durability = durability_from_environment()
    graph = Graph(
        root, open_store(root, durability), TableStore(root, durability), read_only=read_only
    )
    graph._manifest.current(None)
    graph.sync_branch(branch)
    return graph


class Graph:
    """An open graph, bound to one branch."""

    def __init__(
        self,
        root: GraphRoot,
        objects: ObjectStore,
        tables: TableStore,
        *,
        read_only: bool = False,
        gate: Gate | None = None,
    ) -> None:
        self._root = root
        self._objects = objects
        self._tables = tables
        self._manifest = Manifest(tables)
        self._branches = Branches(self._manifest, tables, objects)
        self._schemas = SchemaCache(objects)
        self._gate: Gate = gate or OpenGate()
        self._read_only = read_only
        self._loader = Loader(
            self._manifest,
            tables,
            TableWriter(root, tables, objects, self._manifest),
            self._snapshot,
        )
        self._bound = self._find_bound("main")

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
        return f"Graph({self.uri!r}, branch={self.branch!r})"

    # -- snapshots --------------------------------------------------------------------------

    def snapshot(self, branch: str | None = None) -> Snapshot:
        """The graph as it is now, on the bound branch or another one."""
        return self._snapshot(self._manifest.current(self._ref(branch).physical))

    def snapshot_at_version(self, version: int, branch: str | None = None) -> Snapshot:
        """The graph right after commit number `version` of a branch."""
        return self._snapshot(self._manifest.at(self._ref(branch).physical, version))

    def snapshot_of(self, commit_id: str) -> Snapshot:
        """The graph as a commit left it. Raises `CommitNotFound`."""
        commit, branch = self._locate(CommitId(commit_id))
        return self._snapshot(self._manifest.at(branch.physical, commit.sequence))

    def at(self, target: str | int) -> Snapshot:
        """The graph at a version number, a commit id or the head of a branch."""
        if isinstance(target, int):
            return self.snapshot_at_version(target)
        if any(ref.public == target for ref in self._branches.list()):
            return self.snapshot(target)
        return self.snapshot_of(target)

    def _snapshot(self, state: ManifestState) -> Snapshot:
        contract = self._schemas.contract()
        commit = self._manifest.find_commit(state.branch, state.head)
        last_names = None
        if commit is not None and commit.draft.schema_ref != contract.reference:
            last_names = self._schemas.past(commit.draft.schema_ref)
        return Snapshot.of(state, contract.catalog, last_names)

    # -- branches ---------------------------------------------------------------------------

    def branches(self) -> list[BranchName]:
        """`main` first, then the others by name."""
        self._schemas.contract()
        return [ref.public for ref in self._branches.list()]

    def create_branch(
        self, name: str, *, source: str | None = None, actor: str | None = None
    ) -> Graph:
        """Fork a branch and return a handle bound to it. Copies nothing."""
        self._writable("create a branch")
        origin = self._origin(source)
        self._gate.check(Request(actor, Action.BRANCH_CREATE, origin.public, name))
        self._schemas.contract()
        locked = (origin.physical, physical_name(new_branch_name(name)))
        with writer_locks(self._root, locked, "create a branch"):
            created = self._branches.create(name, origin)
        return self._bound_to(created)

    def delete_branch(self, name: str, *, actor: str | None = None) -> None:
        """Delete a branch that nothing depends on."""
        self._writable("delete a branch")
        self._gate.check(Request(actor, Action.BRANCH_DELETE, target_branch=name))
        self._schemas.contract()
        ref = self._branches.find(name)
        if ref.physical is not None and ref.physical == self._bound.physical:
            raise BranchInUse(name, "cannot delete currently active branch")
        with writer_lock(self._root, ref.physical, "delete a branch"):
            self._branches.delete(ref)

    def sync_branch(self, name: str) -> None:
        """Bind this handle to another branch."""
        self._schemas.contract()
        self._bound = self._branches.find(name)

    def _bound_to(self, ref: BranchRef) -> Graph:
        other = Graph(
            self._root, self._objects, self._tables, read_only=self._read_only, gate=self._gate
        )
        other._bound = ref
        return other

    # -- commits ----------------------------------------------------------------------------

    def commits(
        self,
        branch: str | None = None,
        *,
        actor: str | None = None,
        operation: str | None = None,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> list[CommitRecord]:
        """The commits visible on a branch, oldest first unless asked otherwise."""
        if limit is not None and limit < 0:
            raise InputError(f"limit {limit} is negative; use 0 or more, or leave it out")
        found = self._manifest.commits(self._ref(branch).physical)
        if actor is not None:
            found = [c for c in found if c.draft.actor_id == actor]
        if operation is not None:
            found = [c for c in found if c.draft.operation.value == operation]
        if newest_first:
            found.reverse()
        return found if limit is None else found[:limit]

    def commit(self, commit_id: str) -> CommitRecord:
        """One commit, from whichever branch has it. Raises `CommitNotFound`."""
        return self._locate(CommitId(commit_id))[0]

    def head(self, branch: str | None = None) -> CommitId:
        """The newest commit of a branch."""
        return self._manifest.current(self._ref(branch).physical).head

    def receipt_of(self, commit_id: str) -> Receipt:
        """The receipt the write that made a commit returned."""
        return receipt_of(self.commit(commit_id), self.catalog)

    def _locate(self, commit_id: CommitId) -> tuple[CommitRecord, BranchRef]:
        """The handle's branch first, then main, then the others: every hit is the same commit."""
        listed = self._branches.list()
        for ref in sorted(listed, key=lambda ref: ref.physical != self._bound.physical):
            # A branch that is deleted while we look has nothing for us.
            with suppress(BranchNotFound):
                commit = self._manifest.find_commit(ref.physical, commit_id)
                if commit is not None:
                    return commit, ref
        raise CommitNotFound(commit_id)

    # -- bulk data --------------------------------------------------------------------------

    def load(
        self,
        source: object,
        mode: str = "merge",
        *,
        branch: str | None = None,
        base: str | None = None,
        load_id: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        expected_head: str | None = None,
        max_errors: int = MAX_LOAD_ERRORS,
        quarantine: str | Path | None = None,
        format: str | None = None,
    ) -> LoadResult:
        """Load records as one commit: all of them or, with the first bad one, none.

        `source` is a path, several paths, JSON text, or a mapping of type names to data frames.
        A missing branch is made from `base` if one is given. Raises `LoadError` that lists every
        bad record; with `quarantine`, good records are loaded and bad ones kept in that folder.
        """
        self._writable("load")
        known_mode, known_id = check_load_options(mode, load_id)
        options = LoadOptions(
            mode=known_mode,
            load_id=known_id,
            actor=actor,
            message=message,
            expected_head=None if expected_head is None else CommitId(expected_head),
            max_errors=max_errors,
            quarantine=None if quarantine is None else Path(quarantine),
            format=format,
        )
        contract = self._schemas.contract()
        ref, created = self._load_target(branch, base, actor)
        self._gate.check(Request(actor, Action.CHANGE, branch=ref.public))
        loaded = self._loader.replay(ref, options)
        if loaded is None:
            loaded = self._loader.load(source, ref, contract, options)
        return LoadResult(
            receipt=receipt_of(loaded.commit, contract.catalog),
            branch=ref.public,
            base_branch=base,
            branch_created=created,
            mode=known_mode,
            rows_loaded=loaded.note.rows_loaded,
            load_id=known_id,
            replayed=loaded.replayed,
            quarantined=loaded.note.quarantined,
        )

    def _load_target(
        self, branch: str | None, base: str | None, actor: str | None
    ) -> tuple[BranchRef, bool]:
        """The branch to load into, made from `base` if it is missing and a base is given."""
        try:
            return self._ref(branch), False
        except BranchNotFound:
            if branch is None or base is None:
                raise
            self.create_branch(branch, source=base, actor=actor)
            return self._branches.find(branch), True

    def export(
        self,
        out: TextIO,
        *,
        branch: str | None = None,
        at: str | int | None = None,
        types: Sequence[str] = (),
        tables: Sequence[str] = (),
    ) -> int:
        """Write the graph as JSON lines that load back into an equal graph; returns the rows.

        `at` is a version, a commit or a branch, as for `Graph.at`; without it the newest state.
        """
        snapshot = self.snapshot(branch) if at is None else self.at(at)
        return export_snapshot(snapshot, self._tables, out, [*types, *tables])

    # -- helpers ----------------------------------------------------------------------------

    def _origin(self, source: str | None) -> BranchRef:
        """The branch a new one is made from."""
        try:
            return self._ref(source)
        except BranchNotFound as error:
            with suppress(CommitNotFound):
                self._locate(CommitId(error.branch))
                raise InputError("a branch is made from a branch, not from a commit") from None
            raise

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

    def _writable(self, operation: str) -> None:
        if self._read_only:
            raise ReadOnlyHandle(operation)
