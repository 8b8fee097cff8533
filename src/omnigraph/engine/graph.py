"""The graph: one object for everything that can be done with one.

A handle is bound to one branch. It is synchronous and thread-safe, starts no event loop and never
forks. Reads always look at storage, so another writer's commits are seen without a refresh.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from omnigraph.catalog.model import Catalog
from omnigraph.engine.commit_selection import CommitOrTime, CommitSelection
from omnigraph.engine.entities import read_entity
from omnigraph.engine.export import export_snapshot
from omnigraph.engine.gate import Action, Gate, OpenGate, Request
from omnigraph.engine.maintain.repair import Repair, RepairOptions, RepairReport
from omnigraph.engine.opening import open_manifest, restore_schema
from omnigraph.engine.read.budget import QueryBudget
from omnigraph.engine.read.explain import Explanation
from omnigraph.engine.read.reader import Reader, Reading
from omnigraph.engine.read.view import ReadView
from omnigraph.engine.receipts import Receipt, receipt_of
from omnigraph.engine.result import Result
from omnigraph.engine.schema_cache import SchemaCache
from omnigraph.engine.source_files import schema_source
from omnigraph.engine.write.commit import Begun, TableWriter
from omnigraph.engine.write.load import Loader, LoadOptions, LoadResult, check_load_options
from omnigraph.engine.write.mutation import MutationOptions, MutationResult, Mutator
from omnigraph.errors import (
    BranchInUse,
    BranchNotFound,
    CommitNotFound,
    GraphNotFound,
    HeadMoved,
    InputError,
    OmnigraphError,
    ReadOnlyHandle,
    TableMissing,
)
from omnigraph.limits import MAX_LOAD_ERRORS
from omnigraph.plan.params import bind_host_values
from omnigraph.storage.durability import durability_from_environment
from omnigraph.storage.objects import ObjectStore, open_store
from omnigraph.storage.probe import probe_hard_links
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uris import GraphRoot, normalise_root
from omnigraph.versioning.audit import RecordedAudit
from omnigraph.versioning.branch_names import BranchName, physical_name
from omnigraph.versioning.branches import Branches, BranchRef, new_branch_name
from omnigraph.versioning.commits import CommitId, CommitRecord
from omnigraph.versioning.contract import SchemaContract
from omnigraph.versioning.genesis import create_graph
from omnigraph.versioning.locks import WriterLocks, lock_wait_from_environment
from omnigraph.versioning.manifest import Manifest, ManifestState
from omnigraph.versioning.recovery.heal import Recovery, RecoveryStatus
from omnigraph.versioning.snapshot import Snapshot


def init(uri: str | Path, schema: str | Path, *, force: bool = False) -> Graph:
    """Create a graph and open it. `schema` is schema text or the path of a schema file."""
    root = normalise_root(str(uri))
    durability = durability_from_environment()
    # A wrong setting is reported before anything is made.
    lock_wait_from_environment()
    objects, tables = open_store(root, durability), TableStore(root, durability)
    create_graph(root, objects, tables, schema_source(schema), force=force)
    return Graph(root, objects, tables)


def open(uri: str | Path, *, branch: str = "main", read_only: bool = False) -> Graph:
    """Open a graph. Raises `GraphNotFound`, `BranchNotFound` or `UnsafeStore`."""
    root = normalise_root(str(uri))
    # The store takes its time to find out that a file holds no graph.
    if root.kind == "local" and not Path(root.uri).is_dir():
        raise GraphNotFound(root.uri)
    durability = durability_from_environment()
    objects, tables = open_store(root, durability), TableStore(root, durability)
    manifest, schemas = open_manifest(root, objects, tables, read_only=read_only)
    graph = Graph(root, objects, tables, manifest=manifest, schemas=schemas, read_only=read_only)
    if not read_only:
        probe_hard_links(root)
        graph._recovery.heal_everywhere()
    locks = None if read_only else graph._locks
    restore_schema(objects, manifest, graph._branches, schemas, locks)
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
        manifest: Manifest | None = None,
        schemas: SchemaCache | None = None,
        read_only: bool = False,
        gate: Gate | None = None,
        reader: Reader | None = None,
    ) -> None:
        self._root = root
        self._objects = objects
        self._tables = tables
        self._locks = WriterLocks(root, objects)
        self._manifest = manifest or Manifest(tables)
        self._branches = Branches(self._manifest, tables, objects)
        self._schemas = schemas or SchemaCache(objects)
        self._last_snapshots: dict[str | None, tuple[ManifestState, SchemaContract, Snapshot]] = {}
        self._gate: Gate = gate or OpenGate()
        self._read_only = read_only
        self._recovery = Recovery(tables, objects, self._manifest, self._branches, self._locks)
        self._writer = TableWriter(
            tables, objects, self._manifest, self._locks, self._recovery, self._snapshot
        )
        self._reader = reader or Reader(tables)
        self._loader = Loader(self._manifest, tables, self._writer, self._snapshot)
        self._mutator = Mutator(self._manifest, tables, self._writer, self._snapshot)
        self._bound = self._find_bound("main")
        self._view: ManifestState | None = None

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

    def entity_at(self, table_key: str, id: str, version: int) -> dict[str, Any] | None:
        """One entity of the bound branch as commit number `version` left it, or None."""
        return read_entity(self.snapshot_at_version(version), self._tables, table_key, id)

    def entity_at_target(self, target: str | int, table_key: str, id: str) -> dict[str, Any] | None:
        """One entity at a version, a commit or the head of a branch, or None.

        A document with `id`, for an edge `src` and `dst`, and every property; values as exported.
        """
        return read_entity(self.at(target), self._tables, table_key, id)

    def _snapshot(self, state: ManifestState, contract: SchemaContract | None = None) -> Snapshot:
        if contract is None or contract.reference != state.schema_ref:
            contract = self._schemas.contract()
        known = self._last_snapshots.get(state.branch)
        if known is not None and known[0] is state and known[1] is contract:
            return known[2]
        snapshot = self._make_snapshot(state, contract)
        if known is not None:
            snapshot.take_over(known[2])
        self._last_snapshots[state.branch] = (state, contract, snapshot)
        return snapshot

    def _make_snapshot(self, state: ManifestState, contract: SchemaContract) -> Snapshot:
        reference = state.schema_ref
        if reference is None:
            head = self._manifest.find_commit(state.branch, state.head)
            reference = head.draft.schema_ref if head else contract.reference
        last_names = None if reference == contract.reference else self._schemas.past(reference)
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
        with self._locks.hold_all(locked, "branch create") as lock:
            avoid = self._recovery.named_branches()
            created = self._branches.create(name, origin, lock.check, avoid)
        return self._bound_to(created)

    def delete_branch(self, name: str, *, actor: str | None = None) -> None:
        """Delete a branch that nothing depends on."""
        self._writable("delete a branch")
        self._gate.check(Request(actor, Action.BRANCH_DELETE, target_branch=name))
        self.refresh()
        ref = self._branches.find(name)
        if ref.physical is not None and ref.physical == self._bound.physical:
            raise BranchInUse(name, "cannot delete currently active branch")
        with self._locks.hold(ref.physical, "branch delete") as lock:
            # A writer may have died since the refresh. Its sidecar must not outlive the branch: the
            # next branch of that name would be given what it wrote.
            self._recovery.heal_locked(ref.physical, lock)
            self._branches.delete(ref, lock.check)

    def sync_branch(self, name: str) -> None:
        """Bind this handle to another branch."""
        self._schemas.contract()
        self._bound = self._branches.find(name)
        self._view = self._manifest.current(self._bound.physical)

    def refresh(self) -> None:
        """Settle interrupted writes, of any branch, and look at the bound branch anew."""
        if not self._read_only:
            self._recovery.heal_everywhere()
        self.sync_branch(self.branch)

    def _bound_to(self, ref: BranchRef) -> Graph:
        other = Graph(
            self._root,
            self._objects,
            self._tables,
            manifest=self._manifest,
            schemas=self._schemas,
            read_only=self._read_only,
            gate=self._gate,
            reader=self._reader,
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
        since: CommitOrTime | None = None,
        until: CommitOrTime | None = None,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> list[CommitRecord]:
        """The commits visible on a branch, oldest first unless asked otherwise.

        `since` and `until` are commits or moments, and are part of what is listed.
        """
        wanted = CommitSelection(actor, operation, since, until, limit, newest_first)
        return wanted.of(self._manifest.commits(self._ref(branch).physical))

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

    # -- queries ----------------------------------------------------------------------------

    def mutate(
        self,
        query: str | Path,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        /,
        *,
        branch: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        expected_head: str | None = None,
        **more: object,
    ) -> MutationResult:
        """Run a mutation as one commit, or as none when nothing changes in the end.

        `query` is query text or the path of a query file; `name` picks one of several queries in
        it. Parameters come as a mapping, or as keywords unless one here has their name.
        """
        self._writable("mutate")
        contract = self._schemas.contract()
        plan = self._reader.queries.compile(query, name, contract.catalog).mutation_plan()
        bound = bind_host_values(plan.parameters, _joined(params, more))
        head = None if expected_head is None else CommitId(expected_head)
        ref = self._ref(branch)
        self._gate.check(Request(actor, Action.CHANGE, branch=ref.public))
        options = MutationOptions(actor, message, head)
        with self._writing(ref, head) as begun:
            return self._mutator.mutate(plan, bound, ref, contract, options, begun)

    # -- reads ------------------------------------------------------------------------------

    def query(
        self,
        query: str | Path,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        /,
        *,
        branch: str | None = None,
        at: str | int | None = None,
        view: ReadView = ReadView.ALL,
        budget: QueryBudget | None = None,
        **more: object,
    ) -> Result:
        """Run a read on the newest state of a branch, or on an earlier one with `at`.

        `query` is query text or the path of a query file; `name` picks one of several queries in
        it. Parameters come as a mapping, or as keywords where their names are not taken here.
        """
        reading = self._reading(query, name, branch, at, view, budget)
        return self._reader.run(reading, _joined(params, more))

    def explain(
        self,
        query: str | Path,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        /,
        *,
        branch: str | None = None,
        at: str | int | None = None,
        view: ReadView = ReadView.ALL,
        budget: QueryBudget | None = None,
        analyze: bool = False,
        **more: object,
    ) -> Explanation:
        """The steps a read takes, with the rows expected of each. Takes what `query` takes.

        With `analyze` the read is run, and every step also says how many rows it left and how long
        it took.
        """
        reading = self._reading(query, name, branch, at, view, budget)
        return self._reader.explain(reading, _joined(params, more) if analyze else None)

    def _reading(
        self,
        query: str | Path,
        name: str | None,
        branch: str | None,
        at: str | int | None,
        view: ReadView,
        budget: QueryBudget | None,
    ) -> Reading:
        if branch is not None and at is not None:
            raise InputError(
                "a read is of a branch or of a commit; give `branch` or `at`, not both"
            )
        if name is not None and not isinstance(name, str):
            raise InputError(
                "the second argument is the name of a query; parameters come third or as keywords"
            )
        snapshot = self.snapshot(branch) if at is None else self.at(at)
        plan = self._reader.compile(query, name, snapshot.catalog, view)
        target = None if at is None else snapshot.commit_id
        return Reading(plan, snapshot, target, view, budget or QueryBudget.from_environment())

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
        with self._writing(ref, options.expected_head) as begun:
            loaded = self._loader.replay(ref, options) if load_id is not None else None
            if loaded is None:
                loaded = self._loader.load(source, ref, contract, options, begun)
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

    # -- recovery ---------------------------------------------------------------------------

    def recovery_status(self) -> RecoveryStatus:
        """Interrupted writes that wait to be settled, and those that only an operator can judge."""
        return self._recovery.status()

    def repair(
        self,
        branch: str = "main",
        *,
        confirm: bool = False,
        force: bool = False,
        rollback: bool = False,
    ) -> RepairReport:
        """Look at tables of a branch that moved without a commit and, if told to, decide about them.

        Without `confirm` nothing is changed. Raises `RecoveryPending` while an interrupted write
        of the branch waits to be settled.
        """
        self._writable("repair")
        options = RepairOptions(confirm, force, rollback)
        repair = Repair(
            self._tables,
            self._manifest,
            self._branches,
            self._locks,
            self._recovery,
            self._snapshot,
        )
        report = repair.run(self._branches.find(branch), self._schemas.contract(), options)
        if report.commit is not None and report.branch == self.branch:
            self.sync_branch(report.branch)
        return report

    def recoveries(self, branch: str | None = None) -> list[RecordedAudit]:
        """What recovery has done on a branch, oldest first."""
        return self._manifest.audits(self._ref(branch).physical)

    # -- helpers ----------------------------------------------------------------------------

    @contextmanager
    def _writing(self, ref: BranchRef, expected_head: CommitId | None) -> Iterator[Begun]:
        """Around every write: settle what was interrupted on the branch, and know it anew after.

        The bound branch is written from what the handle knows of it, so that a write that would
        change rows others have changed meanwhile is refused. That refusal tells the caller; the
        handle then knows the newest state.
        """
        healed = self._recovery.heal_unless_busy(ref.physical)
        is_bound = ref.physical == self._bound.physical
        if healed.settled or self._view is None or not is_bound:
            base = self._manifest.current(ref.physical)
        else:
            base = self._view
        if expected_head is not None:
            head = self._manifest.current(ref.physical).head
            if head != expected_head:
                raise HeadMoved(ref.public, expected_head, head)
        try:
            yield Begun(base, healed.quarantined, healed.is_postponed)
        finally:
            if is_bound:
                with suppress(OmnigraphError):
                    self._view = self._manifest.current(ref.physical)

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


def _joined(
    params: Mapping[str, object] | None, more: Mapping[str, object]
) -> Mapping[str, object]:
    """Parameters given both ways. Raises `InputError` for one that is given twice."""
    if not more:
        return params or {}
    for name in more:
        if params is not None and name in params:
            raise InputError(f"parameter '{name}' is given twice; give it once")
    return {**(params or {}), **more}
