"""Vectors of `@embed` properties: their states, pending texts, and the column kernel that computes them.

Loads, mutations and `embed` share the kernel. It requests vectors through `DocumentVectors` and reports the
ones that could not be computed. States are derived from texts and bindings; stored vectors are not read.
Tests: tests/behaviour/test_embeddings.py, test_embed.py, tests/spark/test_embedding.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.constraints import missing_value, uncomputable_vector
from omnigraph.catalog.identity import embed_column
from omnigraph.catalog.model import EntityType, NodeType, Property
from omnigraph.errors import EmbeddingError, EmbeddingNotConfigured
from omnigraph.providers.configured import stored_name
from omnigraph.providers.documents import DocumentVectors
from omnigraph.rows.bindings import (
    GIVEN,
    VectorStates,
    bindings,
    embedded_properties,
    given_bindings,
    given_for_unknown,
    vector_states,
)
from omnigraph.rows.validation import Columns, rows_where
from omnigraph.spark.tasks import FragmentGroup, fragment_groups
from omnigraph.storage.filters import And, IsNull, Not
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.commits import Warning
from omnigraph.versioning.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class StateCounts:
    """Row counts of a type by the state of one vector. Given vectors count as ready or stale too."""

    ready: int = 0
    pending: int = 0
    stale: int = 0
    empty: int = 0
    given: int = 0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def count_states(
    table: Table, declared: NodeType, prop: Property, model: str | None
) -> StateCounts:
    """Count rows by state; `model` is the configured one, if any."""
    counts = dict.fromkeys(("ready", "pending", "stale", "empty", "given"), 0)
    for rows in read_states(table, declared, prop, model):
        for state in counts:
            counts[state] += getattr(rows.states, state).true_count
    return StateCounts(**counts)


@dataclass(frozen=True, slots=True)
class RowStates:
    """Ids of some rows, the source texts of a vector, and its states."""

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
    """The states of all rows, or of those in some fragments, in batches.

    A vector from before bindings were stored counts as given for the present text.
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
    """The ids of rows with a vector but no binding."""
    if vector not in table.schema.names:
        return pa.array([], pa.utf8())
    has_vector = Not(IsNull(vector))
    wanted = And((IsNull(bound), has_vector)) if bound in table.schema.names else has_vector
    return table.read(["id"], wanted).column("id").combine_chunks()


VectorProperties = Mapping[str, Sequence[Property]]
"""Vector properties by the name of their node type."""


@dataclass(frozen=True, slots=True)
class TextSize:
    """Number and bytes of texts, including duplicates."""

    texts: int
    bytes: int


@dataclass(frozen=True, slots=True)
class SharedVector:
    """A vector property of the rows in some fragments."""

    type: str
    prop: Property
    fragments: FragmentGroup


@dataclass(frozen=True, slots=True)
class PendingTexts:
    """Texts of one snapshot whose vectors are missing or stale. Pickled for tasks.

    `selects` picks the rows to embed. `model` is the configured one; properties with a model in the schema
    use that.
    """

    snapshot: Snapshot
    tables: TableStore
    properties: VectorProperties
    selects: Callable[[VectorStates], pa.Array]
    model: str

    def shares(self) -> tuple[SharedVector, ...]:
        """All rows, split for tasks."""
        found = []
        for name, properties in self.properties.items():
            table = self.snapshot.open(self.tables, self.snapshot.catalog.nodes[name].table_key)
            fragments = fragment_groups(table)
            found += [SharedVector(name, p, share) for p in properties for share in fragments]
        return tuple(found)

    def size(self) -> TextSize:
        """The size of all texts, without keeping them."""
        texts = size = 0
        for name, properties in self.properties.items():
            for prop in properties:
                for part in self.read(name, prop):
                    texts += len(part)
                    size += part.nbytes
        return TextSize(texts, size)

    def read(
        self, type: str, prop: Property, fragments: Collection[int] | None = None
    ) -> Iterator[pa.Array]:
        """The texts of a property to embed, in batches."""
        node = self.snapshot.catalog.nodes[type]
        table = self.snapshot.open(self.tables, node.table_key)
        model = self.model if prop.embed_model is None else stored_name(prop.embed_model)
        for rows in read_states(table, node, prop, model, fragments):
            yield rows.texts.filter(self.selects(rows.states))


# -- computing vectors --------------------------------------------------------------------------


_NO_BINDING: Final = pa.scalar(None, pa.utf8())

RowSelector = Callable[[VectorStates], pa.Array]
"""Selects the rows, among those with text, whose vector is computed."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Row masks of one vector property after embedding.

    `outdated` marks rows that still have an old vector although a new one was due.
    """

    computed: pa.Array
    pending: pa.Array
    outdated: pa.Array


def missing_or_outdated(states: VectorStates) -> pa.Array:
    """Vectors that are missing, and those computed from an earlier text."""
    return pc.or_(states.pending, pc.and_not(states.of_other_text, states.given))


def with_given_bindings(
    declared: EntityType, columns: Columns, names: Iterable[str]
) -> dict[str, pa.Array]:
    """Bind the named vectors as given."""
    bound = dict(columns)
    for name in names:
        prop = declared.properties[name]
        bound[embed_column(prop.prop_id)] = given_bindings(columns[name], _texts(prop, columns))
    return bound


def with_outdated_bindings(
    declared: EntityType, columns: Columns, assigned: Collection[str]
) -> dict[str, pa.Array]:
    """Bind unbound vectors as given where only their text is assigned a new value."""
    bound = dict(columns)
    for prop in embedded_properties(declared):
        if prop.embed_source in assigned and prop.name not in assigned:
            hidden = embed_column(prop.prop_id)
            bound[hidden] = given_for_unknown(columns[prop.name], columns[hidden])
    return bound


def with_kept_vectors(
    declared: EntityType, columns: Columns, previous: pa.Table, vectors: DocumentVectors
) -> dict[str, pa.Array]:
    """Keep the vectors of replaced rows whose text is unchanged.

    `previous` has the ids, vectors and bindings of those rows, in any order. Given vectors are not kept.
    """
    kept = dict(columns)
    at = pc.index_in(columns["id"], value_set=_column(previous, "id"))
    for prop in embedded_properties(declared):
        mine = vectors.under(prop.embed_model)
        texts, hidden = _texts(prop, columns), embed_column(prop.prop_id)
        old, bound = (_column(previous, name).take(at) for name in (prop.name, hidden))
        states = vector_states(texts, old.is_valid(), bound, mine.model)
        usable = pc.and_not(pc.and_(states.ready, states.has_text), states.given)
        usable = pc.and_(usable, columns[prop.name].is_null())
        if pc.any(usable).as_py():
            kept[prop.name] = pc.if_else(usable, old, columns[prop.name])
            kept[hidden] = pc.if_else(usable, bound, columns[hidden])
            if mine.model is not None:
                mine.remember(texts.filter(usable), old.filter(usable))
    return kept


def embed_columns(
    properties: Iterable[Property],
    columns: Columns,
    vectors: DocumentVectors,
    selects: RowSelector = missing_or_outdated,
) -> tuple[dict[str, pa.Array], dict[str, Outcome]]:
    """Compute the selected vectors; returns the columns and the outcome by property.

    A computed vector is removed together with its text.
    """
    embedded, outcomes = dict(columns), {}
    for prop in properties:
        vector, bound, outcome = _embed(prop, columns, vectors.under(prop.embed_model), selects)
        embedded[prop.name], embedded[embed_column(prop.prop_id)] = vector, bound
        outcomes[prop.name] = outcome
    return embedded, outcomes


def _embed(
    prop: Property, columns: Columns, vectors: DocumentVectors, selects: RowSelector
) -> tuple[pa.Array, pa.Array, Outcome]:
    texts, vector = _texts(prop, columns), columns[prop.name]
    bound = columns[embed_column(prop.prop_id)]
    states = vector_states(texts, vector.is_valid(), bound, vectors.model)
    orphaned = pc.and_not(pc.and_not(states.of_other_text, states.given), states.has_text)
    if pc.any(orphaned).as_py():
        vector = pc.if_else(orphaned, pa.scalar(None, vector.type), vector)
        bound = pc.if_else(orphaned, _NO_BINDING, bound)
    wanted = pc.and_(selects(states), states.has_text)
    computed = pa.repeat(False, len(wanted))
    if pc.any(wanted).as_py() and vectors.can_answer():
        found = vectors.of(texts.filter(wanted), vector.type.list_size)
        found = found.take(_numbered(wanted))
        computed = found.is_valid()
        vector = pc.if_else(computed, found, vector)
        bound = pc.if_else(computed, bindings(texts, str(vectors.model)), bound)
    left = pc.and_not(wanted, computed)
    outcome = Outcome(
        computed=computed,
        pending=pc.and_not(states.pending, computed),
        outdated=pc.and_not(left, states.pending),
    )
    return vector, bound, outcome


def unwritable(
    declared: EntityType, columns: Columns, vectors: DocumentVectors
) -> Iterator[tuple[int, str, str]]:
    """Rows that lack a required vector: row, property and problem."""
    for prop in embedded_properties(declared):
        if prop.type.nullable or not columns[prop.name].null_count:
            continue
        states = vector_states(
            _texts(prop, columns),
            columns[prop.name].is_valid(),
            columns[embed_column(prop.prop_id)],
            None,
        )
        failure = vectors.under(prop.embed_model).failure
        reason = uncomputable_vector(declared, prop, why_not(failure))
        for row in rows_where(states.pending):
            yield row, prop.name, reason
        for row in rows_where(states.empty):
            yield row, prop.name, missing_value(prop)


def why_not(failure: EmbeddingError | None) -> str:
    """Why a vector was not computed, as part of a sentence."""
    if isinstance(failure, EmbeddingNotConfigured):
        return f"{failure.setting} is not set"
    return str(failure)


def embedding_warnings(
    declared: EntityType, outcomes: Iterable[Mapping[str, Outcome]], vectors: DocumentVectors
) -> Iterator[Warning]:
    """Warnings for vectors that are still missing or outdated after a write."""
    parts = list(outcomes)
    for name in sorted({name for part in parts for name in part}):
        failure = vectors.under(declared.properties[name].embed_model).failure
        has_answer = failure is not None and not isinstance(failure, EmbeddingNotConfigured)
        because = f"; {failure}" if has_answer else ""
        where = f"{declared.name}.{name}"
        pending = sum(part[name].pending.true_count for part in parts)
        if pending:
            message = f"{where} has text but no vector{because}"
            yield Warning("embedding_pending", message, pending)
        outdated = sum(part[name].outdated.true_count for part in parts)
        if outdated:
            message = f"{where} still has the vector of an earlier text{because}"
            yield Warning("embedding_stale", message, outdated)


def _texts(prop: Property, columns: Columns) -> pa.Array:
    assert prop.embed_source is not None
    return columns[prop.embed_source]


def _numbered(mask: pa.Array) -> pa.Array:
    """The index of each selected row among those selected; null for the others."""
    before = pc.subtract(pc.cumulative_sum(mask.cast(pa.int64())), 1)
    return pc.if_else(mask, before, pa.scalar(None, pa.int64()))


def _column(rows: pa.Table, name: str) -> pa.Array:
    return rows.column(name).combine_chunks()
