"""The vectors of a load that nothing else is wrong with, batch by batch, before it is staged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.embed.documents import DocumentVectors
from omnigraph.engine.embedding.vectors import (
    Outcome,
    embed_columns,
    embedding_warnings,
    unwritable,
    with_given_bindings,
    with_kept_vectors,
)
from omnigraph.engine.write.columns import rows_by_id
from omnigraph.engine.write.committed import SnapshotRows
from omnigraph.limits import MAX_LOAD_ERRORS
from omnigraph.load import LoadedType, LoadMode, LoadWarning, PreparedLoad
from omnigraph.load.findings import Finding, FindingLog, in_order
from omnigraph.load.set_phase import places_of
from omnigraph.rows.bindings import bound_schema, embedded_properties, vector_columns


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
