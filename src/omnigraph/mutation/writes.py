"""Writing rows of one type into the working image, with the rules and the vectors of the type."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import Catalog, EntityType, NodeType
from omnigraph.embedding.vectors import (
    with_given_bindings,
    with_kept_vectors,
    with_outdated_bindings,
)
from omnigraph.faults import declare
from omnigraph.mutation.checks import (
    edge_problems,
    null_problems,
    refuse_any,
    unique_problems,
    value_problems,
)
from omnigraph.mutation.seen import visible_edges
from omnigraph.mutation.values import stored_column, stored_value
from omnigraph.mutation.working import Found, WorkingImage, WorkingTable
from omnigraph.plan.changes import Assign
from omnigraph.plan.ir import (
    Constant,
    Expr,
    Param,
)
from omnigraph.providers.documents import DocumentVectors
from omnigraph.read.row_values import RowValues
from omnigraph.read.view import ReadView
from omnigraph.rows.bindings import embedded_properties, vector_columns
from omnigraph.rows.blob_bases import BlobBases
from omnigraph.rows.columns import build_column
from omnigraph.rows.keys import derived_ids
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot
from omnigraph.versioning.snapshot_rows import SnapshotRows

BEFORE_NODE_DELETE = declare(
    "mutation.delete_node_pre_primary_delete", "before a statement that deletes nodes is applied"
)


class RowWriter:
    """What all statements of one mutation share: the image, the parameters and the counts."""

    def __init__(
        self,
        snapshot: Snapshot,
        tables: TableStore,
        parameters: Mapping[str, object],
        ids: Iterator[str],
        vectors: DocumentVectors,
        blobs: BlobBases,
    ) -> None:
        self._catalog: Catalog = snapshot.catalog
        self._image = WorkingImage(snapshot.catalog, SnapshotRows(snapshot, tables))
        self._parameters = dict(parameters)
        self._ids = ids
        self._vectors = vectors
        self._blobs = blobs
        self._sources: defaultdict[str, dict[str, None]] = defaultdict(dict)
        """The sources that got an edge, by edge type."""
        self._nodes = 0
        self._edges = 0
        self._written: pa.Table | None = None
        """The rows of the present statement: as written, or as they were before they were deleted."""

    # -- rows -------------------------------------------------------------------------------

    def _absent(self, table: WorkingTable, count: int = 1) -> dict[str, pa.Array]:
        """The columns of rows that are not there: all null."""
        return {field.name: pa.nulls(count, field.type) for field in table.schema}

    def _change(
        self, table: WorkingTable, columns: dict[str, pa.Array], assigned: Mapping[str, pa.Array]
    ) -> None:
        """Put rows that are there already, with new values of some properties."""
        declared = table.declared
        columns = with_outdated_bindings(declared, columns, assigned)
        vectors = [prop.name for prop in embedded_properties(declared) if prop.name in assigned]
        if vectors:
            columns = with_given_bindings(declared, columns, vectors)
            columns = self._keep_vectors(table, columns, vectors)
        rows = rows_table(columns, table.schema)
        table.put(rows)
        refuse_any(
            [
                *self._null_problems(declared, columns),
                *value_problems(declared, columns),
                *unique_problems(table, rows, assigned),
            ]
        )
        self._written = rows

    def _insert(self, table: WorkingTable, columns: Mapping[str, pa.Array], count: int = 1) -> None:
        """Put new rows, or whole rows in place of those with the same ids."""
        declared = table.declared
        ids = derived_ids(declared, columns)
        if ids is None:
            ids = pa.nulls(count, pa.utf8())
        made = ids.is_null()
        if ids.null_count:
            new = pa.array([next(self._ids) for _ in range(ids.null_count)], pa.utf8())
            ids = pc.replace_with_mask(ids, made, new)
        if vectors := [prop.name for prop in embedded_properties(declared)]:
            columns = with_given_bindings(declared, columns, vectors)
            if not pc.all(made).as_py():
                columns = self._keep_vectors(table, {"id": ids, **columns}, vectors)
        refuse_any(self._null_problems(declared, columns))
        rows = rows_table({**columns, "id": ids}, table.schema)
        for is_made in (True, False):
            part = rows.filter(made if is_made else pc.invert(made))
            if part.num_rows:
                table.put(part, made=is_made)
        refuse_any(
            [
                *value_problems(declared, columns),
                *edge_problems(self._image, table, rows),
                *unique_problems(table, rows),
            ]
        )
        self._written = rows

    # -- removing ---------------------------------------------------------------------------

    def _remove_nodes(self, node: NodeType, found: Found, view: ReadView = ReadView.ALL) -> None:
        """Remove nodes and all of their edges; edges that the view hides are not counted."""
        gone = found.rows().column("id").combine_chunks()
        removed: list[tuple[WorkingTable, Found]] = []
        for edge in self._catalog.edges.values():
            ends = [
                end
                for end, type_name in (("src", edge.from_type), ("dst", edge.to_type))
                if type_name == node.name
            ]
            if ends:
                edges = self._image[edge]
                dangling = edges.with_ends_in(ends, gone)
                removed.append((edges, dangling))
                self._edges += visible_edges(self._image, edges, dangling, view)
        self._image[node].remove(found)
        self._nodes += found.count
        for edges, dangling in removed:
            edges.remove(dangling)

    # -- vectors ----------------------------------------------------------------------------

    def _keep_vectors(
        self, table: WorkingTable, columns: dict[str, pa.Array], names: Collection[str]
    ) -> dict[str, pa.Array]:
        """Vectors that are not given stay what they were, if the text does."""
        declared = table.declared
        if not any(columns[name].null_count for name in names):
            return columns
        previous = table.with_ids(columns["id"], vector_columns(declared))
        return with_kept_vectors(declared, columns, previous, self._vectors)

    def _null_problems(self, declared: EntityType, columns: Mapping[str, pa.Array]) -> list[str]:
        required = [p for p in embedded_properties(declared) if not p.type.nullable]
        missing = (self._vectors.under(p.embed_model).unconfigured for p in required)
        unconfigured = next((error for error in missing if error is not None), None)
        return null_problems(declared, columns, unconfigured)

    # -- values -----------------------------------------------------------------------------

    def _value(self, value: Constant | Param) -> Any:
        return value.value if isinstance(value, Constant) else self._parameters[value.name]

    def _assigned(
        self, assignments: Sequence[Assign], rows: RowValues | None, count: int = 1
    ) -> dict[str, pa.Array]:
        """Columns of assigned values, by property. Without rows only constants are computed."""
        found: dict[str, pa.Array] = {}
        for assign in assignments:
            name, kind = assign.property, assign.type
            match assign.value:
                case Constant() | Param():
                    given = stored_value(self._value(assign.value), name, kind, self._blobs)
                    found[name] = _repeated(build_column([given], kind), count)
                case _ if rows is not None:
                    found[name] = stored_column(rows.evaluate(assign.value), name, kind)
        return found

    def _single(self, value: Expr) -> Any:
        """The value of a constant expression."""
        if isinstance(value, Constant | Param):
            return self._value(value)
        return RowValues({}, 1, self._parameters).evaluate(value)[0].as_py()


def rows_table(columns: Mapping[str, pa.Array], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def _repeated(value: pa.Array, count: int) -> pa.Array:
    return value if count == 1 else value.take(pa.array(np.zeros(count, np.int64)))
