"""Vectors of rows that are about to be written: kept, computed, or left for later.

A kernel over columns, the same for loads, mutations and refills. It asks the provider through
`DocumentVectors` and decides nothing about failures: what could not be computed is in its outcome.
Tests: tests/behaviour/test_embeddings.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.constraints import missing_value, uncomputable_vector
from omnigraph.catalog.identity import embed_column
from omnigraph.catalog.model import EntityType, Property
from omnigraph.embed.documents import DocumentVectors
from omnigraph.errors import EmbeddingError, EmbeddingNotConfigured
from omnigraph.rows.bindings import (
    VectorStates,
    bindings,
    embedded_properties,
    given_bindings,
    given_for_unknown,
    vector_states,
)
from omnigraph.rows.validation import Columns, rows_where
from omnigraph.versioning.commits import Warning

_NO_BINDING: Final = pa.scalar(None, pa.utf8())

Due = Callable[[VectorStates], pa.Array]
"""Picks the rows, among those with text, whose vector is to be computed."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one vector property, as masks of the rows."""

    computed: pa.Array
    pending: pa.Array
    outdated: pa.Array
    """A vector was due to be computed anew and is still the old one."""


def due_on_write(states: VectorStates) -> pa.Array:
    """Vectors that are missing, and those computed from a text that is there no more."""
    return pc.or_(states.pending, pc.and_not(states.of_other_text, states.given))


def with_given_bindings(
    declared: EntityType, columns: Columns, names: Iterable[str]
) -> dict[str, pa.Array]:
    """The columns with the named vectors bound as given."""
    bound = dict(columns)
    for name in names:
        prop = declared.properties[name]
        bound[embed_column(prop.prop_id)] = given_bindings(columns[name], _texts(prop, columns))
    return bound


def with_outdated_bindings(
    declared: EntityType, columns: Columns, assigned: Collection[str]
) -> dict[str, pa.Array]:
    """The columns of rows some of whose texts are assigned anew, but not the vectors of these."""
    bound = dict(columns)
    for prop in embedded_properties(declared):
        if prop.embed_source in assigned and prop.name not in assigned:
            hidden = embed_column(prop.prop_id)
            bound[hidden] = given_for_unknown(columns[prop.name], columns[hidden])
    return bound


def with_kept_vectors(
    declared: EntityType, columns: Columns, previous: pa.Table, vectors: DocumentVectors
) -> dict[str, pa.Array]:
    """The columns, with vectors from the rows they replace where those stand for the same text.

    `previous` has the id, vectors and bindings of such rows, in any order. A vector that was given
    for an earlier row is not taken over.
    """
    kept = dict(columns)
    place = pc.index_in(columns["id"], value_set=_column(previous, "id"))
    for prop in embedded_properties(declared):
        mine = vectors.under(prop.embed_model)
        texts, hidden = _texts(prop, columns), embed_column(prop.prop_id)
        old, bound = (_column(previous, name).take(place) for name in (prop.name, hidden))
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
    due: Due = due_on_write,
) -> tuple[dict[str, pa.Array], dict[str, Outcome]]:
    """The columns with vectors computed where they are due, and the outcome by property.

    A vector that was computed from a text goes when the text does.
    """
    embedded, outcomes = dict(columns), {}
    for prop in properties:
        vector, bound, outcome = _embed(prop, columns, vectors.under(prop.embed_model), due)
        embedded[prop.name], embedded[embed_column(prop.prop_id)] = vector, bound
        outcomes[prop.name] = outcome
    return embedded, outcomes


def _embed(
    prop: Property, columns: Columns, vectors: DocumentVectors, due: Due
) -> tuple[pa.Array, pa.Array, Outcome]:
    texts, vector = _texts(prop, columns), columns[prop.name]
    bound = columns[embed_column(prop.prop_id)]
    states = vector_states(texts, vector.is_valid(), bound, vectors.model)
    orphaned = pc.and_not(pc.and_not(states.of_other_text, states.given), states.has_text)
    if pc.any(orphaned).as_py():
        vector = pc.if_else(orphaned, pa.scalar(None, vector.type), vector)
        bound = pc.if_else(orphaned, _NO_BINDING, bound)
    wanted = pc.and_(due(states), states.has_text)
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
    """Rows without a vector that must have one: row, property and what is wrong."""
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
    """Why a vector was not computed, as a part of a sentence."""
    if isinstance(failure, EmbeddingNotConfigured):
        return f"{failure.setting} is not set"
    return str(failure)


def embedding_warnings(
    declared: EntityType, outcomes: Iterable[Mapping[str, Outcome]], vectors: DocumentVectors
) -> Iterator[Warning]:
    """Vectors that are still missing, or still those of earlier texts, in parts of one write."""
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
    """Of each row that is in the mask its number among those; null for the others."""
    before = pc.subtract(pc.cumulative_sum(mask.cast(pa.int64())), 1)
    return pc.if_else(mask, before, pa.scalar(None, pa.int64()))


def _column(rows: pa.Table, name: str) -> pa.Array:
    return rows.column(name).combine_chunks()
