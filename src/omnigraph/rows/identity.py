"""Derived ids for whole columns; the text of each value is that of `omnigraph.catalog.keys`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.constraints import group_scalar, identity_group
from omnigraph.catalog.keys import canonical_text
from omnigraph.catalog.model import EntityType
from omnigraph.language.types import Scalar
from omnigraph.rows.text import json_escaped


def derived_ids(declared: EntityType, columns: Mapping[str, pa.Array]) -> pa.Array | None:
    """The id each row gets from its key or tuple, null where a member is null.

    None when rows of the type get no id from their values. Floats must be finite.
    """
    group = identity_group(declared)
    if group is None:
        return None
    texts = [key_texts(columns[name], group_scalar(declared, name)) for name in group]
    if len(texts) == 1:
        return texts[0]
    return _json_arrays(texts)


def key_texts(column: pa.Array, scalar: Scalar) -> pa.Array:
    """The canonical text of each key value."""
    if scalar is Scalar.STRING:
        return column
    if scalar is Scalar.DATE:
        column = column.view(pa.int32())
    elif scalar is Scalar.DATETIME:
        column = column.view(pa.int64())
    elif scalar.is_float:
        return _float_texts(column, scalar)
    return pc.cast(column, pa.utf8())


def _float_texts(column: pa.Array, scalar: Scalar) -> pa.Array:
    # The shortest text is found one value at a time; float keys are rare and repeat themselves.
    encoded = column.dictionary_encode()
    texts = [canonical_text(v, scalar) for v in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.utf8()).take(encoded.indices)


def _json_arrays(texts: Sequence[pa.Array]) -> pa.Array:
    parts: list[object] = ['["', json_escaped(texts[0])]
    for text in texts[1:]:
        parts += ['","', json_escaped(text)]
    return pc.binary_join_element_wise(*parts, '"]', "")
