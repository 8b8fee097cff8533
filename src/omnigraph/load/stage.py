"""The vectors of a load that nothing else is wrong with, batch by batch, before it is staged.

MERGED: The edges that an overwrite of nodes would leave without one of their ends. | A load that was read and checked, whichever way: what it changes, and what is said about it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.embed.documents import DocumentVectors
from omnigraph.engine.write.change import Change, TableWrite
from omnigraph.engine.write.embedding import (
    Outcome,
    embed_columns,
    embedding_warnings,
    unwritable,
    with_given_bindings,
    with_kept_vectors,
)
from omnigraph.errors import DanglingEdges, EdgesOfType
from omnigraph.limits import MAX_LOAD_ERRORS
from omnigraph.load.prepare import LoadedType, LoadWarning, PreparedLoad
from omnigraph.load.quarantine import BadRecord
from omnigraph.load.records import Finding, FindingLog, in_order
from omnigraph.load.set_validation import LoadMode, places_of
from omnigraph.rows.bindings import bound_schema, embedded_properties, vector_columns
from omnigraph.rows.schema import row_schema
from omnigraph.versioning.snapshot_rows import SnapshotRows, rows_by_id


def embed_load(
    prepared: PreparedLoad,
    committed: SnapshotRows,
    vectors: DocumentVectors,
    max_errors: int = MAX_LOAD_ERRORS,
) -> PreparedLoad:
    """The load with its vectors and their bindings. Raises `LoadError` where one must not be missing."""
    types = dict(prepared.types)
    warnings, findings = list(prepared.warnings), []
    for key, loaded in sorted(prepared.types.items()):
        if embedded_properties(loaded.declared):
            part = _LoadedVectors(loaded, prepared.mode, committed, vectors)
            types[key] = replace(loaded, rows=part.rows())
            findings += part.findings
            for warning in embedding_warnings(loaded.declared, part.outcomes, vectors):
                count = warning.count or 0
                warnings.append(LoadWarning(warning.code, warning.message, count))
    if findings:
        log = FindingLog(max_errors)
        log.add(in_order(findings))
        raise log.error(prepared.sources, prepared.records)
    return replace(prepared, types=types, warnings=tuple(warnings))


class _LoadedVectors:
    """The vectors of one type of a load."""

    def __init__(
        self,
        loaded: LoadedType,
        mode: LoadMode,
        committed: SnapshotRows,
        vectors: DocumentVectors,
    ) -> None:
        self.outcomes: list[dict[str, Outcome]] = []
        self.findings: list[Finding] = []
        self._loaded = loaded
        self._replaces = mode != "append" and committed.has_rows(loaded.declared)
        self._is_patch = mode == "patch"
        """Then vectors have their bindings already, and one that is there may be that of another text."""
        self._committed = committed
        self._vectors = vectors
        self._names = [prop.name for prop in embedded_properties(loaded.declared)]

    def rows(self) -> pa.Table:
        """The rows with their vectors; outcomes and findings are complete afterwards."""
        schema = bound_schema(self._loaded.declared)
        batches, done = [], 0
        for batch in self._loaded.rows.to_batches():
            columns = self._columns(batch, done)
            arrays = [columns[name] for name in schema.names]
            batches.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
            done += batch.num_rows
        return pa.Table.from_batches(batches, schema)

    def _columns(self, batch: pa.RecordBatch, before: int) -> dict[str, pa.Array]:
        declared = self._loaded.declared
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        if not self._is_patch:
            columns = with_given_bindings(declared, columns, self._names)
            if not any(columns[name].null_count for name in self._names):
                return columns
        if self._replaces:
            previous = self._previous(columns)
            columns = with_kept_vectors(declared, columns, previous, self._vectors)
        properties = embedded_properties(declared)
        columns, outcome = embed_columns(properties, columns, self._vectors)
        self.outcomes.append(outcome)
        self.findings += self._findings(columns, before)
        return columns

    def _previous(self, columns: dict[str, pa.Array]) -> pa.Table:
        """The vectors of committed rows in the place of rows that bring none."""
        declared = self._loaded.declared
        bare = pa.repeat(False, len(columns["id"]))
        for name in self._names:
            bare = pc.or_(bare, columns[name].is_null())
        table, ids = self._committed.open(declared), columns["id"].filter(bare)
        return rows_by_id(declared, table, ids, vector_columns(declared))

    def _findings(self, columns: dict[str, pa.Array], before: int) -> Iterator[Finding]:
        declared = self._loaded.declared
        found = list(unwritable(declared, columns, self._vectors))
        places = places_of(self._loaded.places, [before + row for row, _, _ in found])
        for place, (row, name, message) in zip(places, found, strict=True):
            id = columns["id"][row].as_py()
            yield Finding(place, "embedding", message, declared.name, id, name)


_SHOWN: Final = 5
"""Ids of edges that a refusal names, per type."""

NewIds = Callable[[Collection[NodeType]], Mapping[str, pa.Array]]
"""The ids of the rows a load brings for these types, by table key; a type without rows is absent."""


@dataclass(frozen=True, slots=True)
class Cascade:
    """The writes that delete edges together with their nodes, and the edge tables looked at."""

    writes: tuple[TableWrite, ...] = ()
    reads: frozenset[str] = frozenset()


NO_CASCADE: Final = Cascade()


def cascade_of(
    catalog: Catalog,
    committed: SnapshotRows,
    overwritten: Collection[str],
    new_ids: NewIds,
    *,
    deletes: bool,
) -> Cascade:
    """What becomes of edges whose nodes an overwrite of these tables removes.

    Edges of types that are overwritten too were checked with the load. Raises `DanglingEdges`
    for all others, unless they are to be deleted.
    """
    remaining = [
        (edge, ends)
        for edge in catalog.edges.values()
        if edge.table_key not in overwritten and (ends := _ends_in(catalog, edge, overwritten))
    ]
    reads = frozenset(edge.table_key for edge, _ in remaining)
    remaining = [(edge, ends) for edge, ends in remaining if committed.has_rows(edge)]
    nodes = {node.name: node for _, ends in remaining for node in ends.values()}
    removed = _removed(committed, nodes.values(), new_ids)
    found: list[tuple[EdgeType, pa.Array]] = []
    for edge, ends in remaining:
        gone = {end: removed[node.name] for end, node in ends.items() if node.name in removed}
        ids = _column(committed.edges_at(edge, gone)) if gone else pa.array([], pa.utf8())
        if len(ids):
            found.append((edge, ids))
    if found and not deletes:
        raise DanglingEdges([_described(edge, ids) for edge, ids in found])
    writes = [
        TableWrite(edge.table_key, "delta", row_schema(edge).empty_table(), deletes=ids)
        for edge, ids in found
    ]
    return Cascade(tuple(writes), reads)


def _ends_in(catalog: Catalog, edge: EdgeType, tables: Collection[str]) -> dict[str, NodeType]:
    """The ends of an edge type that nodes of these tables stand at."""
    ends = {"src": catalog.nodes[edge.from_type], "dst": catalog.nodes[edge.to_type]}
    return {end: node for end, node in ends.items() if node.table_key in tables}


def _removed(
    committed: SnapshotRows, nodes: Collection[NodeType], new_ids: NewIds
) -> dict[str, pa.Array]:
    """The ids that nodes have and no row of the load brings back, by the name of the type."""
    stored = [node for node in nodes if committed.has_rows(node)]
    if not stored:
        return {}
    brought = new_ids(stored)
    removed: dict[str, pa.Array] = {}
    for node in stored:
        ids = _column(committed.open(node).read(["id"]))
        if node.table_key in brought:
            ids = ids.filter(pc.invert(pc.is_in(ids, value_set=brought[node.table_key])))
        if len(ids):
            removed[node.name] = ids
    return removed


def _described(edge: EdgeType, ids: pa.Array) -> EdgesOfType:
    first = pc.select_k_unstable(ids, len(ids[:_SHOWN]), [("", "ascending")])
    return EdgesOfType(edge.name, len(ids), tuple(ids.take(first).to_pylist()))


def _column(rows: pa.Table) -> pa.Array:
    return rows.column("id").combine_chunks()


@dataclass(frozen=True, slots=True)
class ReadyLoad:
    """A load that may be committed. `rows_loaded` counts input rows by table key."""

    change: Change
    records: int
    rows_loaded: Mapping[str, int]
    warnings: tuple[LoadWarning, ...]
    quarantined: tuple[BadRecord, ...]


def change_of(
    catalog: Catalog, writes: Iterable[TableWrite], cascade: Cascade = NO_CASCADE
) -> Change:
    """The change of a load; edges were checked against the nodes at their ends."""
    made = (*writes, *cascade.writes)
    keys = {write.table_key for write in made}
    reads = set(cascade.reads)
    for key in keys:
        declared = catalog.entity(key)
        if isinstance(declared, EdgeType):
            for end in (declared.from_type, declared.to_type):
                reads.add(catalog.nodes[end].table_key)
    return Change(made, frozenset(reads - keys))
