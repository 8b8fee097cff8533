"""Validated rows to the change a load commits: vectors, table writes, and edges of removed nodes.

Tests: tests/behaviour/test_loads.py, test_overwrites.py, test_embeddings.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.commit.change import Change, TableWrite, WriteMode
from omnigraph.embedding.vectors import (
    Outcome,
    embed_columns,
    embedding_warnings,
    unwritable,
    with_given_bindings,
    with_kept_vectors,
)
from omnigraph.errors import DanglingEdges, EdgesOfType
from omnigraph.load.quarantine import BadRecord
from omnigraph.load.records import Problem, in_order
from omnigraph.load.set_validation import LoadMode, locations_of
from omnigraph.load.validation import LoadedType, LoadJob, ValidatedLoad
from omnigraph.providers.documents import DocumentVectors
from omnigraph.rows.bindings import bound_schema, embedded_properties, vector_columns
from omnigraph.rows.columns import row_schema
from omnigraph.versioning.commits import Warning
from omnigraph.versioning.snapshot_rows import SnapshotRows, rows_by_id

WRITE_MODES: Final[Mapping[LoadMode, WriteMode]] = {
    "append": "append",
    "merge": "delta",
    "overwrite": "overwrite",
    "patch": "delta",
}
_MAX_REPORTED_EDGES: Final = 5
"""Ids of edges that a refusal names, per type."""

NewIds = Callable[[Collection[NodeType]], Mapping[str, pa.Array]]
"""The ids of the rows a load brings for these types, by table key; a type without rows is absent."""


@dataclass(frozen=True, slots=True)
class StagedLoad:
    """A load that may be committed. `rows_loaded` counts input rows by table key."""

    change: Change
    records: int
    rows_loaded: Mapping[str, int]
    warnings: tuple[Warning, ...]
    quarantined: tuple[BadRecord, ...]


@dataclass(frozen=True, slots=True)
class Cascade:
    """The writes that delete edges together with their nodes, and the edge tables looked at."""

    writes: tuple[TableWrite, ...] = ()
    reads: frozenset[str] = frozenset()


def stage_load(
    job: LoadJob,
    load: ValidatedLoad,
    committed: SnapshotRows,
    vectors: DocumentVectors,
    *,
    cascade: bool,
) -> StagedLoad:
    """The change of a load validated in this process. Raises `DanglingEdges` and `LoadError`."""

    def new_ids(nodes: Collection[NodeType]) -> dict[str, pa.Array]:
        return {node.table_key: _ids(load.types[node.table_key].rows) for node in nodes}

    # Before the provider is asked: what is refused costs no vectors.
    removed = Cascade()
    if job.mode == "overwrite":
        removed = cascade_of(job.catalog, committed, load.types, new_ids, deletes=cascade)
    types, warnings, problems = embed_types(load.types, job.mode, committed, vectors)
    if problems:
        raise job.refusal(problems, load.records)
    mode = WRITE_MODES[job.mode]
    writes = (TableWrite(key, mode, loaded.rows) for key, loaded in sorted(types.items()))
    return StagedLoad(
        change=change_of(job.catalog, writes, removed, committed),
        records=load.records,
        rows_loaded={key: loaded.rows_loaded for key, loaded in types.items()},
        warnings=(*load.warnings, *warnings),
        quarantined=load.quarantined,
    )


def change_of(
    catalog: Catalog,
    writes: Iterable[TableWrite],
    cascade: Cascade,
    committed: SnapshotRows | None = None,
) -> Change:
    """The change of a load; edges were validated against the nodes at their endpoints.

    `committed` are the rows it was validated against, if that was done in this process.
    """
    made = (*writes, *cascade.writes)
    keys = {write.table_key for write in made}
    reads = set(cascade.reads)
    for key in keys:
        declared = catalog.entity(key)
        if isinstance(declared, EdgeType):
            for endpoint in (declared.from_type, declared.to_type):
                reads.add(catalog.nodes[endpoint].table_key)
    looked_up = {} if committed is None else committed.looked_up(keys | reads)
    return Change(made, frozenset(reads - keys), looked_up=looked_up)


# -- vectors ------------------------------------------------------------------------------------


def embed_types(
    types: Mapping[str, LoadedType],
    mode: LoadMode,
    committed: SnapshotRows,
    vectors: DocumentVectors,
) -> tuple[dict[str, LoadedType], list[Warning], list[Problem]]:
    """The rows with their vectors and bindings, warnings, and vectors that must not be missing."""
    embedded = dict(types)
    warnings: list[Warning] = []
    problems: list[Problem] = []
    for key, loaded in sorted(types.items()):
        if embedded_properties(loaded.declared):
            part = _TypeVectors(loaded, mode, committed, vectors)
            embedded[key] = replace(loaded, rows=part.rows())
            problems += part.problems
            warnings += embedding_warnings(loaded.declared, part.outcomes, vectors)
    return embedded, warnings, in_order(problems)


class _TypeVectors:
    """The vectors of one type of a load."""

    def __init__(
        self,
        loaded: LoadedType,
        mode: LoadMode,
        committed: SnapshotRows,
        vectors: DocumentVectors,
    ) -> None:
        self.outcomes: list[dict[str, Outcome]] = []
        self.problems: list[Problem] = []
        self._loaded = loaded
        self._replaces = mode != "append" and committed.has_rows(loaded.declared)
        self._is_patch = mode == "patch"
        """Then vectors have their bindings already, and one may be that of another text."""
        self._committed = committed
        self._vectors = vectors
        self._names = [prop.name for prop in embedded_properties(loaded.declared)]

    def rows(self) -> pa.Table:
        """The rows with their vectors; outcomes and problems are complete afterwards."""
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
        self.problems += self._missing(columns, before)
        return columns

    def _previous(self, columns: dict[str, pa.Array]) -> pa.Table:
        """The vectors of the committed rows that rows without one replace."""
        declared = self._loaded.declared
        bare = pa.repeat(False, len(columns["id"]))
        for name in self._names:
            bare = pc.or_(bare, columns[name].is_null())
        table, ids = self._committed.open(declared), columns["id"].filter(bare)
        return rows_by_id(declared, table, ids, vector_columns(declared))

    def _missing(self, columns: dict[str, pa.Array], before: int) -> Iterator[Problem]:
        declared = self._loaded.declared
        found = list(unwritable(declared, columns, self._vectors))
        locations = locations_of(self._loaded.locations, [before + row for row, _, _ in found])
        for location, (row, name, message) in zip(locations, found, strict=True):
            id = columns["id"][row].as_py()
            yield Problem(location, "embedding", message, declared.name, id, name)


# -- edges of removed nodes ---------------------------------------------------------------------


def cascade_of(
    catalog: Catalog,
    committed: SnapshotRows,
    overwritten: Collection[str],
    new_ids: NewIds,
    *,
    deletes: bool,
) -> Cascade:
    """What becomes of edges whose nodes an overwrite of these tables removes.

    Edges of types that are overwritten too were validated with the load. Raises `DanglingEdges`
    for all others, unless they are to be deleted.
    """
    remaining = [
        (edge, endpoints)
        for edge in catalog.edges.values()
        if edge.table_key not in overwritten
        and (endpoints := _endpoints_in(catalog, edge, overwritten))
    ]
    reads = frozenset(edge.table_key for edge, _ in remaining)
    remaining = [(edge, endpoints) for edge, endpoints in remaining if committed.has_rows(edge)]
    nodes = {node.name: node for _, endpoints in remaining for node in endpoints.values()}
    removed = _removed(committed, nodes.values(), new_ids)
    found: list[tuple[EdgeType, pa.Array]] = []
    for edge, endpoints in remaining:
        gone = {end: removed[node.name] for end, node in endpoints.items() if node.name in removed}
        ids = _ids(committed.edges_at(edge, gone)) if gone else pa.array([], pa.utf8())
        if len(ids):
            found.append((edge, ids))
    if found and not deletes:
        raise DanglingEdges([_described(edge, ids) for edge, ids in found])
    writes = [
        TableWrite(edge.table_key, "delta", row_schema(edge).empty_table(), deletes=ids)
        for edge, ids in found
    ]
    return Cascade(tuple(writes), reads)


def _endpoints_in(catalog: Catalog, edge: EdgeType, tables: Collection[str]) -> dict[str, NodeType]:
    """The endpoints of an edge type that are nodes of these tables."""
    endpoints = {"src": catalog.nodes[edge.from_type], "dst": catalog.nodes[edge.to_type]}
    return {end: node for end, node in endpoints.items() if node.table_key in tables}


def _removed(
    committed: SnapshotRows, nodes: Collection[NodeType], new_ids: NewIds
) -> dict[str, pa.Array]:
    """The ids that nodes have and no row of the load brings back, by type name."""
    stored = [node for node in nodes if committed.has_rows(node)]
    if not stored:
        return {}
    brought = new_ids(stored)
    removed: dict[str, pa.Array] = {}
    for node in stored:
        ids = _ids(committed.open(node).read(["id"]))
        if node.table_key in brought:
            ids = ids.filter(pc.invert(pc.is_in(ids, value_set=brought[node.table_key])))
        if len(ids):
            removed[node.name] = ids
    return removed


def _described(edge: EdgeType, ids: pa.Array) -> EdgesOfType:
    first = pc.select_k_unstable(ids, len(ids[:_MAX_REPORTED_EDGES]), [("", "ascending")])
    return EdgesOfType(edge.name, len(ids), tuple(ids.take(first).to_pylist()))


def _ids(rows: pa.Table) -> pa.Array:
    return rows.column("id").combine_chunks()
