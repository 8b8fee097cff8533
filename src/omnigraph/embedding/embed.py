"""Embedding: compute pending and stale vectors of a branch and write them as one commit.

Rows are found by the state of their vectors, read whole, and written with new vectors and nothing else
changed. If the branch moves meanwhile, rows that changed are skipped. Tests: tests/behaviour/test_embed.py.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import Catalog, NodeType, Property
from omnigraph.commit.change import Change, SeenRows, TableWrite
from omnigraph.commit.keys import KeyedRequest
from omnigraph.commit.writer import AlreadyWritten, TableWriter, WriteRequest
from omnigraph.diagnostics import counted, with_hint
from omnigraph.embedding.kept import KeptVectors
from omnigraph.embedding.vectors import (
    Outcome,
    PendingTexts,
    StateCounts,
    VectorProperties,
    count_states,
    embed_columns,
    embedding_warnings,
    read_states,
)
from omnigraph.errors import InputError, SchemaMoved, UnknownType
from omnigraph.graph.parts import GraphParts
from omnigraph.history.commits import Receipt, WriteResult, nothing_done, receipt_of
from omnigraph.limits import LOOKUP_CHUNK, SPARK_TEXT_BYTES
from omnigraph.progress import SILENT, Progress
from omnigraph.providers.documents import DocumentVectors
from omnigraph.rows.bindings import VectorStates, bound_schema, embedded_properties
from omnigraph.spark.choice import (
    AUTO,
    EngineChoice,
    decide_by_size,
    missing_spark_note,
    session_of,
)
from omnigraph.storage.delta import ROW_ADDRESS_COLUMNS
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.branches import BranchRef
from omnigraph.versioning.commits import (
    CommitDraft,
    CommitId,
    CommitRecord,
    OperationId,
    OperationKind,
    Warning,
)
from omnigraph.versioning.contract import SchemaContract
from omnigraph.versioning.ids import new_ulid, now_micros
from omnigraph.versioning.recovery.sidecar import Quarantined, WriterKind
from omnigraph.versioning.snapshot import Snapshot
from omnigraph.versioning.snapshot_rows import rows_by_id

_log = logging.getLogger(__name__)

RowCounts = Counter[tuple[str, str]]
"""Rows by table key and vector property."""


@dataclass(frozen=True, slots=True)
class EmbedOptions:
    """Which vectors to compute, and what to record with the commit. Pickled for tasks.

    `everything` includes vectors that are ready, unless they were given; `include_given` replaces given
    vectors whose text changed.
    """

    request: KeyedRequest
    types: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    pending: bool = True
    stale: bool = True
    everything: bool = False
    include_given: bool = False
    actor: str | None = None
    message: str | None = None
    expected_head: CommitId | None = None

    def selects(self, states: VectorStates) -> pa.Array:
        """The rows with text whose vector is computed."""
        wanted = pc.and_(states.pending, self.pending or self.everything)
        stale = pc.and_(states.stale, self.stale or self.everything)
        wanted = pc.or_(wanted, pc.and_not(stale, states.given))
        if self.everything:
            wanted = pc.or_(wanted, pc.and_not(states.ready, states.given))
        if self.include_given:
            wanted = pc.or_(wanted, pc.and_(states.stale, states.given))
        return pc.and_(wanted, states.has_text)

    def vector_properties(self, catalog: Catalog) -> dict[str, list[Property]]:
        """The selected vector properties by node type. Raises `UnknownType` or `InputError`."""
        for name in self.types:
            if name not in catalog.nodes:
                raise UnknownType("node", name, catalog.nodes)
        selected: dict[str, list[Property]] = {}
        for node in catalog.nodes.values():
            if not self.types or node.name in self.types:
                found = embedded_properties(node)
                kept = [p for p in found if not self.properties or p.name in self.properties]
                if kept:
                    selected[node.name] = kept
        known = {prop.name for props in selected.values() for prop in props}
        for name in self.properties:
            if name not in known:
                message = f"no @embed vector '{name}' in the selected types"
                raise InputError(with_hint(message, name, known))
        return selected


@dataclass(frozen=True, slots=True)
class EmbeddedProperty:
    """One vector property after `embed`: row counts by state, and vectors computed.

    `skipped` counts rows that another writer changed while their texts were embedded.
    """

    table_key: str
    property: str
    states: StateCounts
    embedded: int = 0
    skipped: int = 0

    def to_json(self) -> dict[str, Any]:
        return {
            "table_key": self.table_key,
            "property": self.property,
            **self.states.to_json(),
            "embedded": self.embedded,
            "skipped": self.skipped,
        }


@dataclass(frozen=True, slots=True, repr=False)
class EmbedResult(WriteResult):
    """The vectors computed by `embed`, or with `dry_run` the counts by state."""

    receipt: Receipt
    branch: str
    model: str | None
    properties: tuple[EmbeddedProperty, ...]
    dry_run: bool

    def __repr__(self) -> str:
        dry = ", dry run" if self.dry_run else ""
        done = counted(sum(prop.embedded for prop in self.properties), "vector")
        return self._repr_with(f"{done} computed{dry}")

    def to_json(self) -> dict[str, Any]:
        return {
            "branch": self.branch,
            "model": self.model,
            "properties": [prop.to_json() for prop in self.properties],
            "dry_run": self.dry_run,
            **self.receipt.to_json(),
        }


class Embedder:
    """Computes vectors on branches of one graph."""

    def __init__(self, parts: GraphParts, writer: TableWriter) -> None:
        self._parts = parts
        self._writer = writer

    def preview(
        self, branch: BranchRef, contract: SchemaContract, options: EmbedOptions
    ) -> EmbedResult:
        """Count vectors by state without computing any."""
        properties, vectors = options.vector_properties(contract.catalog), DocumentVectors()
        state = self._parts.manifest.current(branch.physical)
        counted = self._count(self._parts.snapshot_of(state, contract), properties, vectors)
        receipt = nothing_done(state, _draft(contract, options))
        return EmbedResult(receipt, branch.public, vectors.model, tuple(counted), dry_run=True)

    def embed(
        self,
        branch: BranchRef,
        contract: SchemaContract,
        options: EmbedOptions,
        quarantined: tuple[Quarantined, ...],
        engine: EngineChoice = AUTO,
        progress: Progress = SILENT,
    ) -> EmbedResult:
        """Compute and commit. Rows that change while their texts are embedded are skipped.

        Raises `EmbeddingNotConfigured`, or `EmbeddingFailed` if the provider returned no vector.
        """
        earlier = options.request.earlier(self._parts.manifest, branch.physical)
        if earlier is not None:
            return self._replayed(earlier, branch, contract, options)
        properties, vectors = options.vector_properties(contract.catalog), DocumentVectors()
        snapshot = self._parts.snapshot_of(self._parts.manifest.current(branch.physical), contract)
        kept: KeptVectors | None = None
        if vectors.model is not None:
            texts = PendingTexts(
                snapshot, self._parts.tables, properties, options.selects, vectors.model
            )
            kept = self._request_on_spark(
                texts, vectors, engine, _job_id(branch, options, vectors.model), progress
            )
        tables = self._parts.tables
        first = last = _EmbedPass(snapshot, tables, properties, options, vectors)
        change = first.change(progress)
        first.raise_if_all_failed()
        vectors.stop()

        def prepare(current: Snapshot) -> Change:
            nonlocal last
            if current.catalog.ir != contract.catalog.ir:
                raise SchemaMoved()
            last = _EmbedPass(current, tables, properties, options, vectors, first.embedded)
            return last.change()

        def complete(draft: CommitDraft) -> CommitDraft:
            embedded, skipped = last.counts(), first.counts() - last.counts()
            return options.request.on(draft, embedded=_nested(embedded), skipped=_nested(skipped))

        draft, commit = options.request.on(_draft(contract, options)), None
        if change.writes:
            request = WriteRequest(
                branch=branch,
                kind=WriterKind.MUTATION,
                draft=replace(draft, warnings=first.warnings()),
                change=change,
                checked=snapshot,
                prepare=prepare,
                complete_draft=complete,
                expected_head=options.expected_head,
                quarantined=quarantined,
            )
            try:
                commit = self._writer.commit(request)
            except AlreadyWritten as already:
                earlier = options.request.same(already.found)
                return self._replayed(earlier, branch, contract, options)
        if kept is not None and commit is not None:
            kept.remove()
        if commit is None:
            receipt = nothing_done(self._parts.manifest.current(branch.physical), draft)
        else:
            receipt = receipt_of(commit, contract.catalog)
        embedded, skipped = last.counts(), first.counts() - last.counts()
        return self._result(receipt, branch, properties, vectors, embedded, skipped)

    def _replayed(
        self,
        commit: CommitRecord,
        branch: BranchRef,
        contract: SchemaContract,
        options: EmbedOptions,
    ) -> EmbedResult:
        """The result of the call that made the commit, with the rows by state as they are now."""
        assert commit.draft.write_key is not None
        answer = commit.draft.write_key.answer
        receipt = receipt_of(commit, contract.catalog, replayed=True)
        properties, vectors = options.vector_properties(contract.catalog), DocumentVectors()
        embedded, skipped = _by_property(answer["embedded"]), _by_property(answer["skipped"])
        return self._result(receipt, branch, properties, vectors, embedded, skipped)

    def _result(
        self,
        receipt: Receipt,
        branch: BranchRef,
        properties: VectorProperties,
        vectors: DocumentVectors,
        embedded: RowCounts,
        skipped: RowCounts,
    ) -> EmbedResult:
        snapshot = self._parts.snapshot_of(self._parts.manifest.current(branch.physical))
        counted = []
        for prop in self._count(snapshot, properties, vectors):
            key = (prop.table_key, prop.property)
            counted.append(replace(prop, embedded=embedded[key], skipped=skipped[key]))
        return EmbedResult(receipt, branch.public, vectors.model, tuple(counted), dry_run=False)

    def _request_on_spark(
        self,
        texts: PendingTexts,
        vectors: DocumentVectors,
        engine: EngineChoice,
        job: str,
        progress: Progress,
    ) -> KeptVectors | None:
        """Have Spark tasks request all vectors, if Spark is the engine to use; returns what they keep."""
        shared = self._parts.tables.is_shared

        def size() -> int:
            return texts.size().bytes

        if decide_by_size(engine, size, SPARK_TEXT_BYTES, shared=shared).on_spark:
            # Imported late: embedding in this process does not need it.
            from omnigraph.embedding.spark_embed import embed_in_tasks

            kept = KeptVectors(self._parts.tables.root, job, new_ulid())
            embed_in_tasks(session_of(engine), texts, vectors, kept, progress)
            return kept
        if note := missing_spark_note(engine, size, shared=shared):
            _log.warning(note)
        return None

    def _count(
        self, snapshot: Snapshot, properties: VectorProperties, vectors: DocumentVectors
    ) -> Iterator[EmbeddedProperty]:
        """Count the vectors of a snapshot by state."""
        for name, selected in properties.items():
            node = snapshot.catalog.nodes[name]
            table = snapshot.open(self._parts.tables, node.table_key)
            for prop in selected:
                model = vectors.under(prop.embed_model).model
                states = count_states(table, node, prop, model)
                yield EmbeddedProperty(node.table_key, prop.name, states)


def _job_id(branch: BranchRef, options: EmbedOptions, model: str) -> str:
    """The same for calls that ask for the same; a caller who gives another key begins another job."""
    asked = (branch.physical, options.request.key, options.request.digest, model)
    return sha256(repr(asked).encode()).hexdigest()[:16]


class _EmbedPass:
    """One pass over a snapshot: which rows to embed, and their new content.

    `among` restricts a second pass, over a newer snapshot, to the rows of the first. `embedded` has the ids of
    rows with a new vector, by table key and property.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        tables: TableStore,
        properties: VectorProperties,
        options: EmbedOptions,
        vectors: DocumentVectors,
        among: Mapping[tuple[str, str], pa.Array] | None = None,
    ) -> None:
        self.embedded: dict[tuple[str, str], pa.Array] = {}
        self._snapshot = snapshot
        self._tables = tables
        self._properties = properties
        self._options = options
        self._vectors = vectors
        self._among = among
        self._outcomes: dict[str, list[dict[str, Outcome]]] = {}

    def change(self, progress: Progress = SILENT) -> Change:
        """The rows to write."""
        nodes = self._snapshot.catalog.nodes
        writes = (
            self._write(nodes[name], props, progress) for name, props in self._properties.items()
        )
        return Change(tuple(write for write in writes if write is not None))

    def counts(self) -> RowCounts:
        """The number of rows with a new vector."""
        return Counter({key: len(ids) for key, ids in self.embedded.items()})

    def warnings(self) -> tuple[Warning, ...]:
        nodes = self._snapshot.catalog.nodes
        return tuple(
            warning
            for name, parts in self._outcomes.items()
            for warning in embedding_warnings(nodes[name], parts, self._vectors)
        )

    def raise_if_all_failed(self) -> None:
        """Raises the provider's failure if no vector at all was computed."""
        models = {prop.embed_model for props in self._properties.values() for prop in props}
        failures = (
            self._vectors.under(model).failure for model in (None, *sorted(filter(None, models)))
        )
        failure = next((found for found in failures if found is not None), None)
        if failure is not None and not any(map(len, self.embedded.values())):
            raise failure

    def _write(
        self, node: NodeType, properties: Sequence[Property], progress: Progress
    ) -> TableWrite | None:
        table = self._snapshot.open(self._tables, node.table_key)
        schema = bound_schema(node)
        outcomes = self._outcomes.setdefault(node.name, [])
        batches, addresses = [], []
        progress.stage(f"embed {node.table_key}")
        for ids in self._selected_ids(table, node, properties):
            found = rows_by_id(node, table, ids, schema.names)
            columns = {name: found.column(name).combine_chunks() for name in schema.names}
            columns, outcome = embed_columns(
                properties, columns, self._vectors, self._options.selects
            )
            outcomes.append(outcome)
            written = self._record(node, columns["id"], outcome)
            rows = pa.table([columns[name] for name in schema.names], schema=schema)
            batches.append(rows.filter(written))
            addresses.append(found.select(list(ROW_ADDRESS_COLUMNS)).filter(written))
            progress.advance(len(ids))
        if not any(batch.num_rows for batch in batches):
            return None
        seen = SeenRows(table.version, table.branch, pa.concat_tables(addresses))
        return TableWrite(node.table_key, "delta", pa.concat_tables(batches), seen=seen)

    def _record(self, node: NodeType, ids: pa.Array, outcome: Mapping[str, Outcome]) -> pa.Array:
        """Record which rows got a vector; returns the mask of rows to write."""
        written = pa.repeat(False, len(ids))
        for name, done in outcome.items():
            key = (node.table_key, name)
            before = self.embedded.get(key, ids.slice(0, 0))
            self.embedded[key] = pa.concat_arrays([before, ids.filter(done.computed)])
            written = pc.or_(written, done.computed)
        return written

    def _selected_ids(
        self, table: Table, node: NodeType, properties: Sequence[Property]
    ) -> Iterator[pa.Array]:
        """The ids of rows to embed, some thousand at a time."""
        found = [pa.array([], pa.utf8())]
        for prop in properties:
            model = self._vectors.under(prop.embed_model).model
            for rows in read_states(table, node, prop, model):
                ids = rows.ids.filter(self._options.selects(rows.states))
                if self._among is not None:
                    mine = self._among.get((node.table_key, prop.name), ids.slice(0, 0))
                    ids = ids.filter(pc.is_in(ids, value_set=mine))
                found.append(ids)
        distinct = pc.unique(pa.chunked_array(found))
        for start in range(0, len(distinct), LOOKUP_CHUNK):
            yield distinct.slice(start, LOOKUP_CHUNK)


def _draft(contract: SchemaContract, options: EmbedOptions) -> CommitDraft:
    return CommitDraft(
        graph_commit_id=CommitId(new_ulid()),
        operation=OperationKind.EMBED,
        operation_id=OperationId(new_ulid()),
        created_at=now_micros(),
        schema_ir_hash=contract.hash,
        schema_ref=contract.reference,
        actor_id=options.actor,
        message=options.message,
    )


def _nested(counts: RowCounts) -> dict[str, dict[str, int]]:
    """Counts as they are stored with the commit."""
    stored: dict[str, dict[str, int]] = {}
    for (table_key, name), count in counts.items():
        stored.setdefault(table_key, {})[name] = count
    return stored


def _by_property(stored: Mapping[str, Mapping[str, int]]) -> RowCounts:
    return Counter(
        {(table, name): count for table, found in stored.items() for name, count in found.items()}
    )
