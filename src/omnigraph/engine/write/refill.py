"""Refilling: vectors that are missing or out of date, computed and written as one commit.

Rows are found by their states, read whole, and written with new vectors and nothing else changed.
If the branch moves meanwhile, rows that changed are left alone.
Tests: tests/behaviour/test_refills.py.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import NodeType, Property
from omnigraph.embed.documents import DocumentVectors
from omnigraph.engine.due_texts import Chosen, DueTexts
from omnigraph.engine.engines import (
    AUTO,
    EngineChoice,
    inline_for_want_of_spark,
    runs_on_spark,
    session_of,
)
from omnigraph.engine.parts import GraphParts
from omnigraph.engine.receipts import nothing_done, receipt_of
from omnigraph.engine.vector_states import count_states, read_states
from omnigraph.engine.write.change import Change, SeenRows, TableWrite
from omnigraph.engine.write.columns import rows_by_id
from omnigraph.engine.write.commit import TableWriter, WriteRequest
from omnigraph.engine.write.embedding import Outcome, embed_columns, embedding_warnings
from omnigraph.engine.write.refill_report import EmbedResult, RefilledProperty, RefillOptions
from omnigraph.errors import SchemaMoved
from omnigraph.limits import LOOKUP_CHUNK, SPARK_TEXT_BYTES
from omnigraph.progress import SILENT, Progress
from omnigraph.rows.bindings import bound_schema
from omnigraph.storage.delta import ROW_ADDRESS_COLUMNS
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.branches import BranchRef
from omnigraph.versioning.commits import CommitDraft, CommitId, OperationId, OperationKind, Warning
from omnigraph.versioning.contract import SchemaContract
from omnigraph.versioning.ids import new_ulid, now_micros
from omnigraph.versioning.recovery.sidecar import Quarantined, WriterKind
from omnigraph.versioning.snapshot import Snapshot

_log = logging.getLogger(__name__)


class Refiller:
    """Refills vectors of the branches of one graph."""

    def __init__(self, parts: GraphParts, writer: TableWriter) -> None:
        self._parts = parts
        self._writer = writer

    def preview(
        self, branch: BranchRef, contract: SchemaContract, options: RefillOptions
    ) -> EmbedResult:
        """Only count."""
        chosen, vectors = options.chosen(contract.catalog), DocumentVectors()
        state = self._parts.manifest.current(branch.physical)
        counted = self._count(self._parts.snapshot_of(state, contract), chosen, vectors)
        receipt = nothing_done(state, _draft(contract, options))
        return EmbedResult(receipt, branch.public, vectors.model, tuple(counted), dry_run=True)

    def refill(
        self,
        branch: BranchRef,
        contract: SchemaContract,
        options: RefillOptions,
        quarantined: tuple[Quarantined, ...],
        engine: EngineChoice = AUTO,
        progress: Progress = SILENT,
    ) -> EmbedResult:
        """Compute and commit. Rows that change while their texts are embedded are left alone.

        Raises `EmbeddingNotConfigured`, or `EmbeddingFailed` if the provider gave no vector at all.
        """
        chosen, vectors = options.chosen(contract.catalog), DocumentVectors()
        snapshot = self._parts.snapshot_of(self._parts.manifest.current(branch.physical), contract)
        if vectors.model is not None:
            due = DueTexts(snapshot, self._parts.tables, chosen, options.due, vectors.model)
            self._ask_on_spark(due, vectors, engine, progress)
        first = last = _Refill(snapshot, self._parts.tables, chosen, options, vectors)
        change = first.change(progress)
        first.refuse_if_in_vain()
        vectors.stop()

        def prepare(current: Snapshot) -> Change:
            nonlocal last
            if current.catalog.ir != contract.catalog.ir:
                raise SchemaMoved()
            last = _Refill(current, self._parts.tables, chosen, options, vectors, first.embedded)
            return last.change()

        draft, commit = _draft(contract, options), None
        if change.writes:
            request = WriteRequest(
                branch=branch,
                kind=WriterKind.MUTATION,
                draft=replace(draft, warnings=first.warnings()),
                change=change,
                checked=snapshot,
                prepare=prepare,
                expected_head=options.expected_head,
                quarantined=quarantined,
            )
            commit = self._writer.commit(request)
        state = self._parts.manifest.current(branch.physical)
        counted = [
            replace(prop, embedded=last.count(prop), skipped=first.count(prop) - last.count(prop))
            for prop in self._count(self._parts.snapshot_of(state), chosen, vectors)
        ]
        receipt = nothing_done(state, draft)
        if commit is not None:
            receipt = receipt_of(commit, contract.catalog)
        return EmbedResult(receipt, branch.public, vectors.model, tuple(counted), dry_run=False)

    def _ask_on_spark(
        self, due: DueTexts, vectors: DocumentVectors, engine: EngineChoice, progress: Progress
    ) -> None:
        """Have tasks ask for all vectors that are due, if Spark is the engine to use."""
        shared = self._parts.tables.is_shared

        def size() -> int:
            return due.size().bytes

        if runs_on_spark(engine, size, shared=shared, at_least=SPARK_TEXT_BYTES):
            # Imported only now because work in this process needs none of it.
            from omnigraph.engine.write.bulk.refill import ask_in_tasks

            ask_in_tasks(session_of(engine), due, vectors, progress)
        elif note := inline_for_want_of_spark(engine, size, shared=shared):
            _log.warning(note)

    def _count(
        self, snapshot: Snapshot, chosen: Chosen, vectors: DocumentVectors
    ) -> Iterator[RefilledProperty]:
        """The vectors of a snapshot by state."""
        for name, properties in chosen.items():
            node = snapshot.catalog.nodes[name]
            table = snapshot.open(self._parts.tables, node.table_key)
            for prop in properties:
                model = vectors.under(prop.embed_model).model
                states = count_states(table, node, prop, model)
                yield RefilledProperty(node.table_key, prop.name, states)


class _Refill:
    """One look at a snapshot: which rows are due, and what they become.

    A second look, at a newer snapshot, is only for rows of the first, given as `among`.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        tables: TableStore,
        chosen: Chosen,
        options: RefillOptions,
        vectors: DocumentVectors,
        among: Mapping[tuple[str, str], pa.Array] | None = None,
    ) -> None:
        self.embedded: dict[tuple[str, str], pa.Array] = {}
        """The ids of rows with a new vector, by table key and property."""
        self._snapshot = snapshot
        self._tables = tables
        self._chosen = chosen
        self._options = options
        self._vectors = vectors
        self._among = among
        self._outcomes: dict[str, list[dict[str, Outcome]]] = {}

    def change(self, progress: Progress = SILENT) -> Change:
        """The rows to write."""
        nodes = self._snapshot.catalog.nodes
        writes = (self._write(nodes[name], props, progress) for name, props in self._chosen.items())
        return Change(tuple(write for write in writes if write is not None))

    def count(self, prop: RefilledProperty) -> int:
        """How many rows got a new vector."""
        return len(self.embedded.get((prop.table_key, prop.property), ()))

    def warnings(self) -> tuple[Warning, ...]:
        nodes = self._snapshot.catalog.nodes
        return tuple(
            warning
            for name, parts in self._outcomes.items()
            for warning in embedding_warnings(nodes[name], parts, self._vectors)
        )

    def refuse_if_in_vain(self) -> None:
        """Raises what kept every vector that was due from being computed."""
        models = {prop.embed_model for props in self._chosen.values() for prop in props}
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
        pieces, places = [], []
        progress.stage(f"embed {node.table_key}")
        for ids in self._due_ids(table, node, properties):
            found = rows_by_id(node, table, ids, schema.names)
            columns = {name: found.column(name).combine_chunks() for name in schema.names}
            columns, outcome = embed_columns(properties, columns, self._vectors, self._options.due)
            outcomes.append(outcome)
            written = self._note(node, columns["id"], outcome)
            rows = pa.table([columns[name] for name in schema.names], schema=schema)
            pieces.append(rows.filter(written))
            places.append(found.select(list(ROW_ADDRESS_COLUMNS)).filter(written))
            progress.advance(len(ids))
        if not any(piece.num_rows for piece in pieces):
            return None
        seen = SeenRows(table.version, table.branch, pa.concat_tables(places))
        return TableWrite(node.table_key, "delta", pa.concat_tables(pieces), seen=seen)

    def _note(self, node: NodeType, ids: pa.Array, outcome: Mapping[str, Outcome]) -> pa.Array:
        """Remember which rows got a vector; the mask of those that are to be written."""
        written = pa.repeat(False, len(ids))
        for name, done in outcome.items():
            key = (node.table_key, name)
            before = self.embedded.get(key, ids.slice(0, 0))
            self.embedded[key] = pa.concat_arrays([before, ids.filter(done.computed)])
            written = pc.or_(written, done.computed)
        return written

    def _due_ids(
        self, table: Table, node: NodeType, properties: Sequence[Property]
    ) -> Iterator[pa.Array]:
        """The ids of rows with a vector that is due, some thousand at a time."""
        found = [pa.array([], pa.utf8())]
        for prop in properties:
            model = self._vectors.under(prop.embed_model).model
            for rows in read_states(table, node, prop, model):
                due = rows.ids.filter(self._options.due(rows.states))
                if self._among is not None:
                    mine = self._among.get((node.table_key, prop.name), due.slice(0, 0))
                    due = due.filter(pc.is_in(due, value_set=mine))
                found.append(due)
        distinct = pc.unique(pa.chunked_array(found))
        for start in range(0, len(distinct), LOOKUP_CHUNK):
            yield distinct.slice(start, LOOKUP_CHUNK)


def _draft(contract: SchemaContract, options: RefillOptions) -> CommitDraft:
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
