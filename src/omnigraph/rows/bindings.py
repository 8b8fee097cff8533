"""Bindings of vectors to their texts, and the embedding states that follow from them.

Beside every `@embed` vector a hidden column holds `<hash of the text>:<model>`, or `given` for the
model when the vector was not computed here. Whether a vector is up to date is never stored: it
follows from the binding and the present text.
Tests: tests/unit/providers/test_bindings.py.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.identity import embed_column
from omnigraph.catalog.model import EntityType, Property
from omnigraph.rows.columns import row_schema
from omnigraph.rows.validation import is_present

GIVEN: Final = "given"
_NO_TEXT: Final = "-"
_DIGITS: Final = 32


def embedded_properties(declared: EntityType) -> tuple[Property, ...]:
    """The vectors of a type that are computed from a text."""
    return tuple(p for p in declared.properties.values() if p.embed_source is not None)


def vector_columns(declared: EntityType) -> list[str]:
    """The columns of those vectors and of their bindings."""
    found = embedded_properties(declared)
    return [*(p.name for p in found), *(embed_column(p.prop_id) for p in found)]


def binding_fields(declared: EntityType) -> tuple[pa.Field, ...]:
    """The columns of the bindings of a type's vectors."""
    found = embedded_properties(declared)
    return tuple(pa.field(embed_column(p.prop_id), pa.utf8()) for p in found)


def bound_schema(declared: EntityType) -> pa.Schema:
    """The columns of rows that are about to be written: with the binding of each vector."""
    return pa.schema([*row_schema(declared), *binding_fields(declared)])


def bindings(texts: pa.Array, model: str) -> pa.Array:
    """The binding of a vector of each text."""
    return pc.binary_join_element_wise(text_hashes(texts), model, ":")


def given_bindings(vectors: pa.Array, texts: pa.Array) -> pa.Array:
    """The bindings of vectors that came from outside; null where there is no vector."""
    if vectors.null_count == len(vectors):
        return pa.nulls(len(vectors), pa.utf8())
    bound = bindings(texts, GIVEN)
    return pc.if_else(vectors.is_valid(), bound, pa.scalar(None, pa.utf8()))


def given_for_unknown(vectors: pa.Array, bound: pa.Array) -> pa.Array:
    """The bindings of vectors whose text is about to change: one that was kept without is stale then."""
    unbound = pc.and_(vectors.is_valid(), bound.is_null())
    return pc.if_else(unbound, f"{_NO_TEXT}:{GIVEN}", bound)


def text_hashes(texts: pa.Array) -> pa.Array:
    """The hash of each text; a dash for a missing or blank one."""
    # Arrow has no such hash, and hashing a text takes no longer than making a Python string of it.
    hashes = [
        hashlib.sha256(text.encode()).hexdigest()[:_DIGITS] if present else _NO_TEXT
        for text, present in zip(texts.to_pylist(), is_present(texts).to_pylist(), strict=True)
    ]
    return pa.array(hashes, pa.utf8())


@dataclass(frozen=True, slots=True)
class VectorStates:
    """Masks of the rows in each state. A row is ready, pending, stale or empty."""

    ready: pa.Array
    pending: pa.Array
    """Text, but no vector."""
    stale: pa.Array
    """A vector of another text, or of another model than the configured one."""
    empty: pa.Array
    given: pa.Array
    """Vectors that came from outside; they are ready or stale as well."""
    has_text: pa.Array
    of_other_text: pa.Array
    """Stale because of the text."""


def vector_states(
    texts: pa.Array, has_vector: pa.Array, bound: pa.Array, model: str | None
) -> VectorStates:
    """The state of each row. Without a configured model, models are not compared.

    A vector without a binding was written by a program without bindings; it counts as given, for an
    unknown text.
    """
    has_text = is_present(texts)
    # Only the model may contain a colon.
    models = pc.replace_substring_regex(bound, pattern="^[^:]*:", replacement="")
    hashes = pc.replace_substring_regex(bound, pattern="(?s):.*$", replacement="")
    given = pc.and_(has_vector, pc.fill_null(pc.equal(models, GIVEN), True))
    same_text = pc.fill_null(pc.equal(hashes, text_hashes(texts)), False)
    up_to_date = pc.and_(has_vector, same_text)
    if model is not None:
        same_model = pc.or_(given, pc.fill_null(pc.equal(models, model), False))
        up_to_date = pc.and_(up_to_date, same_model)
    missing = pc.invert(has_vector)
    return VectorStates(
        ready=up_to_date,
        pending=pc.and_(missing, has_text),
        stale=pc.and_not(has_vector, up_to_date),
        empty=pc.and_not(missing, has_text),
        given=given,
        has_text=has_text,
        of_other_text=pc.and_not(has_vector, same_text),
    )
