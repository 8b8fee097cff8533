"""Build the indexes that a schema asks for and a branch lacks, as one commit.

Indexes are built before the branch is locked, and again under the lock only for tables that were written
meanwhile. Existing indexes are not touched; compaction brings them up to date.

The centroids of a vector index come from k-means over a sample. The number of partitions that a search probes
is measured: it is the smallest that finds enough of the true neighbours of sampled vectors.
Tests: tests/behaviour/test_indexes.py, tests/crash."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import isqrt
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from omnigraph.catalog.arrow import IndexKind, IndexSpec, index_specs
from omnigraph.catalog.model import EntityType
from omnigraph.commit.writer import TableWriter
from omnigraph.diagnostics import counted
from omnigraph.errors import OmnigraphError, SchemaMoved
from omnigraph.faults import declare
from omnigraph.graph.parts import GraphParts
from omnigraph.history.commits import Receipt, new_draft, nothing_done, receipt_of
from omnigraph.limits import APPROXIMATE_FROM, LEAST_PROBES, RECALL
from omnigraph.progress import Progress
from omnigraph.read.text_indexes import TextIndexStore
from omnigraph.read.vectors import numbers_of
from omnigraph.storage.indexes import (
    BTREE,
    PARTITIONED,
    BuiltIndex,
    Centres,
    build_btree,
    build_partitioned,
    stage_indexes,
    stage_probes,
    uncovered_fragments,
)
from omnigraph.storage.stage import CommitMark, commit_staged
from omnigraph.storage.table import Table
from omnigraph.versioning.branches import BranchRef
from omnigraph.versioning.commit_sequence import Operation, sidecar_of, sidecar_table
from omnigraph.versioning.commits import CommitDraft, CommitRecord, OperationKind
from omnigraph.versioning.contract import SchemaContract
from omnigraph.versioning.locks import HeldLock
from omnigraph.versioning.manifest import ManifestState
from omnigraph.versioning.publish import Publication
from omnigraph.versioning.recovery.act import table_version
from omnigraph.versioning.recovery.classify import refuse_drift, refuse_quarantined
from omnigraph.versioning.recovery.sidecar import Quarantined, WriterKind
from omnigraph.versioning.snapshot import Snapshot, SnapshotEntry

Units = npt.NDArray[np.float32]
"""Vectors of length one, one per row."""

_SAMPLED_PER_CENTRE: Final = 64
"""Sampled vectors per centroid. Four times as many give no better centroids."""

_MAX_SAMPLE_BYTES: Final = 512 * 1024 * 1024
_KMEANS_ROUNDS: Final = 10
_BLOCK_ROWS: Final = 8192
"""Vectors compared with all centroids at a time."""

_MEASURED_QUERIES: Final = 100
_MEASURED_NEIGHBOURS: Final = 10
"""Queries, and true neighbours of each, that the number of probes is measured with."""

_EQUAL_COSINE: Final = 1 - 1e-5
"""The cosine from which two vectors count as equal, in single precision."""

_NO_COSINE: Final = -2.0
"""Less than the cosine of any two vectors."""


@dataclass(frozen=True, slots=True)
class Partitions:
    """The centroids, and the number of partitions to probe."""

    centres: Centres
    probes: int


def find_partitions(table: Table, column: str) -> Partitions | None:
    """Partition a stored column; None if it has no vector other than zero."""
    rng = np.random.default_rng(0)
    sample, known = _sample(table, column, rng)
    if not known:
        return None
    count = 1 if known < APPROXIMATE_FROM else isqrt(known)
    centres = _centres(sample, count, rng)
    if count == 1:
        return Partitions(centres, 1)
    queries = sample[rng.choice(len(sample), min(_MEASURED_QUERIES, len(sample)), replace=False)]
    return Partitions(centres, _probes(table, column, centres, queries))


def _sample(table: Table, column: str, rng: np.random.Generator) -> tuple[Units, int]:
    """An even sample of the vectors, and their total number."""
    rows = table.row_count()
    wanted = _SAMPLED_PER_CENTRE * max(isqrt(rows), 1)
    bytes_each = 4 * table.schema.field(column).type.list_size
    share = min(wanted, max(_MAX_SAMPLE_BYTES // bytes_each, 1)) / max(rows, 1)
    chosen: list[Units] = []
    known = 0
    for units in _units(table, column):
        known += len(units)
        chosen.append(units[rng.random(len(units)) < share] if share < 1 else units)
    sample = np.concatenate(chosen) if chosen else np.zeros((0, bytes_each // 4), np.float32)
    return sample, known if len(sample) else 0


def _units(table: Table, column: str) -> Iterator[Units]:
    """The vectors of a column scaled to length one, by batch, without zero and infinite ones."""
    for batch in table.scan([column]):
        vectors = batch.column(0)
        numbers = numbers_of(vectors)[np.asarray(vectors.is_valid())]
        lengths = np.sqrt(np.einsum("ij,ij->i", numbers, numbers))
        usable = np.isfinite(lengths) & (lengths > 0)
        yield numbers[usable] / lengths[usable, None]


def _centres(sample: Units, count: int, rng: np.random.Generator) -> Centres:
    """Centroids by spherical k-means, initialised with sampled vectors."""
    centres = sample[rng.choice(len(sample), count, replace=len(sample) < count)].copy()
    for _ in range(_KMEANS_ROUNDS if count > 1 else 1):
        nearest = _nearest_centres(sample, centres)
        members = np.bincount(nearest, minlength=count)
        held = np.flatnonzero(members)
        starts = np.concatenate([[0], np.cumsum(members)[:-1]])[held]
        sums = np.add.reduceat(sample[np.argsort(nearest, kind="stable")], starts, axis=0)
        lengths = np.linalg.norm(sums, axis=1)
        moved = lengths > 0
        centres[held[moved]] = sums[moved] / lengths[moved, None]
        empty = np.flatnonzero(members == 0)
        centres[empty] = sample[rng.choice(len(sample), len(empty))]
    return centres


def _nearest_centres(vectors: Units, centres: Centres) -> npt.NDArray[np.int64]:
    starts = range(0, max(len(vectors), 1), _BLOCK_ROWS)
    blocks = (vectors[start : start + _BLOCK_ROWS] for start in starts)
    return np.concatenate([np.argmax(block @ centres.T, axis=1) for block in blocks])


def _probes(table: Table, column: str, centres: Centres, queries: Units) -> int:
    """The fewest partitions, nearest first, that contain enough of the true neighbours."""
    order = np.argsort(-(queries @ centres.T), axis=1)
    ranks_of = np.empty_like(order)
    np.put_along_axis(ranks_of, order, np.arange(order.shape[1])[None, :], axis=1)
    neighbours = enumerate(_neighbours(table, column, queries))
    held = [ranks_of[number, _nearest_centres(found, centres)] for number, found in neighbours]
    ranks = np.sort(np.concatenate(held))
    if not len(ranks):
        return LEAST_PROBES
    enough = int(np.ceil(RECALL * len(ranks))) - 1
    return max(int(ranks[enough]) + 1, LEAST_PROBES)


def _neighbours(table: Table, column: str, queries: Units) -> list[Units]:
    """The nearest vectors of each query, except equal ones: a real query is not stored itself."""
    best = np.full((len(queries), _MEASURED_NEIGHBOURS), _NO_COSINE, np.float32)
    found = np.zeros((len(queries), _MEASURED_NEIGHBOURS, queries.shape[1]), np.float32)
    for units in _units(table, column):
        cosines = queries @ units.T
        cosines[cosines > _EQUAL_COSINE] = _NO_COSINE
        some = min(_MEASURED_NEIGHBOURS, cosines.shape[1])
        leading = np.argpartition(-cosines, some - 1, axis=1)[:, :some]
        candidates = np.concatenate([best, np.take_along_axis(cosines, leading, axis=1)], axis=1)
        kept = np.argsort(-candidates, axis=1)[:, :_MEASURED_NEIGHBOURS]
        vectors = np.concatenate([found, units[leading]], axis=1)
        best = np.take_along_axis(candidates, kept, axis=1)
        found = np.take_along_axis(vectors, kept[:, :, None], axis=1)
    return [mine[known] for mine, known in zip(found, best > _NO_COSINE, strict=True)]


BEFORE_TABLE = declare(
    "ensure_indices.post_stage_pre_commit_btree", "a table's indexes are built, not committed"
)
AFTER_TABLE = declare("ensure_indices.post_table_commit", "after the indexes of each table")
BEFORE_PUBLISH = declare(
    "ensure_indices.post_phase_b_pre_manifest_commit", "indexes committed, not published"
)

_KINDS: Final = {IndexKind.BTREE: BTREE, IndexKind.VECTOR: PARTITIONED}
"""Indexes inside a table; text indexes are stored beside it."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IndexState:
    """An existing index, and the number of rows it does not cover yet."""

    column: str
    kind: IndexKind
    unindexed_rows: int = 0

    def to_json(self) -> dict[str, Any]:
        return {
            "column": self.column,
            "kind": self.kind.value,
            "unindexed_rows": self.unindexed_rows,
        }


@dataclass(frozen=True, slots=True)
class PendingIndex:
    """An index that could not be built, and why."""

    column: str
    reason: str

    def to_json(self) -> dict[str, Any]:
        return {"column": self.column, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class IndexedTable:
    """The indexes of one type."""

    table_key: str
    created: tuple[IndexState, ...]
    existing: tuple[IndexState, ...]
    pending: tuple[PendingIndex, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "table_key": self.table_key,
            "created": [state.to_json() for state in self.created],
            "existing": [state.to_json() for state in self.existing],
            "pending": [missing.to_json() for missing in self.pending],
        }


@dataclass(frozen=True, slots=True, repr=False)
class IndexReport:
    """The indexes of all types that have rows on the branch, and the receipt."""

    tables: tuple[IndexedTable, ...]
    receipt: Receipt

    def __repr__(self) -> str:
        return f"<IndexReport {counted(len(self.tables), 'table')}: {self.receipt.summary}>"


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A table that the branch may index, with the indexes it has and lacks."""

    entry: SnapshotEntry
    declared: EntityType
    table: Table
    forks: bool
    """Whether the table belongs to another branch, so that indexing it creates a fork."""
    existing: tuple[IndexState, ...]
    missing: tuple[IndexSpec, ...]


@dataclass(slots=True)
class _Built:
    """Indexes built for one table version."""

    version: int
    indexes: list[BuiltIndex] = field(default_factory=list)
    probes: dict[str, int] = field(default_factory=dict)
    created: list[IndexState] = field(default_factory=list)
    pending: list[PendingIndex] = field(default_factory=list)


def unindexed_rows(texts: TextIndexStore, table: Table, intent: IndexSpec) -> int | None:
    """The number of rows that an index does not cover; None if the index does not exist."""
    if intent.kind is IndexKind.TEXT:
        return texts.unindexed_rows(table, intent.column)
    uncovered = uncovered_fragments(table, intent.column, _KINDS[intent.kind])
    if not uncovered:
        return None if uncovered is None else 0
    return sum(f.rows for f in table.fragments() if f.id in uncovered)


def index_states(
    texts: TextIndexStore, table: Table, declared: EntityType
) -> tuple[tuple[IndexState, ...], tuple[IndexSpec, ...]]:
    """The indexes that a table has, and those it lacks."""
    existing, missing = [], []
    for intent in index_specs(declared):
        rows = unindexed_rows(texts, table, intent)
        if rows is None:
            missing.append(intent)
        else:
            existing.append(IndexState(intent.column, intent.kind, rows))
    return tuple(existing), tuple(missing)


class Indexing:
    """Builds the missing indexes of one graph."""

    def __init__(self, parts: GraphParts, writer: TableWriter) -> None:
        self._parts = parts
        self._writer = writer

    def run(
        self,
        branch: BranchRef,
        contract: SchemaContract,
        *,
        actor: str | None,
        progress: Progress,
    ) -> IndexReport:
        """Build missing indexes. Commits only if there are any."""
        parts = self._parts
        state = parts.manifest.current(branch.physical)
        found = self._candidates(branch, parts.snapshot_of(state))
        # A fork does not exist yet, so its indexes are built under the lock.
        built = {t.entry.table_key: self._build(t, progress) for t in found if not t.forks}
        draft = new_draft(OperationKind.ENSURE_INDICES, contract, actor)
        commit: CommitRecord | None = None
        if any(b.indexes for b in built.values()) or any(t.forks and t.missing for t in found):
            with parts.locks.hold(branch.physical, "ensure_indices") as lock:
                quarantined = parts.recovery.recover_locked(branch.physical, lock).quarantined
                state = parts.recovery.state(branch.physical)
                current = parts.snapshot_of(state)
                if current.catalog.ir != contract.catalog.ir:
                    raise SchemaMoved()
                found = self._candidates(branch, current)
                chosen = list(self._chosen(branch, found, built, quarantined, progress))
                if chosen:
                    commit = self._commit(branch, draft, state, chosen, built, lock, progress)
        if commit is None:
            receipt = nothing_done(parts.manifest.current(branch.physical), draft)
        else:
            receipt = receipt_of(commit, contract.catalog)
        return IndexReport(tuple(_report(t, built.get(t.entry.table_key)) for t in found), receipt)

    def _candidates(self, branch: BranchRef, snapshot: Snapshot) -> list[_Candidate]:
        """Tables with rows that the branch may index: not those it inherits from main."""
        found = []
        known = {declared.table_key for declared in snapshot.catalog}
        for key, entry in snapshot.entries.items():
            inherited = branch.physical is not None and entry.branch is None
            if inherited or not entry.row_count or key not in known:
                continue
            declared, table = snapshot.catalog.entity(key), snapshot.open(self._parts.tables, key)
            states = index_states(self._parts.texts, table, declared)
            forks = entry.branch != branch.physical
            found.append(_Candidate(entry, declared, table, forks, *states))
        return found

    def _build(self, found: _Candidate, progress: Progress) -> _Built:
        """Build a table's missing indexes. One that fails is reported and stops no other."""
        built = _Built(found.table.version)
        # Look-up indexes are fast to build, so they come first.
        for intent in sorted(found.missing, key=lambda i: i.kind is not IndexKind.BTREE):
            name = f"{found.declared.name}.{intent.column}"
            progress.stage(name)
            try:
                reason = self._build_one(found.table, intent, built)
            except OmnigraphError as error:
                _log.warning("could not index %s: %s", name, error)
                reason = str(error)
            if reason is None:
                built.created.append(IndexState(intent.column, intent.kind))
            else:
                built.pending.append(PendingIndex(intent.column, reason))
        return built

    def _build_one(self, table: Table, intent: IndexSpec, built: _Built) -> str | None:
        """Build one index; returns the reason if it cannot be built yet."""
        if intent.column not in table.schema.names:
            return "no row has a value yet"
        match intent.kind:
            case IndexKind.BTREE:
                built.indexes.append(build_btree(table, intent.column))
            case IndexKind.TEXT:
                self._parts.texts.write(table, intent.column)
            case IndexKind.VECTOR:
                partitions = find_partitions(table, intent.column)
                if partitions is None:
                    return "no row has a vector yet"
                built.indexes.append(build_partitioned(table, intent.column, partitions.centres))
                built.probes[intent.column] = partitions.probes
        return None

    def _chosen(
        self,
        branch: BranchRef,
        candidates: Sequence[_Candidate],
        built: dict[str, _Built],
        quarantined: Sequence[Quarantined],
        progress: Progress,
    ) -> Iterator[_Candidate]:
        """The tables to commit; builds indexes again for tables that moved before the lock."""
        for found in candidates:
            key, physical = found.entry.table_key, branch.physical
            if found.forks and found.missing:
                yield found
                continue
            known = built.get(key)
            if known is None or known.version != found.table.version:
                known = built[key] = self._build(found, progress)
            if not known.indexes:
                continue
            refuse_quarantined(found.entry, physical, quarantined)
            head = self._parts.recovery.head_of(found.entry.location, physical)
            if head.version != found.entry.version:
                raise refuse_drift(self._parts.recovery.sidecars, found.entry, head, quarantined)
            yield found

    def _commit(
        self,
        branch: BranchRef,
        draft: CommitDraft,
        state: ManifestState,
        chosen: Sequence[_Candidate],
        built: dict[str, _Built],
        lock: HeldLock,
        progress: Progress,
    ) -> CommitRecord:
        kind, physical = WriterKind.ENSURE_INDICES, branch.physical
        mark: CommitMark = {"operation_id": draft.operation_id, "writer_kind": kind.value}

        def commit_table(found: _Candidate) -> Table:
            key, table = found.entry.table_key, found.table
            lock.check()
            if found.forks:
                table = self._writer.fork(found.entry, physical)
                built[key] = self._build(replace(found, table=table, forks=False), progress)
            made = built[key]
            BEFORE_TABLE.hit(table=key)
            lock.check()
            if made.indexes:
                table = commit_staged(table, stage_indexes(table, made.indexes), **mark)
            if made.probes:
                lock.check()
                table = commit_staged(table, stage_probes(table, made.probes), **mark)
            AFTER_TABLE.hit(table=key)
            return table

        def commit_tables() -> list[Publication]:
            versions = (table_version(f.entry.table_id, commit_table(f)) for f in chosen)
            publication = Publication(
                draft=draft,
                versions=tuple(versions),
                expected={found.entry.table_id: found.entry.version_ref for found in chosen},
                begun_at=state.sequence,
            )
            return [publication]

        tables = (sidecar_table(f.entry, physical, data_commits=0, forks=f.forks) for f in chosen)
        sidecar = sidecar_of(kind, branch, state, draft, tables)
        operation = Operation(sidecar, commit_tables, BEFORE_PUBLISH)
        return self._parts.sequence.run(operation, lock)[0]


def _report(found: _Candidate, built: _Built | None) -> IndexedTable:
    made = built or _Built(found.table.version)
    created = {state.column for state in made.created}
    existing = tuple(state for state in found.existing if state.column not in created)
    return IndexedTable(found.entry.table_key, tuple(made.created), existing, tuple(made.pending))
