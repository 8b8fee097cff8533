"""The columns of new properties: empty, filled with one value, or with vectors of stored texts.

Tests: tests/behaviour/test_schema_additions.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.catalog.arrow import arrow_type
from omnigraph.catalog.identity import embed_column
from omnigraph.catalog.model import EntityType, Property
from omnigraph.embed.documents import DocumentVectors
from omnigraph.engine.schema.fragments import EachFragment
from omnigraph.engine.schema.work import ColumnChange
from omnigraph.errors import ConstraintError
from omnigraph.language.backfill import backfill_value
from omnigraph.rows.bindings import bindings
from omnigraph.storage.columns import NewValues, fill_fragment, stage_columns
from omnigraph.storage.stage import StagedChange
from omnigraph.storage.table import Table


def stage_change(table: Table, change: ColumnChange, each: EachFragment) -> StagedChange:
    """The change of a table's columns. Raises what keeps a required vector from being computed."""
    empty: list[pa.Field] = []
    constants: list[tuple[pa.Field, pa.Array]] = []
    computed: list[Property] = []
    for prop in change.added:
        column = pa.field(prop.column, arrow_type(prop.type), nullable=prop.type.nullable)
        text = prop.backfill
        if text is not None:
            constants.append((column, pa.array([backfill_value(text, prop.type)], column.type)))
        elif prop.type.nullable:
            empty.append(column)
        else:
            computed.append(prop)
        if prop.embed_source is not None and prop not in computed:
            empty.append(pa.field(embed_column(prop.prop_id), pa.utf8()))
    values = _Values(change.declared, tuple(constants), tuple(computed))
    return stage_columns(
        table,
        drop=[name for name in change.dropped if name in table.schema.names],
        empty=empty,
        filled=values.columns() if constants or computed else None,
        fill=partial(_filled, each, change.declared),
    )


def _filled(
    each: EachFragment, declared: EntityType, table: Table, values: NewValues
) -> Sequence[Any]:
    numbers = [fragment.id for fragment in table.fragments()]
    return each.do(f"fill {declared.table_key}", table, numbers, partial(fill_fragment, values))


@dataclass(frozen=True, slots=True)
class _Values:
    """What new columns hold in rows that are there already. It travels to whoever fills them."""

    declared: EntityType
    constants: tuple[tuple[pa.Field, pa.Array], ...]
    computed: tuple[Property, ...]
    vectors: DocumentVectors = field(default_factory=DocumentVectors)

    def columns(self) -> NewValues:
        sources = tuple(dict.fromkeys(self._source(prop).column for prop in self.computed))
        return NewValues(self.schema, sources or ("id",), self)

    @property
    def schema(self) -> pa.Schema:
        fields = [column for column, _ in self.constants]
        for prop in self.computed:
            fields += _vector_fields(prop)
        return pa.schema(fields)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [_repeated(value, batch.num_rows) for _, value in self.constants]
        for prop in self.computed:
            columns += self._embedded(prop, batch)
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _source(self, prop: Property) -> Property:
        assert prop.embed_source is not None, "other required properties have a backfill"
        return self.declared.properties[prop.embed_source]

    def _embedded(self, prop: Property, batch: pa.RecordBatch) -> Sequence[pa.Array]:
        texts = batch.column(self._source(prop).column)
        name = f"{self.declared.name}.{prop.name}"
        if texts.null_count:
            message = f"'{name}' is required, but there are rows without '{prop.embed_source}'"
            raise ConstraintError(f"{message}, the text it is computed from")
        assert prop.type.dimension is not None, "only vectors are computed"
        mine = self.vectors.under(prop.embed_model)
        found = mine.of(texts, prop.type.dimension)
        if mine.failure is not None:
            raise mine.failure
        model = mine.model
        assert model is not None, "vectors were computed"
        return found, bindings(texts, model)


def _vector_fields(prop: Property) -> Sequence[pa.Field]:
    return (
        pa.field(prop.column, arrow_type(prop.type), nullable=False),
        pa.field(embed_column(prop.prop_id), pa.utf8()),
    )


def _repeated(value: pa.Array, times: int) -> pa.Array:
    return value.take(pa.array(np.zeros(times, np.int64)))
