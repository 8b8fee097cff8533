"""Runs a load: recognises sources, stages rows with either engine, and writes them as one commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.commit.change import Change, prepare_on_newest
from omnigraph.commit.keys import check_key
from omnigraph.commit.writer import AlreadyWritten, TableWriter, WriteRequest
from omnigraph.diagnostics import counted
from omnigraph.errors import InputError, LoadError, LoadIdReused, ReadsRestricted, SchemaMoved
from omnigraph.graph.parts import GraphParts
from omnigraph.history.commits import Receipt, WriteResult
from omnigraph.limits import MAX_LOAD_ERRORS
from omnigraph.load.quarantine import write_quarantine
from omnigraph.load.recognition import recognise_sources
from omnigraph.load.set_validation import LoadMode
from omnigraph.load.sources import Source, input_size
from omnigraph.load.spark_frames import SparkFrames
from omnigraph.load.splits import RowStore
from omnigraph.load.stage import StagedLoad, stage_load
from omnigraph.load.validation import LoadJob, validate_load
from omnigraph.progress import SILENT, Progress
from omnigraph.providers.documents import DocumentVectors
from omnigraph.rows.blob_bases import BlobBases
from omnigraph.spark.choice import (
    AUTO,
    LOAD,
    Decision,
    EngineChoice,
    Work,
    decide,
    missing_spark_note,
    session_of,
)
from omnigraph.spark.tasks import noting_jobs
from omnigraph.versioning.branches import BranchRef
from omnigraph.versioning.commits import (
    CommitDraft,
    CommitId,
    CommitRecord,
    LoadNote,
    OperationId,
    OperationKind,
    Warning,
)
from omnigraph.versioning.contract import SchemaContract
from omnigraph.versioning.ids import new_ulid, now_micros
from omnigraph.versioning.manifest import KeyedCommit
from omnigraph.versioning.recovery.sidecar import Quarantined, WriterKind
from omnigraph.versioning.snapshot import Snapshot
from omnigraph.versioning.snapshot_rows import SnapshotRows

if TYPE_CHECKING:
    from omnigraph.load.spark_load import SparkLoad

MODES: tuple[LoadMode, ...] = ("append", "merge", "overwrite", "patch")


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How a load is to be made."""

    mode: LoadMode
    load_id: str
    is_id_new: bool = False
    """Whether the id was made for this call instead of chosen by the caller."""
    actor: str | None = None
    message: str | None = None
    expected_head: CommitId | None = None
    max_errors: int = MAX_LOAD_ERRORS
    quarantine: Path | None = None
    engine: EngineChoice = AUTO
    format: Any = None
    mapping: str | Path | Mapping[str, object] | None = None
    progress: Progress = SILENT
    cascade: bool = False
    strict: bool = False
    refused: frozenset[str] = frozenset()
    """Tables that the caller may not load into, because it sees only some of their properties."""


@dataclass(frozen=True, slots=True)
class StageFigures:
    """A stage of a load on Spark: how many tasks it had, and how long it took."""

    name: str
    tasks: int
    seconds: float

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "tasks": self.tasks, "seconds": round(self.seconds, 3)}


@dataclass(frozen=True, slots=True, repr=False)
class LoadResult(WriteResult):
    """What a load did.

    A load on Spark says how long its stages took, and for how long other writers of the branch had to wait.
    """

    receipt: Receipt
    branch: str
    base_branch: str | None
    branch_created: bool
    mode: LoadMode
    rows_loaded: Mapping[str, int]
    load_id: str
    replayed: bool
    quarantined: int
    engine: str = "inline"
    stages: tuple[StageFigures, ...] = ()
    lock_seconds: float | None = None
    engine_reason: str | None = None
    """Why it was this engine, where `auto` has compared what both would take."""

    def __repr__(self) -> str:
        return self._repr_with(f"{self.mode}, {counted(sum(self.rows_loaded.values()), 'row')}")

    def to_json(self) -> dict[str, Any]:
        figures: dict[str, Any] = {}
        if self.engine_reason is not None:
            figures["engine_reason"] = self.engine_reason
        if self.lock_seconds is not None:
            figures["stages"] = [stage.to_json() for stage in self.stages]
            figures["lock_seconds"] = round(self.lock_seconds, 3)
        return {
            "branch": self.branch,
            "base_branch": self.base_branch,
            "branch_created": self.branch_created,
            "mode": self.mode,
            "tables": [
                {"table_key": key, "rows_loaded": n} for key, n in sorted(self.rows_loaded.items())
            ],
            "load_id": self.load_id,
            "replayed": self.replayed,
            "quarantined": self.quarantined,
            "engine": self.engine,
            **figures,
            **self.receipt.to_json(),
        }


class Loader:
    """Loads into one branch of one graph."""

    def __init__(self, parts: GraphParts, writer: TableWriter) -> None:
        self._parts = parts
        self._writer = writer

    def replay(self, branch: BranchRef, options: LoadOptions) -> Loaded | None:
        """What an earlier load of the same id did. Raises `LoadIdReused`."""
        earlier = self._parts.manifest.find_keyed(branch.physical, options.load_id)
        return None if earlier is None else _same_load(earlier, options)

    def load(
        self,
        source: object,
        branch: BranchRef,
        contract: SchemaContract,
        options: LoadOptions,
        quarantined: tuple[Quarantined, ...],
    ) -> Loaded:
        """Read, validate and commit. Raises `LoadError` that lists what is wrong; nothing is loaded."""
        with ExitStack() as stores:
            jobs = stores.enter_context(noting_jobs())
            frames = stores.enter_context(self._frames(options))
            sources = recognise_sources(
                source, contract.catalog, options.format, options.mapping, frames
            )
            options = replace(options, engine=frames.engine)
            vectors = DocumentVectors()
            stage_rows = self._inline_load(sources, contract, options, vectors, stores)
            spark_load: SparkLoad | None = None
            work = cache(lambda: Work(*input_size(sources)))
            notes: tuple[Warning, ...] = ()
            shared = self._parts.tables.is_shared
            decision = decide(options.engine, work, LOAD, shared=shared)
            if decision.on_spark:
                sources = frames.spread(sources)
                spark_load = self._spark_load(sources, branch, contract, options, stage_rows)
                stage_rows = spark_load.stage
            elif note := missing_spark_note(options.engine, lambda: work().bytes, shared=shared):
                notes = (Warning("spark_not_installed", note),)

            def stage(against: Snapshot) -> StagedLoad:
                if against.catalog.ir != contract.ir:
                    raise SchemaMoved()
                staged = stage_rows(against)
                if not options.refused.isdisjoint(staged.rows_loaded):
                    raise ReadsRestricted("load a type of which properties are hidden")
                return staged

            staged: StagedLoad

            def stage_again(current: Snapshot) -> Change:
                """The branch moved since the load was validated; it must still be valid there."""
                nonlocal staged
                again = stage(current)
                if len(again.quarantined) != len(staged.quarantined):
                    message = "the branch moved during validation and different records now fail"
                    raise InputError(f"{message}; nothing was loaded, run it again")
                staged = again
                return again.change

            try:
                snapshot, staged = prepare_on_newest(self._parts, branch, contract, stage)
            except LoadError:
                # Another call with the same id may have loaded these records meanwhile.
                earlier = self.replay(branch, options)
                if earlier is None:
                    raise
                return earlier
            if options.quarantine is not None and staged.quarantined:
                # Before the commit: quarantined records must not be lost because a folder cannot
                # be written.
                bad = staged.quarantined
                write_quarantine(options.quarantine, options.load_id, staged.records, bad)
            request = WriteRequest(
                branch=branch,
                kind=WriterKind.LOAD,
                draft=_draft(contract, options),
                change=staged.change,
                checked=snapshot,
                may_write=_shared_tables(staged, options) if spark_load is None else None,
                is_key_new=options.is_id_new,
                complete_draft=lambda draft: replace(
                    draft,
                    load_note=_note(options, staged),
                    warnings=(*staged.warnings, *notes),
                ),
                prepare=stage_again,
                expected_head=options.expected_head,
                commits_without_rows=True,
                quarantined=quarantined,
                vectors=vectors,
                progress=options.progress,
                indexes_later=spark_load is not None,
            )
            options.progress.stage("write", sum(staged.rows_loaded.values()))
            try:
                commit = self._writer.commit(request)
            except AlreadyWritten as already:
                return _same_load(already.found, options)
            assert commit is not None
            if spark_load is not None:
                # As the load left it: a compaction after it may have replaced its files.
                made, sequence = self._parts, commit.sequence
                spark_load.finish(
                    lambda: made.snapshot_of(made.manifest.at(branch.physical, sequence))
                )
                self._index(spark_load, staged, branch, contract, request)
        loaded = _note(options, staged)
        if spark_load is None:
            return Loaded(commit, loaded, replayed=False, decision=decision)
        stages = tuple(StageFigures(job.name, job.tasks, job.seconds) for job in jobs)
        held = request.lock_time.seconds
        return Loaded(commit, loaded, False, "spark", stages, held, decision)

    def _index(
        self,
        load: SparkLoad,
        staged: StagedLoad,
        branch: BranchRef,
        contract: SchemaContract,
        request: WriteRequest,
    ) -> None:
        """Have tasks build the look-up indexes that the commit has left out."""
        from omnigraph.load.spark_indexes import SparkIndexing

        lock_time, progress = request.lock_time, request.progress
        indexing = SparkIndexing(load.spark, self._writer, branch, contract, lock_time, progress)
        indexing.run(write.table_key for write in staged.change.writes)

    def _frames(self, options: LoadOptions) -> SparkFrames:
        """Stages Spark data frames, should the load have any."""
        whole_rows = options.quarantine is not None
        tables, progress = self._parts.tables, options.progress
        return SparkFrames(options.engine, tables, progress, whole_rows=whole_rows)

    def _inline_load(
        self,
        sources: Sequence[Source],
        contract: SchemaContract,
        options: LoadOptions,
        vectors: DocumentVectors,
        stores: ExitStack,
    ) -> Callable[[Snapshot], StagedLoad]:
        """Stages a load in this process."""
        job_on = _job_on(sources, contract, options)

        def stage(against: Snapshot) -> StagedLoad:
            committed = SnapshotRows(against, self._parts.tables)
            job, store = job_on(committed), stores.enter_context(RowStore())
            load = validate_load(
                job, sources, store, strict=options.strict, progress=options.progress
            )
            return stage_load(job, load, committed, vectors, cascade=options.cascade)

        return stage

    def _spark_load(
        self,
        sources: Sequence[Source],
        branch: BranchRef,
        contract: SchemaContract,
        options: LoadOptions,
        inline: Callable[[Snapshot], StagedLoad],
    ) -> SparkLoad:
        """Stages a load on Spark."""
        from omnigraph.load.spark_load import SparkJob, SparkLoad

        spark_job = SparkJob(
            spark=session_of(options.engine),
            sources=tuple(sources),
            tables=self._parts.tables,
            objects=self._parts.objects,
            branch=branch.physical,
            progress=options.progress,
            cascade=options.cascade,
            strict=options.strict,
        )
        return SparkLoad(spark_job, _job_on(sources, contract, options), inline)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A load that is committed, by this call or by an earlier one of the same id."""

    commit: CommitRecord
    note: LoadNote
    replayed: bool
    engine: str = "inline"
    stages: tuple[StageFigures, ...] = ()
    lock_seconds: float | None = None
    decision: Decision | None = None


def _same_load(found: KeyedCommit, options: LoadOptions) -> Loaded:
    """What an earlier load with the id did. Raises `LoadIdReused`."""
    note = found.load_note
    if note is None or note.mode != options.mode:
        used_in = None if note is None else note.mode
        raise LoadIdReused(options.load_id, found.commit.graph_commit_id, used_in)
    return Loaded(found.commit, note, replayed=True)


def check_load_options(
    mode: str, load_id: str | None, *, cascade: bool = False
) -> tuple[LoadMode, str]:
    """The mode and id of a load, a fresh id if none is given. Raises `InputError`."""
    for known in MODES:
        if mode == known:
            break
    else:
        raise InputError(f"unknown load mode '{mode}'; use one of {', '.join(MODES)}")
    if cascade and known != "overwrite":
        raise InputError(f"a load in mode {known} removes no nodes; only an overwrite can cascade")
    if load_id is None:
        return known, new_ulid()
    check_key("load id", load_id)
    return known, load_id


def _job_on(
    sources: Sequence[Source], contract: SchemaContract, options: LoadOptions
) -> Callable[[SnapshotRows], LoadJob]:
    """What splits of the load need, given the rows it is validated against."""
    names, blobs = tuple(source.name for source in sources), BlobBases.from_environment()
    return lambda committed: LoadJob(
        catalog=contract.catalog,
        mode=options.mode,
        load_id=options.load_id,
        names=names,
        committed=committed,
        quarantine=options.quarantine is not None,
        max_errors=options.max_errors,
        blobs=blobs,
    )


def _draft(contract: SchemaContract, options: LoadOptions) -> CommitDraft:
    return CommitDraft(
        graph_commit_id=CommitId(new_ulid()),
        operation=OperationKind.LOAD,
        operation_id=OperationId(new_ulid()),
        created_at=now_micros(),
        schema_ir_hash=contract.hash,
        schema_ref=contract.reference,
        actor_id=options.actor,
        message=options.message,
        load_id=options.load_id,
    )


def _shared_tables(staged: StagedLoad, options: LoadOptions) -> frozenset[str] | None:
    """The tables of a small load, which may share a turn with other writes."""
    change = staged.change
    if not change.is_small or options.mode == "overwrite" or options.progress is not SILENT:
        return None
    return frozenset(write.table_key for write in change.writes)


def _note(options: LoadOptions, staged: StagedLoad) -> LoadNote:
    return LoadNote(options.mode, staged.rows_loaded, len(staged.quarantined))
