"""Loading: the kernels' prepared rows, written as one commit."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from omnigraph.catalog.model import NodeType
from omnigraph.diagnostics import counted
from omnigraph.embed.documents import DocumentVectors
from omnigraph.engine.engines import (
    AUTO,
    EngineChoice,
    inline_for_want_of_spark,
    runs_on_spark,
    session_of,
)
from omnigraph.engine.parts import GraphParts
from omnigraph.engine.receipts import Receipt, WriteResult
from omnigraph.engine.write.bulk.frames import SparkFrames
from omnigraph.engine.write.bulk.input_size import input_bytes
from omnigraph.engine.write.change import Change, TableWrite, WriteMode, prepare_on_newest
from omnigraph.engine.write.commit import AlreadyWritten, TableWriter, WriteRequest
from omnigraph.engine.write.committed import SnapshotRows
from omnigraph.engine.write.keys import check_key
from omnigraph.engine.write.load_vectors import embed_load
from omnigraph.engine.write.ready_load import ReadyLoad, change_of
from omnigraph.engine.write.removed_nodes import NO_CASCADE, Cascade, cascade_of
from omnigraph.errors import InputError, LoadError, LoadIdReused, SchemaMoved
from omnigraph.limits import MAX_LOAD_ERRORS
from omnigraph.load import (
    LoadMode,
    PreparedLoad,
    RowStore,
    Source,
    prepare_load,
    recognise_sources,
)
from omnigraph.load.quarantine import report
from omnigraph.progress import SILENT, Progress
from omnigraph.rows.blob_bases import BlobBases
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

if TYPE_CHECKING:
    from omnigraph.engine.write.bulk.prepare import BulkLoad

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


@dataclass(frozen=True, slots=True, repr=False)
class LoadResult(WriteResult):
    """What a load did."""

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

    def __repr__(self) -> str:
        return self._repr_with(f"{self.mode}, {counted(sum(self.rows_loaded.values()), 'row')}")

    def to_json(self) -> dict[str, Any]:
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
        """Read, check and commit. Raises `LoadError` that lists what is wrong; nothing is loaded."""
        with ExitStack() as stores:
            frames = stores.enter_context(self._frames(options))
            sources = recognise_sources(
                source, contract.catalog, options.format, options.mapping, frames
            )
            options = replace(options, engine=frames.engine)
            vectors = DocumentVectors()
            bulk: BulkLoad | None = None
            prepare_rows: Callable[[Snapshot], ReadyLoad]
            size = partial(input_bytes, sources)
            told: tuple[Warning, ...] = ()
            shared = self._parts.tables.is_shared
            if runs_on_spark(options.engine, size, shared=shared):
                inline = self._inline_load(sources, contract, options, vectors, stores)
                bulk = self._bulk_load(sources, branch, contract, options, inline)
                prepare_rows = bulk.prepare
            else:
                prepare_rows = self._inline_load(sources, contract, options, vectors, stores)
                if note := inline_for_want_of_spark(options.engine, size, shared=shared):
                    told = (Warning("spark_not_installed", note),)

            def prepare(against: Snapshot) -> ReadyLoad:
                if against.catalog.ir != contract.ir:
                    raise SchemaMoved()
                return prepare_rows(against)

            prepared: ReadyLoad

            def prepare_again(current: Snapshot) -> Change:
                """The branch moved since the load was checked; it must still be right there."""
                nonlocal prepared
                again = prepare(current)
                if len(again.quarantined) != len(prepared.quarantined):
                    message = "the branch changed while the load was checked; other records are bad"
                    raise InputError(f"{message} now, repeat the load")
                prepared = again
                return again.change

            try:
                snapshot, prepared = prepare_on_newest(self._parts, branch, contract, prepare)
            except LoadError:
                # The records may be in the way of themselves: loaded by another call meanwhile.
                earlier = self.replay(branch, options)
                if earlier is None:
                    raise
                return earlier
            if options.quarantine is not None and prepared.quarantined:
                # Before the commit: records that are set aside must not be lost because a folder
                # cannot be written.
                _write_quarantine(options.quarantine / options.load_id, options.load_id, prepared)
            request = WriteRequest(
                branch=branch,
                kind=WriterKind.LOAD,
                draft=_draft(contract, options),
                change=prepared.change,
                checked=snapshot,
                may_write=_shared_tables(prepared, options) if bulk is None else None,
                is_key_new=options.is_id_new,
                complete_draft=lambda draft: _completed(draft, options, prepared, told),
                prepare=prepare_again,
                expected_head=options.expected_head,
                commits_without_rows=True,
                quarantined=quarantined,
                vectors=vectors,
                progress=options.progress,
            )
            options.progress.stage("write", sum(prepared.rows_loaded.values()))
            try:
                commit = self._writer.commit(request)
            except AlreadyWritten as already:
                return _same_load(already.found, options)
            assert commit is not None
            if bulk is not None:
                # As the load left it: a fold may have come after it and replaced its files.
                made, place = self._parts, commit.sequence
                bulk.finish(lambda: made.snapshot_of(made.manifest.at(branch.physical, place)))
        engine = "inline" if bulk is None else "spark"
        return Loaded(commit, _note(options, prepared), replayed=False, engine=engine)

    def _frames(self, options: LoadOptions) -> SparkFrames:
        """What stages data frames of Spark, should the load have any."""
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
    ) -> Callable[[Snapshot], ReadyLoad]:
        """The preparation of a load in this process."""
        blobs = BlobBases.from_environment()

        def prepare(against: Snapshot) -> ReadyLoad:
            committed = SnapshotRows(against, self._parts.tables)
            checked = prepare_load(
                sources,
                contract.catalog,
                options.mode,
                options.load_id,
                committed,
                store=stores.enter_context(RowStore()),
                blobs=blobs,
                quarantine=options.quarantine is not None,
                strict=options.strict,
                max_errors=options.max_errors,
                progress=options.progress,
            )
            # Before the provider is asked: what is refused costs no vectors.
            cascade = _cascade(contract, checked, committed, options)
            embedded = embed_load(checked, committed, vectors, options.max_errors)
            return _ready(contract, embedded, cascade)

        return prepare

    def _bulk_load(
        self,
        sources: Sequence[Source],
        branch: BranchRef,
        contract: SchemaContract,
        options: LoadOptions,
        inline: Callable[[Snapshot], ReadyLoad],
    ) -> BulkLoad:
        """The preparation of a load on Spark."""
        from omnigraph.engine.write.bulk.prepare import BulkJob, BulkLoad, BulkOptions

        asked = BulkOptions(
            mode=options.mode,
            load_id=options.load_id,
            max_errors=options.max_errors,
            quarantine=options.quarantine is not None,
            progress=options.progress,
            cascade=options.cascade,
            strict=options.strict,
        )
        job = BulkJob(
            spark=session_of(options.engine),
            sources=tuple(sources),
            catalog=contract.catalog,
            options=asked,
            tables=self._parts.tables,
            objects=self._parts.objects,
            branch=branch.physical,
        )
        return BulkLoad(job, inline)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A load that is committed, by this call or by an earlier one of the same id."""

    commit: CommitRecord
    note: LoadNote
    replayed: bool
    engine: str = "inline"


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


_WRITE_MODES: Final[Mapping[LoadMode, WriteMode]] = {
    "append": "append",
    "merge": "delta",
    "overwrite": "overwrite",
    "patch": "delta",
}


def _cascade(
    contract: SchemaContract, checked: PreparedLoad, committed: SnapshotRows, options: LoadOptions
) -> Cascade:
    """What becomes of edges whose nodes the load removes. Raises `DanglingEdges`."""
    if options.mode != "overwrite":
        return NO_CASCADE

    def new_ids(nodes: Collection[NodeType]) -> dict[str, pa.Array]:
        tables = {node.table_key: checked.types[node.table_key].rows for node in nodes}
        return {key: rows.column("id").combine_chunks() for key, rows in tables.items()}

    catalog, deletes = contract.catalog, options.cascade
    return cascade_of(catalog, committed, checked.types, new_ids, deletes=deletes)


def _ready(contract: SchemaContract, prepared: PreparedLoad, cascade: Cascade) -> ReadyLoad:
    """Prepared rows as table writes."""
    writes = (
        TableWrite(key, _WRITE_MODES[prepared.mode], loaded.rows)
        for key, loaded in sorted(prepared.types.items())
    )
    return ReadyLoad(
        change=change_of(contract.catalog, writes, cascade),
        records=prepared.records,
        rows_loaded={key: loaded.rows_loaded for key, loaded in prepared.types.items()},
        warnings=prepared.warnings,
        quarantined=prepared.quarantined,
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


def _completed(
    draft: CommitDraft, options: LoadOptions, prepared: ReadyLoad, told: tuple[Warning, ...]
) -> CommitDraft:
    warnings = (Warning(w.code, w.message, w.count) for w in prepared.warnings)
    return replace(draft, load_note=_note(options, prepared), warnings=(*warnings, *told))


def _shared_tables(prepared: ReadyLoad, options: LoadOptions) -> frozenset[str] | None:
    """The tables of a small load, which may share a turn with other writes."""
    change = prepared.change
    if not change.is_small or options.mode == "overwrite" or options.progress is not SILENT:
        return None
    return frozenset(write.table_key for write in change.writes)


def _note(options: LoadOptions, prepared: ReadyLoad) -> LoadNote:
    return LoadNote(options.mode, prepared.rows_loaded, len(prepared.quarantined))


def _write_quarantine(target: Path, load_id: str, prepared: ReadyLoad) -> None:
    """Keep the bad records. Raises `InputError` when the folder cannot be written."""
    lines = (json.dumps(bad.to_json(), ensure_ascii=False) for bad in prepared.quarantined)
    summary = report(load_id, prepared.records, prepared.quarantined)
    try:
        target.mkdir(parents=True, exist_ok=True)
        (target / "bad.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        text = json.dumps(summary, indent=2, ensure_ascii=False)
        (target / "report.json").write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        message = f"the quarantine folder '{target}' cannot be written: {error.strerror}"
        raise InputError(f"{message}; nothing was loaded, choose another folder") from error
