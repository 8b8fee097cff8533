"""How many vectors of a snapshot are up to date, and which ones are not.

Read from texts and bindings; the vectors themselves stay where they are.
Tests: tests/behaviour/test_refills.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.identity import embed_column
from omnigraph.catalog.model import NodeType, Property
from omnigraph.json_structs import Document
from omnigraph.rows.bindings import GIVEN, VectorStates, bindings, vector_states
from omnigraph.storage.filters import And, IsNull, Not
from omnigraph.storage.table import Table


class StateCounts(Document, frozen=True):
    """The rows of a type by the state of one vector. Given vectors are ready or stale as well."""

    ready: int = 0
    pending: int = 0
    stale: int = 0
    empty: int = 0
    given: int = 0

    def __add__(self, other: StateCounts) -> StateCounts:
        return StateCounts(
            self.ready + other.ready,
            self.pending + other.pending,
            self.stale + other.stale,
            self.empty + other.empty,
            self.given + other.given,
        )

    @classmethod
    def of(cls, states: VectorStates) -> StateCounts:
        return cls(
            states.ready.true_count,
            states.pending.true_count,
            states.stale.true_count,
            states.empty.true_count,
            states.given.true_count,
        )


def count_states(
    table: Table, declared: NodeType, prop: Property, model: str | None
) -> StateCounts:
    """How many rows are in each state; `model` is the configured one, if there is any."""
    found = read_states(table, declared, prop, model)
    return sum((StateCounts.of(rows.states) for rows in found), StateCounts())


@dataclass(frozen=True, slots=True)
class RowStates:
    """Some rows: their ids, the texts of a vector, and its states."""

    ids: pa.Array
    texts: pa.Array
    states: VectorStates


def read_states(
    table: Table,
    declared: NodeType,
    prop: Property,
    model: str | None,
    fragment_ids: Collection[int] | None = None,
) -> Iterator[RowStates]:
    """The states of all rows, or of those in some fragments, batch by batch.

    A row from before there were bindings does not say what its vector stands for. It counts as given,
    for the text that is there.
    """
    assert prop.embed_source is not None
    names = table.schema.names
    text, bound = declared.properties[prop.embed_source].column, embed_column(prop.prop_id)
    columns = [column for column in (text, bound) if column in names]
    unbound = _unbound(table, prop.column, bound)
    for batch in table.scan(["id", *columns], fragment_ids=fragment_ids):
        found = dict(zip(batch.schema.names, batch.columns, strict=True))
        texts = found.get(text, pa.nulls(batch.num_rows, pa.utf8()))
        has_vector = pc.is_in(found["id"], value_set=unbound)
        if bound in found:
            has_vector = pc.or_(found[bound].is_valid(), has_vector)
        of_texts = found.get(bound, pa.nulls(batch.num_rows, pa.utf8()))
        if len(unbound):
            of_texts = pc.coalesce(of_texts, bindings(texts, GIVEN))
        states = vector_states(texts, has_vector, of_texts, model)
        yield RowStates(found["id"], texts, states)


def _unbound(table: Table, vector: str, bound: str) -> pa.Array:
    """The ids of rows that have a vector and nothing that says of what."""
    if vector not in table.schema.names:
        return pa.array([], pa.utf8())
    has_vector = Not(IsNull(vector))
    wanted = And((IsNull(bound), has_vector)) if bound in table.schema.names else has_vector
    return table.read(["id"], wanted).column("id").combine_chunks()
