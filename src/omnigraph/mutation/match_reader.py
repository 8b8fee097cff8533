"""Finds the rows of a match statement, as the statements before it left the graph.

While no table of the pattern has pending changes, the pattern is read on the pinned snapshot, with all
of its caches. Otherwise the changed tables of the pattern are copied into memory with their pending
rows, and the pattern is read on these copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.catalog.arrow import physical_schema
from omnigraph.catalog.model import Catalog, EntityType
from omnigraph.mutation.working import WorkingImage, WorkingTable
from omnigraph.plan.ir import BlockValue, Expr, Pattern, ReadPlan, walk
from omnigraph.read.budget import Meter, QueryBudget
from omnigraph.read.view import ReadView
from omnigraph.rows.columns import BLOB
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot
from omnigraph.versioning.snapshot_rows import stored_rows

if TYPE_CHECKING:
    from omnigraph.read.reader import Reader
    from omnigraph.storage.table import Table


@dataclass(frozen=True)
class MatchReader:
    """Reads patterns under one view. Without a `reader` nothing is cached between mutations.

    Each pattern may cost as much as the `budget` says.
    """

    tables: TableStore
    reader: Reader | None = None
    view: ReadView = ReadView.ALL
    budget: QueryBudget | None = None

    def rows(
        self,
        plan: ReadPlan,
        snapshot: Snapshot,
        image: WorkingImage,
        parameters: Mapping[str, object],
    ) -> pa.Table:
        """The rows that the pattern matches. What it reads is noted in the image."""
        from omnigraph.read.reader import Reader, ReadRequest

        touched = [image[declared] for declared in tables_of(plan, snapshot.catalog)]
        for table in touched:
            table.note_read()
        meter = self._meter()
        pending = [table for table in touched if not table.overlay.is_empty]
        reader = self.reader
        if pending:
            copies = {}
            for number, table in enumerate(pending):
                meter.check()
                copies[table.declared.table_key] = _copied(table, snapshot, number)
            snapshot, reader = snapshot.replacing(copies), None
        reader = reader or Reader(self.tables)
        return reader.rows(ReadRequest(plan, snapshot, None, self.view, meter), parameters)

    def _meter(self) -> Meter:
        return (self.budget or QueryBudget.from_environment()).start(None)


def _copied(table: WorkingTable, snapshot: Snapshot, number: int) -> Table:
    """A copy of a table with its pending changes. Blobs are there, without their content."""
    from omnigraph.storage.blobs import stored_schema
    from omnigraph.storage.columns import private_table
    from omnigraph.storage.stage import fit_rows

    declared, rows = table.declared, table.visible()
    for name in declared.blobs:
        column = rows.schema.get_field_index(name)
        rows = rows.set_column(column, name, _emptied(rows.column(name).combine_chunks()))
    schema = stored_schema(physical_schema(declared))
    content = fit_rows(stored_rows(declared, rows, schema), schema)
    location = snapshot.entry(declared.table_key).location
    return private_table(location, None, content, name=f"pending-{number}")


def _emptied(blobs: pa.Array) -> pa.Array:
    """Empty blobs where there are any."""
    data = pa.array([b""] * len(blobs), pa.large_binary())
    return pa.StructArray.from_arrays(
        [data, pa.nulls(len(blobs), pa.utf8())], fields=list(BLOB), mask=blobs.is_null()
    )


# -- what a read touches ------------------------------------------------------------------------


def tables_of(plan: ReadPlan, catalog: Catalog) -> list[EntityType]:
    """The types that a read may look at, with the ends of its edges, by table key."""
    names = set(_pattern_types(plan.pattern))
    for expression in plan.expressions():
        names.update(_block_types(expression))
    found: dict[str, EntityType] = {}
    for name in names:
        edge = catalog.edges.get(name)
        if edge is None:
            found[name] = catalog.nodes[name]
        else:
            ends = (catalog.nodes[edge.from_type], catalog.nodes[edge.to_type])
            found |= {declared.name: declared for declared in (edge, *ends)}
    return sorted(found.values(), key=lambda declared: declared.table_key)


def _pattern_types(pattern: Pattern) -> Iterator[str]:
    yield from pattern.types.values()
    for kinds in pattern.edge_types.values():
        yield from kinds
    for edge in pattern.edges:
        yield from edge.edge_types
    for condition in pattern.own_filters():
        yield from _block_types(condition.condition)
    for block in pattern.blocks():
        yield from _pattern_types(block.inner)


def _block_types(expression: Expr) -> Iterator[str]:
    for part in walk(expression):
        if isinstance(part, BlockValue):
            yield from _pattern_types(part.block.inner)
            if part.argument is not None:
                yield from _block_types(part.argument)
