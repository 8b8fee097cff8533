"""Loading: the kernels' prepared rows, written as one commit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from omnigraph.catalog.model import EdgeType
from omnigraph.engine.receipts import Receipt
from omnigraph.engine.write.change import Change, TableWrite, WriteMode
from omnigraph.engine.write.commit import Begun, TableWriter, WriteRequest
from omnigraph.engine.write.committed import SnapshotRows
from omnigraph.engine.write.known_state import SnapshotOf, prepare_on_known
from omnigraph.errors import InputError, LoadError, LoadIdReused
from omnigraph.limits import MAX_LOAD_ERRORS
from omnigraph.load import LoadMode, PreparedLoad, RowStore, prepare_load, recognise_sources
from omnigraph.load.quarantine import report
from omnigraph.storage.tables import TableStore
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
from omnigraph.versioning.manifest import Manifest
from omnigraph.versioning.recovery.sidecar import WriterKind
from omnigraph.versioning.snapshot import Snapshot

MODES: tuple[LoadMode, ...] = ("append", "merge", "overwrite")


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How a load is to be made."""

    mode: LoadMode
    load_id: str
    actor: str | None = None
    message: str | None = None
    expected_head: CommitId | None = None
    max_errors: int = MAX_LOAD_ERRORS
    quarantine: Path | None = None
    format: Any = None


@dataclass(frozen=True, slots=True)
class LoadResult:
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

    def __init__(
        self,
        manifest: Manifest,
        tables: TableStore,
        writer: TableWriter,
        snapshot_of: SnapshotOf,
    ) -> None:
        self._manifest = manifest
        self._tables = tables
        self._writer = writer
        self._snapshot_of = snapshot_of

    def replay(self, branch: BranchRef, options: LoadOptions) -> Loaded | None:
        """What an earlier load of the same id did. Raises `LoadIdReused`."""
        earlier = self._manifest.commit_of_load(branch.physical, options.load_id)
        if earlier is None:
            return None
        commit, note = earlier
        if note.mode != options.mode:
            raise LoadIdReused(options.load_id, commit.graph_commit_id)
        return Loaded(commit, note, replayed=True)

    def load(
        self,
        source: object,
        branch: BranchRef,
        contract: SchemaContract,
        options: LoadOptions,
        begun: Begun,
    ) -> Loaded:
        """Read, check and commit. Raises `LoadError` that lists what is wrong; nothing is loaded."""
        sources = recognise_sources(source, contract.catalog, options.format)

        def prepare(against: Snapshot, store: RowStore) -> PreparedLoad:
            return prepare_load(
                sources,
                contract.catalog,
                options.mode,
                options.load_id,
                SnapshotRows(against, self._tables),
                store=store,
                quarantine=options.quarantine is not None,
                max_errors=options.max_errors,
            )

        with ExitStack() as stores:

            def prepare_again(current: Snapshot) -> Change:
                """The branch moved since the load was checked; it must still be right there."""
                earlier = self.replay(branch, options)
                if earlier is not None:
                    raise _LoadedMeanwhile(earlier)
                again = prepare(current, stores.enter_context(RowStore()))
                if len(again.quarantined) != len(prepared.quarantined):
                    message = "the branch changed while the load was checked; other records are bad"
                    raise InputError(f"{message} now, repeat the load")
                return _change(contract, options, again)

            # What an overwrite replaces is what the caller knows; rows are added to the newest state.
            is_strict = options.mode == "overwrite"
            base = begun.base if is_strict else self._manifest.current(branch.physical)
            snapshot = self._snapshot_of(base, contract)
            try:
                prepared = prepare_on_known(
                    lambda against: prepare(against, stores.enter_context(RowStore())),
                    snapshot,
                    lambda: self._snapshot_of(self._manifest.current(branch.physical)),
                )
            except LoadError:
                # The records may be in the way of themselves: loaded by another call meanwhile.
                earlier = self.replay(branch, options)
                if earlier is None:
                    raise
                return earlier
            if options.quarantine is not None and prepared.quarantined:
                # Before the commit: records that are set aside must not be lost because a folder
                # cannot be written.
                _write_quarantine(options.quarantine, prepared)
            draft = _draft(contract, options, prepared)
            request = WriteRequest(
                branch=branch,
                kind=WriterKind.LOAD,
                draft=draft,
                change=_change(contract, options, prepared),
                prepare_again=prepare_again,
                expected_head=options.expected_head,
                commits_without_rows=True,
                quarantined=begun.quarantined,
                heals_first=begun.heals_first,
            )
            try:
                commit = self._writer.commit(request, snapshot)
            except _LoadedMeanwhile as meanwhile:
                return meanwhile.loaded
        assert draft.load_note is not None
        assert commit is not None
        return Loaded(commit, draft.load_note, replayed=False)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A load that is committed, by this call or by an earlier one of the same id."""

    commit: CommitRecord
    note: LoadNote
    replayed: bool


class _LoadedMeanwhile(Exception):
    """Another process made the same load between our look and our lock."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded


def check_load_options(mode: str, load_id: str | None) -> tuple[LoadMode, str]:
    """The mode and id of a load, a fresh id if none is given. Raises `InputError`."""
    for known in MODES:
        if mode == known:
            break
    else:
        raise InputError(f"unknown load mode '{mode}'; use one of {', '.join(MODES)}")
    if load_id is None:
        return known, new_ulid()
    plain = load_id.isascii() and all(c.isalnum() or c in "._:-" for c in load_id)
    if not 1 <= len(load_id) <= 128 or not plain:
        message = "1 to 128 letters, digits and the characters `._:-`"
        raise InputError(f"load id '{load_id}' is not usable; it has {message}")
    return known, load_id


_WRITE_MODES: Final[Mapping[LoadMode, WriteMode]] = {
    "append": "append",
    "merge": "delta",
    "overwrite": "overwrite",
}


def _change(contract: SchemaContract, options: LoadOptions, prepared: PreparedLoad) -> Change:
    """The prepared rows as table writes; edges were checked against the nodes at their ends."""
    writes = tuple(
        TableWrite(key, _WRITE_MODES[options.mode], loaded.rows, strict=options.mode == "overwrite")
        for key, loaded in sorted(prepared.types.items())
    )
    reads: set[str] = set()
    for key in prepared.types:
        declared = contract.catalog.entity(key)
        if isinstance(declared, EdgeType):
            for end in (declared.from_type, declared.to_type):
                reads.add(contract.catalog.nodes[end].table_key)
    return Change(writes, frozenset(reads - prepared.types.keys()))


def _draft(contract: SchemaContract, options: LoadOptions, prepared: PreparedLoad) -> CommitDraft:
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
        load_note=LoadNote(
            mode=options.mode,
            rows_loaded={key: loaded.rows_loaded for key, loaded in prepared.types.items()},
            quarantined=len(prepared.quarantined),
        ),
        warnings=tuple(Warning(w.code, w.message, w.count) for w in prepared.warnings),
    )


def _write_quarantine(folder: Path, prepared: PreparedLoad) -> None:
    """Keep the bad records. Raises `InputError` when the folder cannot be written."""
    target = folder / prepared.load_id
    lines = (json.dumps(bad.to_json(), ensure_ascii=False) for bad in prepared.quarantined)
    summary = report(prepared.load_id, prepared.records, prepared.quarantined)
    try:
        target.mkdir(parents=True, exist_ok=True)
        (target / "bad.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        text = json.dumps(summary, indent=2, ensure_ascii=False)
        (target / "report.json").write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        message = f"the quarantine folder '{target}' cannot be written: {error.strerror}"
        raise InputError(f"{message}; nothing was loaded, choose another folder") from error
